package rendezvous

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAddressIsFoundByOthers(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without an address: %v", err)
	}
	a, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Read(dir)
	if err != nil || got != a || a.Token == "" || !got.Process.Alive() {
		t.Errorf("got %+v, %v, want %+v", got, err, a)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	info, err := os.Stat(filepath.Join(dir, addressFile))
	if err != nil || info.Mode().Perm() != 0o600 || len(files) != 1 {
		t.Errorf("files %v, mode %v, %v", files, info.Mode(), err)
	}
}

func TestOnlyTheOwnAddressIsWithdrawn(t *testing.T) {
	dir := t.TempDir()
	old, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	next, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Write(dir); err != nil {
		t.Fatal(err)
	}
	if old.Token == next.Token || old.Stands(dir) || !next.Stands(dir) {
		t.Errorf("tokens %s and %s", old.Token, next.Token)
	}
	old.Withdraw(dir)
	if !next.Stands(dir) {
		t.Error("another's address was withdrawn")
	}
	next.Withdraw(dir)
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestSocketPathIsShort(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 150))
	a, err := New(long)
	if err != nil || len(a.Socket) > 107 || strings.HasPrefix(a.Socket, long) {
		t.Errorf("got %s, %v", a.Socket, err)
	}
}

func TestAliveMeansTheSameProcess(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := Process{PID: cmd.Process.Pid, Started: startOf(cmd.Process.Pid), Boot: bootID()}
	if !p.Alive() {
		t.Error("a running process is not alive")
	}
	for name, other := range map[string]Process{
		"started at another time": {p.PID, p.Started + "1", p.Boot},
		"of an earlier boot":      {p.PID, p.Started, "earlier"},
		"without a start time":    {p.PID, "", p.Boot},
		"none":                    {},
	} {
		if other.Alive() {
			t.Errorf("%s: alive", name)
		}
	}
	cmd.Process.Kill()
	for deadline := time.Now().Add(5 * time.Second); p.Alive(); { // it is a zombie then
		if time.Now().After(deadline) {
			t.Fatal("a killed process is alive")
		}
	}
	cmd.Wait()
	if p.Alive() {
		t.Error("a collected process is alive")
	}
}

func TestLocksExclude(t *testing.T) {
	dir := t.TempDir()
	lock, err := TryLock(dir, StartLock)
	if err != nil || lock == nil {
		t.Fatal(lock, err)
	}
	if other, err := TryLock(dir, StartLock); other != nil || err != nil {
		t.Errorf("a second lock: %v, %v", other, err)
	}
	owner, err := TryLock(dir, OwnerLock)
	if err != nil || owner == nil {
		t.Errorf("the other lock: %v, %v", owner, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := WaitLock(short, dir, StartLock); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		next, err := WaitLock(t.Context(), dir, StartLock)
		if next == nil && err == nil {
			err = errors.New("neither lock nor error")
		}
		got <- err
	}()
	lock.Unlock()
	if err := <-got; err != nil {
		t.Errorf("after Unlock: %v", err)
	}
	if _, err := TryLock(filepath.Join(dir, "missing"), StartLock); err == nil {
		t.Error("a lock in a folder that is not there")
	}
}

func FuzzAddress(f *testing.F) {
	f.Add([]byte(`{"protocol":1,"process":{"pid":7,"started":"1","boot":"b"},"token":"t","socket":"/s"}`))
	f.Add([]byte(`{"protocol":`))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, addressFile), data, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := Read(dir)
		if err != nil {
			return
		}
		if err := a.Write(dir); err != nil {
			t.Fatal(err)
		}
		if again, err := Read(dir); err != nil || again != a {
			t.Errorf("%+v was read again as %+v, %v", a, again, err)
		}
	})
}
