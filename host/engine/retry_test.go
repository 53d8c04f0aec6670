package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/model"
)

func fail(class model.Class) *model.Error {
	return &model.Error{Class: class, Message: "it went wrong", Provider: "test"}
}

// patient is a clock on which every retry's wait is over at once; the longer
// timers, which watch for silence, never fire.
func patient(waits *[]time.Duration) *clock {
	c := &clock{now: time.Unix(1e9, 0)}
	c.waits = func(d time.Duration) {
		if d < 100*time.Hour && d != 250*time.Millisecond {
			*waits = append(*waits, d)
			c.advance(d)
		}
	}
	return c
}

func TestRetries(t *testing.T) {
	hint := fail(model.ClassRateLimited)
	hint.RetryAfter = 42 * time.Second
	patience := fail(model.ClassRateLimited)
	patience.RetryAfter = time.Hour
	for _, c := range []struct {
		about    string
		script   []say
		requests int
		waits    [][2]time.Duration // least and most
		want     string             // part of the explanation; empty: the turn ends well
		path     []string           // after the prompt
	}{
		{"a server's failure", []say{broken(fail(model.ClassServer)), answer(text("ok"))}, 2,
			[][2]time.Duration{{500 * time.Millisecond, time.Second}}, "", []string{"text: ok"}},
		{"an overloaded provider gets more time", []say{broken(fail(model.ClassOverloaded)), broken(fail(model.ClassOverloaded)), answer(text("ok"))}, 3,
			[][2]time.Duration{{2 * time.Second, 4 * time.Second}, {4 * time.Second, 8 * time.Second}}, "", []string{"text: ok"}},
		{"the provider's hint", []say{broken(hint), answer(text("ok"))}, 2,
			[][2]time.Duration{{42 * time.Second, 47 * time.Second}}, "", []string{"text: ok"}},
		{"a hint beyond patience", []say{broken(patience)}, 1, nil, "the provider asks to wait 1h0m0s", []string{"notice: test: it went wrong"}},
		{"a stream that was cut is replaced", []say{broken(fail(model.ClassNetwork), thought("x"), text("half")), answer(text("whole"))}, 2,
			[][2]time.Duration{{500 * time.Millisecond, time.Second}}, "", []string{"text: whole"}},
		{"a stream without an end", []say{endless, answer(text("whole"))}, 2,
			[][2]time.Duration{{500 * time.Millisecond, time.Second}}, "", []string{"text: whole"}},
		{"what was shown stays when no attempt says more", []say{broken(fail(model.ClassNetwork), text("half")), broken(fail(model.ClassNetwork)), broken(fail(model.ClassAuth))}, 3,
			[][2]time.Duration{{500 * time.Millisecond, time.Second}, {time.Second, 2 * time.Second}}, "variable", []string{"text~: half", "notice: test: it went wrong"}},
		{"calls of a cut answer are not run", []say{broken(fail(model.ClassNetwork), call("a", "think", `{}`)), answer(text("ok"))}, 2,
			[][2]time.Duration{{500 * time.Millisecond, time.Second}}, "", []string{"text: ok"}},
		{"too long", []say{broken(fail(model.ClassContextTooLong))}, 1, nil, "/compact", []string{"notice"}},
		{"no key", []say{broken(fail(model.ClassAuth))}, 1, nil, "variable", []string{"notice"}},
		{"no money", []say{broken(fail(model.ClassBilling))}, 1, nil, "account", []string{"notice"}},
		{"no such model", []say{broken(fail(model.ClassUnknownModel))}, 1, nil, "-m", []string{"notice"}},
		{"a bad request", []say{broken(fail(model.ClassBadRequest))}, 1, nil, "it went wrong", []string{"notice"}},
		{"an error without a class", []say{broken(errors.New("kaput"))}, 1, nil, "kaput", []string{"notice: test: kaput"}},
	} {
		t.Run(c.about, func(t *testing.T) {
			var waits []time.Duration
			r := newRig(t, c.script...)
			r.config.Clock = patient(&waits)
			r.config.Limits.StreamTimeout = 1000 * time.Hour
			r.config.Limits.StopGrace = 1000 * time.Hour
			l, heard := r.start("")
			o := r.say(l, "go")
			if c.want == "" {
				if o.Reason != engine.ReasonDone {
					t.Errorf("outcome %+v", o)
				}
			} else if o.ExitCode() != engine.ExitModel || !strings.Contains(o.Explain(), c.want) || !strings.Contains(o.Explain(), "test") {
				t.Errorf("exit %d, %q; want %q", o.ExitCode(), o.Explain(), c.want)
			}
			if n := len(r.model.asked()); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
			var told []engine.Retrying
			heard.until("the end", is[engine.TurnEnded])
			for _, ev := range heard.all() {
				if b, ok := ev.Body.(engine.Retrying); ok {
					told = append(told, b)
				}
			}
			if len(told) != len(c.waits) {
				t.Fatalf("told of %d retries, want %d", len(told), len(c.waits))
			}
			for i, w := range c.waits {
				if told[i].Wait < w[0] || told[i].Wait > w[1] || told[i].Attempt != i+1 || told[i].Attempts != 8 {
					t.Errorf("retry %d: %+v, want a wait of %v", i, told[i], w)
				}
			}
			same(t, r.path(l.ID()), append([]string{"prompt: go"}, c.path...)...)
		})
	}
}

