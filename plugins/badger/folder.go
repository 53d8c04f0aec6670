package badger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/boughdev/bough/host/store"
)

// The parts of the folder.
const (
	lockName     = "lock"
	sentinelName = "sentinel"
	reserveName  = "reserve"
	mergingName  = "merging"
	dbName       = "db"
	freshName    = "db.fresh" // what will take the place of db, once it is whole
	wholeName    = "whole"    // in db.fresh: it is, and db is kept under this name
	asideName    = "aside"
)

func (s *Store) path(name string) string { return filepath.Join(s.root, name) }

func (s *Store) dbDir() string { return s.path(dbName) }

// lockFolder takes the lock before anything is looked at, so that nobody
// mends what another uses.
func (s *Store) lockFolder() error {
	if err := os.MkdirAll(s.root, 0o700); err != nil {
		return fmt.Errorf("make the folder of the store: %w", err)
	}
	f, err := os.OpenFile(s.path(lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.Join(fmt.Errorf("another process has the store in %s open: %w", s.root, err), f.Close())
	}
	s.lock = f
	return nil
}

// exchange puts what lies whole in db.fresh in the place of db, and keeps the
// former one under a name that says why. A crash leaves one or the other.
func (s *Store) exchange(why string) (kept string, err error) {
	kept = fmt.Sprintf("%s.before-%s-%s", dbName, why, time.Now().UTC().Format("20060102T150405.000000"))
	if err := writeSafely(filepath.Join(s.path(freshName), wholeName), []byte(kept)); err != nil {
		return "", err
	}
	return s.path(kept), s.placeFresh(kept)
}

// placeFresh may be begun anew after a crash at any of its steps.
func (s *Store) placeFresh(kept string) error {
	err := os.Rename(s.dbDir(), s.path(kept))
	if errors.Is(err, fs.ErrNotExist) { // there was none, or it is kept already
		err = os.MkdirAll(s.path(kept), 0o700)
	}
	if err != nil {
		return fmt.Errorf("keep the former store: %w", err)
	}
	// The old sentinel and marker are about the old tables.
	for _, name := range []string{sentinelName, mergingName} {
		if err := os.Rename(s.path(name), filepath.Join(s.path(kept), "bough-"+name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("keep the former store: %w", err)
		}
	}
	if err := os.Rename(s.path(freshName), s.dbDir()); err != nil {
		return fmt.Errorf("put the new store in its place: %w", err)
	}
	if err := os.Remove(filepath.Join(s.dbDir(), wholeName)); err != nil {
		return fmt.Errorf("put the new store in its place: %w", err)
	}
	return syncDir(s.root)
}

// finishExchange goes on where a crash cut an exchange off. A fresh store that
// is not whole is of no use.
func (s *Store) finishExchange() error {
	kept, err := os.ReadFile(filepath.Join(s.path(freshName), wholeName))
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.RemoveAll(s.path(freshName)); err != nil {
			return fmt.Errorf("remove an unfinished store: %w", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at a store that was being replaced: %w", err)
	}
	return s.placeFresh(string(kept))
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s; nothing was changed: run `bough storage repair`, or `bough storage restore FILE` with a backup",
		store.ErrDamaged, fmt.Sprintf(format, args...))
}

// writeSafely replaces a file so that either the old or the new content is
// there after a crash.
func writeSafely(path string, data []byte) error {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, ".tmp-"+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
