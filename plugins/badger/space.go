package badger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/boughdev/bough/host/store"
)

const (
	// headroom is what deletions and small batches may still use of the disk
	// when others are refused, so that a full disk can be emptied.
	headroom = 16 << 20
	// reserveBytes is held on the disk so that a store can be opened, read
	// and emptied when others have filled the disk.
	reserveBytes = 8 << 20
	// openBytes is what opening needs: a table of what the logs hold, and a
	// new log.
	openBytes = 6 << 20
	// smallBatch has values of at most this many bytes: a deletion, a head
	// move.
	smallBatch = 4 << 10
)

// room refuses a batch that the disk has no room for.
func (s *Store) room(b *store.Batch) error {
	free, err := s.o.Free(s.root)
	if err != nil {
		return fmt.Errorf("see how much room the disk has: %w", err)
	}
	grows := uint64(0)
	for _, op := range b.Ops {
		grows += uint64(len(op.Value))
	}
	floor := s.o.Floor
	if grows <= smallBatch {
		floor = min(floor, headroom)
	}
	if free < floor+2*grows {
		return fmt.Errorf("%w: %d MB free for %s: nothing was written; free some room and try again", store.ErrFull, free>>20, s.root)
	}
	return nil
}

// makeRoom gives the reserve up when there is no other room to open the store.
func (s *Store) makeRoom() error {
	free, err := s.o.Free(s.root)
	if err != nil {
		return fmt.Errorf("see how much room the disk has: %w", err)
	}
	if free < openBytes {
		if err := os.Remove(s.path(reserveName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("give up the reserve of the store: %w", err)
		}
		if free, err = s.o.Free(s.root); err != nil {
			return fmt.Errorf("see how much room the disk has: %w", err)
		}
	}
	if free < openBytes {
		return fmt.Errorf("%w: %d KB free for %s, and %d MB are needed to open the store: free some room and try again",
			store.ErrFull, free>>10, s.root, openBytes>>20)
	}
	return nil
}

// reserve makes the reserve when the disk has room for it. That there is none
// is no fault: it is tried again when the store is opened next.
func (s *Store) reserve() {
	if free, err := s.o.Free(s.root); err != nil || free < s.o.Floor+reserveBytes {
		return
	}
	f, err := os.OpenFile(s.path(reserveName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		s.o.Logger.Warn("no reserve could be made", "error", err)
		return
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, reserveBytes); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		s.o.Logger.Warn("no reserve could be made", "error", err)
	}
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func fdatasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// usedBytes is what a folder takes of the disk, holes not counted.
func usedBytes(dir string) (int64, error) {
	total := int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // merged away meanwhile
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
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
