package badger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	db "github.com/dgraph-io/badger/v4"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/badger/ondisk"
)

// A merge makes few tables of many and lets go of what was written again or
// deleted. Badger's own compactors are not used: they poll, and a table that
// they cannot create, on a full disk, they lose without a word. So before a
// merge
//
//   - all that it will read is compared with its checksums,
//   - the disk must have room for all tables once more,
//   - the file "merging" names the tables, and an iterator holds them, so that
//     Badger does not delete them;
//
// and after it what both hold is compared, key by key, before the file is
// removed and the tables are let go. A store that is opened with such a file
// names those tables again: to have them besides the new ones does no harm,
// since a version of a key is the same in both.

const (
	// mergeTables is how many new tables a small store has before they are
	// merged, and mergeAlways how many any store has.
	mergeTables = 4
	mergeAlways = 48
	// mergeRatio is how many times as large as the new tables the others may
	// be for a merge of few tables: it bounds how often a row is written.
	mergeRatio = 8
)

type merges struct {
	mu      sync.Mutex
	running sync.WaitGroup
	busy    bool
	stopped bool
	failed  error // of the last one; nothing is merged by itself after it
}

func (m *merges) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = nil
}

// stop waits for the merge that goes on and lets no other begin.
func (m *merges) stop() {
	m.mu.Lock()
	m.stopped = true
	m.mu.Unlock()
	m.running.Wait()
}

// pause waits for a merge that goes on by itself, and lets none begin until
// resume is called.
func (m *merges) pause() (resume func()) {
	for {
		m.running.Wait()
		m.mu.Lock()
		if !m.busy {
			break
		}
		m.mu.Unlock()
	}
	defer m.mu.Unlock()
	m.busy = true
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.busy = false
	}
}

// mergeIfDue begins a merge when the store has enough new tables.
func (s *Store) mergeIfDue() {
	m := &s.merges
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy || m.stopped || m.failed != nil {
		return
	}
	m.busy = true
	m.running.Go(func() {
		merged, err := s.mergeDue()
		for merged && err == nil { // others came up meanwhile
			merged, err = s.mergeDue()
		}
		if err != nil {
			s.o.Logger.Error("the tables of the store were not merged", "error", err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.busy = false
		if !errors.Is(err, store.ErrFull) {
			m.failed = err
		}
	})
}

func (s *Store) mergeDue() (merged bool, err error) {
	d, release, err := s.use()
	if err != nil {
		return false, nil //nolint:nilerr // a store that is closed needs no merge
	}
	due := isDue(d.Tables())
	release()
	if !due {
		return false, nil
	}
	return true, s.merge(context.Background()) // closing waits for it
}

func isDue(tables []db.TableInfo) bool {
	n, fresh, rest := 0, uint64(0), uint64(0)
	for _, t := range tables {
		if t.Level == 0 {
			n++
			fresh += uint64(t.OnDiskSize)
		} else {
			rest += uint64(t.OnDiskSize)
		}
	}
	return n >= mergeAlways || n >= mergeTables && mergeRatio*fresh >= rest
}

// merge merges all tables, and is called by one at a time. When it fails, the
// store goes on with the tables of before.
func (s *Store) merge(ctx context.Context) error {
	var b store.Batch
	b.Put([]byte{rowMark}, nil)
	if _, err := s.commit(ctx, &b); err != nil {
		return fmt.Errorf("mark the store before a merge: %w", err)
	}
	undo, err := s.mergeOpen(ctx)
	if !undo {
		return err
	}
	return errors.Join(err, s.reopen(ctx, func() error { return nil }))
}

// mergeOpen merges while others read and write. With undo the store must be
// opened anew, which names the tables of before again.
func (s *Store) mergeOpen(ctx context.Context) (undo bool, err error) {
	d, release, err := s.use()
	if err != nil {
		return false, err
	}
	defer release()
	if err := s.trust.all(); err != nil {
		return false, fmt.Errorf("the tables are not merged: %w", err)
	}
	if err := s.mergeRoom(d); err != nil {
		return false, err
	}
	before := s.beginRead(d)
	it := before.txn.NewIterator(db.IteratorOptions{})
	if err := s.nameTables(d); err != nil {
		it.Close()
		before.end()
		return false, err
	}
	s.letGo(d)
	err = d.Flatten(1)
	if err == nil {
		err = s.sameAs(it, d, before.version)
	}
	if err != nil {
		// The iterator stays: closing it would delete the tables of before.
		return true, fmt.Errorf("merge the tables: %w", err)
	}
	if err := os.Remove(s.path(mergingName)); err != nil {
		return true, fmt.Errorf("end a merge: %w", err)
	}
	if err := syncDir(s.root); err != nil {
		return true, fmt.Errorf("end a merge: %w", err)
	}
	it.Close()
	before.end()
	return false, nil
}

func (s *Store) mergeRoom(d *db.DB) error {
	size := uint64(0)
	for _, t := range d.Tables() {
		size += uint64(t.OnDiskSize)
	}
	return s.roomFor(size, "to merge its tables")
}

// nameTables writes the file that names the tables of before.
func (s *Store) nameTables(d *db.DB) error {
	ids := []uint64{}
	for _, t := range d.Tables() {
		ids = append(ids, t.ID)
	}
	raw, err := json.Marshal(ids)
	if err != nil {
		return fmt.Errorf("begin a merge: %w", err)
	}
	return writeSafely(s.path(mergingName), raw)
}

// inspectMerge finds the tables of a merge that was not seen to its end. None
// of them was deleted then.
func (s *Store) inspectMerge(found *findings) error {
	raw, err := os.ReadFile(s.path(mergingName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at an unfinished merge: %w", err)
	}
	var ids []uint64
	if err := json.Unmarshal(raw, &ids); err != nil {
		return damaged("the file %s is damaged: %v", s.path(mergingName), err)
	}
	for _, id := range ids {
		if _, named := found.manifest.Levels[id]; named {
			continue
		}
		if _, err := os.Lstat(filepath.Join(s.dbDir(), ondisk.TableName(id))); err != nil {
			return damaged("the table %s of an unfinished merge is missing from %s", ondisk.TableName(id), s.dbDir())
		}
		found.putBack = append(found.putBack, id)
	}
	return nil
}

// sameAs compares what was there before a merge with what is there now, as of
// one version. Ids of batches, which expire, are not looked at.
func (s *Store) sameAs(old *db.Iterator, d *db.DB, version uint64) error {
	txn := d.NewTransactionAt(version, false)
	defer txn.Discard()
	it := txn.NewIterator(db.IteratorOptions{})
	defer it.Close()
	n := 0
	old.Seek([]byte{rowToken})
	for it.Seek([]byte{rowToken}); old.Valid(); it.Next() {
		if !it.Valid() || !bytes.Equal(it.Item().Key(), old.Item().Key()) || it.Item().Version() != old.Item().Version() {
			return fmt.Errorf("of what was there before it, key %x, the %dth, is not there after it", old.Item().Key(), n+1)
		}
		n++
		old.Next()
	}
	if it.Valid() {
		return fmt.Errorf("what was deleted before it is there after it: key %x", it.Item().Key())
	}
	return nil
}
