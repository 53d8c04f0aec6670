package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/policy"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/memstore"
	"github.com/boughdev/bough/host/tool"
)

const stopNotice = "notice?: The person interrupted this turn"

func TestInterruptAtEveryStage(t *testing.T) {
	for _, c := range []struct {
		about string
		// set makes the rig; it closes reached when the stage is.
		set  func(r *rig, reached chan struct{})
		path []string // after the prompt, without the notice
		// shown is the end of what must have been shown of the answer.
		shown string
		// over are calls that must have ended.
		over []string
	}{
		{"while the provider is looked for", func(r *rig, reached chan struct{}) {
			r.models = func(ctx context.Context) (model.Provider, error) {
				close(reached)
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}, nil, "", nil},
		{"before the first byte", func(r *rig, reached chan struct{}) {
			r.model.script = []say{hang(reached)}
		}, nil, "", nil},
		{"before the first byte, of a provider that does not listen", func(r *rig, reached chan struct{}) {
			r.model.script = []say{func(context.Context, *model.Request, func(model.Event, error) bool) {
				close(reached)
				<-r.t.Context().Done()
			}}
		}, nil, "", nil},
		{"within the answer", func(r *rig, reached chan struct{}) {
			r.model.script = []say{hang(reached, thought("hm"), text("half an "), text("ans"))}
		}, []string{"reasoning~: hm", "text~: half an ans"}, "ans", nil},
		{"after a call was written", func(r *rig, reached chan struct{}) {
			r.model.script = []say{hang(reached, text("I"), call("a", "think", `{}`))}
		}, []string{"text~: I"}, "I", nil},
		{"while calls run", func(r *rig, reached chan struct{}) {
			r.model.script = []say{answer(call("done", "think", `{}`), call("runs", "file_read", `{"filePath":"a"}`),
				call("waits", "file_write", `{"filePath":"a"}`), call("deaf", "shell", `{}`), call("over", "think", `{"n":1}`))}
			r.config.Limits.ParallelCalls = 4
			r.bench.do["file_read"] = func(ctx context.Context, _ tool.Call, progress func(tool.Progress)) (tool.Result, error) {
				progress(tool.Progress{Data: []byte("said")})
				close(reached)
				<-ctx.Done()
				return tool.Result{Text: "part", Interrupted: true}, nil
			}
		}, []string{"tool_call: done", "tool_call: runs", "tool_call: waits", "tool_call: deaf", "tool_call: over",
			"tool_result: done did think", "tool_result~: runs part\n[interrupted", "tool_result~: waits [not run", "tool_result~: deaf [not run", "tool_result: over did think"}, "", []string{"done", "over"}},
		{"while a call runs that does not listen", func(r *rig, reached chan struct{}) {
			r.model.script = []say{answer(call("deaf", "shell", `{}`))}
			r.bench.do["shell"] = func(_ context.Context, _ tool.Call, progress func(tool.Progress)) (tool.Result, error) {
				progress(tool.Progress{Data: []byte("so far\n")})
				close(reached)
				<-r.t.Context().Done()
				return tool.Result{}, errors.New("too late")
			}
		}, []string{"tool_call: deaf", "tool_result~: deaf so far\n[interrupted"}, "", nil},
		{"while a batch runs", func(r *rig, reached chan struct{}) {
			r.model.script = []say{answer(call("b", "batch", `{"tool_calls":[{"tool":"think","parameters":{}},{"tool":"shell","parameters":{}}]}`))}
			r.bench.do["shell"] = func(ctx context.Context, _ tool.Call, _ func(tool.Progress)) (tool.Result, error) {
				close(reached)
				<-ctx.Done()
				return tool.Result{Text: "part", Interrupted: true}, nil
			}
		}, []string{"tool_call: b", "tool_result~: b [1] think: ok\ndid think\n\n[2] shell: interrupted\npart"}, "", []string{"b.1"}},
		{"while a permission is asked for", func(r *rig, reached chan struct{}) {
			r.policy.Yolo = false
			r.config.Asker = asker(func(ctx context.Context, _ policy.Question) (policy.Answer, error) {
				close(reached)
				<-ctx.Done()
				return policy.Answer{}, ctx.Err()
			})
			r.model.script = []say{answer(call("a", "shell", `{}`))}
		}, []string{"tool_call: a", "tool_result~: a [not run"}, "", nil},
		{"between two attempts", func(r *rig, reached chan struct{}) {
			overloaded := &model.Error{Class: model.ClassOverloaded, Message: "busy"}
			r.model.script = []say{broken(overloaded, text("half")), answer(text("no"))}
			r.config.Clock = &clock{now: time.Unix(1e9, 0), waits: func(d time.Duration) {
				if d >= 2*time.Second && d < time.Minute {
					close(reached)
				}
			}}
			r.config.Limits.StreamTimeout = time.Hour
		}, []string{"text~: half"}, "", nil},
		{"between a result and the next request", func(r *rig, reached chan struct{}) {
			r.model.script = []say{answer(call("a", "shell", `{}`)), hang(make(chan struct{}))}
			r.bench.do["shell"] = func(context.Context, tool.Call, func(tool.Progress)) (tool.Result, error) {
				defer close(reached)
				return tool.Result{Text: "ok"}, nil
			}
		}, []string{"tool_call: a", "tool_result: a ok"}, "", nil},
	} {
		t.Run(c.about, func(t *testing.T) {
			r := newRig(t)
			reached := make(chan struct{})
			c.set(r, reached)
			l, heard := r.start("")
			turn, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"})
			if err != nil {
				t.Fatal(err)
			}
			arrived(t, c.about, reached)
			for _, id := range c.over {
				heard.until(id+" is over", func(b engine.Body) bool { f, ok := b.(engine.CallFinished); return ok && f.CallID == id })
			}
			if c.shown != "" {
				heard.shown(c.shown)
			}
			begun := time.Now()
			l.Interrupt()
			heard.until("the end", is[engine.TurnEnded])
			t.Logf("ended after %s", time.Since(begun))
			if o := r.wait(turn); o.Reason != engine.ReasonInterrupted || o.ExitCode() != 130 || o.Err != nil {
				t.Errorf("outcome %+v", o)
			}
			same(t, r.path(l.ID()), append(append([]string{"prompt: go"}, c.path...), stopNotice)...)
			rec, err := r.sessions.Get(t.Context(), l.ID())
			if err != nil || rec.Proto().GetOpenTurn() != nil {
				t.Errorf("the turn is open still: %v, %v", rec.Proto().GetOpenTurn(), err)
			}

			r.models, r.config.Asker = nil, nil
			before := len(r.model.asked())
			r.model.script = []say{answer(text("next"))}
			if o := r.say(l, "go on"); o.Reason != engine.ReasonDone {
				t.Fatalf("the next turn: %+v", o)
			}
			if err := sound(r.model.asked()[before]); err != nil {
				t.Error(err)
			}
		})
	}
}

// asker answers as the function does.
type asker func(context.Context, policy.Question) (policy.Answer, error)

func (a asker) Ask(ctx context.Context, q policy.Question) (policy.Answer, error) { return a(ctx, q) }

func TestCallsThatLingerDoNotMeetNewOnes(t *testing.T) {
	reached, release := make(chan struct{}), make(chan struct{})
	r := newRig(t, answer(call("a", "shell", `{}`)))
	lingers := true
	r.bench.do["shell"] = func(_ context.Context, _ tool.Call, progress func(tool.Progress)) (tool.Result, error) {
		if lingers {
			lingers = false
			close(reached)
			<-release
			progress(tool.Progress{Data: []byte("late")})
			return tool.Result{Text: "late"}, nil
		}
		select {
		case <-release:
		default:
			t.Error("a new call began before the late one had ended")
		}
		return tool.Result{Text: "ok"}, nil
	}
	l, heard := r.start("")
	turn, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	arrived(t, "the call", reached)
	l.Interrupt()
	r.wait(turn)
	r.model.script = []say{answer(text("now"), call("b", "shell", `{}`)), answer(text("ok"))}
	if turn, err = l.Prompt(t.Context(), engine.Prompt{Text: "again"}); err != nil {
		t.Fatal(err)
	}
	heard.until("the second call is stored", func(b engine.Body) bool {
		s, ok := b.(engine.ItemStored)
		return ok && s.Payload.GetToolCall().GetId() == "b"
	})
	close(release)
	r.wait(turn)
	heard.until("the last item", func(b engine.Body) bool {
		s, ok := b.(engine.ItemStored)
		return ok && s.Payload.GetText().GetText() == "ok"
	})
	over := 0
	for _, ev := range heard.all() {
		if f, ok := ev.Body.(engine.CallFinished); ok && f.CallID == "a" {
			over++
		}
		if p, ok := ev.Body.(engine.CallProgress); ok && p.CallID == "a" {
			t.Errorf("%q was told of a call that was over", p.Data)
		}
	}
	if over != 1 {
		t.Errorf("the end of the late call was told %d times", over)
	}
	same(t, r.path(l.ID()), "prompt", "tool_call: a", "tool_result~: a [interrupted", stopNotice,
		"prompt", "text: now", "tool_call: b", "tool_result: b ok", "text: ok")
}

func TestCloseInATurn(t *testing.T) {
	reached := make(chan struct{})
	r := newRig(t, answer(call("a", "think", `{}`)), hang(reached, text("half")))
	l, heard := r.start("")
	turn, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	arrived(t, "the answer", reached)
	heard.shown("half")
	closeLive(t, l)
	if o := r.wait(turn); o.Reason != engine.ReasonInterrupted {
		t.Errorf("outcome %+v", o)
	}
	heard.until("the end", func(b engine.Body) bool { e, ok := b.(engine.Ended); return ok && e.Err == nil })
	same(t, r.path(l.ID()), "prompt", "tool_call: a", "tool_result: a", "text~: half", "notice?: bough was closed")
	if len(r.bench.closed) != 1 || r.bench.closed[0] != l.ID() {
		t.Errorf("closed in the workspace: %v", r.bench.closed)
	}
	if _, _, err := r.tryStart(l.ID()); err != nil {
		t.Errorf("the session is still held: %v", err)
	}
}

func TestTimeLimit(t *testing.T) {
	reached := make(chan struct{})
	r := newRig(t, hang(reached, text("half")))
	c := &clock{now: time.Unix(1e9, 0)}
	r.config.Clock = c
	r.config.Limits.TurnTime = time.Minute
	l, heard := r.start("")
	turn, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	arrived(t, "the answer", reached)
	heard.shown("half")
	c.advance(time.Minute)
	o := r.wait(turn)
	if o.Reason != engine.ReasonTimeLimit || o.ExitCode() != engine.ExitLimit || !strings.Contains(o.Explain(), "1m0s") {
		t.Fatalf("outcome %+v: %s", o, o.Explain())
	}
	same(t, r.path(l.ID()), "prompt", "text~: half", "notice?: This turn was stopped after 1m0s")
}

func TestALostLeaseEndsTheSession(t *testing.T) {
	for _, where := range []string{"in the answer", "in a call", "idle"} {
		t.Run(where, func(t *testing.T) {
			reached := make(chan struct{})
			r := newRig(t, hang(reached, text("half")))
			st := &faulty{Store: memstore.New()}
			r.store = st
			if where == "in a call" {
				r.model.script = []say{answer(call("a", "shell", `{}`))}
				r.bench.do["shell"] = func(ctx context.Context, _ tool.Call, _ func(tool.Progress)) (tool.Result, error) {
					close(reached)
					<-ctx.Done()
					return tool.Result{Interrupted: true}, nil
				}
			}
			l, heard := r.start("")
			if where == "idle" {
				r.model.script = []say{answer(text("ok"))}
				r.say(l, "go")
			} else {
				if _, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"}); err != nil {
					t.Fatal(err)
				}
				arrived(t, where, reached)
			}
			before := r.path(l.ID())
			writes := make(chan struct{}, 100)
			st.fail = func(_ int64, b store.Batch) error {
				if writesItems(b) {
					writes <- struct{}{}
				}
				return nil
			}
			st.Cut("session/" + l.ID())
			end := heard.until("the end of the session", is[engine.Ended]).Body.(engine.Ended)
			arrived(t, "Done", l.Done())
			if !errors.Is(end.Err, session.ErrLost) || !errors.Is(l.Err(), session.ErrLost) {
				t.Errorf("ended with %v", end.Err)
			}
			if where != "idle" {
				o := heard.until("the end of the turn", is[engine.TurnEnded]).Body.(engine.TurnEnded).Outcome
				if o.Reason != engine.ReasonError || o.ExitCode() != engine.ExitError || !strings.Contains(o.Explain(), l.ID()) {
					t.Errorf("outcome %+v", o)
				}
			}
			if _, err := l.Prompt(t.Context(), engine.Prompt{Text: "late"}); !errors.Is(err, engine.ErrEnded) || !errors.Is(err, session.ErrLost) {
				t.Errorf("a prompt afterwards: %v", err)
			}
			same(t, r.path(l.ID()), before...)
			if len(writes) > 0 {
				t.Errorf("%d writes were tried after the session was lost", len(writes))
			}
		})
	}
}
