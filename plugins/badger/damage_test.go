package badger_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/badger"
)

// rows reads all rows of the tests, one way or the other, until the end or an
// error.
func rows(t *testing.T, s *badger.Store, reverse bool) (map[string]string, error) {
	t.Helper()
	r := store.Prefix([]byte("I"))
	r.Reverse = reverse
	all := map[string]string{}
	for e, err := range s.Scan(t.Context(), r) {
		if err != nil {
			return all, err
		}
		all[string(e.Key)] = string(e.Value)
	}
	return all, nil
}

// Whatever is damaged in a table: no row is wrong, and none is missing without
// an error.
func TestADamagedBlockIsNeverTakenForTheEnd(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 12 {
		dir := aStore(t)
		path := table(t, dir)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		at := rng.Int64N(info.Size() * 95 / 100)
		hurt(t, path, at, rng.IntN(20_000)+1)
		s := open(t, dir, badger.Options{})
		if info, err := s.Info(t.Context()); err != nil || info.Refusal != "" {
			if !strings.Contains(info.Refusal, filepath.Base(path)) {
				t.Fatalf("round %d: refusal %q, %v", round, info.Refusal, err)
			}
			continue // the last block or the index
		}
		wrong := 0
		for i := range 12_000 {
			entries, err := s.Get(t.Context(), fmt.Appendf(nil, "I%08d", i))
			switch {
			case errors.Is(err, store.ErrDamaged):
				wrong++
			case err != nil:
				t.Fatalf("round %d, row %d: %v", round, i, err)
			case !bytes.Equal(entries[0].Value, bytes.Repeat([]byte{byte(i)}, 500)):
				t.Fatalf("round %d: row %d is wrong or missing: %.20q", round, i, entries[0].Value)
			}
		}
		for _, reverse := range []bool{false, true} {
			seen, err := rows(t, s, reverse)
			if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(path)) {
				t.Errorf("round %d, reverse %v: %d rows and then %v", round, reverse, len(seen), err)
			}
		}
		if wrong == 0 {
			t.Errorf("round %d: damage at %d was read over", round, at)
		}
		report, err := s.Maintain(t.Context(), store.Check, nil)
		if err != nil || len(report.Problems) == 0 || !strings.Contains(report.Problems[0], ".sst") {
			t.Errorf("check = %+v, %v; want the table named", report, err)
		}
		if _, err := s.Maintain(t.Context(), store.Compact, nil); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("a damaged table was merged: %v", err)
		}
		report, err = s.Maintain(t.Context(), store.Repair, nil)
		if err != nil || len(report.Problems) == 0 {
			t.Fatalf("repair = %+v, %v; want the loss named", report, err)
		}
		// The key after a damaged block is refused too: older versions of it may
		// lie in the block.
		if n := count(t, s); n < 12_000-wrong || n > 12_000-wrong+1 {
			t.Errorf("round %d: %d rows after the repair, want all but the %d that could not be read", round, n, wrong)
		}
		fill(t, s, 12_000, 500)
		if n := count(t, s); n != 12_000 {
			t.Errorf("%d rows in the repaired store", n)
		}
	}
}

// A scan that ends before the damage does not see it, and one with a window
// of its own does.
func TestAScanReadsNoFurtherThanItShows(t *testing.T) {
	dir := aStore(t)
	hurt(t, table(t, dir), 3<<20, 1000)
	s := open(t, dir, badger.Options{})
	n := 0
	for _, err := range s.Scan(t.Context(), store.Range{Start: []byte("I"), Limit: 1000}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1000 {
		t.Errorf("%d rows", n)
	}
}

func hurt(t *testing.T, path string, at int64, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, n), at); err != nil {
		t.Fatal(err)
	}
}

// What a power cut leaves of the last record of a MANIFEST is no damage.
func TestATornManifestIsMended(t *testing.T) {
	dir := aStore(t)
	path := filepath.Join(dir, "db", "MANIFEST")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(raw, 0, 0, 0, 40, 1, 2, 3, 4, 5), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, badger.Options{})
	if info, err := s.Info(t.Context()); err != nil || info.Refusal != "" {
		t.Fatalf("refusal %q, %v", info.Refusal, err)
	}
	if n := count(t, s); n != 12_000 {
		t.Errorf("%d rows", n)
	}
	if kept, err := filepath.Glob(filepath.Join(dir, "aside", "MANIFEST.*")); err != nil || len(kept) != 1 {
		t.Errorf("the torn MANIFEST is not kept: %v, %v", kept, err)
	}
}

func TestUnnamedTablesAreKeptAside(t *testing.T) {
	dir := aStore(t)
	raw, err := os.ReadFile(table(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "db", "009999.sst"), raw[:5000], 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, badger.Options{})
	if n := count(t, s); n != 12_000 {
		t.Errorf("%d rows", n)
	}
	if kept, err := filepath.Glob(filepath.Join(dir, "aside", "009999.sst.*")); err != nil || len(kept) != 1 {
		t.Errorf("the table is not kept: %v, %v", kept, err)
	}
}

// An exchange that was cut off after any of its steps is finished, and what it
// replaced is kept in one place.
func TestAnExchangeIsFinished(t *testing.T) {
	const kept = "db.before-restore-x"
	for step := range 4 {
		other := aStore(t) // what is to be replaced
		fresh := aStore(t)
		steps := []func() error{
			func() error { return os.WriteFile(filepath.Join(other, "db.fresh", "whole"), []byte(kept), 0o600) },
			func() error { return os.Rename(filepath.Join(other, "db"), filepath.Join(other, kept)) },
			func() error {
				return os.Rename(filepath.Join(other, "sentinel"), filepath.Join(other, kept, "bough-sentinel"))
			},
		}
		err := os.Rename(filepath.Join(fresh, "db"), filepath.Join(other, "db.fresh"))
		for _, do := range steps[:step] {
			err = errors.Join(err, do())
		}
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, other, badger.Options{})
		if info, err := s.Info(t.Context()); err != nil || info.Refusal != "" || count(t, s) != 12_000 {
			t.Errorf("step %d: refusal %q, %v", step, info.Refusal, err)
		}
		left, err := filepath.Glob(filepath.Join(other, "db.*"))
		if err != nil || step == 0 && len(left) > 0 {
			t.Errorf("step %d: %v, %v", step, left, err)
		}
		if step == 0 {
			continue
		}
		if len(left) != 1 || filepath.Base(left[0]) != kept {
			t.Errorf("step %d: %v", step, left)
		}
		for _, name := range []string{"MANIFEST", "bough-sentinel"} {
			if _, err := os.Stat(filepath.Join(other, kept, name)); err != nil {
				t.Errorf("step %d: %v", step, err)
			}
		}
	}
}
