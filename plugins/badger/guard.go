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
	"time"

	"github.com/boughdev/bough/plugins/badger/ondisk"
)

// Badger opens an empty store when its MANIFEST is gone, cuts one that ends in
// the middle of a record, deletes the tables that it does not name, and takes
// a hole in a log for its end. So this file looks first.

const asideAge = 7 * 24 * time.Hour

// findings is what was found in the folder.
type findings struct {
	made     bool
	manifest ondisk.Manifest
	torn     bool // the MANIFEST ends in the middle of a record
	names    []string
	tables   []tableInfo
	putBack  []uint64 // tables of before a merge that was not seen to its end
}

// inspect compares the MANIFEST with the files on disk and with the sentinel.
// What it refuses is named, and nothing is changed.
func (s *Store) inspect(ctx context.Context) (found findings, err error) {
	if found.names, err = fileNames(s.dbDir()); err != nil {
		return found, err
	}
	if found.made, err = s.sentinel.load(s.path(sentinelName)); err != nil {
		return found, err
	}
	if _, err := os.Lstat(s.path(ondisk.ManifestName)); err == nil {
		return found, damaged("%s has the layout of a version before the first release: move it away", s.root)
	}
	raw, err := os.ReadFile(filepath.Join(s.dbDir(), ondisk.ManifestName))
	if errors.Is(err, fs.ErrNotExist) {
		data := slices.DeleteFunc(slices.Clone(found.names), func(n string) bool { return !isData(n) })
		if len(data) > 0 || found.made {
			return found, damaged("the file MANIFEST of %s is missing, and there are %d data files", s.dbDir(), len(data))
		}
		return found, nil // a new store
	}
	if err != nil {
		return found, fmt.Errorf("read the MANIFEST of the store: %w", err)
	}
	if found.manifest, err = ondisk.ParseManifest(raw); err != nil {
		return found, damaged("the file MANIFEST of %s is damaged: %v", s.dbDir(), err)
	}
	found.torn = found.manifest.Sound < len(raw)
	if err := s.inspectMerge(&found); err != nil {
		return found, err
	}
	return found, s.inspectData(ctx, &found)
}

// inspectData looks at tables and logs, and whether they hold all that was
// durable.
func (s *Store) inspectData(ctx context.Context, found *findings) error {
	holds := uint64(0)
	for _, id := range append(sorted(found.manifest.Levels), found.putBack...) {
		info, err := readTable(s.dbDir(), id)
		if errors.Is(err, fs.ErrNotExist) {
			return damaged("the table %s is missing from %s", ondisk.TableName(id), s.dbDir())
		}
		if err != nil {
			return damaged("the table %s of %s cannot be read: %v", ondisk.TableName(id), s.dbDir(), err)
		}
		found.tables = append(found.tables, info)
		holds = max(holds, info.version)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	holds, err := s.inspectLogs(holds)
	if err != nil {
		return err
	}
	if reached := s.sentinel.reached; holds < reached {
		torn := ""
		if found.torn {
			torn = ", and its MANIFEST ends in the middle of a record"
		}
		return damaged("the store in %s has reached version %d and now holds only %d: something was lost%s", s.root, reached, holds, torn)
	}
	return nil
}

// inspectLogs returns the version that tables and logs reach together. Batches
// have versions without a gap, so that a log that is missing shows.
func (s *Store) inspectLogs(tables uint64) (holds uint64, err error) {
	ids, err := logIDs(s.dbDir())
	if err != nil {
		return 0, err
	}
	holds = tables
	for i, id := range ids {
		name := ondisk.LogName(id)
		if i > 0 && id != ids[i-1]+1 {
			return 0, damaged("a log is missing from %s: after %s comes %s", s.dbDir(), ondisk.LogName(ids[i-1]), name)
		}
		l, err := ondisk.ReadLog(filepath.Join(s.dbDir(), name), nil)
		if err != nil {
			return 0, damaged("the log %s of %s cannot be read: %v", name, s.dbDir(), err)
		}
		if l.Entries == 0 {
			continue
		}
		if l.First > holds+1 {
			return 0, damaged("the log %s of %s begins at version %d, and what is before it ends at %d: something was lost",
				name, s.dbDir(), l.First, holds)
		}
		holds = max(holds, l.Last)
	}
	return holds, nil
}

// mend changes what a crash leaves, after inspect found that nothing is lost:
// the cut end of a MANIFEST, tables of an unfinished merge, files that were
// being written.
func (s *Store) mend(found findings) error {
	if len(found.manifest.Levels) > 0 || found.torn || len(found.putBack) > 0 {
		if err := s.mendManifest(found); err != nil {
			return fmt.Errorf("mend the MANIFEST: %w", err)
		}
	}
	if err := s.setAside(found); err != nil {
		return fmt.Errorf("set a table aside: %w", err)
	}
	if err := os.Remove(s.path(mergingName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("end an unfinished merge: %w", err)
	}
	return s.sentinel.open(s.path(sentinelName))
}

func (s *Store) mendManifest(found findings) error {
	if !found.torn && len(found.putBack) == 0 {
		return nil
	}
	path := filepath.Join(s.dbDir(), ondisk.ManifestName)
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if found.torn {
		if err := s.keepAside(ondisk.ManifestName, func(to string) error { return writeSafely(to, raw) }); err != nil {
			return err
		}
	}
	raw = raw[:found.manifest.Sound]
	if len(found.putBack) > 0 {
		record, err := ondisk.ManifestAdding(found.putBack)
		if err != nil {
			return err
		}
		raw = append(raw, record...)
		s.o.Logger.Warn("a merge was not seen to its end: its tables of before are used again", "tables", len(found.putBack))
	}
	return writeSafely(path, raw)
}

// setAside moves tables that the MANIFEST does not name out of Badger's reach:
// what a crash leaves of a table that was not finished, whose rows are in a log
// as well. They are dropped after a week.
func (s *Store) setAside(found findings) error {
	old, err := os.ReadDir(s.path(asideName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range old {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > asideAge {
			if err := os.Remove(filepath.Join(s.path(asideName), e.Name())); err != nil {
				return err
			}
		}
	}
	for _, name := range found.names {
		id, ok := ondisk.TableID(name)
		if _, named := found.manifest.Levels[id]; !ok || named || slices.Contains(found.putBack, id) {
			continue
		}
		from := filepath.Join(s.dbDir(), name)
		if err := s.keepAside(name, func(to string) error { return os.Rename(from, to) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) keepAside(name string, move func(to string) error) error {
	if err := os.MkdirAll(s.path(asideName), 0o700); err != nil {
		return err
	}
	to := filepath.Join(s.path(asideName), fmt.Sprintf("%s.%d", name, time.Now().UnixNano()))
	s.o.Logger.Warn("a file of the store was set aside", "file", name, "to", to)
	return move(to)
}

// fileNames lists the regular files of a folder; one that is not there has none.
func fileNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
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
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".mem")
}

func logIDs(dir string) ([]uint64, error) {
	names, err := fileNames(dir)
	if err != nil {
		return nil, err
	}
	var ids []uint64
	for _, name := range names {
		if id, ok := ondisk.LogID(name); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

func sorted(levels map[uint64]int) []uint64 {
	var ids []uint64
	for id := range levels {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
