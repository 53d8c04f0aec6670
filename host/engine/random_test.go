package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/policy"
	"github.com/boughdev/bough/host/tool"
)

// TestAnyCourseOfTurnsMakesSoundRequests runs random turns, with calls of every
// kind of wrong, failures, interrupts, head moves and restarts, and looks at
// every request that is made.
func TestAnyCourseOfTurnsMakesSoundRequests(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 7))
			r := newRig(t)
			r.policy = policy.Options{Allowed: []string{"file_read"}}
			r.config.Limits.Attempts = 3
			var waits []time.Duration
			r.config.Clock = patient(&waits)
			r.config.Limits.StreamTimeout = 1000 * time.Hour
			r.config.Limits.StopGrace = 1000 * time.Hour
			var l *engine.Live
			r.bench.do["file_read"] = func(ctx context.Context, c tool.Call, progress func(tool.Progress)) (tool.Result, error) {
				progress(tool.Progress{Data: []byte("x")})
				if c.Input[len(c.Input)-2] == '7' {
					l.Interrupt()
					<-ctx.Done()
					return tool.Result{Text: "part", Interrupted: true}, nil
				}
				return tool.Result{Text: "ok", Error: c.Input[len(c.Input)-2] == '3'}, nil
			}
			l, _ = r.start("")
			for range 12 {
				r.model.mu.Lock()
				r.model.script = nil
				for range random.IntN(4) {
					r.model.script = append(r.model.script, randomAnswer(random, func() { l.Interrupt() }))
				}
				r.model.script = append(r.model.script, answer(text("end")))
				r.model.mu.Unlock()
				r.say(l, "go")
				switch random.IntN(6) {
				case 0:
					items := r.items(l.ID())
					if err := l.MoveHead(t.Context(), items[random.IntN(len(items))].Ref, "revert"); err != nil {
						t.Fatal(err)
					}
				case 1:
					id := l.ID()
					closeLive(t, l)
					l, _ = r.start(id)
				}
			}
			requests := r.model.asked()
			if len(requests) < 12 {
				t.Fatalf("only %d requests", len(requests))
			}
			for i, req := range requests {
				if err := sound(req); err != nil {
					t.Fatalf("request %d: %v\n%s", i, err, told(req.Messages))
				}
			}
		})
	}
}

func randomAnswer(random *rand.Rand, interrupt func()) say {
	var events []model.Event
	for range random.IntN(6) {
		id := []string{"", "a", "b", fmt.Sprint(random.IntN(100))}[random.IntN(4)]
		switch random.IntN(8) {
		case 0:
			events = append(events, text("said"))
		case 1:
			events = append(events, thought("hm"))
		case 2:
			events = append(events, model.Event{ReasoningDone: &model.Reasoning{Text: "so", Opaque: []byte{1}}})
		case 3:
			events = append(events, call(id, "shell", `{}`)) // is denied
		case 4:
			events = append(events, call(id, []string{"nope", "FILE"}[random.IntN(2)], `{"filePath":`))
		default:
			events = append(events, call(id, "file_read", fmt.Sprintf(`{"filePath":"f","n":%d}`, random.IntN(10))))
		}
	}
	switch random.IntN(8) {
	case 0:
		return broken(fail(model.ClassNetwork), events...)
	case 1:
		return broken(fail(model.ClassBadRequest), events...)
	case 2:
		return func(ctx context.Context, _ *model.Request, yield func(model.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			interrupt()
			<-ctx.Done()
		}
	}
	return answer(events...)
}
