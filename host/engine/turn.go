package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/tool"
)

// What the model is told about the course of a turn.
const (
	interruptedText = "The person interrupted this turn. Do not go on with it unless they ask for it."
	closedText      = "bough was closed during this turn. Do not go on with it unless the person asks for it."
	resumedText     = "bough was restarted in the middle of this turn, and the person wants it to go on. What was running then was stopped, and is not run again by itself: look what was done before you go on."
	dismissedText   = "bough was restarted in the middle of the turn before, and the person does not want it to go on."
)

// turnRun is one turn under way. It belongs to the session's goroutine.
type turnRun struct {
	*Live
	started time.Time
	outcome Outcome
	// spent is what was used since usage was last stored.
	spent    model.Usage
	requests uint64
}

// ending is how a turn comes to its end: with what remains to be stored.
type ending struct {
	reason   Reason
	err      error
	payloads []*sessionpb.Payload
	stored   bool // the end of the turn is stored already
}

// runTurn is a whole turn. stored gets the outcome of storing its first item.
func (l *Live) runTurn(ctx context.Context, turn *Turn, s start, stored chan<- error) {
	r := &turnRun{Live: l, started: l.e.Clock.Now()}
	change := session.TurnBegin
	if s.resume {
		change = session.TurnResume
	}
	if err := l.append([]*sessionpb.Payload{s.payload}, session.AppendOptions{Turn: change}); err != nil {
		l.free()
		stored <- err
		return
	}
	open := l.sess.Record().Proto().GetOpenTurn()
	turn.prompt = session.Ref{Segment: open.GetPrompt().GetSegment(), Number: open.GetPrompt().GetNumber()}
	l.setPending(nil)
	stored <- nil
	l.events.publish(TurnStarted{Prompt: turn.prompt, Starts: int(open.GetStarts())})

	if limit := l.e.Limits.TurnTime; limit > 0 {
		stop := l.e.Clock.AfterFunc(limit, func() { l.cancelTurn(errTimeLimit) })
		defer stop()
	}
	r.finish(ctx, r.steps(ctx))
	turn.outcome = r.outcome
	l.free()
	l.events.publish(TurnEnded{r.outcome})
	close(turn.done)
	if err := l.sess.Settle(context.WithoutCancel(ctx)); err != nil {
		l.e.Logger.WarnContext(ctx, "items were not packed", "session", l.id, "error", err)
	}
}

// steps asks the model and carries out its calls until an answer has none.
func (r *turnRun) steps(ctx context.Context) ending {
	if err := r.load(ctx); err != nil {
		return ending{reason: ReasonError, err: cmp.Or(context.Cause(ctx), fmt.Errorf("read the conversation: %w", err))}
	}
	name := r.sess.Record().Proto().GetModel()
	provider, err := r.e.Models(ctx, name)
	if err != nil {
		return ending{reason: ReasonError, err: cmp.Or(context.Cause(ctx), unknownModel(name, err))}
	}
	r.ws.forget() // its process may be another one now, or the path
	for {
		if most := r.e.Limits.MaxTurns; most > 0 && r.outcome.Steps >= most {
			return ending{reason: ReasonMaxTurns}
		}
		a, err := r.answer(ctx, provider)
		r.outcome.Text, r.outcome.Finish = a.text(), a.finish
		if err != nil {
			return ending{reason: ReasonError, err: err, payloads: a.payloads(true)}
		}
		r.outcome.Steps++
		calls, err := r.keep(a)
		if err != nil {
			return ending{reason: ReasonError, err: err, payloads: a.payloads(true)}
		}
		if len(calls) == 0 {
			return ending{reason: ReasonDone, stored: true}
		}
		r.outcome.Calls += len(calls)
		if unstored, err := r.perform(ctx, calls); err != nil {
			return ending{reason: ReasonError, err: err, payloads: unstored}
		}
	}
}

func unknownModel(name string, err error) error {
	var failed *model.Error
	if errors.As(err, &failed) {
		return err
	}
	return &model.Error{Class: model.ClassUnknownModel, Message: fmt.Sprintf("model %q cannot be used: %v", name, err), Err: err}
}

// keep stores a whole answer in one batch: reasoning, text and calls. Without
// a call it is the last of the turn, and the turn ends with it.
func (r *turnRun) keep(a *answer) ([]tool.Call, error) {
	payloads := a.payloads(false)
	if len(a.calls) == 0 {
		switch {
		case a.finish == model.FinishLength:
			payloads = append(payloads, noticePayload("warning", "model", "The answer was cut off at the model's output limit.", false))
		case a.text() == "":
			payloads = append(payloads, noticePayload("warning", "model", "The model gave an empty answer.", false))
		}
		return nil, r.append(payloads, session.AppendOptions{Turn: session.TurnEnd, Usage: r.usage(1)})
	}
	calls := make([]tool.Call, len(a.calls))
	for i, c := range a.calls {
		calls[i] = tool.Call{Session: r.id, ID: r.callID(c.ID), Tool: c.Name, Input: c.Input}
		if len(c.Input) == 0 {
			calls[i].Input = []byte("{}") // what some models send for no fields
		}
		payloads = append(payloads, callPayload(calls[i], a.model))
	}
	return calls, r.append(payloads, session.AppendOptions{Usage: r.usage(0), Durability: r.e.Durability})
}

