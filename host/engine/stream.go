package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/session/sessionpb"
)

// answer is what a model has said in one step, as far as it has come.
type answer struct {
	model    string // its name
	provider string
	blocks   []*block
	calls    []model.ToolCall
	usage    model.Usage
	finish   model.Finish
	bytes    int // streamed
}

// block is a stretch of text or of reasoning.
type block struct {
	text      strings.Builder
	reasoning bool
	done      *model.Reasoning // of reasoning that ended
}

// take adds an event of the stream.
func (a *answer) take(ev model.Event) {
	switch {
	case ev.Text != "":
		a.open(false).text.WriteString(ev.Text)
		a.bytes += len(ev.Text)
	case ev.Reasoning != "":
		a.open(true).text.WriteString(ev.Reasoning)
		a.bytes += len(ev.Reasoning)
	case ev.ReasoningDone != nil:
		done := *ev.ReasoningDone
		b := a.open(true)
		if done.Text == "" {
			done.Text = b.text.String()
		}
		if done.Provider == "" {
			done.Provider = a.provider
		}
		b.done = &done
	case ev.ToolCall != nil:
		a.calls = append(a.calls, *ev.ToolCall)
	case ev.Usage != nil:
		a.usage = *ev.Usage
	case ev.Finish != 0:
		a.finish = ev.Finish
	}
}

// open is the block that a piece belongs to: the last one, if it is of that
// kind and has not ended.
func (a *answer) open(reasoning bool) *block {
	if n := len(a.blocks); n > 0 {
		if b := a.blocks[n-1]; b.reasoning == reasoning && b.done == nil {
			return b
		}
	}
	b := &block{reasoning: reasoning}
	a.blocks = append(a.blocks, b)
	return b
}

// text is all text of the answer.
func (a *answer) text() string {
	var b strings.Builder
	for _, block := range a.blocks {
		if !block.reasoning {
			b.WriteString(block.text.String())
		}
	}
	return b.String()
}

// payloads are the items of the reasoning and the text, in the order they
// came. The calls of an answer that did not end are no part of it: they were
// not run.
func (a *answer) payloads(partial bool) []*sessionpb.Payload {
	var out []*sessionpb.Payload
	for _, b := range a.blocks {
		var p *sessionpb.Payload
		switch {
		case !b.reasoning && b.text.Len() > 0:
			p = textPayload(b.text.String(), a.model)
		case b.reasoning && b.done != nil:
			p = reasoningPayload(b.done, a.model)
		case b.reasoning && b.text.Len() > 0:
			p = reasoningPayload(&model.Reasoning{Text: b.text.String(), Provider: a.provider}, a.model)
		default:
			continue
		}
		p.Partial = partial
		out = append(out, p)
	}
	return out
}

// stream sends one request and collects its answer. At the first word of it
// a replaces shown, what an attempt before has left. The error is a
// *model.Error, or the cause that ended ctx.
func (l *Live) stream(ctx context.Context, p model.Provider, req *model.Request, shown **answer) (*answer, error) {
	a := &answer{model: req.Model, provider: providerOf(req.Model)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	received := pump(ctx, p, req)
	idle := newIdleTimer(l.e.Clock, l.e.Limits.StreamTimeout)
	defer func() { idle.stop() }()
	for {
		select {
		case <-ctx.Done():
			return a, context.Cause(ctx)
		case <-idle.due:
			if idle.expired() {
				return a, &model.Error{Class: model.ClassNetwork, Provider: a.provider,
					Message: fmt.Sprintf("no data for %s", l.e.Limits.StreamTimeout)}
			}
		case <-l.partial.timer:
			l.partial.overdue(a)
		case r, more := <-received:
			if !more {
				return a, ended(ctx, a)
			}
			if r.err != nil {
				return a, asModelError(ctx, r.err, a.provider)
			}
			idle.touch()
			a.take(r.event)
			l.show(r.event)
			if a.bytes > 0 {
				*shown = a
				l.partial.grown(a)
			}
		}
	}
}

// idleTimer tells when nothing has come for a while. Touching it is cheap.
type idleTimer struct {
	clock Clock
	limit time.Duration
	last  time.Time
	due   <-chan struct{}
	stop  func()
}

func newIdleTimer(c Clock, limit time.Duration) *idleTimer {
	t := &idleTimer{clock: c, limit: limit, last: c.Now()}
	t.due, t.stop = after(c, limit)
	return t
}

func (t *idleTimer) touch() { t.last = t.clock.Now() }

// expired is asked when due; if something has come meanwhile, the rest of the
// time is waited for.
func (t *idleTimer) expired() bool {
	left := t.limit - t.clock.Now().Sub(t.last)
	if left <= 0 {
		return true
	}
	t.due, t.stop = after(t.clock, left)
	return false
}

// show publishes what a person may see of an event.
func (l *Live) show(ev model.Event) {
	switch {
	case ev.Text != "":
		l.events.publish(TextDelta{ev.Text})
	case ev.Reasoning != "":
		l.events.publish(ReasoningDelta{ev.Reasoning})
	case ev.ToolCallDelta != nil:
		l.events.publish(CallDelta{ID: ev.ToolCallDelta.ID, Name: ev.ToolCallDelta.Name, InputBytes: ev.ToolCallDelta.InputBytes})
	}
}

type received struct {
	event model.Event
	err   error
}

// pump reads a stream in a goroutine of its own, so that a provider that hangs
// cannot hold up an interrupt. It ends with ctx, or when the provider wakes up.
func pump(ctx context.Context, p model.Provider, req *model.Request) <-chan received {
	out := make(chan received, 64)
	go func() {
		defer close(out)
		for ev, err := range p.Stream(ctx, req) {
			select {
			case out <- received{ev, err}:
			case <-ctx.Done():
				return
			}
			if err != nil || ev.Finish != 0 {
				return
			}
		}
	}()
	return out
}

// ended is the error of a stream that has come to its end: none if it said so.
func ended(ctx context.Context, a *answer) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case a.finish == 0:
		return &model.Error{Class: model.ClassMalformed, Provider: a.provider, Message: "the answer broke off without an end"}
	case a.finish == model.FinishRefused:
		return &model.Error{Class: model.ClassRefused, Provider: a.provider, Message: "the provider withheld the answer"}
	}
	return nil
}

func asModelError(ctx context.Context, err error, provider string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var failed *model.Error
	if errors.As(err, &failed) {
		return err
	}
	return &model.Error{Class: model.ClassUnknown, Provider: provider, Message: err.Error(), Err: err}
}
