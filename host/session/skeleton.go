package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// A skeleton row holds what is known of consecutive items of one segment
// without their payloads. Each commit writes one row; a full block of blockSize
// entries replaces the rows it was made of. So a path of 100,000 items is a
// hundred rows and at most blockSize small ones.
//
// A row is: format byte, count, then of its first entry the parent, depth,
// bytes on the path and time; then per entry a kind byte, a flag byte, its
// size, and the time since the entry before. An entry whose parent is not the
// item before it carries parent, depth and path bytes as well; the row's flag
// says whether there is one, so that a linear row can be jumped over.

// blockSize is how many entries a full row holds.
const blockSize = 1024

const (
	rowFormat = 1

	rowLinear = 1 << 0

	flagPartial  = 1 << 0
	flagHidden   = 1 << 1
	flagBranches = 1 << 2 // the parent is given
)

// Entry is what the skeleton knows of an item.
type Entry struct {
	Ref       Ref
	Parent    Ref
	Kind      Kind
	Partial   bool
	Hidden    bool
	Size      int    // uncompressed bytes of the payload
	Depth     uint64 // items on the path to this one, itself included
	PathBytes uint64 // uncompressed bytes of those
	UnixMS    int64

	rowStart bool // it is the first entry of a stored row
}

// Time is when the item was made.
func (e Entry) Time() time.Time { return time.UnixMilli(e.UnixMS) }

// encodeRow writes consecutive entries of one segment; there is at least one.
func encodeRow(entries []Entry) []byte {
	first := entries[0]
	flags := byte(rowLinear)
	for i, e := range entries {
		if i > 0 && e.Parent != (Ref{e.Ref.Segment, e.Ref.Number - 1}) {
			flags = 0
		}
	}
	b := append(make([]byte, 0, 32+6*len(entries)), rowFormat, flags)
	b = binary.AppendUvarint(b, uint64(len(entries)))
	b = appendParent(b, first)
	b = binary.AppendVarint(b, first.UnixMS)
	before := first
	for i, e := range entries {
		branches := i > 0 && e.Parent != (Ref{e.Ref.Segment, e.Ref.Number - 1})
		b = append(b, byte(e.Kind), entryFlags(e, branches))
		b = binary.AppendUvarint(b, uint64(e.Size))
		b = binary.AppendVarint(b, e.UnixMS-before.UnixMS)
		if branches {
			b = appendParent(b, e)
		}
		before = e
	}
	return b
}

func entryFlags(e Entry, branches bool) byte {
	var f byte
	if e.Partial {
		f |= flagPartial
	}
	if e.Hidden {
		f |= flagHidden
	}
	if branches {
		f |= flagBranches
	}
	return f
}

func appendParent(b []byte, e Entry) []byte {
	b = binary.BigEndian.AppendUint64(b, e.Parent.Segment)
	b = binary.AppendUvarint(b, e.Parent.Number)
	b = binary.AppendUvarint(b, e.Depth)
	return binary.AppendUvarint(b, e.PathBytes)
}

var errRow = errors.New("a skeleton row is damaged")

// rowHead is what a row says before its entries.
type rowHead struct {
	linear bool
	count  int
	first  Entry // only Ref, Parent, Depth, PathBytes and UnixMS
}

// rowReader reads varints and remembers that one was bad.
type rowReader struct {
	b   []byte
	bad bool
}

func (r *rowReader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *rowReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *rowReader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *rowReader) parent(e *Entry) {
	if len(r.b) < 8 {
		r.bad = true
		return
	}
	e.Parent.Segment = binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	e.Parent.Number = r.uvarint()
	e.Depth = r.uvarint()
	e.PathBytes = r.uvarint()
}

func (r *rowReader) head(segment, first uint64) (rowHead, error) {
	var h rowHead
	format, flags := r.byte(), r.byte()
	if !r.bad && format != rowFormat {
		return h, fmt.Errorf("%w: format %d is not known to this version of bough", errRow, format)
	}
	h.linear = flags&rowLinear != 0
	count := r.uvarint()
	h.first.Ref = Ref{segment, first}
	r.parent(&h.first)
	h.first.UnixMS = r.varint()
	if r.bad || count == 0 || count > blockSize*64 || count > uint64(len(r.b)) {
		return h, fmt.Errorf("%w: segment %x, item %d", errRow, segment, first)
	}
	h.count = int(count)
	return h, nil
}

// decodeRow reads what encodeRow wrote.
func decodeRow(segment, first uint64, row []byte) ([]Entry, error) {
	r := rowReader{b: row}
	h, err := r.head(segment, first)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, h.count)
	before := h.first
	for i := range entries {
		e := &entries[i]
		e.Ref = Ref{segment, first + uint64(i)}
		e.Kind = Kind(r.byte())
		flags := r.byte()
		e.Partial, e.Hidden = flags&flagPartial != 0, flags&flagHidden != 0
		e.Size = int(r.uvarint())
		e.UnixMS = before.UnixMS + r.varint()
		switch {
		case i == 0:
			e.Parent, e.Depth, e.PathBytes = h.first.Parent, h.first.Depth, h.first.PathBytes
		case flags&flagBranches != 0:
			r.parent(e)
		default:
			e.Parent = Ref{segment, e.Ref.Number - 1}
			e.Depth, e.PathBytes = before.Depth+1, before.PathBytes+uint64(e.Size)
		}
		before = *e
	}
	entries[0].rowStart = true
	if r.bad || len(r.b) != 0 {
		return nil, fmt.Errorf("%w: segment %x, item %d", errRow, segment, first)
	}
	return entries, nil
}
