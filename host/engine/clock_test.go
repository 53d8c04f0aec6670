package engine_test

import (
	"slices"
	"sync"
	"time"
)

// clock is a clock that only moves when a test moves it.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*timer
	// waits is told of each new timer; it may be nil. The clock is not locked
	// then.
	waits func(time.Duration)
}

type timer struct {
	at time.Time
	f  func()
}

// Now implements engine.Clock.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc implements engine.Clock.
func (c *clock) AfterFunc(d time.Duration, f func()) func() {
	c.mu.Lock()
	t := &timer{c.now.Add(d), f}
	c.timers = append(c.timers, t)
	c.mu.Unlock()
	if c.waits != nil {
		c.waits(d)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timers = slices.DeleteFunc(c.timers, func(other *timer) bool { return other == t })
	}
}

// advance moves the clock and fires what is due.
func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []*timer
	c.timers = slices.DeleteFunc(c.timers, func(t *timer) bool {
		if t.at.After(c.now) {
			return false
		}
		due = append(due, t)
		return true
	})
	c.mu.Unlock()
	for _, t := range due {
		go t.f()
	}
}
