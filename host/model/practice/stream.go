package practice

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/boughdev/bough/host/model"
)

// reply is one answer: what is said, and then the calls.
type reply struct {
	pieces []piece
	calls  []step
}

// piece is some text, some reasoning, or a pause; one of them.
type piece struct {
	text, reasoning string
	pause           time.Duration
}

func (r *reply) say(format string, args ...any) {
	r.pieces = append(r.pieces, piece{text: fmt.Sprintf(format, args...)})
}

// stream emits the answer in small pieces, as other models do.
func (r reply) stream(ctx context.Context, req *model.Request, yield func(model.Event, error) bool) {
	e := &emitter{ctx: ctx, yield: yield}
	usage := model.Usage{InputTokens: 0, OutputTokens: 1}
	usage.CacheReadTokens, usage.InputTokens = spent(req)
	said := 0
	for _, p := range r.pieces {
		switch {
		case p.pause > 0:
			e.pause(p.pause)
		case p.reasoning != "":
			e.words(p.reasoning, func(s string) model.Event { return model.Event{Reasoning: s} })
			e.emit(model.Event{ReasoningDone: &model.Reasoning{Text: p.reasoning, Provider: Name}})
			usage.ReasoningTokens += tokens(len(p.reasoning))
			said += len(p.reasoning)
		default:
			e.words(p.text, func(s string) model.Event { return model.Event{Text: s} })
			said += len(p.text)
		}
	}
	for i, c := range r.calls {
		e.call(&model.ToolCall{ID: fmt.Sprintf("practice-%d-%d", len(req.Messages), i+1), Name: c.tool, Input: c.input})
		said += len(c.input)
	}
	usage.OutputTokens += tokens(said)
	e.emit(model.Event{Usage: &usage})
	finish := model.FinishStop
	if len(r.calls) > 0 {
		finish = model.FinishToolCalls
	}
	e.emit(model.Event{Finish: finish})
}

// emitter emits until the reader or ctx has had enough.
type emitter struct {
	ctx     context.Context
	yield   func(model.Event, error) bool
	stopped bool
}

func (e *emitter) emit(ev model.Event) {
	if e.stopped {
		return
	}
	if err := e.ctx.Err(); err != nil {
		e.stopped = true
		e.yield(model.Event{}, err)
		return
	}
	e.stopped = !e.yield(ev, nil)
}

func (e *emitter) words(text string, event func(string) model.Event) {
	for w := range strings.SplitAfterSeq(text, " ") {
		if w != "" {
			e.emit(event(w))
		}
	}
}

// call tells how far the call is before it is complete.
func (e *emitter) call(c *model.ToolCall) {
	const atOnce, most = 64, 32
	size := max(atOnce, len(c.Input)/most)
	for n := min(size, len(c.Input)); ; n = min(n+size, len(c.Input)) {
		e.emit(model.Event{ToolCallDelta: &model.ToolCallDelta{ID: c.ID, Name: c.Name, InputBytes: n}})
		if n == len(c.Input) || e.stopped {
			break
		}
	}
	e.emit(model.Event{ToolCall: c})
}

func (e *emitter) pause(d time.Duration) {
	if e.stopped {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.ctx.Done():
		e.stopped = true
		e.yield(model.Event{}, e.ctx.Err())
	}
}

// tokens is the usual rule of thumb.
func tokens(bytes int) int { return (bytes + 3) / 4 }

// spent is what a request costs: what the request before it had too counts as
// read from a cache.
func spent(r *model.Request) (cached, fresh int) {
	before := 0
	for i := range r.Messages {
		if r.Messages[i].Role == model.Assistant {
			before = i
		}
	}
	fixed := len(r.System)
	for _, t := range r.Tools {
		fixed += len(t.Description) + len(t.InputSchema)
	}
	if before > 0 {
		cached = tokens(fixed + size(r.Messages[:before]))
		fixed = 0
	}
	return cached, tokens(fixed + size(r.Messages[before:]))
}

// size is that of messages in bytes; a picture costs as much as some text.
func size(messages []model.Message) int {
	const picture = 4000
	n := 0
	for i := range messages {
		for j := range messages[i].Parts {
			switch p := &messages[i].Parts[j]; {
			case p.Image != nil:
				n += picture
			case p.Reasoning != nil:
				n += len(p.Reasoning.Text)
			case p.ToolCall != nil:
				n += len(p.ToolCall.Name) + len(p.ToolCall.Input)
			case p.ToolResult != nil:
				n += len(p.ToolResult.Text) + picture*len(p.ToolResult.Images)
			default:
				n += len(p.Text)
			}
		}
	}
	return n
}
