package engine

import "time"

// Clock is the time, so that tests can move it.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once d has passed, unless
	// stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func())
}

type systemClock struct{}

// Now implements Clock.
func (systemClock) Now() time.Time { return time.Now() }

// AfterFunc implements Clock.
func (systemClock) AfterFunc(d time.Duration, f func()) func() {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}

// after is a channel that is closed once d has passed.
func after(c Clock, d time.Duration) (<-chan struct{}, func()) {
	done := make(chan struct{})
	return done, c.AfterFunc(d, func() { close(done) })
}
