package badger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	db "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/ristretto/v2/z"

	"github.com/boughdev/bough/host/store"
)

// compact gives deleted bytes back: it writes all that is alive into a new
// store and puts that in the place of the old one. Merges give back little, as
// they read only tables that overlap, and keep what was written meanwhile.
//
// What is alive at one moment is copied while others read and write. Then they
// wait, and what came since is copied.
func (s *Store) compact(ctx context.Context, progress func(string)) (store.Report, error) {
	var r store.Report
	before, err := usedBytes(s.root)
	if err != nil {
		return r, err
	}
	progress("look for pieces of values that were replaced")
	if err := s.sweepChunks(ctx); err != nil {
		return r, err
	}
	progress("write what is alive into new tables")
	c, err := s.beginCopy(ctx)
	if err != nil {
		return r, fmt.Errorf("compact: %w", err)
	}
	progress("exchange the tables")
	if err := s.exchangeCopy(ctx, c); err != nil {
		return r, fmt.Errorf("compact: %w", err)
	}
	after, err := usedBytes(s.root)
	r.Figures = []store.Figure{{Name: "disk.bytes", Value: after}, {Name: "reclaimed.bytes", Value: max(0, before-after)}}
	r.Actions = []string{"wrote what is alive into new tables"}
	return r, err
}

// liveCopy is a new store with all that was alive at one version.
type liveCopy struct {
	d       *db.DB
	version uint64
}

func (s *Store) beginCopy(ctx context.Context) (*liveCopy, error) {
	d, release, err := s.use()
	if err != nil {
		return nil, err
	}
	defer release()
	if err := s.trust.all(); err != nil {
		return nil, err
	}
	r := s.beginRead(d)
	defer r.end()
	if err := s.copyRoom(ctx, r); err != nil {
		return nil, err
	}
	if err := s.emptyFresh(); err != nil {
		return nil, err
	}
	fresh, err := db.OpenManaged(settings(s.path(freshName), s.o.Logger))
	if err != nil {
		return nil, fmt.Errorf("make a new store: %w", err)
	}
	err = copyAlive(ctx, r.txn, fresh)
	if err == nil {
		it := r.txn.NewIterator(db.IteratorOptions{})
		err = s.sameAs(it, fresh, r.version)
		it.Close()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("copy what is alive: %w", err), fresh.Close(), os.RemoveAll(s.path(freshName)))
	}
	return &liveCopy{fresh, r.version}, nil
}

// emptyFresh makes the folder of a store that is to take the place of db.
func (s *Store) emptyFresh() error {
	if err := os.RemoveAll(s.path(freshName)); err != nil {
		return fmt.Errorf("make room for the new store: %w", err)
	}
	if err := os.MkdirAll(s.path(freshName), 0o700); err != nil {
		return fmt.Errorf("make room for the new store: %w", err)
	}
	return nil
}

