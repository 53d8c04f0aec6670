package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/boughdev/bough/host/policy"
	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
)

// admit checks a call and carries it out if it may be. Whatever goes wrong is
// a result that tells the model what to do next. It may be called from any
// goroutine; parent is the batch call that the call belongs to, if any.
func (l *Live) admit(ctx context.Context, call tool.Call, parent string, progress func(tool.Progress)) (tool.Result, time.Duration) {
	spec, err := l.e.Tools.Lookup(call.Tool)
	if err == nil {
		err = l.e.Tools.Validate(call.Tool, call.Input)
	}
	if err != nil {
		return tool.Result{Text: err.Error(), Error: true}, 0
	}
	if refusal := l.permit(ctx, call, spec); refusal != nil {
		return *refusal, 0
	}
	err = l.ws.open(ctx, l.id, l.folder)
	if ctx.Err() != nil {
		return notRun(), 0
	}
	if err != nil {
		return tool.Result{Text: fmt.Sprintf("%s was not run: the workspace cannot be used: %v", call.Tool, err), Error: true}, 0
	}
	begun := l.e.Clock.Now()
	l.events.publish(CallStarted{Call: call, Parent: parent})
	var said tail
	result, err := l.e.Tools.Call(ctx, call, func(p tool.Progress) {
		said.add(p)
		progress(p)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		result = said.interrupted()
	case err != nil:
		l.ws.forget() // it may be a new process that knows nothing
		l.e.Logger.ErrorContext(ctx, "a tool call could not be carried out", "session", l.id, "tool", call.Tool, "error", err)
		result = tool.Result{Text: fmt.Sprintf("%s could not be carried out: %v. What it did up to then is not known: look before you call it again.", call.Tool, err), Error: true}
	case result.Interrupted:
		result.Text = interruptedNote(result.Text)
	}
	return result, l.e.Clock.Now().Sub(begun)
}

// permit asks the policy, and the person where it leaves the call open. Nil:
// the call may run.
func (l *Live) permit(ctx context.Context, call tool.Call, spec tool.Spec) *tool.Result {
	d := l.e.Policy.Decide(call, spec, l.folder)
	switch {
	case d.Outcome == policy.Allow:
		return nil
	case d.Outcome == policy.Deny:
		return l.deny(Denial{CallID: call.ID, Tool: call.Tool, Reason: d.Reason, Rule: true}, "")
	case l.e.Asker == nil:
		return l.deny(Denial{CallID: call.ID, Tool: call.Tool, Reason: policy.HeadlessRefusal(call, d.Reason)}, "")
	}
	answer, err := l.e.Asker.Ask(ctx, policy.Question{Call: call, Spec: spec, Folder: l.folder, Reason: d.Reason})
	switch {
	case err != nil && ctx.Err() != nil:
		stopped := notRun()
		return &stopped
	case err != nil:
		return l.deny(Denial{CallID: call.ID, Tool: call.Tool, Reason: fmt.Sprintf("%s, and the question could not be put: %v", d.Reason, err)}, "")
	case !answer.Allow:
		return l.deny(Denial{CallID: call.ID, Tool: call.Tool, Reason: "the person said no", Asked: true}, answer.Guidance)
	}
	return nil
}

func (l *Live) deny(d Denial, guidance string) *tool.Result {
	l.mu.Lock()
	l.denials = append(l.denials, d)
	l.mu.Unlock()
	l.events.publish(Denied{d})
	text := "Denied: " + d.Reason + "."
	if guidance != "" {
		text += " They said: " + guidance
	}
	return &tool.Result{Text: text, Error: true}
}

// opener makes a session known to the workspace before its first call, with
// what the model has seen on the present path, and again when that or the
// workspace's process may have changed.
type opener struct {
	workspace workspace.Workspace // nil: there is none

	mu     sync.Mutex
	opened bool // now
	used   bool // at any time
	seen   []tool.FileState
}

// prepare says what the model has seen, for the next open.
func (o *opener) prepare(seen []tool.FileState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.opened {
		o.seen = seen
	}
}

// forget makes the next call open the session again.
func (o *opener) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.opened = false
}

func (o *opener) open(ctx context.Context, id, folder string) error {
	if o.workspace == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.opened {
		return nil
	}
	o.used = true
	if err := o.workspace.Open(ctx, workspace.Session{ID: id, Folder: folder, Seen: o.seen}); err != nil {
		return err
	}
	o.opened = true
	return nil
}

func (o *opener) close(ctx context.Context, id string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.used || o.workspace == nil {
		return nil
	}
	return o.workspace.Close(ctx, id)
}
