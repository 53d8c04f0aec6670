package badger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	db "github.com/dgraph-io/badger/v4"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/badger/ondisk"
)

// repair makes a new store of all that is sound in the files of a damaged one:
// of each table the blocks that match their checksums, whether a MANIFEST
// names it or not, and of each log what lies before its first fault. What was
// there is kept, and what could not be read is named.
func (s *Store) repair(ctx context.Context, progress func(string)) (store.Report, error) {
	var r store.Report
	leave := s.gate.enter(false)
	refusal := s.refusal
	leave()
	if refusal == nil {
		if refusal = s.trust.all(); refusal == nil {
			r.Actions = []string{"the store opens and is not damaged: nothing was done"}
			return r, nil
		}
	}
	if errors.Is(refusal, store.ErrFull) {
		return r, refusal
	}
	names, err := fileNames(s.dbDir())
	if err != nil {
		return r, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !isData(n) })
	if len(names) == 0 {
		r.Problems = []string{refusal.Error(), fmt.Sprintf("there is nothing to save in %s: restore a backup", s.dbDir())}
		return r, nil
	}
	err = s.reopen(ctx, func() error {
		kept, err := s.rebuild(ctx, &r, progress)
		if err == nil {
			r.Actions = append(r.Actions, "what was there before is kept as "+kept)
		}
		return err
	})
	if err != nil {
		return r, fmt.Errorf("repair: %w", err)
	}
	return r, nil
}

// rebuild fills db.fresh from the files of db and puts it in its place.
func (s *Store) rebuild(ctx context.Context, r *store.Report, progress func(string)) (kept string, err error) {
	size, err := usedBytes(s.dbDir())
	if err != nil {
		return "", err
	}
	if err := s.roomFor(uint64(size), "to repair the store"); err != nil {
		return "", err
	}
	if err := s.emptyFresh(); err != nil {
		return "", err
	}
	d, err := db.OpenManaged(settings(s.path(freshName), s.o.Logger))
	if err != nil {
		return "", fmt.Errorf("make the repaired store: %w", err)
	}
	v := &saved{w: d.NewManagedWriteBatch(), report: r}
	err = v.all(ctx, s.dbDir(), progress)
	if err == nil {
		err = v.w.Flush()
	} else {
		v.w.Cancel()
	}
	if err == nil {
		err = v.mark(d, s.sentinel.reached)
	}
	if err = errors.Join(err, d.Close()); err != nil {
		return "", fmt.Errorf("make the repaired store: %w", err)
	}
	return s.exchange("repair")
}

// saved is what was read of a damaged store.
type saved struct {
	w       *db.WriteBatch
	report  *store.Report
	entries int
	version uint64
}

func (v *saved) all(ctx context.Context, dir string, progress func(string)) error {
	names, err := fileNames(dir)
	if err != nil {
		return err
	}
	v.missing(dir, names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(dir, name)
		if _, ok := ondisk.TableID(name); ok {
			progress("table " + name)
			err = v.table(name, path)
		} else if _, ok := ondisk.LogID(name); ok {
			progress("log " + name)
			err = v.log(name, path)
		}
		if err != nil {
			return err
		}
	}
	v.report.Actions = append(v.report.Actions, fmt.Sprintf("saved %d entries", v.entries))
	return nil
}

// missing names the tables that the MANIFEST names and that are not there.
func (v *saved) missing(dir string, names []string) {
	raw, err := os.ReadFile(filepath.Join(dir, ondisk.ManifestName))
	var m ondisk.Manifest
	if err == nil {
		m, err = ondisk.ParseManifest(raw)
	}
	if err != nil {
		v.report.Actions = append(v.report.Actions,
			fmt.Sprintf("all tables that are there were read; whether one is missing cannot be told, since the MANIFEST cannot be read: %v", err))
	}
	for _, id := range sorted(m.Levels) {
		if name := ondisk.TableName(id); !slices.Contains(names, name) {
			v.lost("all of the table %s is lost: it is not there", name)
		}
	}
}

func (v *saved) lost(format string, args ...any) {
	v.report.Problems = append(v.report.Problems, fmt.Sprintf(format, args...))
}

// failed is an error of writing, which ends the repair; one of reading is told.
type failed struct{ error }

func (f failed) Unwrap() error { return f.error }

func (v *saved) table(name, path string) (err error) {
	t, err := ondisk.OpenTable(path)
	if err != nil {
		v.lost("all of the table %s is lost: %v", name, err)
		return nil
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for i := range t.Blocks() {
		err := t.Entries(i, v.put)
		if f := (failed{}); errors.As(err, &f) {
			return f.error
		}
		if err != nil {
			end := "the end"
			if i+1 < t.Blocks() {
				end = fmt.Sprintf("%x", t.First(i+1))
			}
			v.lost("of the table %s the keys from %x to %s are lost: %v", name, t.First(i), end, err)
		}
	}
	return nil
}

func (v *saved) log(name, path string) error {
	_, err := ondisk.ReadLog(path, v.put)
	if f := (failed{}); errors.As(err, &f) {
		return f.error
	}
	if err != nil {
		v.lost("the log %s is lost: %v", name, err)
	}
	return nil
}

func (v *saved) put(e ondisk.Entry) error {
	var err error
	if e.Deleted {
		err = v.w.DeleteAt(e.Key, e.Version)
	} else {
		entry := db.NewEntry(e.Key, e.Value).WithMeta(e.UserMeta)
		entry.ExpiresAt = e.ExpiresAt
		err = v.w.SetEntryAt(entry, e.Version)
	}
	if err != nil {
		return failed{err}
	}
	v.entries++
	v.version = max(v.version, e.Version)
	return nil
}

// mark tells what is missing at the end, and goes on above every version that
// was ever given out.
func (v *saved) mark(d *db.DB, reached uint64) error {
	if v.version < reached {
		v.lost("the store had reached version %d, and what could be read ends at %d", reached, v.version)
	}
	version := max(v.version, reached) + 1
	txn := d.NewTransactionAt(version, true)
	defer txn.Discard()
	if err := txn.Set([]byte{rowMark}, nil); err != nil {
		return err
	}
	return txn.CommitAt(version, nil)
}
