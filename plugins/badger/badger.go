// Package badger is bough's storage backend on Badger. One process has one
// store open; others reach it through the storage plugin.
//
// Badger runs in managed mode: this package gives every batch its version, so
// that the version that a commit returns is exactly the one it wrote. Batches
// are admitted one at a time, under a lock, against what is stored and what is
// under way, and then written and synced together (docs/decisions/0003).
package badger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	db "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/boughdev/bough/host/store"
)

// Options are the settings of Open. Zero values mean the defaults.
type Options struct {
	// Floor is how many bytes of the disk stay free: under it writes are
	// refused, since Badger would be killed by a full disk. Default 64 MiB.
	Floor uint64
	// Logger gets Badger's own messages; default none.
	Logger *slog.Logger
	// Free tells how many bytes are free on the disk of a folder; default
	// statfs. Tests set it.
	Free func(dir string) (uint64, error)
}

// Store implements store.Store and store.Admin.
type Store struct {
	dir string
	o   Options

	// mu guards db against being closed or swapped under its users.
	mu      sync.RWMutex
	db      *db.DB
	refusal error // why the store cannot be used; nil: it can
	closed  bool

	writes  writes
	leases  leases
	watches watches
}

// The rows that this package keeps beside the users'.
const (
	rowID    = 0x01 // batch id -> version
	rowToken = 0x02 // lease name -> last token
	// rowSentinel -> a version that was reached. The row is alive, so that no
	// compaction can take the highest version away; a file beside the store
	// has the same number (guard.go).
	rowSentinel = 0x03
)

// Open opens the store in dir, or makes one. A store that is damaged is opened
// too, as one that refuses everything but maintenance: Info says why.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	if o.Floor == 0 {
		o.Floor = 64 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Free == nil {
		o.Free = freeBytes
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the store: %w", err)
	}
	s := &Store{dir: dir, o: o}
	err = s.open(ctx)
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrFull) {
		s.refusal = err
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) settings() db.Options {
	return db.DefaultOptions(s.dir).
		WithMemTableSize(16 << 20). // with the threshold: a batch of the contract fits one transaction
		WithValueThreshold(896).    // a step's items stay in one log, which one sync makes durable
		WithNumMemtables(2).
		WithNumLevelZeroTables(1).  // else deleted rows of a small store are never given back
		WithCompactL0OnClose(true). // so that in a small store deletions meet what they delete
		WithNumLevelZeroTablesStall(10).
		WithNumCompactors(2).
		WithValueLogFileSize(64 << 20).
		WithCompression(options.None). // payloads come compressed
		WithBlockCacheSize(0).
		WithIndexCacheSize(8 << 20).
		WithNumGoroutines(2).
		WithMetricsEnabled(false).
		WithDetectConflicts(false). // admit does
		WithSyncWrites(true).
		WithLogger(logger{s.o.Logger})
}

// open looks at what lies in the folder before Badger does, opens it, and
// compares what it then holds with what it held last.
func (s *Store) open(ctx context.Context) error {
	if free, err := s.o.Free(s.dir); err != nil {
		return fmt.Errorf("see how much room the disk has: %w", err)
	} else if free < s.o.Floor {
		return fmt.Errorf("%w: %d MB free for %s, and %d MB are needed to open the store: free some room and try again",
			store.ErrFull, free>>20, s.dir, s.o.Floor>>20)
	}
	if err := s.inspect(ctx); err != nil {
		return err
	}
	d, err := db.OpenManaged(s.settings())
	if err != nil {
		return fmt.Errorf("open the store in %s: %w", s.dir, err)
	}
	if err := s.compareSentinel(d.MaxVersion()); err != nil {
		return errors.Join(err, d.Close())
	}
	s.db = d
	s.writes.begin(d.MaxVersion())
	d.SetDiscardTs(d.MaxVersion())
	return s.markOpen()
}

// use holds the database for a reader or writer until release is called.
func (s *Store) use() (d *db.DB, release func(), err error) {
	s.mu.RLock()
	switch {
	case s.closed:
		s.mu.RUnlock()
		return nil, nil, store.ErrClosed
	case s.refusal != nil:
		err := s.refusal
		s.mu.RUnlock()
		return nil, nil, err
	}
	return s.db, s.mu.RUnlock, nil
}

// Close ends all and lets go of the folder.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.leases.cutAll()
	s.watches.closeAll()
	return s.closeDB()
}

func (s *Store) closeDB() error {
	if s.db == nil {
		return nil
	}
	version, err := s.lastMark()
	s.db.SetDiscardTs(version) // nobody reads any more
	err = errors.Join(err, s.db.Close())
	s.db = nil
	if err != nil {
		return fmt.Errorf("close the store in %s: %w", s.dir, err)
	}
	return s.markClosed(version)
}

// Info implements store.Store.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	if err := ctx.Err(); err != nil {
		return store.Info{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	info := store.Info{Backend: "badger", Version: "4", Location: s.dir, PID: os.Getpid()}
	if s.refusal != nil {
		info.Refusal = s.refusal.Error()
	}
	if free, err := s.o.Free(s.dir); err == nil {
		info.ReadOnly = free < s.o.Floor
	}
	return info, nil
}

// idMemory is how long the id of a batch is known; the contract asks for
// store.IDMemory.
const idMemory = store.IDMemory + 5*time.Minute
