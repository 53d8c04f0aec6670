package badger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/badger"
	"github.com/boughdev/bough/plugins/conformance"
)

func open(t *testing.T, dir string, o badger.Options) *badger.Store {
	t.Helper()
	s, err := badger.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	conformance.RunStorage(t, func(t *testing.T) conformance.Backend {
		dir := t.TempDir()
		s := open(t, dir, badger.Options{})
		return conformance.Backend{Store: s, Reopen: func(t *testing.T) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, dir, badger.Options{})
			if info, err := s.Info(t.Context()); err != nil || info.Refusal != "" {
				t.Fatalf("the store refuses: %v %s", err, info.Refusal)
			}
			return s
		}}
	})
}

// fill puts n rows of size bytes, a thousand a batch.
func fill(t *testing.T, s *badger.Store, n, size int) {
	t.Helper()
	for at := 0; at < n; at += 1000 {
		var b store.Batch
		for i := at; i < min(n, at+1000); i++ {
			b.Put(fmt.Appendf(nil, "I%08d", i), bytes.Repeat([]byte{byte(i)}, size))
		}
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

func count(t *testing.T, s *badger.Store) int {
	t.Helper()
	n := 0
	for _, err := range s.Scan(t.Context(), store.Prefix([]byte("I"))) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// aStore is a closed store that has tables.
func aStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir, badger.Options{})
	fill(t, s, 12_000, 500)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func table(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no table in %s: %v", dir, err)
	}
	return found[0]
}

func files(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	sizes := map[string]int64{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		sizes[e.Name()] = info.Size()
	}
	return sizes
}

func TestDamageIsNamedAndNothingIsDeleted(t *testing.T) {
	for name, tt := range map[string]struct {
		damage   func(t *testing.T, dir string)
		want     string
		repaired bool
	}{
		"MANIFEST cut off": {func(t *testing.T, dir string) { cut(t, filepath.Join(dir, "db", "MANIFEST"), 3) }, "MANIFEST", true},
		"MANIFEST missing": {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "db", "MANIFEST")) }, "MANIFEST", true},
		"MANIFEST empty":   {func(t *testing.T, dir string) { cut(t, filepath.Join(dir, "db", "MANIFEST"), 1<<30) }, "MANIFEST", true},
		"a table missing":  {func(t *testing.T, dir string) { remove(t, table(t, dir)) }, ".sst", false},
		"a table empty":    {func(t *testing.T, dir string) { cut(t, table(t, dir), 1<<30) }, ".sst", false},
		"a table short":    {func(t *testing.T, dir string) { cut(t, table(t, dir), 5000) }, ".sst", false},
		"all data gone": {func(t *testing.T, dir string) {
			for name := range files(t, filepath.Join(dir, "db")) {
				remove(t, filepath.Join(dir, "db", name))
			}
		}, "MANIFEST", false},
		"sentinel damaged": {func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "sentinel"), make([]byte, 8192), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "sentinel", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := aStore(t)
			// A copy of the MANIFEST is made when a store is opened.
			if err := open(t, dir, badger.Options{}).Close(); err != nil {
				t.Fatal(err)
			}
			if err := open(t, dir, badger.Options{}).Close(); err != nil {
				t.Fatal(err)
			}
			tt.damage(t, dir)
			before := files(t, filepath.Join(dir, "db"))
			s := open(t, dir, badger.Options{})
			info, err := s.Info(t.Context())
			if err != nil || !strings.Contains(info.Refusal, tt.want) {
				t.Fatalf("refusal %q (%v), want it to name %s", info.Refusal, err, tt.want)
			}
			if _, err := s.Get(t.Context(), []byte("I00000001")); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("a read of the damaged store = %v", err)
			}
			if _, err := s.Commit(t.Context(), store.Batch{}); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("a write to the damaged store = %v", err)
			}
			report, err := s.Maintain(t.Context(), store.Check, nil)
			if err != nil || len(report.Problems) == 0 {
				t.Errorf("check of the damaged store = %+v, %v", report, err)
			}
			for name, size := range files(t, filepath.Join(dir, "db")) {
				if was, there := before[name]; there && was != size {
					t.Errorf("%s changed from %d to %d bytes", name, was, size)
				}
				delete(before, name)
			}
			for name := range before {
				if name != "LOCK" {
					t.Errorf("%s was deleted", name)
				}
			}
			report, err = s.Maintain(t.Context(), store.Repair, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tt.repaired {
				if len(report.Problems) > 0 || count(t, s) != 12_000 {
					t.Errorf("repair: %+v, %d rows", report, count(t, s))
				}
			} else if len(report.Problems) == 0 {
				t.Errorf("repair says that all is well: %+v", report)
			}
		})
	}
}

