package engine

import (
	"context"
	"io"
	"iter"
	"slices"
	"sync"
	"time"
)

// What a subscriber that is behind keeps of one stretch of output.
const (
	maxMergedText     = 1 << 20
	maxMergedProgress = 64 << 10
)

// broadcast numbers events and hands them to every subscriber. Publishing
// never waits.
type broadcast struct {
	now func() time.Time

	mu    sync.Mutex
	seq   uint64
	subs  []*Subscription
	ended bool
}

// Subscription is one listener's queue of events.
type Subscription struct {
	b     *broadcast
	limit int
	ready chan struct{} // holds one value while there is something to read

	// Guarded by b.mu.
	queue  []queued
	closed bool
}

// queued is an event that still grows: text holds what its body streams.
type queued struct {
	Event
	text    []byte
	omitted int
}

func (b *broadcast) subscribe(buffer int) *Subscription {
	s := &Subscription{b: b, limit: max(buffer, 2), ready: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		s.closed = true
	}
	b.subs = append(b.subs, s)
	return s
}

func (b *broadcast) publish(body Body) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	b.seq++
	ev := Event{Seq: b.seq, Time: b.now(), Body: body}
	_, b.ended = body.(Ended)
	for _, s := range b.subs {
		s.put(ev)
	}
}

func (s *Subscription) put(ev Event) {
	if s.closed {
		return
	}
	if n := len(s.queue); n > 0 && s.queue[n-1].merge(ev) {
		return
	}
	if len(s.queue) >= s.limit {
		s.overflow()
	}
	q := queued{Event: ev}
	switch body := ev.Body.(type) {
	case TextDelta:
		q.text = []byte(body.Text)
	case ReasoningDelta:
		q.text = []byte(body.Text)
	case CallProgress:
		q.text = slices.Clone(body.Data)
	}
	s.queue = append(s.queue, q)
	s.wake()
}

func (s *Subscription) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// merge takes ev into the event before it, if the two are of one stretch.
func (q *queued) merge(ev Event) bool {
	var text string
	switch body := ev.Body.(type) {
	case TextDelta:
		if _, same := q.Body.(TextDelta); !same || len(q.text) > maxMergedText {
			return false
		}
		text = body.Text
	case ReasoningDelta:
		if _, same := q.Body.(ReasoningDelta); !same || len(q.text) > maxMergedText {
			return false
		}
		text = body.Text
	case CallDelta:
		if before, same := q.Body.(CallDelta); !same || before.ID != body.ID {
			return false
		}
		q.Body = body
	case CallProgress:
		before, same := q.Body.(CallProgress)
		if !same || before.CallID != body.CallID || before.Stream != body.Stream {
			return false
		}
		q.text = append(q.text, body.Data...)
		if over := len(q.text) - maxMergedProgress; over > 0 {
			q.omitted += over
			q.text = append(q.text[:0], q.text[over:]...)
		}
	default:
		return false
	}
	q.text = append(q.text, text...)
	q.Merged += ev.Seq - q.Seq
	q.Seq, q.Time = ev.Seq, ev.Time
	return true
}

// overflow replaces the whole queue by one Resync.
func (s *Subscription) overflow() {
	last := s.queue[len(s.queue)-1]
	all := Resync{Dropped: last.Seq - (s.queue[0].Seq - s.queue[0].Merged) + 1}
	for _, q := range s.queue {
		switch body := q.Body.(type) {
		case TurnEnded:
			all.TurnEnded = &body.Outcome
		case Resync:
			if body.TurnEnded != nil {
				all.TurnEnded = body.TurnEnded
			}
		}
	}
	s.queue = append(s.queue[:0], queued{Event: Event{
		Seq: last.Seq, Merged: all.Dropped - 1, Time: last.Time, Body: all,
	}})
}

// Ready gets a value when Next will not wait, for a caller that waits for
// several things.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Next is the next event. It waits for one; the error is io.EOF after the last
// event of the session or Close, and that of ctx when that ends.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		ev, ok, err := s.take()
		if ok || err != nil {
			return ev, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}

func (s *Subscription) take() (Event, bool, error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if len(s.queue) == 0 {
		if s.closed || s.b.ended {
			return Event{}, false, io.EOF
		}
		return Event{}, false, nil
	}
	q := s.queue[0]
	s.queue[0] = queued{}
	s.queue = s.queue[1:]
	if len(s.queue) > 0 || s.b.ended {
		s.wake()
	}
	switch body := q.Body.(type) {
	case TextDelta:
		q.Body = TextDelta{string(q.text)}
	case ReasoningDelta:
		q.Body = ReasoningDelta{string(q.text)}
	case CallProgress:
		body.Data, body.Omitted = q.text, q.omitted
		q.Body = body
	}
	return q.Event, true, nil
}

// Events is every event until the last of the session, Close, or the end of
// ctx.
func (s *Subscription) Events(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for {
			ev, err := s.Next(ctx)
			if err != nil || !yield(ev) {
				return
			}
		}
	}
}

// Close ends the subscription; what was not read is dropped.
func (s *Subscription) Close() {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.closed, s.queue = true, nil
	s.b.subs = slices.DeleteFunc(s.b.subs, func(other *Subscription) bool { return other == s })
	s.wake()
}
