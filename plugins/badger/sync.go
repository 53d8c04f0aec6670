package badger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/boughdev/bough/plugins/badger/ondisk"
)

// syncs makes what Badger wrote durable. Badger would do so once for each of
// its write requests, log a failure and go on; here one sync serves all who
// wait for it, and after a failed one nothing is written any more, since
// nobody knows then what the disk has.
//
// What a batch wrote lies in the log of a memtable, or, when that was full
// already, in a table that Badger synced before it removed the log.
type syncs struct {
	mu      sync.Mutex
	ended   *sync.Cond
	running bool
	durable uint64 // every batch up to this version is on the disk
	failed  error

	dir  string
	logs []openLog // in the order of their numbers; the last is written to
	runs int
}

type openLog struct {
	id uint64
	f  *os.File
}

// markEvery is how many syncs there are between two durable sentinels.
const markEvery = 256

func (y *syncs) begin(dir string) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.ended = sync.NewCond(&y.mu)
	y.running, y.durable, y.failed, y.dir, y.runs = false, 0, nil, dir, 0
	return y.look()
}

// look opens the logs that came up since. Badger numbers them one after the
// other and removes the oldest first, so that a gap means that a folder must
// be listed.
func (y *syncs) look() error {
	next := uint64(1)
	if n := len(y.logs); n > 0 {
		next = y.logs[n-1].id + 1
	}
	for len(y.logs) > 0 {
		f, err := os.Open(filepath.Join(y.dir, ondisk.LogName(next)))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return fmt.Errorf("open a log to sync it: %w", err)
		}
		y.logs = append(y.logs, openLog{next, f})
		next++
	}
	if n := len(y.logs); n > 0 && linked(y.logs[n-1].f) {
		return nil
	}
	return y.list(next)
}

func linked(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 0
}

func (y *syncs) list(from uint64) error {
	ids, err := logIDs(y.dir)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if id < from {
			continue
		}
		f, err := os.Open(filepath.Join(y.dir, ondisk.LogName(id)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it became a table meanwhile
		}
		if err != nil {
			return fmt.Errorf("open a log to sync it: %w", err)
		}
		y.logs = append(y.logs, openLog{id, f})
	}
	return nil
}

// reach returns once every batch up to version is on the disk.
func (y *syncs) reach(s *Store, version uint64) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	for y.failed == nil && y.durable < version {
		if y.running {
			y.ended.Wait()
			continue
		}
		y.running = true
		y.mu.Unlock()
		written := s.writes.readable() // all of these are written
		err := y.run(s)
		if err == nil {
			err = s.sentinel.write(written, y.runs%markEvery == 0)
		}
		y.mu.Lock()
		y.running = false
		if err != nil {
			y.failed = err
			s.writes.fail(err)
		} else {
			y.durable = max(y.durable, written)
		}
		y.ended.Broadcast()
	}
	if y.durable >= version {
		return nil
	}
	return y.failed
}

// run syncs every log that may have what was written before it was called.
// Only one runs at a time.
func (y *syncs) run(s *Store) error {
	if err := y.look(); err != nil {
		return err
	}
	y.runs++
	for _, l := range y.logs {
		if err := s.o.SyncFile(l.f); err != nil {
			return fmt.Errorf("sync %s: %w", l.f.Name(), err)
		}
	}
	// An older one was full before the next was made: nothing comes to it.
	full := y.logs[:len(y.logs)-1]
	y.logs = y.logs[len(y.logs)-1:]
	for _, l := range full {
		if err := l.f.Close(); err != nil {
			return fmt.Errorf("close %s: %w", l.f.Name(), err)
		}
	}
	if len(full) > 0 {
		s.mergeIfDue()
	}
	return nil
}

func (y *syncs) end() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	var err error
	for _, l := range y.logs {
		err = errors.Join(err, l.f.Close())
	}
	y.logs = nil
	return err
}