func cut(t *testing.T, path string, n int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, max(0, info.Size()-n)); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestAFullDiskLosesNothing(t *testing.T) {
	free := uint64(1 << 30)
	s := open(t, t.TempDir(), badger.Options{Free: func(string) (uint64, error) { return free, nil }})
	fill(t, s, 100, 1000)
	free = 40 << 20
	var big, small store.Batch
	big.Put([]byte("Ibig"), make([]byte, 100_000))
	small.Delete([]byte("I00000001"))
	if _, err := s.Commit(t.Context(), big); !errors.Is(err, store.ErrFull) {
		t.Errorf("a write on a full disk = %v", err)
	}
	if info, err := s.Info(t.Context()); err != nil || !info.ReadOnly {
		t.Errorf("info = %+v, %v; want read-only", info, err)
	}
	if _, err := s.Commit(t.Context(), small); err != nil {
		t.Errorf("a deletion on a nearly full disk = %v", err)
	}
	if n := count(t, s); n != 99 {
		t.Errorf("%d rows, want 99", n)
	}
	free = 1 << 30
	if _, err := s.Commit(t.Context(), big); err != nil {
		t.Errorf("a write after room was made = %v", err)
	}
}

func TestDeletingEverythingGivesTheDiskBack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, badger.Options{})
	fill(t, s, 30_000, 2000)
	figure := func(r store.Report, name string) int64 {
		for _, f := range r.Figures {
			if f.Name == name {
				return f.Value
			}
		}
		t.Fatalf("no figure %s in %+v", name, r)
		return 0
	}
	stats, err := s.Maintain(t.Context(), store.Stats, nil)
	if err != nil {
		t.Fatal(err)
	}
	if full := figure(stats, "disk.bytes"); full < 50<<20 {
		t.Fatalf("only %d bytes on the disk before", full)
	}
	for at := 0; at < 30_000; at += 1000 {
		var b store.Batch
		for i := at; i < at+1000; i++ {
			b.Delete(fmt.Appendf(nil, "I%08d", i))
		}
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	report, err := s.Maintain(t.Context(), store.Compact, nil)
	if err != nil {
		t.Fatal(err)
	}
	if left := figure(report, "disk.bytes"); left > 20<<20 {
		t.Errorf("%d bytes are left on the disk: %+v, %v", left, report, files(t, dir))
	}
	if n := count(t, s); n != 0 {
		t.Errorf("%d deleted rows came back", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, badger.Options{})
	if info, err := s.Info(t.Context()); err != nil || info.Refusal != "" {
		t.Errorf("the emptied store is refused: %v %s", err, info.Refusal)
	}
	if n := count(t, s); n != 0 {
		t.Errorf("%d deleted rows came back after a restart", n)
	}
}

func TestBackupAndRestore(t *testing.T) {
	s := open(t, t.TempDir(), badger.Options{})
	fill(t, s, 3000, 1500)
	var backup bytes.Buffer
	if err := s.Backup(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Restore(t.Context(), bytes.NewReader(backup.Bytes())); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a restore over contents = %v", err)
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "text": []byte("hello, hello, hello"),
		"cut off": backup.Bytes()[:backup.Len()-40], "changed": append(bytes.Clone(backup.Bytes()[:5000]), append([]byte{1}, backup.Bytes()[5001:]...)...),
	} {
		empty := open(t, filepath.Join(t.TempDir(), "s"), badger.Options{})
		if _, err := empty.Restore(t.Context(), bytes.NewReader(data)); err == nil {
			t.Errorf("%s: a bad backup was restored", name)
		}
		if n := count(t, empty); n != 0 {
			t.Errorf("%s: %d rows after a refused restore", name, n)
		}
	}
	dir := filepath.Join(t.TempDir(), "s")
	other := open(t, dir, badger.Options{})
	n, err := other.Restore(t.Context(), bytes.NewReader(backup.Bytes()))
	if err != nil || n < 3000 || count(t, other) != 3000 {
		t.Errorf("restored %d entries, %v; %d rows", n, err, count(t, other))
	}
	fill(t, other, 10, 10)
}

func TestTheFolderIsOpenedOnce(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, badger.Options{})
	if _, err := badger.Open(context.Background(), dir, badger.Options{}); err == nil {
		t.Error("a second store was opened in the same folder")
	}
}
