package main

import (
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
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// bin is the folder of the real programs, built once.
var bin string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "bough-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		build := exec.CommandContext(context.Background(), "go", "build", "-o", dir+string(filepath.Separator), ".")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build bough: %v\n%s", err, out)
			return 1
		}
		bin = dir
		return m.Run()
	}())
}

// TestScripts runs each case of testdata/script with the real program, in a
// folder and with a state directory of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("BOUGH_STATE_DIR", filepath.Join(e.WorkDir, "state"))
			e.Setenv("HOME", e.WorkDir)
			state := filepath.Join(e.WorkDir, "state")
			e.Defer(func() { endStorage(t, state) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": runForCode, "json": isJSON,
			"endstorage": func(ts *testscript.TestScript, _ bool, _ []string) { endStorage(t, ts.Getenv("BOUGH_STATE_DIR")) },
		},
		RequireExplicitExec: true,
	})
}

// runForCode runs a command that must end with an exit code: code 3 bough ...
func runForCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND...")
	}
	code := "0"
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = strconv.Itoa(exit.ExitCode())
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if code != args[0] {
		ts.Fatalf("the exit code is %s, want %s", code, args[0])
	}
}

// isJSON finds one JSON value on the last standard output; with "lines" one a
// line.
func isJSON(ts *testscript.TestScript, neg bool, args []string) {
	out := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	n := 0
	for {
		var value any
		err := out.Decode(&value)
		if errors.Is(err, io.EOF) {
			break
		}
		ts.Check(err)
		n++
	}
	if neg || n == 0 || n > 1 && len(args) == 0 {
		ts.Fatalf("%d JSON values", n)
	}
}

// endStorage ends the storage process of a state directory, which would stay a
// while for the next host, and waits until it is gone.
func endStorage(t *testing.T, state string) {
	for _, pid := range storagePIDs(state) {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && err != syscall.ESRCH {
			t.Errorf("end the storage process %d: %v", pid, err)
		}
		deadline := time.Now().Add(10 * time.Second)
		for syscall.Kill(pid, 0) == nil && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond) // polling: there is nothing to wait on for a process that is not our child
		}
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("the storage process %d did not end", pid)
		}
	}
}

// storagePIDs finds the storage processes of a state directory.
func storagePIDs(state string) []int {
	var pids []int
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range found {
		line, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		args := strings.Split(string(line), "\x00")
		if len(args) > 5 && strings.Join(args[1:5], " ") == "plugin serve storage --state-dir" && args[5] == state {
			var pid int
			if _, err := fmt.Sscanf(f, "/proc/%d/cmdline", &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
