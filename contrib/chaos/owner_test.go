package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A session has one owner: a second host is refused before it does anything,
// told who the owner is; a stopped owner still owns; the place of a killed one
// can be taken.
func TestOneOwner(t *testing.T) {
	s := newSaga(t, rand.New(rand.NewPCG(1, 1)))
	if code := s.run(begin); code != 0 {
		t.Fatalf("the first run ended with %d", code)
	}
	first := s.command("-p", "-m", "openai-compatible/chaos", "--yolo", "-s", s.id, "--prompt", "go on")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(s.path("work"), "ran.txt")
	s.await("the first command has run", func() bool { _, err := os.Stat(ran); return err == nil })
	pid := first.Process.Pid
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var refusal string
	for range 3 {
		second := s.command("-p", "-m", "practice", "--yolo", "-s", s.id, "--prompt", "write second.txt: here")
		out, err := second.CombinedOutput()
		if err == nil {
			t.Fatalf("a second host went on with the session of a stopped one: %s", out)
		}
		refusal = string(out)
	}
	today := time.Now().Format("2006-01-02")
	if !strings.Contains(refusal, strconv.Itoa(pid)) || !strings.Contains(refusal, "since") || !strings.Contains(refusal, today) {
		t.Errorf("the refusal does not say who owns the session (%d) and since when: %s", pid, refusal)
	}
	if _, err := os.Stat(filepath.Join(s.path("work"), "second.txt")); err == nil {
		t.Error("the second host has done something")
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_ = first.Wait() // killed
	s.await("another host takes its place", func() bool {
		return s.command("-p", "-m", "openai-compatible/chaos", "--yolo", "-s", s.id, "--prompt", begin).Run() == nil
	})
	t.Logf("replaced, and the rest of the turn done, after %v", time.Since(began))
	s.look()
}

func (s *saga) await(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) { // of processes that are not ours to wait for
		if time.Now().After(deadline) {
			s.t.Fatalf("not within a minute: %s", what)
		}
	}
}

// Twenty hosts may begin in the same second in a fresh state directory.
func TestTwentyHostsAtOnce(t *testing.T) {
	s := newSaga(t, rand.New(rand.NewPCG(1, 1)))
	fresh := "BOUGH_STATE_DIR=" + s.path("state/fresh")
	t.Run("all", func(t *testing.T) {
		for n := range 20 {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				cmd := s.command("-p", "--prompt", fmt.Sprintf("write n%d.txt: %d", n, n))
				cmd.Env = append(cmd.Env, fresh)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
				got, err := os.ReadFile(filepath.Join(s.path("work"), fmt.Sprintf("n%d.txt", n)))
				if err != nil || strings.TrimSpace(string(got)) != strconv.Itoa(n) {
					t.Errorf("it wrote %q: %v", got, err)
				}
			})
		}
	})
	cmd := s.command("sessions", "verify")
	cmd.Env = append(cmd.Env, fresh)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "20 sessions") {
		t.Errorf("verify: %v: %s", err, out)
	}
}
