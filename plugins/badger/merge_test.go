package badger_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/badger"
	"github.com/boughdev/bough/plugins/badger/ondisk"
)

// highest is the number of the newest table.
func highest(t *testing.T, dir string) uint64 {
	t.Helper()
	top := uint64(0)
	for name := range files(t, filepath.Join(dir, "db")) {
		if id, ok := ondisk.TableID(name); ok {
			top = max(top, id)
		}
	}
	return top
}

// Badger says nothing of a table that it cannot make in a merge. The store
// goes on with the tables of before.
func TestAMergeThatLosesATableIsUndone(t *testing.T) {
	for _, second := range []bool{false, true} { // looked at after the merge was undone, or in the next process
		dir := t.TempDir()
		noRoom := func(string) (uint64, error) { return 20 << 20, nil } // to merge
		s := open(t, dir, badger.Options{Floor: 1, Free: noRoom})
		for i := range 6 { // tables that overlap
			fill(t, s, 14_000, 500+i)
		}
		want, err := rows(t, s, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		// The first sync of a store that was just opened is that of the mark
		// before a merge.
		hinder := sync.OnceFunc(func() {
			for top, id := highest(t, dir), uint64(1); id < 6; id++ { // where the merge will put its tables
				if err := os.WriteFile(filepath.Join(dir, "db", ondisk.TableName(top+id)), []byte("in the way"), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
		var log bytes.Buffer
		s = open(t, dir, badger.Options{
			Logger:   slog.New(slog.NewTextHandler(&log, nil)),
			SyncFile: func(f *os.File) error { hinder(); return f.Sync() },
		})
		if second {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir, badger.Options{})
		}
		if _, err := s.Maintain(t.Context(), store.Compact, nil); err != nil { // it waits for the merge
			t.Fatal(err)
		}
		if got, err := rows(t, s, true); err != nil || !maps.Equal(got, want) {
			t.Fatalf("%d rows of %d are left: %v", len(got), len(want), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "were not merged") {
			t.Fatalf("the merge did not fail: %s", log.String())
		}
	}
}

// Tables are merged by themselves: what was written again goes.
func TestNewTablesAreMerged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, badger.Options{})
	for range 5 {
		fill(t, s, 20_000, 1000)
		// Closing waits for the merge that goes on, and opening begins another.
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, badger.Options{})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for name, n := range files(t, filepath.Join(dir, "db")) {
		if _, ok := ondisk.TableID(name); ok {
			size += n
		}
	}
	if size > 75<<20 {
		t.Errorf("tables of %d MB are left of 100 MB, of which 20 are alive", size>>20)
	}
	s = open(t, dir, badger.Options{})
	if n := count(t, s); n != 20_000 {
		t.Errorf("%d rows", n)
	}
}

// A store that is written to, merged, closed, opened and repaired at random
// holds what a map holds, and a scan sees one moment.
func TestARandomLifeEqualsAMap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	s := open(t, dir, badger.Options{})
	model := map[string]string{}
	for range 150 {
		switch rng.IntN(12) {
		case 0:
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir, badger.Options{})
		case 1:
			if _, err := s.Maintain(t.Context(), store.Compact, nil); err != nil {
				t.Fatal(err)
			}
		default:
			var b store.Batch
			for range rng.IntN(40) + 1 {
				key := fmt.Sprintf("I%03d", rng.IntN(500))
				if rng.IntN(3) == 0 {
					b.Delete([]byte(key))
					delete(model, key)
					continue
				}
				size := rng.IntN(2000)
				if rng.IntN(60) == 0 {
					size = 1 << 20
				}
				v := bytes.Repeat([]byte{byte(rng.IntN(256))}, size)
				b.Put([]byte(key), v)
				model[key] = string(v)
			}
			if _, err := s.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		if rng.IntN(8) > 0 {
			continue
		}
		got, err := rows(t, s, rng.IntN(2) == 0)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, model) {
			t.Fatalf("the store has %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(model)))
		}
	}
}