// copyRoom refuses when the disk has no room for a second copy of what is
// alive.
func (s *Store) copyRoom(ctx context.Context, r *read) error {
	alive := uint64(0)
	it := r.txn.NewIterator(db.IteratorOptions{})
	defer it.Close()
	for it.Rewind(); it.Valid() && ctx.Err() == nil; it.Next() {
		alive += uint64(it.Item().EstimatedSize())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.roomFor(alive+alive/10, "to write what is alive once more")
}

// roomFor refuses when the disk has not so many bytes free, and some.
func (s *Store) roomFor(size uint64, what string) error {
	free, err := s.o.Free(s.root)
	if err != nil {
		return fmt.Errorf("see how much room the disk has: %w", err)
	}
	if free < size+headroom {
		return fmt.Errorf("%w: %d MB free for %s, and %s needs %d MB: free some room and try again",
			store.ErrFull, free>>20, s.root, what, (size+headroom)>>20)
	}
	return nil
}

// copyBytes is how much is handed to Badger's writer at once.
const copyBytes = 1 << 20

// copyAlive writes what a transaction sees into the tables of an empty store,
// with the versions it has.
func copyAlive(ctx context.Context, txn *db.Txn, fresh *db.DB) (err error) {
	w := fresh.NewStreamWriter()
	defer func() {
		if err != nil {
			w.Cancel()
		}
	}()
	if err := w.Prepare(); err != nil {
		return err
	}
	buf := z.NewBuffer(copyBytes+copyBytes/4, "compact")
	defer func() { err = errors.Join(err, buf.Release()) }()
	it := txn.NewIterator(db.IteratorOptions{})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		item := it.Item()
		kv := &pb.KV{Key: item.Key(), Version: item.Version(), ExpiresAt: item.ExpiresAt(), UserMeta: []byte{item.UserMeta()}}
		if err := item.Value(func(v []byte) error { kv.Value = v; db.KVToBuffer(kv, buf); return nil }); err != nil {
			return err
		}
		if buf.LenNoPadding() < copyBytes {
			continue
		}
		if err := w.Write(buf); err != nil {
			return err
		}
		buf.Reset()
	}
	if err := w.Write(buf); err != nil {
		return err
	}
	return w.Flush()
}

// exchangeCopy puts a copy in the place of the store it was made of.
func (s *Store) exchangeCopy(ctx context.Context, c *liveCopy) error {
	release, err := s.gate.hold(ctx)
	if err != nil {
		return errors.Join(err, c.d.Close(), os.RemoveAll(s.path(freshName)))
	}
	defer release()
	err = s.copySince(c)
	if err = errors.Join(err, c.d.Close()); err != nil {
		return errors.Join(fmt.Errorf("copy what came meanwhile: %w", err), os.RemoveAll(s.path(freshName)))
	}
	kept := ""
	err = s.swap(ctx, func() (err error) {
		kept, err = s.exchange(whyCompact)
		return err
	})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(kept); err != nil {
		return fmt.Errorf("remove the old tables: %w", err)
	}
	return nil
}

// whyCompact is in the name of a former store that is of no use any more.
const whyCompact = "compact"

// copySince copies what was written and deleted since the copy was made. The
// gate is held: nothing is under way.
func (s *Store) copySince(c *liveCopy) error {
	if s.refusal != nil {
		return s.refusal
	}
	w := &s.writes
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return fmt.Errorf("%w: an earlier write failed: %w", store.ErrUnavailable, w.failed)
	}
	txn := s.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	out := c.d.NewManagedWriteBatch()
	defer out.Cancel()
	it := txn.NewIterator(db.IteratorOptions{AllVersions: true, SinceTs: c.version})
	defer it.Close()
	var last []byte
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		if last != nil && string(last) == string(item.Key()) {
			continue // an older version
		}
		last = item.KeyCopy(last)
		if err := copyItem(out, item); err != nil {
			return err
		}
	}
	// As high as the last mark of the old store, which the sentinel knows.
	if err := out.SetEntryAt(db.NewEntry([]byte{rowMark}, nil), w.version+1); err != nil {
		return err
	}
	return out.Flush()
}

func copyItem(out *db.WriteBatch, item *db.Item) error {
	if item.IsDeletedOrExpired() {
		return out.DeleteAt(item.KeyCopy(nil), item.Version())
	}
	value, err := item.ValueCopy(nil)
	if err != nil {
		return err
	}
	e := db.NewEntry(item.KeyCopy(nil), value).WithMeta(item.UserMeta())
	e.ExpiresAt = item.ExpiresAt()
	return out.SetEntryAt(e, item.Version())
}

// removeFormer removes what a compaction that was cut off after its exchange
// left.
func (s *Store) removeFormer() error {
	former, err := filepath.Glob(s.path(dbName + ".before-" + whyCompact + "-*"))
	for _, dir := range former {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return fmt.Errorf("remove the tables of before a compaction: %w", err)
	}
	return nil
}
