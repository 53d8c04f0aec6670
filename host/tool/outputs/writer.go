package outputs

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Writer keeps one output as it comes. It is used from one goroutine.
type Writer struct {
	store    *Store
	session  string
	producer string
	from     int // bytes that must have come before a file is made

	early []byte // what came before that
	root  *os.Root
	file  *os.File
	id    string
	size  int64 // bytes in the file
	tail  ring
	asked int64 // size at which free space is looked at again
	err   error // why no more is kept
}

// Writer begins an output of a session. The producer gives it its name, such
// as file-grep or cargo-test. Nothing is stored while no more than from bytes
// came: shorter outputs need not be kept.
func (s *Store) Writer(session, producer string, from int) *Writer {
	return &Writer{store: s, session: session, producer: producer, from: from, tail: ring{size: int(s.sizes.tail)}}
}

// Write implements io.Writer. After an error nothing more is kept and Finish
// returns the error; what produces the output need not stop.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.file == nil {
		w.early = append(w.early, p...)
		if len(w.early) <= w.from {
			return len(p), nil
		}
		if w.err = w.begin(); w.err == nil {
			w.err = w.put(w.early)
		}
		w.early = nil
	} else {
		w.err = w.put(p)
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Keep has the output stored however short it is.
func (w *Writer) Keep() {
	if w.file != nil || w.err != nil {
		return
	}
	if w.err = w.begin(); w.err == nil {
		w.err = w.put(w.early)
	}
	w.early = nil
}

// begin makes the file.
func (w *Writer) begin() error {
	root, err := w.store.session(w.session, true)
	if err != nil {
		return err
	}
	file, id, err := w.store.allocate(root, w.session, w.producer)
	if err != nil {
		root.Close()
		return err
	}
	w.root, w.file, w.id = root, file, id
	return nil
}

// put writes to the file until it is full, and to the tail from then on.
func (w *Writer) put(p []byte) error {
	n := min(int64(len(p)), w.store.sizes.head-w.size)
	if n > 0 {
		if err := w.space(n); err != nil {
			return err
		}
		if _, err := w.file.Write(p[:n]); err != nil {
			return fmt.Errorf("keep output %s of session %s: %w", w.id, w.session, err)
		}
		w.size += n
	}
	if n < int64(len(p)) {
		w.tail.add(p[n:])
	}
	return nil
}

// space refuses to fill the disk up.
func (w *Writer) space(n int64) error {
	const step = 4 << 20
	if w.size+n < w.asked {
		return nil
	}
	w.asked = w.size + n + step
	var disk unix.Statfs_t
	if err := unix.Fstatfs(int(w.file.Fd()), &disk); err != nil {
		return fmt.Errorf("ask for the free space for output %s: %w", w.id, err)
	}
	free := disk.Bavail * uint64(disk.Bsize)
	if free < w.store.sizes.reserve {
		return fmt.Errorf("keep output %s of session %s: the disk has only %d MiB left, of which %d MiB are reserved: make room in %s",
			w.id, w.session, free>>20, w.store.sizes.reserve>>20, w.store.dir)
	}
	return nil
}

// Finish makes the output durable and gives its id, or none when too little
// came. With an error there is an id if a part of the output could be kept.
// The writer must not be used afterwards.
func (w *Writer) Finish() (id string, err error) {
	if w.file == nil {
		return "", w.err
	}
	defer w.root.Close()
	if w.err == nil {
		w.err = w.end()
	}
	if err := w.file.Sync(); w.err == nil && err != nil {
		w.err = fmt.Errorf("make output %s of session %s durable: %w", w.id, w.session, err)
	}
	if err := w.file.Close(); w.err == nil && err != nil {
		w.err = fmt.Errorf("close output %s of session %s: %w", w.id, w.session, err)
	}
	if w.err == nil {
		w.err = syncDir(w.root, ".")
	}
	if w.size == 0 { // not even a part
		return "", errors.Join(w.err, w.root.Remove(w.id))
	}
	return w.id, w.err
}

// end writes what came last, and before it what is missing.
func (w *Writer) end() error {
	older, newer := w.tail.parts()
	parts := [][]byte{older, newer}
	if lost := w.tail.lost(); lost > 0 {
		const room = 100 // more than the mark takes, so that it fits with the rest
		cut := min(room, len(older))
		older = older[cut:]
		more := min(room-cut, len(newer))
		newer = newer[more:]
		mark := fmt.Sprintf("\n[… %d bytes were dropped here: %d MiB of one output are kept …]\n",
			lost+int64(cut+more), (w.store.sizes.head+w.store.sizes.tail)>>20)
		parts = [][]byte{[]byte(mark), older, newer}
	}
	for _, part := range parts {
		if _, err := w.file.Write(part); err != nil {
			return fmt.Errorf("keep output %s of session %s: %w", w.id, w.session, err)
		}
		w.size += int64(len(part))
	}
	return nil
}

// KeepAs stores a text of a session under the name of its producer.
func (s *Store) KeepAs(ctx context.Context, session, producer string, text []byte) (id string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	w := s.Writer(session, producer, -1)
	w.Write(text) //nolint:errcheck // Finish tells
	return w.Finish()
}

// Keep implements tool.Outputs, for texts whose producer is not known.
func (s *Store) Keep(ctx context.Context, session, text string) (id string, err error) {
	return s.KeepAs(ctx, session, "", []byte(text))
}
