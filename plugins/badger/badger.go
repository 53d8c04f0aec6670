// Package badger is bough's storage backend on Badger. One process has one
// store open; others reach it through the storage plugin.
//
// Badger runs in managed mode: this package gives every batch its version, so
// that the version that a commit returns is exactly the one it wrote. Batches
// are admitted one at a time, under a lock, against what is stored and what is
// under way; they are then written by Badger and synced together by this
// package (docs/decisions/0003). What Badger would take for the end of the
// data is looked at before Badger does (docs/decisions/0004).
//
// The folder of a store holds
//
//	lock      flocked by the process that has the store open
//	sentinel  the version that is durable for sure (sentinel.go)
//	reserve   room on the disk that is given up when there is none else
//	merging   names the tables of before a merge, while it goes on (merge.go)
//	db/       what Badger has
//	db.fresh/ what is to take the place of db: of a restore, a repair or a
//	          compaction that goes on (folder.go)
//	aside/    tables that no MANIFEST names, for a week
//
// and db.before-restore-* and db.before-repair-*, what was replaced, which are
// the user's to remove.
package badger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	// SyncFile makes what was written to a file durable; default fdatasync.
	// Tests set it.
	SyncFile func(*os.File) error
}

// Store implements store.Store and store.Admin.
type Store struct {
	root string
	o    Options
	lock *os.File

	gate        gate       // guards db, refusal and closed
	maintenance sync.Mutex // one at a time
	db          *db.DB
	refusal     error // why the store cannot be used; nil: it can
	closed      bool

	writes   writes
	syncs    syncs
	sentinel sentinel
	trust    trust
	readers  readers
	merges   merges
	leases   leases
	watches  watches
}

// The rows that this package keeps beside the users'; all begin below 0x10.
const (
	rowID    = 0x01 // batch id -> version
	rowToken = 0x02 // lease name -> last token
	// rowMark -> the version it was written with. It is alive, so that no
	// merge can take the highest version away.
	rowMark  = 0x03
	rowChunk = 0x04 // a piece of a large value (chunk.go)
	firstKey = 0x10 // of the users'
)

// memtableBytes is how much Badger holds in memory before it writes a table.
// A transaction has at most 15 % of it.
const memtableBytes = 8 << 20

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
	if o.SyncFile == nil {
		o.SyncFile = fdatasync
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	s := &Store{root: dir, o: o}
	s.gate.init()
	if err := s.lockFolder(); err != nil {
		return nil, err
	}
	err = s.open(ctx)
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrFull) {
		s.refusal = err
		return s, nil
	}
	if err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

func settings(dir string, log *slog.Logger) db.Options {
	o := db.DefaultOptions(dir).
		WithMemTableSize(memtableBytes).
		WithNumMemtables(2).
		WithValueThreshold(1 << 20). // every value lies in a memtable's log: one file to sync
		WithValueLogFileSize(1 << 20).
		WithBlockSize(16 << 10).
		WithBaseTableSize(memtableBytes).
		WithNumLevelZeroTables(1). // else deleted rows of a small store are never given back
		WithNumLevelZeroTablesStall(1 << 30).
		WithNumCompactors(0).          // merge.go merges: Badger's compactors poll, and lose tables
		WithCompression(options.None). // payloads come compressed
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithChecksumVerificationMode(options.OnBlockRead).
		WithNumGoroutines(2).
		WithMetricsEnabled(false).
		WithDetectConflicts(false). // admit does
		WithSyncWrites(false).      // syncs does
		WithLogger(logger{log})
	o.TableSizeMultiplier = 1
	return o
}

// open looks at what lies in the folder before Badger does, mends what a crash
// leaves, and opens it.
func (s *Store) open(ctx context.Context) error {
	if err := s.finishExchange(); err != nil {
		return err
	}
	if err := s.makeRoom(); err != nil {
		return err
	}
	found, err := s.inspect(ctx)
	if err != nil {
		return err
	}
	if err := s.mend(found); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dbDir(), 0o700); err != nil {
		return fmt.Errorf("make the folder of the store: %w", err)
	}
	d, err := db.OpenManaged(settings(s.dbDir(), s.o.Logger))
	if err != nil {
		return s.opening(err)
	}
	if reached := s.sentinel.reached; d.MaxVersion() < reached {
		return errors.Join(damaged("the store in %s has reached version %d and now holds only %d: something was lost",
			s.root, reached, d.MaxVersion()), d.Close())
	}
	s.db = d
	s.writes.begin(d.MaxVersion())
	s.trust.begin(s.dbDir(), found.tables)
	s.merges.begin()
	s.readers.begin()
	err = errors.Join(s.syncs.begin(s.dbDir()), s.sentinel.write(d.MaxVersion(), true))
	if err != nil {
		return errors.Join(err, s.closeDB())
	}
	if err := s.removeFormer(); err != nil {
		s.o.Logger.Warn("room on the disk was not given back", "error", err)
	}
	s.reserve()
	s.mergeIfDue()
	return nil
}

// opening tells damage from what is no fault of the store's files.
func (s *Store) opening(err error) error {
	if errors.Is(err, fs.ErrPermission) || isFull(err) {
		return fmt.Errorf("open the store in %s: %w", s.root, err)
	}
	return damaged("Badger cannot open %s: %v", s.dbDir(), err)
}

// use holds the database for a reader or writer until release is called. Who
// holds it must not use it again.
func (s *Store) use() (d *db.DB, release func(), err error) { return s.enter(false) }

// useToScan is use for one whose caller may use the database meanwhile.
func (s *Store) useToScan() (d *db.DB, release func(), err error) { return s.enter(true) }

func (s *Store) enter(scan bool) (d *db.DB, release func(), err error) {
	leave := s.gate.enter(scan)
	switch {
	case s.closed:
		err = store.ErrClosed
	case s.refusal != nil:
		err = s.refusal
	default:
		return s.db, leave, nil
	}
	leave()
	return nil, nil, err
}

// Close ends all and lets go of the folder.
func (s *Store) Close() error {
	s.merges.stop()
	release, err := s.gate.hold(context.Background())
	if err != nil {
		return err
	}
	defer release()
	if s.closed {
		return nil
	}
	s.closed = true
	s.leases.cutAll()
	s.watches.closeAll()
	return errors.Join(s.closeDB(), s.lock.Close())
}

// closeDB writes the last mark and closes Badger's part. The gate is held, and
// no merge goes on.
func (s *Store) closeDB() error {
	if s.db == nil {
		return nil
	}
	d := s.db
	version, err := s.lastMark(d)
	if err == nil {
		err = s.syncs.reach(s, version)
	}
	s.db = nil
	err = errors.Join(err, d.Close(), s.syncs.end())
	if err == nil {
		err = s.sentinel.write(version, true)
	}
	if err = errors.Join(err, s.sentinel.close()); err != nil {
		return fmt.Errorf("close the store in %s: %w", s.root, err)
	}
	return nil
}

// Info implements store.Store.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	if err := ctx.Err(); err != nil {
		return store.Info{}, err
	}
	defer s.gate.enter(false)()
	info := store.Info{Backend: "badger", Version: "4", Location: s.root, PID: os.Getpid()}
	if s.refusal != nil {
		info.Refusal = s.refusal.Error()
	}
	if free, err := s.o.Free(s.root); err == nil {
		info.ReadOnly = free < s.o.Floor
	}
	return info, nil
}

// idMemory is how long the id of a batch is known; the contract asks for
// store.IDMemory.
const idMemory = store.IDMemory + 5*time.Minute
