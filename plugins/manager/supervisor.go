package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// State is what a plugin is at.
type State int

const (
	// Idle: it was not needed yet, or its process ended and the next use
	// starts it again.
	Idle State = iota
	// Starting: its process does not answer yet.
	Starting
	// Running: its process answers.
	Running
	// Disabled: it failed too often, and is not tried again for a minute;
	// Status.Reason says how.
	Disabled
	// Stopped: its user has stopped it.
	Stopped
)

// String is the name used in lists.
func (s State) String() string {
	return [...]string{"idle", "starting", "running", "disabled", "stopped"}[s]
}

// Status describes a plugin to people.
type Status struct {
	Name   string
	State  State
	PID    int    // 0: there is no process
	Reason string // of the last failure; empty: there was none
}

const (
	// firstBackoff passes between a crash and the next start; each further
	// one waits four times as long.
	firstBackoff = 200 * time.Millisecond
	// forgiveAfter is how long a process must run for earlier crashes to be
	// forgotten, and how long a plugin is left alone that failed too often.
	// Who works on for hours with one bough must not be without its tools for
	// good.
	forgiveAfter = time.Minute
)

// supervisor keeps at most one process of a plugin, started by its first use.
type supervisor struct {
	command Command
	// prepare is called with a new process before anybody uses it; may be nil.
	prepare func(ctx context.Context, p *process)

	mu       sync.Mutex
	current  *process
	began    time.Time // of current
	start    *starting // in progress; nil: none
	failures int       // in a row
	failed   time.Time // the last failure
	reason   error     // of the last failure
	stopping bool
	stopped  chan struct{} // closed when stopping is set
	watchers sync.WaitGroup
}

// starting is a start that any number of callers wait for.
type starting struct {
	done    chan struct{}
	process *process
	err     error
}

func newSupervisor(c Command) *supervisor {
	return &supervisor{command: c.withDefaults(), stopped: make(chan struct{})}
}

// use returns a process that runs, starting one when there is none. The end of
// ctx ends the waiting and not the start: others may wait for it too.
func (s *supervisor) use(ctx context.Context) (*process, error) {
	s.mu.Lock()
	if s.current != nil && !s.current.child.running() {
		s.ended(s.current)
	}
	switch {
	case s.stopping:
		s.mu.Unlock()
		return nil, fmt.Errorf("%w: %s", ErrStopped, s.command.Name)
	case s.current != nil:
		defer s.mu.Unlock()
		return s.current, nil
	case s.disabled():
		defer s.mu.Unlock()
		return nil, &DisabledError{Plugin: s.command.Name, Until: s.failed.Add(forgiveAfter), Err: s.reason}
	}
	start := s.start
	if start == nil {
		start = &starting{done: make(chan struct{})}
		s.start = start
		s.watchers.Go(func() { s.run(start, s.backoff()) })
	}
	s.mu.Unlock()
	select {
	case <-start.done:
		return start.process, start.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// disabled tells whether the plugin failed too often of late. The lock is held.
func (s *supervisor) disabled() bool {
	return s.failures > s.command.Restarts && time.Since(s.failed) < forgiveAfter
}

// backoff is when the next start may be. The lock is held.
func (s *supervisor) backoff() time.Time {
	if s.failures == 0 {
		return time.Time{}
	}
	return s.failed.Add(firstBackoff << (2 * min(s.failures-1, 5)))
}

// run starts a process and watches it to its end.
func (s *supervisor) run(start *starting, notBefore time.Time) {
	select {
	case <-time.After(time.Until(notBefore)):
	case <-s.stopped:
	}
	err := s.command.check()
	var p *process
	if err == nil {
		p, err = startProcess(s.command, s.stopped)
	}
	if err == nil && s.prepare != nil {
		ctx, cancel := context.WithTimeout(context.Background(), s.command.StartTimeout)
		s.prepare(ctx, p)
		cancel()
	}
	if !s.publish(start, p, err) {
		return
	}
	s.command.Logger.Debug("a plugin was started", "plugin", s.command.Name, "pid", p.child.pid())
	s.watch(p)
}

// publish ends a start, and tells whether there is a process to be watched.
func (s *supervisor) publish(start *starting, p *process, err error) bool {
	defer close(start.done)
	s.mu.Lock()
	s.start = nil
	stopping := s.stopping
	switch {
	case stopping:
		start.err = fmt.Errorf("%w: %s", ErrStopped, s.command.Name)
	case err != nil:
		start.err = err
		s.fail(err)
	default:
		start.process, s.current, s.began = p, p, time.Now()
	}
	s.mu.Unlock()
	switch {
	case stopping && p != nil: // Stop came too early to see it
		p.stop(context.Background())
	case err != nil && !stopping:
		s.command.Logger.Error("a plugin could not be started", "plugin", s.command.Name, "error", err)
	}
	return start.process != nil
}

// watch notes the end of a process.
func (s *supervisor) watch(p *process) {
	<-p.child.exited
	s.mu.Lock()
	stopping := s.stopping
	s.ended(p)
	s.mu.Unlock()
	if !stopping {
		s.command.Logger.Error("a plugin stopped by itself", "plugin", s.command.Name, "error", p.stopped())
	}
	p.client.Kill() // closes the connection and removes the folder of the socket
}

// ended counts the end of a process that nobody asked for, once. The lock is
// held.
func (s *supervisor) ended(p *process) {
	if s.stopping || s.current != p {
		return
	}
	s.current = nil
	if time.Since(s.began) > forgiveAfter {
		s.failures = 0
	}
	s.fail(p.stopped())
}

// fail counts a failure. The lock is held.
func (s *supervisor) fail(err error) {
	s.failures++
	s.failed = time.Now()
	s.reason = err
}

// Warm starts the plugin in the background, so that its first use need not
// wait. A failure is told by that first use.
func (s *supervisor) Warm() {
	ended, end := context.WithCancel(context.Background())
	end()
	if _, err := s.use(ended); err != nil && !errors.Is(err, context.Canceled) {
		s.command.Logger.Debug("a plugin was not started ahead of its use", "plugin", s.command.Name, "error", err)
	}
}

// Status tells what the plugin is at.
func (s *supervisor) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{Name: s.command.Name}
	if s.reason != nil {
		status.Reason = s.reason.Error()
	}
	switch {
	case s.stopping:
		status.State = Stopped
	case s.current != nil && s.current.child.running():
		status.State, status.PID = Running, s.current.child.pid()
	case s.disabled():
		status.State = Disabled
	case s.start != nil:
		status.State = Starting
	}
	return status
}

// Stop ends the plugin for good: it is asked to leave, and after at most 4 s, or
// at the end of ctx, killed with its whole process group. It returns when the
// process is gone; calls that still run fail.
func (s *supervisor) Stop(ctx context.Context) error {
	s.mu.Lock()
	if !s.stopping {
		s.stopping = true
		close(s.stopped)
	}
	p := s.current
	s.mu.Unlock()
	if p != nil {
		p.stop(ctx)
	}
	s.watchers.Wait()
	return nil
}
