package manager

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be any of the processes that the tests need.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as" {
		role, ok := roles[os.Args[2]]
		if !ok {
			fmt.Fprintln(os.Stderr, "unknown role", os.Args[2])
			os.Exit(64)
		}
		if err := role(os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// command starts this test binary in a role.
func command(t testing.TB, role string, args ...string) Command {
	return Command{
		Name: role, Path: self(t), Args: append([]string{"as", role}, args...),
		Env: childEnv, Logger: testLogger(t),
	}
}

// childEnv spares the processes of a test with the race detector the second
// that they would wait at their end.
var childEnv = []string{"GORACE=atexit_sleep_ms=0"}

// testLogger shows its lines when the test fails.
func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(&testWriter{t: t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type testWriter struct {
	mu   sync.Mutex
	t    testing.TB
	over bool
}

func (w *testWriter) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.over = w.t.Context().Err() != nil // goroutines may outlive the test by a little
	}
	if !w.over {
		w.t.Log(strings.TrimSpace(string(data)))
	}
	return len(data), nil
}

// logBuffer collects what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// within polls until ok, or fails the test.
func within(t testing.TB, most time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(most)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", most, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func timeout(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// alive tells whether there is a process of that id that is no zombie.
func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	return len(fields) > 0 && fields[0] != "Z"
}

func kill(t testing.TB, pid int, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatalf("kill -%d %d: %v", signal, pid, err)
	}
}

// leaveNothing checks at the end of a test that no process whose arguments or
// environment name mark, no socket folder and no goroutine of this package is
// left.
func leaveNothing(t *testing.T, mark string) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		within(t, 10*time.Second, "processes end: "+strings.Join(processesOf(mark), "; "), func() bool {
			return len(processesOf(mark)) == 0
		})
		defer func() {
			if t.Failed() {
				t.Log(ourGoroutines())
			}
		}()
		within(t, 5*time.Second, "goroutines end", func() bool { return ourGoroutines() == "" })
	})
}

// processesOf lists the processes with mark in their command line.
func processesOf(mark string) []string {
	var found []string
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), mark) || path == fmt.Sprintf("/proc/%d/cmdline", os.Getpid()) {
			continue
		}
		found = append(found, path+" "+strings.ReplaceAll(string(data), "\x00", " "))
	}
	return found
}

// ourGoroutines are the stacks of goroutines that this package or gRPC left
// running, but for the one that starts processes.
func ourGoroutines() string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var left []string
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		ours := strings.Contains(stack, "plugins/manager.") || strings.Contains(stack, "google.golang.org/grpc")
		if ours && !strings.Contains(stack, "testing.tRunner") && !strings.Contains(stack, "manager.init.func") && !strings.Contains(stack, "glob..func") {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}

// waitForEOF ends with standard input.
func waitForEOF() {
	io.Copy(io.Discard, os.Stdin)
}
