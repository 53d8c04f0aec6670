// Package ondisk reads the files of a Badger store by itself: tables, logs and
// the MANIFEST, each part compared with its checksum. Badger takes some damage
// for the end of the data; what is read here is told apart.
package ondisk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/y"
	"google.golang.org/protobuf/proto"
)

// TableName is the file of the table with that number.
func TableName(id uint64) string { return fmt.Sprintf("%06d.sst", id) }

// TableID is the number of a table's file; ok is false for other files.
func TableID(name string) (id uint64, ok bool) { return numbered(name, ".sst") }

func numbered(name, ext string) (uint64, bool) {
	base, ok := strings.CutSuffix(filepath.Base(name), ext)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseUint(base, 10, 64)
	return id, err == nil
}

// Table is one open table. It is read with ReadAt, so a file that others
// shorten ends in an error, not in a signal. Tables are not compressed and not
// encrypted.
type Table struct {
	f     *os.File
	index *fb.TableIndex
	ends  int64 // where the blocks end
}

// OpenTable opens a table and compares its index with the checksum.
func OpenTable(path string) (t *Table, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	t = &Table{f: f}
	if err := guarded(t.readIndex); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

// guarded makes an error of what damaged bytes make of a decoder.
func guarded(read func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it cannot be decoded: %v", r)
		}
	}()
	return read()
}

// The end of a table: index, its length, its checksum, the length of that.
func (t *Table) readIndex() error {
	info, err := t.f.Stat()
	if err != nil {
		return err
	}
	at := info.Size()
	checksum, at, err := t.before(at)
	if err != nil {
		return fmt.Errorf("the checksum of its index: %w", err)
	}
	raw, at, err := t.before(at)
	if err != nil {
		return fmt.Errorf("its index: %w", err)
	}
	if err := verify(raw, checksum); err != nil {
		return fmt.Errorf("its index does not match its checksum: %w", err)
	}
	t.ends, t.index = at, fb.GetRootAsTableIndex(raw, 0)
	if t.index.OffsetsLength() == 0 {
		return errors.New("it has no blocks")
	}
	return nil
}

// before reads a part that ends at off with its length.
func (t *Table) before(off int64) (part []byte, begin int64, err error) {
	var size [4]byte
	if off < 4 {
		return nil, 0, errors.New("the file is too short")
	}
	if _, err := t.f.ReadAt(size[:], off-4); err != nil {
		return nil, 0, err
	}
	n := int64(binary.BigEndian.Uint32(size[:]))
	if begin = off - 4 - n; begin < 0 {
		return nil, 0, fmt.Errorf("a length of %d bytes, and there are %d", n, off-4)
	}
	part = make([]byte, n)
	_, err = t.f.ReadAt(part, begin)
	return part, begin, err
}

func verify(data, checksum []byte) error {
	var want pb.Checksum
	if err := proto.Unmarshal(checksum, &want); err != nil {
		return err
	}
	return y.VerifyChecksum(data, &want)
}

// Close lets go of the file.
func (t *Table) Close() error { return t.f.Close() }

// MaxVersion is the highest version of its entries.
func (t *Table) MaxVersion() uint64 { return t.index.MaxVersion() }

// Blocks is how many blocks it has, at least one.
func (t *Table) Blocks() int { return t.index.OffsetsLength() }

// First is the first key of a block, without its version.
func (t *Table) First(block int) []byte {
	var at fb.BlockOffset
	if !t.index.Offsets(&at, block) {
		return nil
	}
	return y.ParseKey(at.KeyBytes())
}

// Last is the last key of the table, without its version.
func (t *Table) Last() ([]byte, error) {
	var last []byte
	err := t.Entries(t.Blocks()-1, func(e Entry) error {
		last = e.Key
		return nil
	})
	return last, err
}

// Verify compares a block with its checksum.
func (t *Table) Verify(block int) error {
	_, err := t.read(block)
	return err
}

// read returns entries and their index, and compares them with the checksum.
func (t *Table) read(block int) (data []byte, err error) {
	err = guarded(func() error {
		var at fb.BlockOffset
		if !t.index.Offsets(&at, block) {
			return fmt.Errorf("there is no block %d", block)
		}
		begin, size := int64(at.Offset()), int64(at.Len())
		if size < 8 || begin+size > t.ends {
			return fmt.Errorf("block %d lies outside of the file", block)
		}
		data = make([]byte, size)
		if _, err := t.f.ReadAt(data, begin); err != nil {
			return fmt.Errorf("block %d: %w", block, err)
		}
		n := int64(binary.BigEndian.Uint32(data[size-4:]))
		if n > size-8 {
			return fmt.Errorf("block %d has a checksum of %d bytes", block, n)
		}
		checksum := data[size-4-n : size-4]
		data = data[:size-4-n]
		if err := verify(data, checksum); err != nil {
			return fmt.Errorf("block %d does not match its checksum: %w", block, err)
		}
		return nil
	})
	return data, err
}

// Entry is one version of a key. Its slices are its own.
type Entry struct {
	Key, Value []byte
	Version    uint64
	Deleted    bool
	UserMeta   byte
	ExpiresAt  uint64 // seconds since 1970; 0: never
}

// The bits of an entry's meta byte that are looked at.
const (
	metaDeleted = 1 << 0
	metaPointer = 1 << 1 // the value lies in a value log
	metaTxn     = 1 << 6
	metaFin     = 1 << 7
)

// Entries yields the entries of a block in key order, newest version first.
func (t *Table) Entries(block int, yield func(Entry) error) error {
	data, err := t.read(block)
	if err != nil {
		return err
	}
	return guarded(func() error {
		n := int(binary.BigEndian.Uint32(data[len(data)-4:]))
		offsets := data[len(data)-4-4*n : len(data)-4]
		end := len(data) - 4 - 4*n
		var base []byte
		for i := range n {
			from, to := int(binary.LittleEndian.Uint32(offsets[4*i:])), end
			if i+1 < n {
				to = int(binary.LittleEndian.Uint32(offsets[4*i+4:]))
			}
			raw := data[from:to]
			overlap, diff := int(binary.LittleEndian.Uint16(raw)), int(binary.LittleEndian.Uint16(raw[2:]))
			key := append(append([]byte(nil), base[:overlap]...), raw[4:4+diff]...)
			if i == 0 {
				base = key
			}
			e, err := decode(key, raw[4+diff:])
			if err != nil {
				return err
			}
			if err := yield(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// decode reads a value with its marks.
func decode(key, raw []byte) (Entry, error) {
	if len(key) < 8 || len(raw) < 3 {
		return Entry{}, errors.New("an entry is too short")
	}
	if raw[0]&metaPointer != 0 {
		return Entry{}, fmt.Errorf("the value of key %x lies in a value log, and none is in use", y.ParseKey(key))
	}
	expires, n := binary.Uvarint(raw[2:])
	if n <= 0 {
		return Entry{}, errors.New("an entry has no time of expiry")
	}
	return Entry{
		Key: y.ParseKey(key), Version: y.ParseTs(key), Value: append([]byte{}, raw[2+n:]...),
		Deleted: raw[0]&metaDeleted != 0, UserMeta: raw[1], ExpiresAt: expires,
	}, nil
}
