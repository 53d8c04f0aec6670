package engine_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/tool"
)

// drain reads what a subscription holds, up to the last event of the session.
func drain(t *testing.T, s *engine.Subscription) []engine.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var events []engine.Event
	next := uint64(1)
	for {
		ev, err := s.Next(ctx)
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		if ev.Seq-ev.Merged != next {
			t.Fatalf("event %d stands for %d more, but %d was due", ev.Seq, ev.Merged, next)
		}
		next = ev.Seq + 1
		events = append(events, ev)
	}
}

func TestASlowSubscriberHoldsNobodyUp(t *testing.T) {
	const pieces = 20_000
	var big []model.Event
	for range pieces {
		big = append(big, text("0123456789"))
	}
	r := newRig(t, answer(append(big, call("a", "shell", `{}`))...), answer(text("ok")))
	r.bench.do["shell"] = func(_ context.Context, _ tool.Call, progress func(tool.Progress)) (tool.Result, error) {
		for range 1000 {
			progress(tool.Progress{Stream: tool.Stdout, Data: make([]byte, 1000)})
		}
		return tool.Result{Text: "ok"}, nil
	}
	l, _ := r.start("")
	slow := l.Subscribe(1000)
	if o := r.say(l, "go"); o.Reason != engine.ReasonDone {
		t.Fatalf("outcome %+v", o)
	}
	closeLive(t, l)
	said, progress, omitted := 0, 0, 0
	events := drain(t, slow)
	for _, ev := range events {
		switch b := ev.Body.(type) {
		case engine.TextDelta:
			said += len(b.Text)
		case engine.CallProgress:
			progress += len(b.Data)
			omitted += b.Omitted
		case engine.Resync:
			t.Errorf("%d events were dropped though they could be joined", b.Dropped)
		}
	}
	if said != 10*pieces+2 {
		t.Errorf("%d bytes of text came", said)
	}
	if progress+omitted != 1_000_000 || progress > 100_000 {
		t.Errorf("%d bytes of progress came, %d were left out", progress, omitted)
	}
	if len(events) > 100 {
		t.Errorf("%d events are kept", len(events))
	}
}

func TestASubscriberTooFarBehindIsTold(t *testing.T) {
	var script []say
	for range 50 {
		script = append(script, answer(call("", "think", `{}`)))
	}
	r := newRig(t, append(script, answer(text("ok")))...)
	l, _ := r.start("")
	slow := l.Subscribe(10)
	r.say(l, "go")
	closeLive(t, l)
	events := drain(t, slow)
	first, ok := events[0].Body.(engine.Resync)
	if !ok || first.Dropped < 100 || first.Dropped != events[0].Merged+1 || len(events) > 11 {
		t.Fatalf("%d events, the first %+v", len(events), events[0])
	}
	if _, ok := events[len(events)-1].Body.(engine.Ended); !ok {
		t.Errorf("the last event is %T", events[len(events)-1].Body)
	}
	// The end of the turn is told even when its event was dropped.
	tiny := newRig(t, answer(text("ok")))
	l, _ = tiny.start("")
	slow = l.Subscribe(2)
	tiny.say(l, "go")
	tiny.model.script = []say{answer(call("a", "think", `{}`)), hang(make(chan struct{}))}
	turn, err := l.Prompt(t.Context(), engine.Prompt{Text: "again"})
	if err != nil {
		t.Fatal(err)
	}
	for len(tiny.model.asked()) < 3 {
		time.Sleep(time.Millisecond)
	}
	ev, err := slow.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if b, ok := ev.Body.(engine.Resync); !ok || b.TurnEnded == nil || b.TurnEnded.Text != "ok" {
		t.Errorf("the first event is %+v", ev)
	}
	l.Interrupt()
	tiny.wait(turn)
}

func TestSubscriptionsEnd(t *testing.T) {
	r := newRig(t, answer(text("ok")))
	l, _ := r.start("")
	a, b := l.Subscribe(100), l.Subscribe(100)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next with an ended context: %v", err)
	}
	a.Close()
	if _, err := a.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("Next after Close: %v", err)
	}
	r.say(l, "go")
	var said strings.Builder
	for ev := range b.Events(t.Context()) {
		if d, ok := ev.Body.(engine.TextDelta); ok {
			said.WriteString(d.Text)
		}
		if is[engine.TurnEnded](ev.Body) {
			break
		}
	}
	if said.String() != "ok" {
		t.Errorf("heard %q", said.String())
	}
	select {
	case <-b.Ready():
	default:
	}
	closeLive(t, l)
	arrived(t, "Ready at the end", readable(b.Ready()))
	if ev, err := b.Next(t.Context()); err != nil || !is[engine.Ended](ev.Body) {
		t.Errorf("the last event: %+v, %v", ev, err)
	}
	if _, err := l.Subscribe(10).Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("a subscription after the end: %v", err)
	}
}

func readable(c <-chan struct{}) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		<-c
		close(done)
	}()
	return done
}
