package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/policy"
)

func TestPermissions(t *testing.T) {
	yes := func(context.Context, policy.Question) (policy.Answer, error) { return policy.Answer{Allow: true}, nil }
	no := func(context.Context, policy.Question) (policy.Answer, error) {
		return policy.Answer{Guidance: "use make"}, nil
	}
	mute := func(context.Context, policy.Question) (policy.Answer, error) {
		return policy.Answer{}, errors.New("no terminal")
	}
	shell := []say{answer(call("a", "shell", `{}`)), answer(text("ok"))}
	for _, c := range []struct {
		about   string
		options policy.Options
		asker   asker
		script  []say
		reason  engine.Reason
		exit    int
		result  string
		ran     int
	}{
		{"headless denies what would ask", policy.Options{}, nil, shell, engine.ReasonDenied, 3, "Denied: shell needs a permission that nobody can give", 0},
		{"yolo", policy.Options{Yolo: true}, nil, shell, engine.ReasonDone, 0, "did shell", 1},
		{"an allowed tool", policy.Options{Allowed: []string{"Shell"}}, nil, shell, engine.ReasonDone, 0, "did shell", 1},
		{"a call of a disallowed tool", policy.Options{Yolo: true, Disallowed: []string{"shell"}}, nil, shell, engine.ReasonDone, 0, "Denied: shell is switched off", 0},
		{"the person says yes", policy.Options{}, yes, shell, engine.ReasonDone, 0, "did shell", 1},
		{"the person says no", policy.Options{}, no, shell, engine.ReasonDone, 0, "Denied: the person said no. They said: use make", 0},
		{"the question cannot be put", policy.Options{}, mute, shell, engine.ReasonDenied, 3, "Denied: shell runs a program", 0},
		{"a batch is no way around", policy.Options{}, nil,
			[]say{answer(call("a", "batch", `{"tool_calls":[{"tool":"shell","parameters":{}},{"tool":"think","parameters":{}}]}`)), answer(text("ok"))},
			engine.ReasonDenied, 3, "[1] shell: error\nDenied: shell needs a permission", 1},
	} {
		t.Run(c.about, func(t *testing.T) {
			r := newRig(t, c.script...)
			r.policy = c.options
			if c.asker != nil {
				r.config.Asker = c.asker
			}
			l, heard := r.start("")
			o := r.say(l, "go")
			if o.Reason != c.reason || o.ExitCode() != c.exit || o.Text != "ok" {
				t.Errorf("outcome %+v", o)
			}
			if got := r.path(l.ID())[2]; !strings.HasPrefix(got, "tool_result: a "+c.result) {
				t.Errorf("result %q, want %q", got, c.result)
			}
			if n := len(r.bench.called()); n != c.ran {
				t.Errorf("%d calls were carried out", n)
			}
			if c.exit == 3 {
				heard.until("the denial", is[engine.Denied])
				if len(o.Denials) != 1 || o.Denials[0].Tool != "shell" || !strings.Contains(o.Explain(), "shell") {
					t.Errorf("denials %+v: %s", o.Denials, o.Explain())
				}
			}
			for _, s := range r.model.asked()[0].Tools {
				if s.Name == "shell" && len(c.options.Disallowed) > 0 {
					t.Error("a disallowed tool is offered")
				}
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	for reason, want := range map[engine.Reason]int{
		engine.ReasonDone: 0, engine.ReasonError: 1, engine.ReasonDenied: 3, engine.ReasonNeedsInput: 4,
		engine.ReasonMaxTurns: 5, engine.ReasonTimeLimit: 5, engine.ReasonInterrupted: 130,
	} {
		o := engine.Outcome{Reason: reason, Err: errors.New("x")}
		if o.ExitCode() != want || (o.Explain() == "") != (reason == engine.ReasonDone) {
			t.Errorf("%s: exit %d, %q", reason, o.ExitCode(), o.Explain())
		}
	}
}

func TestDenialsAreOfOneTurn(t *testing.T) {
	r := newRig(t, answer(call("a", "shell", `{}`)), answer(text("ok")), answer(text("ok")))
	r.policy = policy.Options{}
	l, _ := r.start("")
	if o := r.say(l, "go"); o.Reason != engine.ReasonDenied {
		t.Fatalf("outcome %+v", o)
	}
	if o := r.say(l, "again"); o.Reason != engine.ReasonDone || len(o.Denials) != 0 {
		t.Fatalf("outcome %+v", o)
	}
}
