package manager

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/boughdev/bough/host/store"
)

// holderProcess is another process that holds a lease.
func holderProcess(t *testing.T, o StorageOptions, lease string) (pid int, token uint64) {
	t.Helper()
	args := append([]string{"as", "holder"}, o.Command[3:]...)
	cmd := exec.Command(self(t), append(args, lease)...)
	cmd.Stderr = &testWriter{t: t}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	scan := bufio.NewScanner(out)
	if !scan.Scan() {
		t.Fatal("the holder ended")
	}
	token, err = strconv.ParseUint(scan.Text(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, token
}

func me(program string) store.Holder {
	return store.Holder{PID: os.Getpid(), Program: program, Since: time.Now()}
}

func acquire(t *testing.T, s *Storage, name string) store.Lease {
	t.Helper()
	lease, err := s.Acquire(timeout(t, 10*time.Second), name, me("test"))
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func fenced(l store.Lease, key, value string) store.Batch {
	b := put(key, value)
	b.Fences = append(b.Fences, store.FenceOf(l))
	return b
}

func isLost(l store.Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

// cut breaks the connection under the client, as the kernel would.
func cut(s *Storage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.raw.(*onceConn).Conn.Close()
}

// gate keeps a client from connecting again until it is opened.
func gate(s *Storage) (open func()) {
	gate := make(chan struct{})
	connect := s.connect
	s.connect = func(ctx context.Context) (*link, error) {
		select {
		case <-gate:
			return connect(ctx)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return func() { close(gate) }
}

func TestLeaseIsRefusedWithItsHolder(t *testing.T) {
	s, o := attachNew(t, "memory")
	other := attach(t, o)
	lease := acquire(t, s, "session/1")
	held := (*store.HeldError)(nil)
	_, err := other.Acquire(timeout(t, 5*time.Second), "session/1", me("other"))
	if !errors.As(err, &held) || held.Holder.PID != os.Getpid() || held.Holder.Program != "test" || held.Name != "session/1" {
		t.Errorf("got %v", err)
	}
	if _, err := s.Acquire(timeout(t, 5*time.Second), "session/1", me("test")); !errors.Is(err, store.ErrHeld) {
		t.Errorf("the holder itself, a second time: %v", err)
	}
	if _, err := s.Commit(timeout(t, 5*time.Second), fenced(lease, "a", "b")); err != nil {
		t.Error(err)
	}
}

// TestReleasedLeaseIsFree: when Release has returned, another can have it, over
// whichever connection.
func TestReleasedLeaseIsFree(t *testing.T) {
	s, o := attachNew(t, "memory")
	clients := []*Storage{s, attach(t, o)}
	for i := range 200 {
		lease := acquire(t, clients[i%2], "l")
		if err := lease.Release(timeout(t, 5*time.Second)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := lease.Release(timeout(t, 5*time.Second)); err != nil {
				t.Errorf("a second time: %v", err)
			}
			if _, err := s.Commit(timeout(t, 5*time.Second), fenced(lease, "a", "b")); !errors.Is(err, store.ErrFenced) {
				t.Errorf("a commit after Release: %v", err)
			}
		}
		if isLost(lease) {
			t.Fatal("a released lease is lost")
		}
	}
}

func TestLeaseOfAKilledHolder(t *testing.T) {
	s, o := attachNew(t, "memory")
	pid, token := holderProcess(t, o, "l")
	kill(t, pid, syscall.SIGKILL)
	began := time.Now()
	var lease store.Lease
	within(t, 5*time.Second, "the lease is free", func() (free bool) {
		var err error
		lease, err = s.Acquire(timeout(t, 5*time.Second), "l", me("test"))
		return err == nil
	})
	t.Logf("free after %s", time.Since(began))
	if lease.Token() <= token {
		t.Errorf("token %d after %d", lease.Token(), token)
	}
}

func TestLeaseOfAStoppedHolder(t *testing.T) {
	s, o := attachNew(t, "memory")
	pid, _ := holderProcess(t, o, "l")
	kill(t, pid, syscall.SIGSTOP)
	for began := time.Now(); time.Since(began) < 300*time.Millisecond; {
		if _, err := s.Acquire(timeout(t, 5*time.Second), "l", me("test")); !errors.Is(err, store.ErrHeld) {
			t.Fatalf("after %s: %v", time.Since(began), err)
		}
	}
	kill(t, pid, syscall.SIGCONT)
}

// TestCutConnection: the lease is taken again, and a batch that was made with
// the fence of before is still the holder's.
func TestCutConnection(t *testing.T) {
	s, _ := attachNew(t, "memory")
	lease := acquire(t, s, "l")
	old := fenced(lease, "a", "b")
	before := lease.Token()
	for range 3 {
		cut(s)
		if _, err := s.Commit(timeout(t, 10*time.Second), old); err != nil {
			t.Fatal(err)
		}
		old.ID[0]++
	}
	if lease.Token() <= before || isLost(lease) {
		t.Errorf("token %d after %d, lost: %v", lease.Token(), before, isLost(lease))
	}
	if err := lease.Release(timeout(t, 5*time.Second)); err != nil {
		t.Error(err)
	}
}

func TestCutHolderIsFencedOff(t *testing.T) {
	for name, letGo := range map[string]bool{"another has it": false, "another had it": true} {
		t.Run(name, func(t *testing.T) {
			s, o := attachNew(t, "memory")
			other := attach(t, o)
			lease := acquire(t, s, "l")
			stale := fenced(lease, "a", "stale")
			open := gate(s)
			cut(s)
			var taken store.Lease
			within(t, 5*time.Second, "the other takes the lease", func() bool {
				var err error
				taken, err = other.Acquire(timeout(t, 5*time.Second), "l", store.Holder{PID: 1, Since: time.Now()})
				return err == nil
			})
			if _, err := other.Commit(timeout(t, 5*time.Second), fenced(taken, "a", "fresh")); err != nil {
				t.Fatal(err)
			}
			if letGo {
				if err := taken.Release(timeout(t, 5*time.Second)); err != nil {
					t.Fatal(err)
				}
			}
			open()
			if _, err := s.Commit(timeout(t, 5*time.Second), stale); !errors.Is(err, store.ErrFenced) {
				t.Errorf("got %v, want ErrFenced", err)
			}
			select {
			case <-lease.Lost():
			case <-time.After(5 * time.Second):
				t.Error("the lease is not lost")
			}
			if got, err := s.Get(timeout(t, 5*time.Second), []byte("a")); err != nil || string(got[0].Value) != "fresh" {
				t.Errorf("got %+v, %v", got, err)
			}
			if !letGo && isLost(taken) {
				t.Error("the other's lease is lost")
			}
		})
	}
}

// TestStoppedStorage: a process that merely does not answer is waited for.
func TestStoppedStorage(t *testing.T) {
	s, o := attachNew(t, "memory")
	lease := acquire(t, s, "l")
	pid := storagePID(t, o)
	kill(t, pid, syscall.SIGSTOP)
	short, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	b := fenced(lease, "a", "b")
	b.ID[0] = 1
	if _, err := s.Commit(short, b); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("commit: %v", err)
	}
	if _, err := s.Get(short, []byte("a")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get: %v", err)
	}
	o.StartTimeout = 200 * time.Millisecond
	if _, err := AttachStorage(timeout(t, 10*time.Second), o); err == nil || errors.Is(err, context.DeadlineExceeded) || !alive(pid) {
		t.Errorf("attach: %v", err)
	}
	kill(t, pid, syscall.SIGCONT)
	if _, err := s.Commit(timeout(t, 5*time.Second), b); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if isLost(lease) || storagePID(t, o) != pid {
		t.Error("the lease or the process was given up")
	}
}

func TestCloseEndsLeases(t *testing.T) {
	s, o := attachNew(t, "memory")
	other := attach(t, o)
	lease := acquire(t, s, "l")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !isLost(lease) {
		t.Error("the lease of a closed store is not lost")
	}
	if err := lease.Release(timeout(t, 5*time.Second)); err != nil {
		t.Error(err)
	}
	within(t, 5*time.Second, "the other takes it", func() bool {
		_, err := other.Acquire(timeout(t, 5*time.Second), "l", me("test"))
		return err == nil
	})
	if _, err := s.Acquire(timeout(t, 5*time.Second), "l", me("test")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
