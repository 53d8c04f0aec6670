// Package backup is the file format of a store's backup, the same for every
// backend: a store that was backed up from one can be restored into another.
//
// It is a header line, then key and value of every entry, each after its length
// as a varint, then an empty key, the number of entries as a varint, and the
// SHA-256 of all that was before. Versions are not kept: a restored store gives
// its own. A file that was cut off or changed does not pass for a whole one.
package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"

	"github.com/boughdev/bough/host/store"
)

const header = "bough backup 1\n"

// buffer is how much is gathered for one write or read of the file.
const buffer = 256 << 10

// Write writes the entries and returns how many they were. The first error of
// the sequence ends it, and leaves a file that Read refuses.
func Write(w io.Writer, entries iter.Seq2[store.Entry, error]) (uint64, error) {
	file := bufio.NewWriterSize(w, buffer)
	sum := sha256.New()
	out := io.MultiWriter(file, sum)
	if _, err := io.WriteString(out, header); err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	n := uint64(0)
	var head []byte
	for e, err := range entries {
		if err != nil {
			return n, fmt.Errorf("read for the backup: %w", err)
		}
		if len(e.Key) == 0 {
			return n, errors.New("write the backup: an entry has no key")
		}
		head = binary.AppendUvarint(head[:0], uint64(len(e.Key)))
		head = append(head, e.Key...)
		head = binary.AppendUvarint(head, uint64(len(e.Value)))
		if _, err := out.Write(head); err != nil {
			return n, fmt.Errorf("write the backup: %w", err)
		}
		if _, err := out.Write(e.Value); err != nil {
			return n, fmt.Errorf("write the backup: %w", err)
		}
		n++
	}
	if _, err := out.Write(binary.AppendUvarint([]byte{0}, n)); err != nil {
		return n, fmt.Errorf("write the backup: %w", err)
	}
	if _, err := file.Write(sum.Sum(nil)); err != nil {
		return n, fmt.Errorf("write the backup: %w", err)
	}
	if err := file.Flush(); err != nil {
		return n, fmt.Errorf("write the backup: %w", err)
	}
	return n, nil
}

// Read gives every entry to put and returns how many there were. Only when it
// returns no error was the backup whole; what put has done until then must be
// undone when it does. The slices are put's to keep.
func Read(r io.Reader, put func(key, value []byte) error) (uint64, error) {
	in := &reader{file: bufio.NewReaderSize(r, buffer), sum: sha256.New()}
	start := make([]byte, len(header))
	if err := in.full(start); err != nil || string(start) != header {
		return 0, errors.New("this is no backup of bough's storage")
	}
	for n := uint64(0); ; n++ {
		key, err := in.bytes(store.MaxKeyBytes)
		if err != nil {
			return n, err
		}
		if len(key) == 0 {
			return n, in.end(n)
		}
		value, err := in.bytes(store.MaxValueBytes)
		if err != nil {
			return n, err
		}
		if err := put(key, value); err != nil {
			return n, err
		}
	}
}

type reader struct {
	file *bufio.Reader
	sum  hash.Hash
	one  [1]byte
}

func (r *reader) full(p []byte) error {
	if _, err := io.ReadFull(r.file, p); err != nil {
		return cutOff(err)
	}
	r.sum.Write(p)
	return nil
}

// cutOff tells an end that came too early from a file that cannot be read.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the backup is cut off: its end is missing")
	}
	return fmt.Errorf("read the backup: %w", err)
}

// ReadByte is for binary.ReadUvarint.
func (r *reader) ReadByte() (byte, error) {
	err := r.full(r.one[:])
	return r.one[0], err
}

// piece is how much memory a length may claim before its bytes were seen.
const piece = 1 << 20

func (r *reader) bytes(most uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, fmt.Errorf("the backup is damaged: a length of %d, at most %d", n, most)
	}
	p := make([]byte, 0, min(n, piece))
	for uint64(len(p)) < n {
		at := len(p)
		p = append(p, make([]byte, min(n-uint64(at), piece))...)
		if err := r.full(p[at:]); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// end compares the backup with what it says of itself.
func (r *reader) end(n uint64) error {
	count, err := binary.ReadUvarint(r)
	if err != nil {
		return err
	}
	want := r.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r.file, got); err != nil {
		return cutOff(err)
	}
	if count != n || !bytes.Equal(got, want) {
		return errors.New("the backup is damaged: it does not match its own checksum")
	}
	if _, err := r.file.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.New("the backup is damaged: something follows its end")
	}
	return nil
}
