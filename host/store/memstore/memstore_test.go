package memstore

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/boughdev/bough/host/store"
)

func TestCutEndsALease(t *testing.T) {
	s := New()
	l, err := s.Acquire(t.Context(), "session/a", store.Holder{PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.Lost():
		t.Fatal("the lease is lost before it was cut")
	default:
	}
	s.Cut("session/a")
	<-l.Lost()
	b := store.Batch{Fences: []store.Fence{store.FenceOf(l)}}
	b.Put([]byte("k"), nil)
	if _, err := s.Commit(t.Context(), b); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a write under a cut lease = %v", err)
	}
	if _, err := s.Acquire(t.Context(), "session/a", store.Holder{PID: 2}); err != nil {
		t.Errorf("the lease after the cut: %v", err)
	}
	s.Cut("nothing is held under this name")
}

// A watcher that does not read is told to read everything again, and the store
// does not wait for it.
func TestASlowWatcherResyncs(t *testing.T) {
	s := New()
	ctx, cancel := context.WithCancel(t.Context())
	ready, read := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	resynced := false
	wg.Go(func() {
		for ev, err := range s.Watch(ctx, []byte("k"), func() { close(ready) }) {
			if err != nil {
				return
			}
			<-read
			if ev.Resync {
				resynced = true
				cancel()
			}
		}
	})
	<-ready
	for range 2 * backlog {
		var b store.Batch
		b.Put([]byte("k"), nil)
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	close(read)
	wg.Wait()
	if !resynced {
		t.Error("the watcher was not told that it missed something")
	}
}

func TestBackupAndRestore(t *testing.T) {
	s := New()
	var b store.Batch
	b.Put([]byte("a"), []byte("1"))
	b.Put([]byte("b"), nil)
	if _, err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := s.Backup(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Restore(t.Context(), bytes.NewReader(file.Bytes())); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a restore over contents = %v", err)
	}
	other := New()
	if _, err := other.Restore(t.Context(), bytes.NewReader(file.Bytes()[:file.Len()-1])); err == nil {
		t.Error("half a backup was restored")
	}
	n, err := other.Restore(t.Context(), bytes.NewReader(file.Bytes()))
	if err != nil || n != 2 {
		t.Errorf("restored %d, %v", n, err)
	}
	got, err := other.Get(t.Context(), []byte("a"), []byte("b"))
	if err != nil || string(got[0].Value) != "1" || got[1].Version == 0 {
		t.Errorf("after the restore: %+v, %v", got, err)
	}
	report, err := other.Maintain(t.Context(), store.Stats, nil)
	if err != nil || report.Figures[0].Value != 2 {
		t.Errorf("stats = %+v, %v", report, err)
	}
}
