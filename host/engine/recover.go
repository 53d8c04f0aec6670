package engine

import (
	"context"
	"fmt"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/tool"
)

// restartText is the result of a call that a crash cut off. The call is never
// carried out again by itself.
const restartText = "interrupted by process restart: what it did up to then is not known"

// recover puts in order what a crash has left, in one batch: calls of the open
// turn without a result get one, what was streamed of an answer becomes items
// marked partial, and a turn that was begun too often, or is not to be
// resumed, is ended. What is still open then is pending. It runs before the
// session's goroutine does.
func (l *Live) recover(ctx context.Context) error {
	open := l.sess.Record().Proto().GetOpenTurn()
	streamed, err := l.sess.Partial(ctx)
	if err != nil {
		// What was streamed is lost; the history is not, and can go on.
		l.e.Logger.ErrorContext(ctx, "read a partial answer", "session", l.id, "error", err)
		l.notice("error", "session", err.Error())
	}
	if open == nil && len(streamed) == 0 && err == nil {
		return nil
	}
	var add []*sessionpb.Payload
	if open != nil {
		if add, err = l.unanswered(ctx, open); err != nil {
			return err
		}
	}
	add = append(add, streamed...)
	change := session.TurnSame
	switch {
	case open == nil:
	case int(open.GetStarts()) >= l.e.Limits.MaxStarts:
		change = session.TurnEnd
		add = append(add, noticePayload("error", "turn", fmt.Sprintf(
			"This turn was begun %d times and cut off each time; it is not tried again. Prompt to go on.", open.GetStarts()), false))
	case l.e.Resume == ResumeNever:
		change = session.TurnEnd
		add = append(add, noticePayload("warning", "turn", "bough was restarted in the middle of this turn; it was not resumed. Prompt to go on.", false))
	default:
		l.pending = open
	}
	if len(add) == 0 && change == session.TurnSame {
		return nil
	}
	return l.append(add, session.AppendOptions{Turn: change})
}

// unanswered are the results for the calls since the prompt of the open turn
// that have none.
func (l *Live) unanswered(ctx context.Context, open *sessionpb.OpenTurn) ([]*sessionpb.Payload, error) {
	path, err := l.sess.Path(ctx)
	if err != nil {
		return nil, err
	}
	prompt := session.Ref{Segment: open.GetPrompt().GetSegment(), Number: open.GetPrompt().GetNumber()}
	from, found := path.Len(), false
	for from > 0 && !found {
		from--
		ref, err := path.Ref(ctx, from)
		if err != nil {
			return nil, err
		}
		found = ref == prompt
	}
	if !found {
		return nil, nil
	}
	var calls []tool.Call
	answered := map[string]bool{}
	for it, err := range path.Items(ctx, from, path.Len()) {
		if err != nil {
			l.e.Logger.ErrorContext(ctx, "read an item of the open turn", "session", l.id, "error", err)
			if it == nil {
				return nil, err
			}
			continue
		}
		if c := it.Payload.GetToolCall(); c != nil {
			calls = append(calls, tool.Call{ID: c.GetId(), Tool: c.GetName()})
		}
		if r := it.Payload.GetToolResult(); r != nil {
			answered[r.GetCallId()] = true
		}
	}
	var results []*sessionpb.Payload
	for _, c := range calls {
		if !answered[c.ID] {
			results = append(results, resultPayload(c, tool.Result{Text: restartText, Error: true, Interrupted: true}, 0))
		}
	}
	return results, nil
}
