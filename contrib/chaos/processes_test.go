package chaos

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// processes are those that run with a state directory, and with all of these
// arguments.
func processes(state string, args ...string) []int {
	var pids []int
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		panic(err) // a constant pattern
	}
	for _, dir := range dirs {
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))     // it may have ended
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // it may have ended
		all := "\x00" + string(env) + "\x00" + string(command) + "\x00"
		if !strings.Contains(all, state) {
			continue
		}
		fits := true
		for _, arg := range args {
			fits = fits && strings.Contains("\x00"+string(command), "\x00"+arg+"\x00")
		}
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && fits && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

func kill(t *testing.T, pids []int, sig unix.Signal) {
	t.Helper()
	for _, pid := range pids {
		if err := unix.Kill(pid, sig); err != nil && err != unix.ESRCH {
			t.Errorf("kill %d: %v", pid, err)
		}
	}
}

// allGone waits until no process of a state directory is left.
func allGone(t *testing.T, state string) {
	t.Helper()
	var left []int
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if left = processes(state); len(left) == 0 { // there is nothing to wait on: they are not our children
			return
		}
	}
	for _, pid := range left {
		command, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		t.Errorf("process %d is left: %q", pid, command)
	}
	kill(t, left, unix.SIGKILL)
}

// sockets are those below a folder.
func sockets(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type() == os.ModeSocket {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return found
}
