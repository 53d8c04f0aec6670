// Package shell runs shell lines and sees to it that nothing of them outlives
// their call: not a background job, not a daemon that made a session of its
// own, not what a killed bough left behind.
//
// Every line runs in a session of its own. The process that runs lines is the
// reaper of its descendants: whatever loses its parent becomes its child, so
// none gets out of sight. descendants.go tells whose child it was.
package shell

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// drain is how long a line may go on after its shell has ended: for the
	// rest of its output, and for helpers that are about to end.
	drain = 250 * time.Millisecond
	// leftGrace is what is left after that gets to end by itself.
	leftGrace = 250 * time.Millisecond
	// stopGrace is how long a line that is stopped gets. A host that leaves
	// waits for one and a half seconds.
	stopGrace = time.Second
	// giveUp is when a process that does not even die of SIGKILL is left alone.
	giveUp = 4 * time.Second
	// tick is how often the dead of a line that runs are collected.
	tick = time.Second

	// longestLine is what Linux takes as one argument.
	longestLine = 128<<10 - 1
)

// Runner runs shell lines. Its methods may be called from any goroutine. The
// process must not start other children with sessions of their own: they could
// not be told from what a line left behind.
type Runner struct {
	logger  *slog.Logger
	program *program
	noShell error // why there is no program
	env     []string
	self    self
	null    *os.File

	drain, stopGrace time.Duration // as the constants; tests on a busy machine give more

	prepared sync.Once
	swept    chan struct{} // closed when what others left behind was ended

	mu      sync.Mutex
	serial  int
	running map[int]*line // by the process id of their shells
}

// Options are a runner's settings.
type Options struct {
	// Bash is the shell. Empty: BOUGH_BASH, or else bash or sh where they
	// usually are.
	Bash   string
	Logger *slog.Logger // nil: slog.Default()
}

// New makes this process the reaper of its descendants and, in the background,
// ends what the lines of a killed process left behind. Without a usable shell
// every Run fails and says so.
func New(o Options) *Runner {
	r := &Runner{logger: o.Logger, env: environment(os.LookupEnv), drain: drain, stopGrace: stopGrace, running: map[int]*line{}, swept: make(chan struct{})}
	if r.logger == nil {
		r.logger = slog.Default()
	}
	r.program, r.noShell = findProgram(o.Bash)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		r.logger.Warn("this process cannot become the reaper of its descendants: what leaves its session is not found", "error", err)
	}
	var err error
	if r.self, err = identify(); err != nil {
		r.logger.Warn("processes cannot be looked at: what a command leaves running may go on", "error", err)
	}
	go func() {
		defer close(r.swept)
		r.endAbandoned()
	}()
	return r
}

// Command is a line to run.
type Command struct {
	Line    string
	Dir     string // absolute
	Timeout time.Duration
	// Output gets what the line writes to stdout and stderr, in the order in
	// which it was written, from one goroutine. The bytes are valid until it
	// returns. A slow Output slows the line down.
	Output func([]byte)
}

// Ending tells how a line ended.
type Ending struct {
	Exit      int    // of the shell; less than 0: a signal ended it
	Signal    string // that ended the shell, such as SIGSEGV
	TimedOut  bool
	Cancelled bool
	Left      []string // names of processes that were still running and were ended
	Stuck     []int    // processes that could not be ended
	Duration  time.Duration
}

// line is a shell line that runs.
type line struct {
	pid     int
	mark    mark   // of its processes
	started uint64 // clock ticks since boot
	process *os.Process
	exited  chan struct{} // closed when the shell was collected
	state   *os.ProcessState
}

// Run runs a line to its end. When Run returns, no process of the line is
// running. An error means that nothing was run.
func (r *Runner) Run(ctx context.Context, c Command) (Ending, error) {
	r.prepared.Do(prepare)
	began := time.Now()
	if ctx.Err() != nil {
		return Ending{Exit: -1, Cancelled: true}, nil
	}
	l, pipe, err := r.start(c)
	if err != nil {
		return Ending{}, err
	}
	out := newOutput(pipe, c.Output)
	var e Ending
	deadline := time.NewTimer(c.Timeout)
	defer deadline.Stop()
	dead := time.NewTicker(tick)
	defer dead.Stop()
	for waiting := true; waiting; {
		waiting = false
		select {
		case <-l.exited:
			r.leave(l, out, &e)
		case <-ctx.Done():
			e.Cancelled = true
			r.stop(l, &e)
		case <-deadline.C:
			e.TimedOut = true
			r.stop(l, &e)
		case <-dead.C:
			r.noneOf(l) // for the dead that it collects
			waiting = true
		}
	}
	out.finish()
	r.forget(l)
	e.Duration = time.Since(began)
	l.describe(&e)
	return e, nil
}

