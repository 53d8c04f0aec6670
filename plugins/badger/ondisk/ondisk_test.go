package ondisk_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	db "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/boughdev/bough/plugins/badger/ondisk"
)

// made is a store of Badger's, closed, with what lies in it and a copy of its
// log from before it was closed.
func made(t testing.TB) (dir string, want map[string]string) {
	t.Helper()
	dir, want = t.TempDir(), map[string]string{}
	d, err := db.OpenManaged(db.DefaultOptions(dir).WithCompression(options.None).WithLogger(nil).WithMemTableSize(8 << 20).WithValueThreshold(1 << 20))
	if err != nil {
		t.Fatal(err)
	}
	for v := uint64(1); v <= 50; v++ {
		txn := d.NewTransactionAt(v, true)
		for i := range 20 {
			key, value := fmt.Sprintf("k%03d/%d", v, i), fmt.Sprintf("value %d", i*int(v))
			if err := txn.Set([]byte(key), []byte(value)); err != nil {
				t.Fatal(err)
			}
			want[key] = value
		}
		if err := txn.CommitAt(v, nil); err != nil {
			t.Fatal(err)
		}
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	raw, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "copy.log"), raw[:200_000], 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, want
}

func TestWhatBadgerWroteIsRead(t *testing.T) {
	dir, want := made(t)
	raw, err := os.ReadFile(filepath.Join(dir, ondisk.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	m, err := ondisk.ParseManifest(raw)
	if err != nil || len(m.Levels) != 1 || m.Sound != len(raw) {
		t.Fatalf("%+v, %v", m, err)
	}
	got := map[string]string{}
	take := func(e ondisk.Entry) error { got[string(e.Key)] = string(e.Value); return nil }
	for id := range m.Levels {
		table, err := ondisk.OpenTable(filepath.Join(dir, ondisk.TableName(id)))
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		if table.MaxVersion() != 50 || table.Blocks() < 2 {
			t.Errorf("version %d, %d blocks", table.MaxVersion(), table.Blocks())
		}
		for i := range table.Blocks() {
			if err := table.Entries(i, take); err != nil {
				t.Fatal(err)
			}
		}
		if last, err := table.Last(); err != nil || string(last) != "k050/9" {
			t.Errorf("last %q, %v", last, err)
		}
	}
	same := func(about string) {
		t.Helper()
		for k, v := range want {
			if got[k] != v {
				t.Fatalf("%s: %s is %q, want %q", about, k, got[k], v)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d entries, want %d", about, len(got), len(want))
		}
	}
	same("table")
	clear(got)
	l, err := ondisk.ReadLog(filepath.Join(dir, "copy.log"), take)
	if err != nil || l.First != 1 || l.Last != 50 || l.Entries != len(want) {
		t.Errorf("log %+v, %v", l, err)
	}
	same("log")
}

// Whatever is in the files: an error, or what is sound, and never a panic.
func FuzzFiles(f *testing.F) {
	dir, _ := made(f)
	for _, name := range []string{ondisk.ManifestName, ondisk.TableName(1), "copy.log"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw[:min(len(raw), 20_000)])
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if m, err := ondisk.ParseManifest(raw); err == nil && (m.Sound < 8 || m.Sound > len(raw)) {
			t.Errorf("%d of %d bytes are sound", m.Sound, len(raw))
		}
		path := filepath.Join(t.TempDir(), "000001.sst")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		l, err := ondisk.ReadLog(path, func(ondisk.Entry) error { n++; return nil })
		if err == nil && (l.Entries != n || l.First > l.Last) {
			t.Errorf("%+v, and %d entries were shown", l, n)
		}
		table, err := ondisk.OpenTable(path)
		if err != nil {
			return
		}
		defer table.Close()
		for i := range table.Blocks() {
			_ = table.First(i)
			var before []byte
			_ = table.Entries(i, func(e ondisk.Entry) error {
				if bytes.Compare(e.Key, before) < 0 {
					t.Errorf("key %x comes after %x", e.Key, before)
				}
				before = e.Key
				return nil
			})
		}
	})
}
