package badger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	db "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/ristretto/v2/z"

	"github.com/boughdev/bough/host/store"
)

// Badger opens an empty store when its MANIFEST is damaged, and deletes the
// tables that the MANIFEST does not name. So this file looks first, and keeps
// copies of what Badger could lose.

const (
	manifestName = "MANIFEST"
	manifestCopy = "MANIFEST.copy"  // of the last sound one
	sentinelName = "bough-sentinel" // the version last reached, and whether it was closed
	asideName    = "set-aside"      // tables that the MANIFEST does not name
	asideAge     = 7 * 24 * time.Hour
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s; nothing was changed: run `bough storage repair`, or `bough storage restore FILE` with a backup",
		store.ErrDamaged, fmt.Sprintf(format, args...))
}

// inspect compares the MANIFEST with the files on disk. What it refuses is
// named, and nothing is changed.
func (s *Store) inspect(ctx context.Context) error {
	names, err := s.fileNames()
	if err != nil {
		return err
	}
	if _, _, ok := s.readSentinel(); !ok && s.hasSentinel() {
		return damaged("the file %s of %s is damaged, so it cannot be told whether the store is whole", sentinelName, s.dir)
	}
	raw, err := os.ReadFile(s.path(manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		if data := slices.DeleteFunc(names, func(n string) bool { return !isData(n) }); len(data) > 0 || s.hasSentinel() {
			return damaged("the file MANIFEST of %s is missing, and there are %d data files", s.dir, len(data))
		}
		return nil // a new store
	}
	if err != nil {
		return fmt.Errorf("read the MANIFEST of the store: %w", err)
	}
	manifest, err := s.parseManifest(raw)
	if err != nil {
		return err
	}
	clean := s.wasClosed()
	for id := range manifest.Tables {
		name := table.IDToFilename(id)
		if !slices.Contains(names, name) {
			return damaged("the table %s is missing from %s", name, s.dir)
		}
		if err := checkTable(s.path(name), !clean); err != nil {
			return damaged("the table %s of %s cannot be read: %v", name, s.dir, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return s.setAside(manifest, names)
}

// copyManifest keeps a copy of the MANIFEST as it is now.
func (s *Store) copyManifest() error {
	raw, err := os.ReadFile(s.path(manifestName))
	if err != nil {
		return fmt.Errorf("copy the MANIFEST: %w", err)
	}
	return writeSafely(s.path(manifestCopy), raw)
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Store) fileNames() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list the files of the store: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func isData(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".vlog") || strings.HasSuffix(name, ".mem")
}

// parseManifest refuses a MANIFEST that Badger would cut short.
func (s *Store) parseManifest(raw []byte) (db.Manifest, error) {
	tmp, err := os.CreateTemp("", "bough-manifest-")
	if err != nil {
		return db.Manifest{}, fmt.Errorf("inspect the MANIFEST: %w", err)
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	if _, err := tmp.Write(raw); err != nil {
		return db.Manifest{}, fmt.Errorf("inspect the MANIFEST: %w", err)
	}
	if _, err := tmp.Seek(0, 0); err != nil {
		return db.Manifest{}, fmt.Errorf("inspect the MANIFEST: %w", err)
	}
	m, sound, err := db.ReplayManifestFile(tmp, 0, s.settings())
	if err != nil {
		return m, damaged("the file MANIFEST of %s cannot be read: %v", s.dir, err)
	}
	if sound < int64(len(raw)) {
		return m, damaged("the file MANIFEST of %s is cut off or damaged after byte %d of %d", s.dir, sound, len(raw))
	}
	return m, nil
}

// checkTable opens a table as Badger does, and with all set compares every
// block with its checksum.
func checkTable(path string, all bool) (err error) {
	defer func() {
		if r := recover(); r != nil { // the library panics on some damage
			err = fmt.Errorf("%v", r)
		}
	}()
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return errors.New("it is empty")
	}
	mode := options.NoVerification
	if all {
		mode = options.OnTableAndBlockRead
	}
	file, err := z.OpenMmapFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	t, err := table.OpenTable(file, table.Options{ReadOnly: true, ChkMode: mode, BlockSize: 4096})
	if err != nil {
		return err
	}
	defer t.Close(-1) //nolint:errcheck // it was only read
	if all {
		return t.VerifyChecksum()
	}
	return nil
}

// setAside moves tables that the MANIFEST does not name out of Badger's reach:
// what a crash leaves of a table that was not finished, whose rows are in a log
// as well. They are dropped after a week.
func (s *Store) setAside(m db.Manifest, names []string) error {
	old, err := os.ReadDir(s.path(asideName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at what was set aside: %w", err)
	}
	for _, e := range old {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > asideAge {
			os.Remove(filepath.Join(s.path(asideName), e.Name()))
		}
	}
	for _, name := range names {
		id, ok := table.ParseFileID(name)
		if !ok || !strings.HasSuffix(name, ".sst") {
			continue
		}
		if _, named := m.Tables[id]; named {
			continue
		}
		if err := os.MkdirAll(s.path(asideName), 0o700); err != nil {
			return fmt.Errorf("set a table aside: %w", err)
		}
		to := filepath.Join(s.path(asideName), fmt.Sprintf("%s.%d", name, time.Now().UnixNano()))
		if err := os.Rename(s.path(name), to); err != nil {
			return fmt.Errorf("set a table aside: %w", err)
		}
		s.o.Logger.Warn("a table that the MANIFEST does not name was set aside", "table", name, "to", to)
	}
	return nil
}

// The sentinel is a small file with the version that the store had reached: a
// store that opens with less has lost something, whatever Badger says. With it
// the copy of the MANIFEST is renewed.
func (s *Store) writeSentinel(version uint64, closed bool) error {
	b := binary.BigEndian.AppendUint64([]byte("bough1"), version)
	if closed {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return errors.Join(s.copyManifest(), writeSafely(s.path(sentinelName), b))
}

func (s *Store) readSentinel() (version uint64, closed, ok bool) {
	b, err := os.ReadFile(s.path(sentinelName))
	if err != nil || len(b) != 19 || !bytes.HasPrefix(b, []byte("bough1")) ||
		crc32.ChecksumIEEE(b[:15]) != binary.BigEndian.Uint32(b[15:]) {
		return 0, false, false
	}
	return binary.BigEndian.Uint64(b[6:]), b[14] == 1, true
}

func (s *Store) hasSentinel() bool {
	_, err := os.Stat(s.path(sentinelName))
	return err == nil
}

func (s *Store) wasClosed() bool {
	_, closed, ok := s.readSentinel()
	return ok && closed
}

func (s *Store) compareSentinel(version uint64) error {
	if !s.hasSentinel() {
		return nil
	}
	if last, _, _ := s.readSentinel(); version < last {
		return damaged("the store in %s has reached version %d and now holds only %d: something was lost", s.dir, last, version)
	}
	return nil
}

func (s *Store) markOpen() error { return s.writeSentinel(s.db.MaxVersion(), false) }

func (s *Store) markClosed(version uint64) error { return s.writeSentinel(version, true) }

// lastMark writes the sentinel row a last time before the store is closed.
func (s *Store) lastMark() (uint64, error) {
	w := &s.writes
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return 0, w.failed
	}
	w.version++
	txn := s.db.NewTransactionAt(w.version, true)
	defer txn.Discard()
	if err := txn.Set([]byte{rowSentinel}, binary.BigEndian.AppendUint64(nil, w.version)); err != nil {
		return 0, err
	}
	return w.version, txn.CommitAt(w.version, nil)
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