// prepare undoes what an earlier signal.Ignore would hand down to every
// program: one that ignores SIGPIPE complains where it should end.
func prepare() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// start starts a line and gives the end of the pipe that it writes to.
func (r *Runner) start(c Command) (*line, *os.File, error) {
	if r.noShell != nil {
		return nil, nil, r.noShell
	}
	if err := r.program.check(); err != nil {
		return nil, nil, err
	}
	switch {
	case strings.ContainsRune(c.Line, 0):
		return nil, nil, errors.New("the command has a NUL byte")
	case len(c.Line) > longestLine:
		return nil, nil, fmt.Errorf("the command has %d bytes, the system takes at most %d: write it to a file and run that", len(c.Line), longestLine)
	}
	if info, err := os.Stat(c.Dir); err != nil {
		return nil, nil, fmt.Errorf("run in %s: %w", c.Dir, errors.Unwrap(err))
	} else if !info.IsDir() {
		return nil, nil, fmt.Errorf("run in %s: it is not a folder", c.Dir)
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe for the command: %w", err)
	}
	defer theirs.Close()
	l, err := r.spawn(c, theirs)
	if err != nil {
		ours.Close()
		return nil, nil, fmt.Errorf("start %s: %w", r.program.path, err)
	}
	return l, ours, nil
}

// spawn makes the process. It is known before anybody can ask whose it is.
func (r *Runner) spawn(c Command, out *os.File) (*line, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.null == nil {
		null, err := os.OpenFile(os.DevNull, os.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
		r.null = null
	}
	r.serial++
	l := &line{mark: r.self.mark(r.serial), started: ticks(), exited: make(chan struct{})}
	attr := &os.ProcAttr{
		Dir:   c.Dir,
		Env:   r.env,
		Files: []*os.File{r.null, out, out},
		// The death signal ends at least the shell when this process is killed.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	var err error
	unmarked := marked(l.mark, func() {
		onSpawner(func() { l.process, err = os.StartProcess(r.program.path, r.program.args(c.Line), attr) })
	})
	if err != nil {
		return nil, err
	}
	if unmarked != nil {
		r.logger.Warn("what a command leaves running may go on until other commands have ended", "error", unmarked)
	}
	l.pid = l.process.Pid
	r.running[l.pid] = l
	go func() {
		defer close(l.exited)
		state, err := l.process.Wait()
		if err != nil {
			r.logger.Error("a shell could not be waited for", "pid", l.pid, "error", err)
		}
		l.state = state
	}()
	return l, nil
}

// forget takes a line off the list of those that run.
func (r *Runner) forget(l *line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, l.pid)
}

// leave lets a line whose shell has ended finish, and ends the rest of it.
func (r *Runner) leave(l *line, out *output, e *Ending) {
	limit := time.Now().Add(r.drain)
	pause := 2 * time.Millisecond
	for !r.gone(l) {
		if time.Now().After(limit) {
			left, stuck := r.end(l, leftGrace)
			e.Left = named(left)
			r.report(stuck, e)
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, 20*time.Millisecond)
	}
	select {
	case <-out.ended:
	case <-time.After(time.Until(limit)):
	}
}

// stop ends a line that runs.
func (r *Runner) stop(l *line, e *Ending) {
	_, stuck := r.end(l, r.stopGrace)
	r.report(stuck, e)
	select {
	case <-l.exited:
	case <-time.After(giveUp):
	}
}

// report tells of processes that could not be ended.
func (r *Runner) report(stuck []process, e *Ending) {
	for _, p := range stuck {
		e.Stuck = append(e.Stuck, p.pid)
		r.logger.Error("a process of a command cannot be ended", "pid", p.pid, "name", p.name)
	}
}

// describe tells how the shell ended.
func (l *line) describe(e *Ending) {
	e.Exit = -1
	select {
	case <-l.exited:
	default:
		return // not even SIGKILL ended it
	}
	if l.state == nil {
		return
	}
	status, ok := l.state.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
	case status.Signaled():
		e.Signal = unix.SignalName(status.Signal())
	default:
		e.Exit = status.ExitStatus()
	}
}
