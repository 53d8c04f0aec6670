package badger

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/boughdev/bough/host/store"
)

// A backup is a header, then key and value of every entry, each with its
// length, then an empty key, the number of entries and the SHA-256 of all that
// was before. It does not depend on Badger. A backup that is cut off or changed
// is refused before anything is replaced.
const backupHeader = "bough backup 1\n"

// Backup implements store.Admin.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	buf := bufio.NewWriterSize(w, 256<<10)
	sum := sha256.New()
	out := io.MultiWriter(buf, sum)
	if _, err := io.WriteString(out, backupHeader); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	entries := uint64(0)
	var head []byte
	for e, err := range s.Scan(ctx, store.Range{}) {
		if err != nil {
			return fmt.Errorf("read for the backup: %w", err)
		}
		head = binary.AppendUvarint(head[:0], uint64(len(e.Key)))
		head = append(head, e.Key...)
		head = binary.AppendUvarint(head, uint64(len(e.Value)))
		if _, err := out.Write(head); err != nil {
			return fmt.Errorf("write the backup: %w", err)
		}
		if _, err := out.Write(e.Value); err != nil {
			return fmt.Errorf("write the backup: %w", err)
		}
		entries++
	}
	if _, err := out.Write(binary.AppendUvarint([]byte{0}, entries)); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if _, err := buf.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

// Restore implements store.Admin. The backup is read into a folder beside the
// store and proved whole; only then the two are exchanged, and what was there
// is kept.
func (s *Store) Restore(ctx context.Context, r io.Reader) (uint64, error) {
	defer s.alone()()
	if _, release, err := s.use(); err == nil {
		release()
		for e, err := range s.Scan(ctx, store.Range{Start: []byte{firstKey + 1}, KeysOnly: true, Limit: 1}) {
			if err == nil {
				return 0, fmt.Errorf("the store in %s is not empty (it has key %x): restore into an empty state directory", s.root, e.Key)
			}
		}
	} else if !errors.Is(err, store.ErrDamaged) {
		return 0, err
	}
	fresh := s.path(restoreName)
	if err := os.RemoveAll(fresh); err != nil {
		return 0, fmt.Errorf("make room for the restored store: %w", err)
	}
	n, err := s.fill(ctx, fresh, r)
	if err != nil {
		return 0, errors.Join(fmt.Errorf("restore: %w; the store was left as it is", err), os.RemoveAll(fresh))
	}
	err = s.reopen(ctx, func() error {
		if err := os.Rename(filepath.Join(fresh, dbName), s.path(freshName)); err != nil {
			return fmt.Errorf("put the restored store in its place: %w", err)
		}
		_, err := s.exchange("restore")
		return errors.Join(err, os.RemoveAll(fresh))
	})
	if err != nil {
		return 0, fmt.Errorf("restore: %w", err)
	}
	return n, nil
}

// restoreName is the folder that a backup is read into.
const restoreName = "restore"

// fill makes a store in dir from a backup.
func (s *Store) fill(ctx context.Context, dir string, r io.Reader) (n uint64, err error) {
	fresh, err := Open(ctx, dir, s.o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, fresh.Close()) }()
	in := &backupReader{r: bufio.NewReaderSize(r, 256<<10), sum: sha256.New()}
	header := make([]byte, len(backupHeader))
	if _, err := in.full(header); err != nil || string(header) != backupHeader {
		return 0, errors.New("this is no backup of bough's storage")
	}
	var b store.Batch
	size := 0
	flush := func() error {
		_, err := fresh.commit(ctx, &b)
		b, size = store.Batch{}, 0
		return err
	}
	for {
		key, err := in.bytes(store.MaxKeyBytes)
		if err != nil {
			return 0, err
		}
		if len(key) == 0 {
			break
		}
		value, err := in.bytes(store.MaxValueBytes)
		if err != nil {
			return 0, err
		}
		b.Put(key, value)
		n++
		size += len(key) + len(value)
		if len(b.Ops) == 1024 || size > 8<<20 {
			if err := flush(); err != nil {
				return 0, err
			}
		}
	}
	if err := in.end(n); err != nil {
		return 0, err
	}
	if len(b.Ops) > 0 {
		return n, flush()
	}
	return n, nil
}

type backupReader struct {
	r   *bufio.Reader
	sum hash.Hash
}

func (b *backupReader) full(p []byte) (int, error) {
	n, err := io.ReadFull(b.r, p)
	if err != nil {
		return n, fmt.Errorf("the backup is cut off: %w", err)
	}
	b.sum.Write(p)
	return n, nil
}

// ReadByte is for binary.ReadUvarint.
func (b *backupReader) ReadByte() (byte, error) {
	var p [1]byte
	_, err := b.full(p[:])
	return p[0], err
}

func (b *backupReader) bytes(most uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(b)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, fmt.Errorf("the backup is damaged: a length of %d, at most %d", n, most)
	}
	p := make([]byte, n)
	_, err = b.full(p)
	return p, err
}

func (b *backupReader) end(n uint64) error {
	count, err := binary.ReadUvarint(b)
	if err != nil {
		return err
	}
	want := b.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(b.r, got); err != nil {
		return fmt.Errorf("the backup is cut off: %w", err)
	}
	if count != n || !bytes.Equal(got, want) {
		return errors.New("the backup is damaged: it does not match its own checksum")
	}
	return nil
}
