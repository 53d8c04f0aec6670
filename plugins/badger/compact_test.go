package badger_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/badger"
)

func tableBytes(t *testing.T, dir string) (size int64) {
	t.Helper()
	for name, n := range files(t, filepath.Join(dir, "db")) {
		if filepath.Ext(name) == ".sst" {
			size += n
		}
	}
	return size
}

// However a store came to its size, compacted it is as large as what it holds.
func TestCompactLeavesWhatIsAlive(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, badger.Options{})
	for range 6 {
		fill(t, s, 20_000, 1000)
	}
	want, err := rows(t, s, false)
	if err != nil {
		t.Fatal(err)
	}
	report, err := s.Maintain(t.Context(), store.Compact, nil)
	if err != nil {
		t.Fatal(err)
	}
	if size := tableBytes(t, dir); size > 23<<20 {
		t.Errorf("tables of %d MB are left, and 20 MB are alive: %+v", size>>20, report)
	}
	if got, err := rows(t, s, true); err != nil || !maps.Equal(got, want) {
		t.Errorf("%d rows of %d are left: %v", len(got), len(want), err)
	}
	for _, name := range []string{"db.fresh", "db.before-*"} {
		if left, err := filepath.Glob(filepath.Join(dir, name)); err != nil || len(left) > 0 {
			t.Errorf("left over: %v %v", left, err)
		}
	}
}

// What is written, written again and deleted while a compaction copies is
// there after it, with the versions that were told, and watches go on.
func TestCompactTakesWhatComesMeanwhile(t *testing.T) {
	s := open(t, t.TempDir(), badger.Options{})
	fill(t, s, 3000, 200)
	lease, err := s.Acquire(t.Context(), "L", store.Holder{})
	if err != nil {
		t.Fatal(err)
	}
	var last uint64
	_, err = s.Maintain(t.Context(), store.Compact, func(line string) {
		if line != "exchange the tables" { // what is alive was copied
			return
		}
		var b store.Batch
		b.Put([]byte("I00000001"), []byte("again"))
		b.Put([]byte("Inew"), []byte("new"))
		b.Put([]byte("Ilarge"), bytes.Repeat([]byte{7}, 3<<20))
		b.Delete([]byte("I00000002"))
		if last, err = s.Commit(t.Context(), b); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(t.Context(), []byte("I00000001"), []byte("Inew"), []byte("I00000002"), []byte("Ilarge"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got[0].Value) != "again" || string(got[1].Value) != "new" || got[2].Version != 0 || len(got[3].Value) != 3<<20 {
		t.Errorf("%.200s", fmt.Sprint(got))
	}
	for _, i := range []int{0, 1, 3} {
		if got[i].Version != last {
			t.Errorf("key %s has version %d, want %d", got[i].Key, got[i].Version, last)
		}
	}
	var b store.Batch
	b.Require([]byte("Inew"), last)
	b.Fences = append(b.Fences, store.Fence{Lease: "L", Token: lease.Token()})
	b.Put([]byte("Inew"), []byte("newer"))
	if v, err := s.Commit(t.Context(), b); err != nil || v <= last {
		t.Errorf("a batch after it: version %d after %d, %v", v, last, err)
	}
}

// A scan whose reader gets and commits goes on while a compaction waits for
// its end.
func TestCompactWaitsForAScan(t *testing.T) {
	s := open(t, t.TempDir(), badger.Options{})
	fill(t, s, 3000, 200)
	done := make(chan error, 1)
	waits := make(chan struct{})
	n := 0
	for e, err := range s.Scan(t.Context(), store.Prefix([]byte("I"))) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 1 {
			go func() {
				_, err := s.Maintain(t.Context(), store.Compact, func(line string) {
					if line == "exchange the tables" {
						close(waits)
					}
				})
				done <- err
			}()
			<-waits
		}
		var b store.Batch
		b.Put(e.Key, []byte("seen"))
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if n == 200 {
			break
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if e, err := s.Get(t.Context(), fmt.Appendf(nil, "I%08d", i)); err != nil || string(e[0].Value) != "seen" {
			t.Fatalf("row %d: %.20q %v", i, e[0].Value, err)
		}
	}
	if n := count(t, s); n != 3000 {
		t.Errorf("%d rows", n)
	}
}

// A compaction that has no room changes nothing, and so does one whose end was
// cut off by a crash.
func TestCompactThatCannotEnd(t *testing.T) {
	dir := t.TempDir()
	free := uint64(1 << 40)
	s := open(t, dir, badger.Options{Free: func(string) (uint64, error) { return free, nil }})
	fill(t, s, 20_000, 1000)
	free = 30 << 20
	if _, err := s.Maintain(t.Context(), store.Compact, nil); !errors.Is(err, store.ErrFull) {
		t.Errorf("with 30 MB free: %v", err)
	}
	free = 1 << 40
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"db.fresh", "db.before-compact-20260101T000000"} {
		if err := os.MkdirAll(filepath.Join(dir, left), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, left, "000001.sst"), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir, badger.Options{})
	if n := count(t, s); n != 20_000 {
		t.Errorf("%d rows", n)
	}
	for _, name := range []string{"db.fresh", "db.before-*"} {
		if left, err := filepath.Glob(filepath.Join(dir, name)); err != nil || len(left) > 0 {
			t.Errorf("left over: %v %v", left, err)
		}
	}
}
