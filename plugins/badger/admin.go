package badger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	db "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"

	"github.com/boughdev/bough/host/store"
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
		return s.repair(ctx)
	}
	return store.Report{}, fmt.Errorf("the badger backend has no maintenance operation %d", op)
}

func (s *Store) stats(ctx context.Context) (store.Report, error) {
	var r store.Report
	disk, err := usedBytes(s.dir)
	if err != nil {
		return r, err
	}
	free, err := s.o.Free(s.dir)
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

// usedBytes is what a folder takes of the disk, holes not counted.
func usedBytes(dir string) (int64, error) {
	total := int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // compacted away meanwhile
		}
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			total += st.Blocks * 512
		} else {
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measure %s: %w", dir, err)
	}
	return total, nil
}

func freeBytes(dir string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", dir, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}

// check compares every table with its checksums and reads every value.
func (s *Store) check(ctx context.Context, progress func(string)) (store.Report, error) {
	var r store.Report
	if _, release, err := s.use(); err != nil {
		r.Problems = append(r.Problems, err.Error())
	} else {
		release()
	}
	names, err := s.fileNames()
	if err != nil {
		return r, err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		progress("table " + name)
		if err := checkTable(s.path(name), true); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.Problems = append(r.Problems, fmt.Sprintf("the table %s cannot be read: %v", name, err))
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

// compact gives deleted bytes back: deletions meet what they delete only when
// the tables are merged, and only then the value logs know their garbage.
func (s *Store) compact(ctx context.Context, progress func(string)) (store.Report, error) {
	var r store.Report
	before, err := usedBytes(s.dir)
	if err != nil {
		return r, err
	}
	// Closing writes the memtable out, so that deletions in it count too.
	progress("write out what is in memory")
	if err := s.reopen(ctx, func() error { return nil }); err != nil {
		return r, err
	}
	d, release, err := s.use()
	if err != nil {
		return r, err
	}
	defer release()
	d.SetDiscardTs(s.writes.readable())
	progress("merge tables")
	if err := d.Flatten(2); err != nil {
		return r, fmt.Errorf("merge the tables: %w", err)
	}
	runs := 0
	for ; ctx.Err() == nil; runs++ {
		progress(fmt.Sprintf("value log, run %d", runs+1))
		if err := d.RunValueLogGC(0.3); errors.Is(err, db.ErrNoRewrite) || errors.Is(err, db.ErrRejected) {
			break
		} else if err != nil {
			return r, fmt.Errorf("collect the value log: %w", err)
		}
	}
	after, err := usedBytes(s.dir)
	r.Figures = []store.Figure{{Name: "disk.bytes", Value: after}, {Name: "reclaimed.bytes", Value: max(0, before-after)}}
	r.Actions = []string{fmt.Sprintf("merged the tables and rewrote %d value logs", runs)}
	return r, errors.Join(err, ctx.Err())
}

// reopen closes the database, calls between, and opens it again. Readers and
// writers wait.
func (s *Store) reopen(ctx context.Context, between func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	if s.refusal != nil && s.db == nil {
		if err := between(); err != nil {
			return err
		}
	} else {
		if err := s.closeDB(); err != nil {
			return err
		}
		if err := between(); err != nil {
			return errors.Join(err, s.open(ctx))
		}
	}
	s.refusal = nil
	err := s.open(context.WithoutCancel(ctx))
	if err != nil {
		s.refusal = err
	}
	return err
}

// repair puts the last sound copy of a damaged MANIFEST back, when it fits the
// tables that are there. What it replaces is kept.
func (s *Store) repair(ctx context.Context) (store.Report, error) {
	var r store.Report
	s.mu.RLock()
	refusal := s.refusal
	s.mu.RUnlock()
	if refusal == nil {
		r.Actions = []string{"the store opens and is not damaged: nothing was done"}
		return r, nil
	}
	raw, err := os.ReadFile(s.path(manifestCopy))
	if err != nil {
		r.Problems = []string{refusal.Error(), "there is no copy of the MANIFEST to go back to: restore a backup"}
		return r, nil
	}
	m, err := s.parseManifest(raw)
	if err != nil {
		r.Problems = []string{refusal.Error(), "the copy of the MANIFEST is damaged too: restore a backup"}
		return r, nil
	}
	names, err := s.fileNames()
	if err != nil {
		return r, err
	}
	for id := range m.Tables {
		if name := table.IDToFilename(id); !slices.Contains(names, name) || checkTable(s.path(name), true) != nil {
			r.Problems = []string{refusal.Error(), fmt.Sprintf("the copy of the MANIFEST names the table %s, which is not there or not sound: restore a backup", name)}
			return r, nil
		}
	}
	bad := s.path(manifestName) + ".damaged"
	err = s.reopen(ctx, func() error {
		if err := os.Rename(s.path(manifestName), bad); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("keep the damaged MANIFEST: %w", err)
		}
		return writeSafely(s.path(manifestName), raw)
	})
	if err != nil {
		r.Problems = []string{fmt.Sprintf("with the copy of the MANIFEST: %v", err)}
		return r, nil
	}
	r.Actions = []string{"the MANIFEST was replaced by its last sound copy; the damaged one is kept as " + bad}
	return r, nil
}
