package badger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

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
		defer s.alone()()
		return s.compact(ctx, progress)
	case store.Repair:
		defer s.alone()()
		return s.repair(ctx, progress)
	}
	return store.Report{}, fmt.Errorf("the badger backend has no maintenance operation %d", op)
}

// alone waits for merges and for other maintenance that swaps the database,
// and holds them off until done is called.
func (s *Store) alone() (done func()) {
	s.maintenance.Lock()
	resume := s.merges.pause()
	return func() {
		resume()
		s.maintenance.Unlock()
	}
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
	names, err := s.tablesToCheck(&r)
	if err != nil {
		return r, err
	}
	for _, name := range names {
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

// tablesToCheck are the tables that Badger uses; those that are being written
// are no one's yet. Of a store that is refused they are all that are there.
func (s *Store) tablesToCheck(r *store.Report) (names []string, err error) {
	d, release, err := s.use()
	if err == nil {
		defer release()
		for _, t := range d.Tables() {
			names = append(names, ondisk.TableName(t.ID))
		}
		return names, nil
	}
	if errors.Is(err, store.ErrClosed) {
		return nil, err
	}
	r.Problems = append(r.Problems, err.Error())
	if names, err = fileNames(s.dbDir()); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, ok := ondisk.TableID(name)
		return !ok
	}), nil
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

// reopen closes the database, calls between, and opens it again. Readers and
// writers wait.
func (s *Store) reopen(ctx context.Context, between func() error) error {
	release, err := s.gate.hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	return s.swap(ctx, between)
}

// swap is reopen for who holds the gate.
func (s *Store) swap(ctx context.Context, between func() error) error {
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
