package script

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/boughdev/bough/host/model"
)

// Prefix begins the names of these models: script:FILE.
const Prefix = "script:"

// New is the provider of the models named script:FILE.
func New() model.Provider {
	return &provider{failed: map[string]int{}}
}

type provider struct {
	mu     sync.Mutex
	failed map[string]int // times that an error happened, by session and place
}

// Models implements model.Provider: any file can be one, so none is listed.
func (*provider) Models(context.Context) ([]model.Info, error) { return nil, nil }

// Stream implements model.Provider. Which turn it plays follows from the
// request alone: the number of answers that the conversation has. So a resumed
// session goes on where it was, and the same request gets the same answer.
func (p *provider) Stream(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		s, err := open(strings.TrimPrefix(r.Model, Prefix))
		if err != nil {
			yield(model.Event{}, err)
			return
		}
		if err := p.play(ctx, s, r, func(ev model.Event) bool { return yield(ev, nil) }); err != nil {
			yield(model.Event{}, err)
		}
	}
}

func open(path string) (*Script, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &model.Error{Class: model.ClassUnknownModel, Provider: "script", Message: err.Error(), Err: err}
	}
	defer f.Close()
	s, err := Parse(path, f)
	if err != nil {
		return nil, &model.Error{Class: model.ClassBadRequest, Provider: "script", Message: err.Error(), Err: err}
	}
	return s, nil
}

// answers counts the answers of the model so far: runs of assistant messages.
func answers(r *model.Request) int {
	n := 0
	before := model.User
	for _, m := range r.Messages {
		if m.Role == model.Assistant && before != model.Assistant {
			n++
		}
		before = m.Role
	}
	return n
}

// at is the turn that gives the n-th answer, from 0, and its repetition.
func (s *Script) at(n int) (*turn, int) {
	for i := range s.turns {
		t := &s.turns[i]
		if n < t.repeat {
			return t, n + 1
		}
		n -= t.repeat
	}
	return nil, 0
}

func refuse(format string, args ...any) error {
	return &model.Error{Class: model.ClassBadRequest, Provider: "script", Message: fmt.Sprintf(format, args...)}
}

func (p *provider) play(ctx context.Context, s *Script, r *model.Request, emit func(model.Event) bool) error {
	n := answers(r)
	t, i := s.at(n)
	if t == nil {
		return refuse("%s is over: it has %d answers, and this would be the next", s.name, n)
	}
	v := t.choose(r)
	if v == nil {
		return refuse("%s:%d: no `when` of this turn holds, and it has no `else`", s.name, t.line)
	}
	for _, c := range v.expect {
		if !c.holds(r) {
			return refuse("%s:%d: expected %s", s.name, c.line, c.source)
		}
	}
	finish, calls := model.FinishStop, 0
	for k, a := range v.actions {
		var ok bool
		switch {
		case a.delay > 0:
			if err := wait(ctx, a.delay); err != nil {
				return err
			}
			continue
		case a.fail != nil:
			if p.fails(r.Session, s.name, n, k, a.fail.times) {
				err := a.fail.err
				return &err
			}
			continue
		case a.finish != 0:
			finish = a.finish
			continue
		case a.usage != nil:
			ok = emit(model.Event{Usage: a.usage})
		case a.call != nil:
			calls++
			ok = emit(model.Event{ToolCall: &model.ToolCall{
				ID: fmt.Sprintf("call-%d-%d", n+1, calls), Name: a.call.Name, Input: json.RawMessage(fillIn(string(a.call.Input), n+1, i)),
			}})
		case a.reasoning != "":
			text := fillIn(a.reasoning, n+1, i)
			ok = pieces(text, func(s string) bool { return emit(model.Event{Reasoning: s}) }) &&
				emit(model.Event{ReasoningDone: &model.Reasoning{Text: text, Provider: "script"}})
		default:
			ok = pieces(fillIn(a.text, n+1, i), func(s string) bool { return emit(model.Event{Text: s}) })
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if !ok {
			return nil
		}
	}
	if calls > 0 && finish == model.FinishStop {
		finish = model.FinishToolCalls
	}
	emit(model.Event{Finish: finish})
	return nil
}

// pieces emits a text a few words at a time.
func pieces(text string, emit func(string) bool) bool {
	const size = 24
	for len(text) > 0 {
		end := min(size, len(text))
		if sp := strings.IndexByte(text[end:], ' '); sp >= 0 && sp < size {
			end += sp + 1
		} else {
			end = len(text)
		}
		if !emit(text[:end]) {
			return false
		}
		text = text[end:]
	}
	return true
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fails tells whether an error still has to happen. Only this process counts:
// after a restart it happens again.
func (p *provider) fails(session, script string, answer, action, times int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := fmt.Sprintf("%s\x00%s\x00%d\x00%d", session, script, answer, action)
	p.failed[key]++
	return p.failed[key] <= times
}

func (t *turn) choose(r *model.Request) *variant {
	for i := range t.variants {
		if v := &t.variants[i]; v.when == nil || v.when.holds(r) {
			return v
		}
	}
	return nil
}

// holds tests the request: the last results, the last prompt, or all of it.
func (c condition) holds(r *model.Request) bool {
	found := false
	start := 0
	switch c.on {
	case "result":
		start = lastOf(r, model.Tool)
	case "prompt":
		start = lastOf(r, model.User)
	}
	for i, m := range r.Messages[start:] {
		if c.on != "request" && i > 0 && m.Role != r.Messages[start].Role {
			break
		}
		for _, part := range m.Parts {
			if res := part.ToolResult; res != nil && c.on != "prompt" {
				found = found || (c.test == "is" && res.Error) || (c.test == "contains" && strings.Contains(res.Text, c.value))
			}
			if c.on != "result" && c.test == "contains" {
				found = found || strings.Contains(part.Text, c.value)
			}
		}
	}
	return found != c.not
}

// lastOf is the index of the last message of a role, or one past the end.
func lastOf(r *model.Request, role model.Role) int {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == role {
			return i
		}
	}
	return len(r.Messages)
}
