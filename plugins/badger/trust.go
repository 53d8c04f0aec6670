package badger

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/boughdev/bough/plugins/badger/ondisk"
)

// trust compares every block of the tables that were there when the store was
// opened with its checksum, once, before it is read first: Badger's iterators
// take a block that they cannot read for the end of the table, and so a key
// for one that is not there. Tables that were made since are trusted.
type trust struct {
	left atomic.Int64 // tables with blocks that were not compared yet

	mu     sync.Mutex
	dir    string
	tables []*tableInfo
}

// tableInfo is what is known of a table.
type tableInfo struct {
	id          uint64
	version     uint64 // highest of its entries
	first, last []byte // keys
	unread      []bool // by block; nil: none is left
	open        int    // how many are true
}

// window is how many blocks of a table are compared at once in a scan.
const window = 16

// readTable reads the index and the last block of a table.
func readTable(dir string, id uint64) (info tableInfo, err error) {
	t, err := ondisk.OpenTable(filepath.Join(dir, ondisk.TableName(id)))
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	info = tableInfo{
		id: id, version: t.MaxVersion(), first: bytes.Clone(t.First(0)),
		unread: slices.Repeat([]bool{true}, t.Blocks()), open: t.Blocks(),
	}
	info.last, err = t.Last()
	return info, err
}

func (t *trust) begin(dir string, tables []tableInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dir, t.tables = dir, nil
	for i := range tables {
		t.tables = append(t.tables, &tables[i])
	}
	t.left.Store(int64(len(tables)))
}

// keys makes sure that keys can be read.
func (t *trust) keys(keys ...[]byte) error {
	if t.left.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range keys {
		for _, info := range t.tables {
			if bytes.Compare(k, info.first) < 0 || bytes.Compare(k, info.last) > 0 {
				continue
			}
			if _, err := t.compare(info, func(b *ondisk.Table) (from, to int) { return around(b, k, 0) }); err != nil {
				return err
			}
		}
	}
	t.drop()
	return nil
}

// ahead makes sure that a scan can be read from key on, and returns the first
// key that it must ask again for; nil: there is none.
func (t *trust) ahead(key []byte) (bound []byte, err error) {
	if t.left.Load() == 0 {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, info := range t.tables {
		if bytes.Compare(key, info.last) > 0 {
			continue
		}
		next, err := t.compare(info, func(b *ondisk.Table) (from, to int) { return around(b, key, window) })
		if err != nil {
			return nil, err
		}
		if next != nil && (bound == nil || bytes.Compare(next, bound) < 0) {
			bound = next
		}
	}
	t.drop()
	return bound, nil
}

// behind is ahead for a scan in reverse: it asks again at the key returned.
// A nil key is the end of all keys.
func (t *trust) behind(key []byte) (bound []byte, err error) {
	if t.left.Load() == 0 {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, info := range t.tables {
		if key != nil && bytes.Compare(key, info.first) < 0 {
			continue
		}
		begin := 0
		var first []byte
		_, err := t.compare(info, func(b *ondisk.Table) (from, to int) {
			from, to = back(b, key)
			begin, first = from, bytes.Clone(b.First(from))
			return from, to
		})
		if err != nil {
			return nil, err
		}
		if begin > 0 && bytes.Compare(first, bound) > 0 {
			bound = first
		}
	}
	t.drop()
	return bound, nil
}

// all compares everything that was not yet compared.
func (t *trust) all() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, info := range t.tables {
		if _, err := t.compare(info, func(b *ondisk.Table) (from, to int) { return 0, b.Blocks() - 1 }); err != nil {
			return err
		}
	}
	t.drop()
	return nil
}

// around are the blocks that may have key, and more after them. The versions
// of a key may lie in several.
func around(b *ondisk.Table, key []byte, more int) (from, to int) {
	last := b.Blocks() - 1
	from = firstAfter(b, key, true) - 1
	from = max(from, 0)
	to = min(from+more, last)
	for to < last && bytes.Compare(b.First(to+1), key) <= 0 {
		to++
	}
	return from, to
}

// back are the blocks that may have key, and those before them.
func back(b *ondisk.Table, key []byte) (from, to int) {
	to = b.Blocks() - 1
	if key != nil {
		to = max(firstAfter(b, key, false)-1, 0)
	}
	from = max(to-window, 0)
	for from > 0 && key != nil && bytes.Compare(b.First(from), key) >= 0 {
		from--
	}
	return from, to
}

// firstAfter is the first block whose first key is beyond key, or with same
// one that begins with it.
func firstAfter(b *ondisk.Table, key []byte, same bool) int {
	low, high := 0, b.Blocks()
	for low < high {
		at := (low + high) / 2
		if c := bytes.Compare(b.First(at), key); c > 0 || same && c == 0 {
			high = at
		} else {
			low = at + 1
		}
	}
	return low
}

// compare compares the blocks that choose names, and returns the first key of
// the block after them. mu is held.
func (t *trust) compare(info *tableInfo, choose func(*ondisk.Table) (from, to int)) (next []byte, err error) {
	if info.open == 0 {
		return nil, nil
	}
	name := ondisk.TableName(info.id)
	b, err := ondisk.OpenTable(filepath.Join(t.dir, name))
	if err != nil {
		return nil, damaged("the table %s of %s cannot be read: %v", name, t.dir, err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	from, to := choose(b)
	for i := from; i <= to; i++ {
		if !info.unread[i] {
			continue
		}
		if err := b.Verify(i); err != nil {
			return nil, damaged("the table %s of %s is damaged from key %x on: %v", name, t.dir, b.First(i), err)
		}
		info.unread[i] = false
		info.open--
	}
	if to+1 < b.Blocks() {
		next = bytes.Clone(b.First(to + 1))
	}
	return next, nil
}

// drop forgets tables of which all is compared.
func (t *trust) drop() {
	t.tables = slices.DeleteFunc(t.tables, func(info *tableInfo) bool { return info.open == 0 })
	t.left.Store(int64(len(t.tables)))
}
