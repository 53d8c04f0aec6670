package manager

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/boughdev/bough/host/store"
)

func TestWatchGoesOnAfterACrash(t *testing.T) {
	s, o := attachNew(t, "memory")
	ctx := timeout(t, 20*time.Second)
	ready := make(chan struct{}, 2)
	events := make(chan store.Event)
	failed := make(chan error, 1)
	go func() {
		defer close(events)
		for event, err := range s.Watch(ctx, []byte("w/"), func() { ready <- struct{}{} }) {
			if err != nil {
				failed <- err
				return
			}
			events <- event
			if len(event.Changes) == 1 && string(event.Changes[0].Key) == "w/2" {
				return
			}
		}
	}()
	<-ready
	kill(t, storagePID(t, o), syscall.SIGKILL)
	if event := <-events; !event.Resync {
		t.Errorf("got %+v, want a resync", event)
	}
	if _, err := s.Commit(ctx, put("w/2", "two")); err != nil {
		t.Fatal(err)
	}
	if event := <-events; len(event.Changes) != 1 {
		t.Errorf("got %+v, want the change", event)
	}
	if _, open := <-events; open || len(ready) != 0 || len(failed) != 0 {
		t.Errorf("more came, or ready was called again: %v %d", open, len(ready))
	}
}

func TestScanThatIsCutEndsWithAnError(t *testing.T) {
	s, o := attachNew(t, "endless")
	ctx := timeout(t, 20*time.Second)
	var last error
	seen := 0
	for _, err := range s.Scan(ctx, store.Range{Start: []byte("1000000"), Limit: 1000}) {
		last = err
		if seen++; seen == 1 {
			kill(t, storagePID(t, o), syscall.SIGKILL)
		}
	}
	if !errors.Is(last, store.ErrUnavailable) {
		t.Errorf("after %d entries: %v, want ErrUnavailable", seen, last)
	}
	// One that has yielded nothing begins again.
	if _, err := s.Info(ctx); err != nil {
		t.Fatal(err)
	}
	kill(t, storagePID(t, o), syscall.SIGKILL)
	seen = 0
	for _, err := range s.Scan(ctx, store.Range{Start: []byte("10"), Limit: 100}) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
	}
	if seen != 100 {
		t.Errorf("%d entries of the next process, want 100", seen)
	}
}

// TestBatchThatKills: a batch that ends every process which takes it is given
// up, and the rest goes on.
func TestBatchThatKills(t *testing.T) {
	s, o := attachNew(t, "poisoned")
	began := time.Now()
	_, err := s.Commit(timeout(t, 30*time.Second), put("poison", "x"))
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), o.StateDir+"/logs/storage.log") {
		t.Errorf("got %v", err)
	}
	t.Logf("given up after %s: %v", time.Since(began), err)
	if _, err := s.Commit(timeout(t, 10*time.Second), put("bread", "x")); err != nil {
		t.Error(err)
	}
}

func TestTermLetsTheStorageLeaveInOrder(t *testing.T) {
	s, o := attachNew(t, "memory")
	pid := storagePID(t, o)
	kill(t, pid, syscall.SIGTERM)
	within(t, 5*time.Second, "the process leaves", func() bool { return !alive(pid) })
	if _, err := s.Commit(timeout(t, 10*time.Second), put("a", "b")); err != nil {
		t.Error(err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE} {
		kill(t, storagePID(t, o), signal)
	}
	if got, err := s.Get(timeout(t, 10*time.Second), []byte("a")); err != nil || string(got[0].Value) != "b" {
		t.Errorf("after SIGHUP, SIGINT and SIGPIPE: %+v, %v", got, err)
	}
}
