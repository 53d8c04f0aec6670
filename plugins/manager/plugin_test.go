package manager

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
)

// newTools is the tools of a role, stopped at the end of the test.
func newTools(t *testing.T, role string, change ...func(*Command)) *Tools {
	mark := "mark-" + t.Name()
	leaveNothing(t, mark)
	c := command(t, role, mark)
	for _, f := range change {
		f(&c)
	}
	tools := NewTools(c)
	t.Cleanup(func() {
		if err := tools.Stop(timeout(t, 10*time.Second)); err != nil {
			t.Error(err)
		}
	})
	return tools
}

func call(t *testing.T, p tool.Provider, name, input string) (tool.Result, error) {
	t.Helper()
	return p.Call(timeout(t, 20*time.Second), tool.Call{Session: "s", ID: "1", Tool: name, Input: json.RawMessage(input)}, nil)
}

func TestToolsInAPlugin(t *testing.T) {
	tools := newTools(t, "tools")
	if got := tools.Status(); got.State != Idle {
		t.Errorf("before its first use the plugin is %s", got.State)
	}
	specs, err := tools.Tools(timeout(t, 10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	want, _ := testTools{}.Tools(context.Background())
	if len(specs) != 1 || specs[0].Name != want[0].Name || specs[0].Effect != want[0].Effect || len(specs[0].PathFields) != 1 {
		t.Errorf("got %+v, want %+v", specs, want)
	}
	r, err := call(t, tools, "echo", `{"a":1}`)
	if err != nil || r.Text != `{"a":1}` || string(r.Details) != `{"n":1}` {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := call(t, tools, "fails", ""); err == nil || !strings.Contains(err.Error(), "no such wind") {
		t.Errorf("got %v, want the tool's own words", err)
	}
	if got := tools.Status(); got.State != Running || got.PID == 0 {
		t.Errorf("after its first use: %+v", got)
	}
}

func TestPanicEndsOnlyTheCall(t *testing.T) {
	tools := newTools(t, "tools")
	pid := func() int { return tools.Status().PID }
	_, err := call(t, tools, "panics", "")
	if err == nil || !strings.Contains(err.Error(), "tool panics panicked: out of cheese") {
		t.Errorf("got %v", err)
	}
	before := pid()
	if _, err := call(t, tools, "echo", "{}"); err != nil || pid() != before {
		t.Errorf("after the panic: %v, process %d, then %d", err, before, pid())
	}
}

func TestDeathDuringACall(t *testing.T) {
	for name, die := range map[string]func(t *testing.T, tools *Tools) (tool.Result, error){
		"exit": func(t *testing.T, tools *Tools) (tool.Result, error) { return call(t, tools, "dies", "") },
		"kill -9": func(t *testing.T, tools *Tools) (tool.Result, error) {
			return tools.Call(timeout(t, 20*time.Second), tool.Call{Tool: "waits"}, func(tool.Progress) {
				kill(t, tools.Status().PID, syscall.SIGKILL)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			tools := newTools(t, "tools")
			r, err := die(t, tools)
			stopped := (*StoppedError)(nil)
			if !errors.As(err, &stopped) {
				t.Fatalf("got %+v, %v, want a StoppedError", r, err)
			}
			if name == "exit" && (stopped.Exit != "exit status 3" || len(stopped.Stderr) == 0 || stopped.Stderr[len(stopped.Stderr)-1] != "I die") {
				t.Errorf("got %+v", stopped)
			}
			if name == "kill -9" && stopped.Exit != "signal: killed" {
				t.Errorf("got %+v", stopped)
			}
			if r, err := call(t, tools, "echo", "{}"); err != nil || r.Text != "{}" {
				t.Errorf("the next call: %+v, %v", r, err)
			}
		})
	}
}

// The second crash switches a plugin off, for a minute.
func TestSecondCrashDisables(t *testing.T) {
	tools := newTools(t, "tools")
	for range 2 {
		if _, err := call(t, tools, "dies", ""); err == nil {
			t.Fatal("no error")
		}
	}
	_, err := call(t, tools, "echo", "{}")
	disabled, stopped := (*DisabledError)(nil), (*StoppedError)(nil)
	if !errors.As(err, &disabled) || !errors.As(err, &stopped) || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v, want a DisabledError with the reason", err)
	}
	if got := tools.Status(); got.State != Disabled || !strings.Contains(got.Reason, "I die") {
		t.Errorf("got %+v", got)
	}
	tools.supervisor.mu.Lock()
	tools.failed = tools.failed.Add(-forgiveAfter) // a minute later
	tools.supervisor.mu.Unlock()
	if r, err := call(t, tools, "echo", "{}"); err != nil || r.Text != "{}" {
		t.Errorf("after a minute: %+v, %v", r, err)
	}
}

func TestConcurrentCallsStartOneProcess(t *testing.T) {
	tools := newTools(t, "tools")
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if _, err := call(t, tools, "echo", "{}"); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if got := processesOf("mark-" + t.Name()); len(got) != 1 {
		t.Errorf("%d processes: %v", len(got), got)
	}
}

func TestFailedStarts(t *testing.T) {
	for _, test := range []struct {
		role   string
		reason string // of the error
		exit   string
		stderr string
	}{
		{"garbage", `it wrote "Welcome to garbage 1.0!" where the handshake belongs`, "killed", "garbage wonders"},
		{"panics", "it ended before it was ready", "exit status 2", "panic: out of cheese"},
		{"exits", "it ended before it was ready", "exit status 7", "line 29"},
		{"hangs", "it did not answer within 500ms", "killed", "thinking"},
		{"tcp", "it listens on tcp 127.0.0.1", "killed", ""},
	} {
		t.Run(test.role, func(t *testing.T) {
			tools := newTools(t, test.role, func(c *Command) { c.StartTimeout = 500 * time.Millisecond })
			_, err := call(t, tools, "echo", "{}")
			failed := (*StartError)(nil)
			if !errors.As(err, &failed) {
				t.Fatalf("got %v, want a StartError", err)
			}
			text := strings.Join(failed.Stderr, "\n")
			if failed.Plugin != test.role || !strings.Contains(failed.Reason, test.reason) ||
				!strings.Contains(failed.Exit, test.exit) || !strings.Contains(text, test.stderr) {
				t.Errorf("got %+v", failed)
			}
			if len(failed.Stderr) > 20 {
				t.Errorf("%d lines of stderr", len(failed.Stderr))
			}
			if got := processesOf("mark-" + t.Name()); len(got) != 0 {
				t.Errorf("left behind: %v", got)
			}
		})
	}
}

func TestMissingProgram(t *testing.T) {
	tools := newTools(t, "tools", func(c *Command) { c.Path = filepath.Join(t.TempDir(), "nothing") })
	if _, err := call(t, tools, "echo", "{}"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestBigResults(t *testing.T) {
	tools := newTools(t, "tools")
	r, err := call(t, tools, "big", strconv.Itoa(10<<20))
	if err != nil || len(r.Text) != 10<<20 {
		t.Errorf("10 MB: %d bytes, %v", len(r.Text), err)
	}
	_, err = call(t, tools, "big", strconv.Itoa(70<<20))
	if err == nil || !strings.Contains(err.Error(), "at most 67108864 can be sent") {
		t.Errorf("70 MB: got %v", err)
	}
	if _, err := call(t, tools, "echo", "{}"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestFloodOfStderrAndStdout(t *testing.T) {
	log := &logBuffer{}
	tools := newTools(t, "tools", func(c *Command) { c.Logger = log.logger() })
	for _, name := range []string{"floods", "prints"} {
		if r, err := call(t, tools, name, ""); err != nil || r.Text == "" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if err := tools.Stop(timeout(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	text := log.String()
	if !strings.Contains(text, "plugin=tools") || !strings.Contains(text, "flood 1 ") {
		t.Error("the first lines are not in the log with the plugin's name")
	}
	if !strings.Contains(text, "lines were left out") || strings.Count(text, "flood") > 5000 {
		t.Errorf("the flood was let through: %d lines", strings.Count(text, "flood"))
	}
	if !strings.Contains(text, "print 1 ") || strings.Count(text, "print") > 2000 {
		t.Errorf("of what was printed after the handshake %d lines are in the log", strings.Count(text, "print"))
	}
}

func TestEnvironmentIsAnAllowList(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	t.Setenv("MY_TOOLS_HOME", "/opt/tools")
	t.Setenv("MY_SECRET", "hush")
	t.Setenv("LC_TIME", "C")
	tools := newTools(t, "tools", func(c *Command) {
		c.PassEnv = []string{"MY_TOOLS_*"}
		c.Env = append(c.Env, "ADDED=yes")
	})
	r, err := call(t, tools, "environment", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"PATH=", "HOME=", "LC_TIME=C", "MY_TOOLS_HOME=/opt/tools", "ADDED=yes"} {
		if !strings.Contains("\n"+r.Text, "\n"+want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, secret := range []string{"sk-secret", "hush", "OPENAI_API_KEY"} {
		if strings.Contains(r.Text, secret) {
			t.Errorf("%s was handed on", secret)
		}
	}
}

func TestLongTMPDIR(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 150))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	t.Setenv("XDG_RUNTIME_DIR", "")
	tools := newTools(t, "tools")
	if _, err := call(t, tools, "echo", "{}"); err != nil {
		t.Error(err)
	}
}

func TestSocketFoldersAreRemoved(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "bt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	t.Setenv("XDG_RUNTIME_DIR", base)
	folders := func() []string {
		found, _ := filepath.Glob(filepath.Join(base, "*", "*"))
		return found
	}
	for _, role := range []string{"tools", "garbage"} {
		tools := NewTools(command(t, role))
		_, err := call(t, tools, "echo", "{}")
		if role == "tools" {
			if err != nil {
				t.Error(err)
			}
			info, err := os.Stat(filepath.Dir(folders()[0]))
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the folder of the sockets has mode %v, %v", info.Mode(), err)
			}
		}
		if err := tools.Stop(timeout(t, 10*time.Second)); err != nil {
			t.Error(err)
		}
		if left := folders(); len(left) != 0 {
			t.Errorf("%s left %v", role, left)
		}
	}
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	for _, role := range []string{"tools", "deaf"} {
		t.Run(role, func(t *testing.T) {
			tools := newTools(t, role)
			r, err := call(t, tools, "child", "")
			if err != nil {
				t.Fatal(err)
			}
			child, err := strconv.Atoi(r.Text)
			if err != nil {
				t.Fatal(err)
			}
			pid := tools.Status().PID
			if err := tools.Stop(timeout(t, 10*time.Second)); err != nil {
				t.Error(err)
			}
			if alive(pid) {
				t.Error("the plugin lives after Stop")
			}
			within(t, time.Second, "its child is gone", func() bool { return !alive(child) })
			if _, err := call(t, tools, "echo", "{}"); !errors.Is(err, ErrStopped) {
				t.Errorf("a call after Stop: %v", err)
			}
		})
	}
}

func TestStopOfAHangingPluginEndsWithTheContext(t *testing.T) {
	tools := newTools(t, "tools")
	if _, err := call(t, tools, "echo", "{}"); err != nil {
		t.Fatal(err)
	}
	pid := tools.Status().PID
	kill(t, pid, syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := tools.Stop(ctx); err != nil {
		t.Error(err)
	}
	if alive(pid) {
		t.Error("it is alive")
	}
}

func TestStopDuringAStart(t *testing.T) {
	tools := newTools(t, "hangs")
	failed := make(chan error, 1)
	go func() { _, err := call(t, tools, "echo", "{}"); failed <- err }()
	within(t, 5*time.Second, "the plugin starts", func() bool { return len(processesOf("mark-"+t.Name())) > 0 })
	if err := tools.Stop(timeout(t, 10*time.Second)); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, ErrStopped) {
		t.Errorf("the waiting call got %v", err)
	}
}

func TestWarmStartsInTheBackground(t *testing.T) {
	slow := newTools(t, "hangs")
	slow.Warm() // returns, though the plugin never gets ready
	if state := slow.Status().State; state == Running {
		t.Errorf("a plugin that hangs is %v", state)
	}
	tools := newTools(t, "tools")
	tools.Warm()
	within(t, 5*time.Second, "the plugin runs", func() bool { return tools.Status().State == Running })
}

// TestHostIsKilled: SIGKILL leaves the host no chance to stop its plugins.
func TestHostIsKilled(t *testing.T) {
	mark := "mark-" + t.Name()
	leaveNothing(t, mark)
	host := exec.Command(self(t), "as", "host", mark, "tools", "deaf")
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int // each plugin's, and its child's
	for scan := bufio.NewScanner(out); len(pids) < 4 && scan.Scan(); {
		pid, err := strconv.Atoi(scan.Text())
		if err != nil {
			t.Fatalf("the host wrote %q", scan.Text())
		}
		pids = append(pids, pid)
	}
	if len(pids) != 4 {
		t.Fatalf("the host told of processes %v", pids)
	}
	kill(t, host.Process.Pid, syscall.SIGKILL)
	host.Wait()
	within(t, 5*time.Second, "both plugins are gone", func() bool { return !alive(pids[0]) && !alive(pids[2]) })
	for _, child := range []int{pids[1], pids[3]} {
		syscall.Kill(child, syscall.SIGKILL) // a plugin's own children are its own care
	}
}

// TestInheritedDescriptors: whoever waits for the end of a pipe that the host
// inherited does not wait for its plugins.
func TestInheritedDescriptors(t *testing.T) {
	mark := "mark-" + t.Name()
	leaveNothing(t, mark)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(self(t), "as", "client", mark, t.TempDir(), "memory", "20s")
	cmd.Stderr = &testWriter{t: t}
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { // it would linger for long
		for _, process := range processesOf(mark) {
			var pid int
			if _, err := fmt.Sscanf(process, "/proc/%d/", &pid); err != nil {
				t.Error(err)
			} else if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	})
	if err := r.SetReadDeadline(time.Now().Add(15 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the storage process, which lingers, holds the pipe: %d, %v", n, err)
	}
}

func TestStopCallsTheCloseOfThePlugin(t *testing.T) {
	left := filepath.Join(t.TempDir(), "left")
	c := command(t, "workspace")
	c.Env = append(c.Env, "TEST_LEAVE_FILE="+left)
	w := NewWorkspace(c, nil)
	if err := w.Open(timeout(t, 10*time.Second), workspace.Session{ID: "s", Folder: "/"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Stop(timeout(t, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); err != nil {
		t.Error(err)
	}
}
