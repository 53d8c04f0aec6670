package badger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/badger/ondisk"
)

// Maintain implements store.Admin.
func (s *Store) Maintain(ctx context.Context, op store.Operation, progress func(string)) (store.Report, error) {
	if progress == nil {
		progress = func(string) {}
	}
	switch op {
	case store.Stats:
		return s.stats(ctx)
	case store.Check:
		return s.check(ctx, progress)
	case store.Compact:
		return s.compact(ctx, progress)
	case store.Repair:
		return s.repair(ctx, progress)
	}
	return store.Report{}, fmt.Errorf("the badger backend has no maintenance operation %d", op)
}

func (s *Store) stats(ctx context.Context) (store.Report, error) {
	var r store.Report
	disk, err := usedBytes(s.root)
	if err != nil {
		return r, err
	}
	free, err := s.o.Free(s.root)
	if err != nil {
		return r, err
	}
	r.Figures = []store.Figure{{Name: "disk.bytes", Value: disk}, {Name: "disk.free.bytes", Value: int64(free)}}
	keys := int64(0)
	for _, err := range s.Scan(ctx, store.Range{Start: []byte{0x10}, KeysOnly: true}) {
		if err != nil {
			r.Problems = append(r.Problems, err.Error())
			return r, ctx.Err()
		}
		keys++
	}
	r.Figures = append(r.Figures, store.Figure{Name: "keys", Value: keys})
	return r, nil
}

// check compares every table with its checksums and reads every value.
func (s *Store) check(ctx context.Context, progress func(string)) (store.Report, error) {
	var r store.Report
	if _, release, err := s.use(); err != nil {
		r.Problems = append(r.Problems, err.Error())
	} else {
		release()
	}
	names, err := fileNames(s.dbDir())
	if err != nil {
		return r, err
	}
	for _, name := range names {
		if _, ok := ondisk.TableID(name); !ok {
			continue
		}
		progress("table " + name)
		if err := checkTable(filepath.Join(s.dbDir(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.Problems = append(r.Problems, fmt.Sprintf("the table %s cannot be read: %v", name, err))
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
	}
	if len(r.Problems) > 0 {
		return r, nil
	}
	keys := int64(0)
	for _, err := range s.Scan(ctx, store.Range{}) {
		if err != nil {
			if ctx.Err() != nil {
				return r, err
			}
			r.Problems = append(r.Problems, err.Error())
			break
		}
		if keys++; keys%100_000 == 0 {
			progress(fmt.Sprintf("%d keys read", keys))
		}
	}
	r.Figures = append(r.Figures, store.Figure{Name: "keys.read", Value: keys})
	return r, nil
}

// checkTable compares all of a table with its checksums.
func checkTable(path string) (err error) {
	t, err := ondisk.OpenTable(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for i := range t.Blocks() {
		err = errors.Join(err, t.Verify(i))
	}
	return err
}

// compact gives deleted bytes back: deletions meet what they delete when the
// tables are merged.
func (s *Store) compact(ctx context.Context, progress func(string)) (store.Report, error) {
	var r store.Report
	before, err := usedBytes(s.root)
	if err != nil {
		return r, err
	}
	defer s.merges.pause()()
	progress("look for pieces of values that were replaced")
	if err := s.sweepChunks(ctx); err != nil {
		return r, err
	}
	// Closing writes the memtable out, so that deletions in it count too.
	progress("write out what is in memory")
	if err := s.reopen(ctx, func() error { return nil }); err != nil {
		return r, err
	}
	progress("merge tables")
	if err := s.merge(ctx); err != nil {
		return r, err
	}
	after, err := usedBytes(s.root)
	r.Figures = []store.Figure{{Name: "disk.bytes", Value: after}, {Name: "reclaimed.bytes", Value: max(0, before-after)}}
	r.Actions = []string{"merged the tables"}
	return r, err
}

// reopen closes the database, calls between, and opens it again. Readers and
// writers wait.
func (s *Store) reopen(ctx context.Context, between func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	// That it does not close well, after a failed write, does not matter: it
	// is looked at anew.
	closing := s.closeDB()
	if closing != nil {
		s.o.Logger.Warn("the store did not close well before it was opened anew", "error", closing)
	}
	err := between()
	s.refusal = s.open(context.WithoutCancel(ctx))
	return errors.Join(err, s.refusal)
}
