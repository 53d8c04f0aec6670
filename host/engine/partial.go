package engine

import (
	"time"

	"github.com/boughdev/bough/host/session/sessionpb"
)

// How often a streamed answer is kept aside: a crash loses no more than this
// of what was on the screen. Long answers are saved after more bytes, so that
// saving costs no more than a few times their length.
const (
	partialEvery = 250 * time.Millisecond
	partialBytes = 4 << 10
	partialShare = 4 // of the whole, as a divisor
)

// partialSaver keeps the answer that is being streamed in the store, at a
// bounded rate and without holding the stream up. Its methods are called from
// the session's goroutine; write is called from another, one at a time.
type partialSaver struct {
	clock Clock
	write func([]*sessionpb.Payload)

	running chan struct{}   // closed when the last write is done; nil: none was made
	timer   <-chan struct{} // closed when something unsaved has waited long enough
	stop    func()
	saved   int // bytes of the answer at the last save
}

// grown is told of every piece of an answer.
func (s *partialSaver) grown(a *answer) {
	if a.bytes < s.saved {
		s.saved = 0 // another attempt
	}
	if fresh := a.bytes - s.saved; fresh >= partialBytes && fresh >= a.bytes/partialShare && !s.busy() {
		s.save(a)
	} else if s.timer == nil {
		s.timer, s.stop = after(s.clock, partialEvery)
	}
}

// overdue is called when the timer has fired.
func (s *partialSaver) overdue(a *answer) {
	s.disarm()
	switch {
	case a.bytes == s.saved || a.bytes == 0:
	case s.busy():
		s.timer, s.stop = after(s.clock, partialEvery)
	default:
		s.save(a)
	}
}

func (s *partialSaver) save(a *answer) {
	s.disarm()
	s.saved = a.bytes
	payloads := a.payloads(true)
	done := make(chan struct{})
	s.running = done
	go func() {
		defer close(done)
		s.write(payloads)
	}()
}

func (s *partialSaver) busy() bool {
	if s.running == nil {
		return false
	}
	select {
	case <-s.running:
		return false
	default:
		return true
	}
}

func (s *partialSaver) disarm() {
	if s.timer != nil {
		s.stop()
		s.timer = nil
	}
}

// settle returns when no write is under way, and forgets what was due: the
// caller is about to store the whole.
func (s *partialSaver) settle() {
	s.disarm()
	if s.running != nil {
		<-s.running
		s.running = nil
	}
	s.saved = 0
}