// usage is what was spent since it was last asked for, as it is stored.
func (r *turnRun) usage(turns uint64) *sessionpb.Usage {
	u := &sessionpb.Usage{
		InputTokens: uint64(max(r.spent.InputTokens, 0)), OutputTokens: uint64(max(r.spent.OutputTokens, 0)),
		CacheReadTokens: uint64(max(r.spent.CacheReadTokens, 0)), CacheWriteTokens: uint64(max(r.spent.CacheWriteTokens, 0)),
		Requests: r.requests, Turns: turns,
	}
	r.spent, r.requests = model.Usage{}, 0
	return u
}

// finish stores the end of the turn and says what it came to.
func (r *turnRun) finish(ctx context.Context, e ending) {
	o := &r.outcome
	o.Duration = r.e.Clock.Now().Sub(r.started)
	o.Reason, o.Err = e.reason, e.err
	if e.reason == ReasonError && ctx.Err() != nil && errors.Is(e.err, context.Cause(ctx)) {
		o.Reason, o.Err = stopReason(context.Cause(ctx))
	}
	r.mu.Lock()
	o.Denials = r.denials
	r.mu.Unlock()
	if o.Reason == ReasonDone && len(o.Denials) > 0 && !allAnswered(o.Denials) {
		o.Reason = ReasonDenied
	}
	if errors.Is(e.err, session.ErrLost) {
		o.Err = r.check(e.err)
		return
	}
	if e.stored {
		return
	}
	if err := r.storeEnd(e.payloads, endNotice(context.Cause(ctx), *o)); err != nil {
		o.Reason, o.Err = ReasonError, errors.Join(o.Err, fmt.Errorf("store the end of the turn: %w", err))
		if r.fatal != nil {
			o.Err = r.fatal
		}
	}
}

// storeEnd stores what remains of a turn and closes it.
func (r *turnRun) storeEnd(payloads []*sessionpb.Payload, notice *sessionpb.Payload) error {
	var last []*sessionpb.Payload
	if notice != nil {
		last = append(last, notice)
	}
	o := session.AppendOptions{Turn: session.TurnEnd, Usage: r.usage(1)}
	err := r.append(append(payloads, last...), o)
	if errors.Is(err, store.ErrTooLarge) && len(payloads) > 0 {
		return r.append(last, o) // what cannot be stored must not keep the turn open
	}
	return err
}

// allAnswered tells whether nothing was denied for want of somebody to ask.
func allAnswered(denials []Denial) bool {
	for _, d := range denials {
		if !d.Asked && !d.Rule {
			return false
		}
	}
	return true
}

// stopReason is the reason of a turn that was stopped from outside.
func stopReason(cause error) (Reason, error) {
	switch {
	case errors.Is(cause, errInterrupted), errors.Is(cause, errClosed):
		return ReasonInterrupted, nil
	case errors.Is(cause, errTimeLimit):
		return ReasonTimeLimit, nil
	}
	return ReasonError, cause
}

// endNotice tells of an end that the model or the person would else not
// understand. What stopped the model from outside it is told itself.
func endNotice(cause error, o Outcome) *sessionpb.Payload {
	switch o.Reason {
	case ReasonInterrupted:
		if errors.Is(cause, errClosed) {
			return noticePayload("info", "turn", closedText, true)
		}
		return noticePayload("info", "turn", interruptedText, true)
	case ReasonTimeLimit, ReasonMaxTurns:
		return noticePayload("warning", "turn", "This turn was "+o.Explain()+".", true)
	case ReasonError:
		return noticePayload("error", "turn", o.Explain(), false)
	}
	return nil
}

// append stores payloads and tells everybody. An error that means that the
// session is not ours any more is remembered; then nothing more is written.
func (l *Live) append(payloads []*sessionpb.Payload, o session.AppendOptions) error {
	if l.fatal != nil {
		return l.fatal
	}
	l.partial.settle()
	parent := l.sess.Record().Head()
	refs, err := l.sess.Append(l.ctx, payloads, o)
	if err != nil {
		return l.check(explainFull(err))
	}
	for i, ref := range refs {
		it := &session.Item{Ref: ref, Parent: parent, Payload: payloads[i]}
		if l.loaded {
			l.remember(it)
		}
		l.events.publish(ItemStored{Ref: ref, Parent: parent, Payload: payloads[i]})
		parent = ref
	}
	if warning := l.sess.SizeWarning(); warning != "" {
		l.notice("warning", "session", warning)
	}
	return nil
}

// check passes an error of the session on, and remembers one after which
// nothing may be written.
func (l *Live) check(err error) error {
	if l.fatal != nil {
		return l.fatal
	}
	if errors.Is(err, session.ErrLost) || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrConflict) {
		l.fatal = l.lostError(err)
		return l.fatal
	}
	return err
}

func explainFull(err error) error {
	if errors.Is(err, store.ErrFull) {
		return fmt.Errorf("%w; make room and prompt again: what was stored before is safe", err)
	}
	return err
}

// savePartial keeps what was streamed of an answer. It is called from a
// goroutine of its own, while the session's goroutine leaves the session alone.
func (l *Live) savePartial(payloads []*sessionpb.Payload) {
	if err := l.sess.SavePartial(l.ctx, payloads); err != nil {
		// The answer itself will be stored, or that will fail and say so.
		l.e.Logger.WarnContext(l.ctx, "keep a partial answer", "session", l.id, "error", err)
	}
}
