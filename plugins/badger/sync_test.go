package badger_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/badger"
)

var errDisk = errors.New("the disk is broken")

// After a failed sync nobody knows what the disk has: nothing is acknowledged
// any more.
func TestAFailedSyncIsTold(t *testing.T) {
	broken := atomic.Bool{}
	dir := t.TempDir()
	s := open(t, dir, badger.Options{SyncFile: func(f *os.File) error {
		if broken.Load() {
			return errDisk
		}
		return f.Sync()
	}})
	fill(t, s, 10, 10)
	broken.Store(true)
	var b store.Batch
	b.Put([]byte("Ix"), []byte("1"))
	if _, err := s.Commit(t.Context(), b); !errors.Is(err, errDisk) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a commit that was not synced = %v", err)
	}
	broken.Store(false)
	if _, err := s.Commit(t.Context(), b); !errors.Is(err, errDisk) {
		t.Errorf("a commit after that = %v", err)
	}
	if n := count(t, s); n < 10 {
		t.Errorf("%d rows can be read, want 10", n)
	}
	if err := s.Close(); !errors.Is(err, errDisk) {
		t.Errorf("closing says %v", err)
	}
	s = open(t, dir, badger.Options{})
	if _, err := s.Commit(t.Context(), b); err != nil {
		t.Errorf("a commit to the store that was opened anew = %v", err)
	}
}

// writers commit n batches each, side by side, and return what they were told
// is durable.
func writers(t *testing.T, s *badger.Store, many, n, size int) []string {
	t.Helper()
	var done sync.WaitGroup
	var mu sync.Mutex
	var acked []string
	for w := range many {
		done.Go(func() {
			for i := range n {
				key := fmt.Sprintf("I%03d/%06d", w, i)
				var b store.Batch
				b.Put([]byte(key), bytes.Repeat([]byte{byte(i)}, size))
				if _, err := s.Commit(t.Context(), b); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				acked = append(acked, key)
				mu.Unlock()
			}
		})
	}
	done.Wait()
	return acked
}

func TestWritersShareASync(t *testing.T) {
	syncs := atomic.Int64{}
	s := open(t, t.TempDir(), badger.Options{SyncFile: func(f *os.File) error {
		syncs.Add(1)
		return f.Sync()
	}})
	begun := syncs.Load()
	writers(t, s, 32, 50, 100)
	if n := syncs.Load() - begun; n > 32*50*3/4 {
		t.Errorf("%d syncs for %d commits of 32 writers", n, 32*50)
	}
}

// Only what was synced is left by a power cut; all that was acknowledged is in
// it.
func TestAPowerCutTakesNothingThatWasAcknowledged(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	synced := map[string][]byte{}
	s := open(t, dir, badger.Options{SyncFile: func(f *os.File) error {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
		mu.Lock()
		defer mu.Unlock()
		synced[filepath.Base(f.Name())] = raw
		return err
	}})
	acked := writers(t, s, 8, 40, 40_000)
	cut := filepath.Join(t.TempDir(), "cut")
	if err := os.CopyFS(cut, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(cut, "db", "*.mem"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs in %s: %v", cut, err)
	}
	for _, log := range logs {
		if err := os.WriteFile(log, synced[filepath.Base(log)], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	after := open(t, cut, badger.Options{})
	if info, err := after.Info(t.Context()); err != nil || info.Refusal != "" {
		t.Fatalf("refusal %q, %v", info.Refusal, err)
	}
	there, err := rows(t, after, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range acked {
		if there[key] == "" {
			t.Errorf("%s was acknowledged and is gone", key)
		}
	}
}

func TestAMissingLogIsNamed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, badger.Options{})
	fill(t, s, 100, 100)
	cut := filepath.Join(t.TempDir(), "cut")
	if err := os.CopyFS(cut, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(cut, "db", "*.mem"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	remove(t, logs[0])
	after := open(t, cut, badger.Options{})
	if info, err := after.Info(t.Context()); err != nil || !strings.Contains(info.Refusal, "something was lost") {
		t.Errorf("refusal %q, %v", info.Refusal, err)
	}
}

// The largest batch of the contract goes through Badger's transactions, which
// are much smaller, and is there whole or not at all.
func TestLargeValues(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, badger.Options{})
	want := map[string]string{}
	put := func(ops ...store.Op) {
		t.Helper()
		for _, op := range ops {
			want[string(op.Key)] = string(op.Value)
		}
		if _, err := s.Commit(t.Context(), store.Batch{Ops: ops}); err != nil {
			t.Fatal(err)
		}
	}
	big := func(seed byte, n int) []byte {
		p := make([]byte, n)
		for i := range p {
			p[i] = seed + byte(i*7/3)
		}
		return p
	}
	put(store.Op{Key: []byte("Ia"), Value: big(1, store.MaxValueBytes)}, store.Op{Key: []byte("Ib"), Value: big(2, 15<<20)}, store.Op{Key: []byte("Ic"), Value: []byte("small")})
	var many []store.Op
	for i := range store.MaxBatchOps {
		many = append(many, store.Op{Key: fmt.Appendf(nil, "I%0255d", i), Value: big(byte(i), 1200)})
	}
	put(many...)
	put(store.Op{Key: []byte("Ia"), Value: big(3, 600<<10)})
	same := func(about string) {
		t.Helper()
		for _, reverse := range []bool{false, true} {
			if got, err := rows(t, s, reverse); err != nil || len(got) != len(want) {
				t.Fatalf("%s: %d rows, want %d: %v", about, len(got), len(want), err)
			} else {
				for k, v := range want {
					if got[k] != v {
						t.Fatalf("%s: %.20s has %d bytes, want %d", about, k, len(got[k]), len(v))
					}
				}
			}
		}
	}
	same("at once")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, badger.Options{})
	same("after a restart")
	if _, err := s.Maintain(t.Context(), store.Compact, nil); err != nil {
		t.Fatal(err)
	}
	same("after it was compacted")
	for k := range want {
		if _, err := s.Commit(t.Context(), store.Batch{Ops: []store.Op{{Key: []byte(k), Delete: true}}}); err != nil {
			t.Fatal(err)
		}
		delete(want, k)
	}
	report, err := s.Maintain(t.Context(), store.Compact, nil)
	if err != nil || report.Figures[0].Value > 20<<20 {
		t.Errorf("with everything deleted: %+v, %v", report, err)
	}
	same("deleted")
}

// BenchmarkCommitStep commits steps of three items, by many writers; the rate
// of the disk's own syncs is beside it.
func BenchmarkCommitStep(b *testing.B) {
	b.Run("fdatasync", func(b *testing.B) {
		f, err := os.Create(filepath.Join(b.TempDir(), "log"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(64 << 20); err != nil {
			b.Fatal(err)
		}
		step := bytes.Repeat([]byte{1}, 1000)
		for i := 0; b.Loop(); i++ {
			if _, err := f.WriteAt(step, int64(i%60_000)*1000); err != nil {
				b.Fatal(err)
			}
			if err := unix.Fdatasync(int(f.Fd())); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, many := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("writers=%d", many), func(b *testing.B) {
			s, err := badger.Open(b.Context(), b.TempDir(), badger.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.SetParallelism(many)
			at := atomic.Int64{}
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					n := at.Add(1)
					var batch store.Batch
					for i := range 3 {
						batch.Put(fmt.Appendf(nil, "I%012d/%d", n, i), bytes.Repeat([]byte{byte(n)}, 300))
					}
					if _, err := s.Commit(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