func TestRetriesEnd(t *testing.T) {
	for _, c := range []struct {
		about    string
		limits   engine.Limits
		requests int
		want     string
	}{
		{"after the attempts", engine.Limits{Attempts: 5}, 5, "given up after 5 attempts"},
		{"after the time", engine.Limits{Attempts: 1000, RetryTime: 30 * time.Second}, 0, "since the next would have to wait"},
	} {
		t.Run(c.about, func(t *testing.T) {
			var waits []time.Duration
			r := newRig(t)
			for range 100 {
				r.model.script = append(r.model.script, broken(fail(model.ClassServer), tokens(3, 1)))
			}
			r.config.Clock, r.config.Limits = patient(&waits), c.limits
			r.config.Limits.StreamTimeout = 1000 * time.Hour
			l, _ := r.start("")
			o := r.say(l, "go")
			n := len(r.model.asked())
			if !strings.Contains(o.Explain(), c.want) || (c.requests > 0 && n != c.requests) || n > 20 {
				t.Errorf("%d requests, %q", n, o.Explain())
			}
			if o.Usage.InputTokens != 3*n {
				t.Errorf("failed attempts cost %d tokens, %d counted", 3*n, o.Usage.InputTokens)
			}
			var total time.Duration
			for _, w := range waits {
				total += w
			}
			if total > 30*time.Second && c.limits.RetryTime > 0 {
				t.Errorf("waited %s", total)
			}
			rec, err := r.sessions.Get(t.Context(), l.ID())
			if err != nil || rec.Proto().GetUsage().GetRequests() != uint64(n) {
				t.Errorf("%d requests are on record, %d were made (%v)", rec.Proto().GetUsage().GetRequests(), n, err)
			}
		})
	}
}

func TestASilentProviderIsGivenUp(t *testing.T) {
	c := &clock{now: time.Unix(1e9, 0)}
	reached := make(chan struct{})
	r := newRig(t, hang(reached, text("half")), answer(text("ok")))
	r.config.Clock = c
	l, heard := r.start("")
	turn, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	arrived(t, "the answer", reached)
	heard.shown("half")
	c.advance(300 * time.Second)
	again := heard.until("another attempt", is[engine.Retrying]).Body.(engine.Retrying)
	if again.Class != model.ClassNetwork || !strings.Contains(again.Message, "5m0s") || again.Replaced != 4 {
		t.Errorf("told %+v", again)
	}
	for turn := turn; ; {
		select {
		case <-turn.Done():
			if o := r.wait(turn); o.Text != "ok" {
				t.Errorf("outcome %+v", o)
			}
			return
		case <-time.After(time.Millisecond):
			c.advance(time.Second) // until the wait is over
		}
	}
}

func TestADeltaAfterARetryBeginsAnew(t *testing.T) {
	var waits []time.Duration
	r := newRig(t, broken(fail(model.ClassNetwork), text("half")), answer(text("who"), text("le")))
	r.config.Clock = patient(&waits)
	r.config.Limits.StreamTimeout = 1000 * time.Hour
	l, heard := r.start("")
	r.say(l, "go")
	heard.until("the end", is[engine.TurnEnded])
	var told []string
	for _, ev := range heard.all() {
		switch b := ev.Body.(type) {
		case engine.TextDelta:
			told = append(told, b.Text)
		case engine.Retrying:
			told = append(told, fmt.Sprintf("replace %d", b.Replaced))
		}
	}
	if got := strings.Join(told, "|"); got != "half|replace 4|whole" && got != "half|replace 4|who|le" {
		t.Errorf("told %q", got)
	}
}

// endless begins an answer and does not say that it is over.
func endless(_ context.Context, _ *model.Request, yield func(model.Event, error) bool) {
	yield(text("half"), nil)
}
