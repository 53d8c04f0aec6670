package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// drainTime is how long the output of a process is read after its end; a
// descendant that fled its group may hold the pipe open for ever.
const drainTime = 200 * time.Millisecond

// child is a plugin's process. It implements go-plugin's runner.Runner, whose
// own would give the plugin our stdin and all of our environment.
type child struct {
	cmd    *exec.Cmd
	output *output

	started   func()   // is called in a goroutine of its own when the process runs
	stdin     *os.File // our end; its close tells the plugin to leave
	handshake *io.PipeReader
	exited    chan struct{} // closed when the process and its group are gone and reaped

	mu     sync.Mutex
	reaped bool   // its process id may be another's now
	killed string // why we ended it; empty: we did not
	exit   string // how it ended; set before exited is closed
}

func newChild(c Command, env []string) *child {
	cmd := exec.Command(c.Path, c.Args...) //nolint:noctx // it outlives the call that starts it; Kill ends it
	cmd.Env = env
	// A group of its own: Ctrl-C in the host's terminal is not for it, and
	// all of it can be ended at once. The death signal is for plugins that do
	// not watch their stdin.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	return &child{
		cmd:    cmd,
		output: newOutput(c.Logger.With("plugin", c.Name), 0),
		exited: make(chan struct{}),
	}
}

// Start implements runner.Runner.
func (c *child) Start(context.Context) error {
	var ours, theirs [3]*os.File
	closeAll := func(files [3]*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	for fd := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return fmt.Errorf("make the pipes of a plugin: %w", err)
		}
		if fd == 0 {
			ours[fd], theirs[fd] = w, r
		} else {
			ours[fd], theirs[fd] = r, w
		}
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	err := startOnSpawner(c.cmd)
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		close(c.exited)
		return err
	}
	c.stdin = ours[0]
	var first *io.PipeWriter
	c.handshake, first = io.Pipe()
	var readers sync.WaitGroup
	readers.Go(func() { readHandshake(ours[1], first, c.output) })
	readers.Go(func() { c.output.read(ours[2]) })
	go c.reap(&readers, ours)
	go c.started()
	return nil
}

// reap waits for the end of the process, ends what is left of its group while
// its id still stands for it, and collects it.
func (c *child) reap(readers *sync.WaitGroup, ours [3]*os.File) {
	waitWithoutReaping(c.cmd.Process.Pid)
	c.mu.Lock()
	killGroup(c.cmd.Process.Pid)
	c.reaped = true
	err := c.cmd.Wait()
	c.exit = c.cmd.ProcessState.String()
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL && c.killed != "" {
		c.exit = c.killed
	} else if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		c.exit = err.Error()
	}
	c.mu.Unlock()

	drained := make(chan struct{})
	go func() { readers.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(drainTime):
	}
	for _, f := range ours {
		f.Close() // ends the readers that still wait
	}
	c.handshake.Close() //nolint:errcheck // it always returns nil
	<-drained
	close(c.exited)
}

// waitWithoutReaping returns when the process has ended, and leaves it a
// zombie, so that its id and its group's stay taken.
func waitWithoutReaping(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return // at worst cmd.Wait does the waiting
		}
	}
}

// killGroup ends a process group whose leader is our unreaped child.
func killGroup(pid int) {
	unix.Kill(-pid, unix.SIGKILL) //nolint:errcheck // ESRCH: the leader was all there was
}

// signal sends a signal to the whole group, unless it may be another's by now.
func (c *child) signal(s unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped && c.cmd.Process != nil {
		unix.Kill(-c.cmd.Process.Pid, s) //nolint:errcheck // it is gone already
	}
}

// Kill implements runner.Runner: it ends the whole group and waits for its end.
func (c *child) Kill(context.Context) error {
	c.end("killed by the host")
	return nil
}

// end kills the group for a reason that messages give.
func (c *child) end(reason string) {
	if c.cmd.Process == nil {
		return // it was never started
	}
	c.mu.Lock()
	if !c.reaped && c.killed == "" {
		c.killed = reason
	}
	c.mu.Unlock()
	c.signal(unix.SIGKILL)
	<-c.exited
}

// Wait implements runner.Runner.
func (c *child) Wait(context.Context) error {
	<-c.exited
	return nil
}

// how tells how the process ended.
func (c *child) how() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit
}

func (c *child) running() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

func (c *child) pid() int {
	if c.cmd.Process == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// ID implements runner.Runner.
func (c *child) ID() string { return strconv.Itoa(c.pid()) }

// Name implements runner.Runner.
func (c *child) Name() string { return c.cmd.Path }

// Diagnose implements runner.Runner; StartError says more.
func (c *child) Diagnose(context.Context) string { return "" }

// Stdout implements runner.Runner: the handshake, and then the end.
func (c *child) Stdout() io.ReadCloser { return c.handshake }

// Stderr implements runner.Runner. go-plugin gets none of it: it goes to our
// log through output.
func (c *child) Stderr() io.ReadCloser { return io.NopCloser(eof{}) }

type eof struct{}

// Read implements io.Reader.
func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// PluginToHost implements runner.Runner.
func (c *child) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" {
		return "", "", fmt.Errorf("it listens on %s %s, where anybody on this machine can connect: a local plugin listens on a Unix socket in the folder that PLUGIN_UNIX_SOCKET_DIR names", network, printable(address))
	}
	return network, address, nil
}

// HostToPlugin implements runner.Runner.
func (c *child) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// spawner is a thread that lives as long as the host: the death signal of a
// child comes when the thread ends that made it.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func startOnSpawner(cmd *exec.Cmd) error {
	keepDescriptors()
	started := make(chan error, 1)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}

// keepDescriptors keeps what this host inherited besides its stdio from its
// plugins: whoever waits for the end of such a pipe waits for us, not for them.
var keepDescriptors = sync.OnceFunc(func() {
	unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) //nolint:errcheck // an old kernel does not know it
})
