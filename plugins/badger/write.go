package badger

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	db "github.com/dgraph-io/badger/v4"

	"github.com/boughdev/bough/host/store"
)

// writes is what is known of the batches that are under way.
type writes struct {
	mu      sync.Mutex
	version uint64            // last one given out
	keys    map[string]uint64 // version of each key that is being written
	deleted map[string]bool   // of those, the ones that are being deleted
	ids     map[[store.IDBytes]byte]*flight
	flights []*flight // in the order of their versions
	failed  error     // a write that did not succeed: nothing after it can be trusted

	visible   atomic.Uint64 // every batch up to this version is readable whole
	unmarked  int           // batches since the sentinel was written
	discarded uint64
}

// flight is one batch under way.
type flight struct {
	version uint64
	batch   *store.Batch
	marks   bool // it also wrote the sentinel row
	done    bool
	err     error
	landed  chan struct{} // closed when it and all before it are readable
}

func (w *writes) begin(version uint64) {
	w.version = version
	w.keys, w.deleted = map[string]uint64{}, map[string]bool{}
	w.ids = map[[store.IDBytes]byte]*flight{}
	w.flights, w.failed = nil, nil
	w.visible.Store(version)
	w.discarded = version
}

func (w *writes) readable() uint64 { return w.visible.Load() }

// headroom is what deletions and small batches may still use of the disk when
// others are refused, so that a full disk can be emptied.
const headroom = 16 << 20

// sentinelEvery is how many batches there are between two marks of the
// sentinel.
const sentinelEvery = 256

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, b store.Batch) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := store.CheckBatch(&b); err != nil {
		return 0, err
	}
	for _, op := range b.Ops {
		if store.ReservedForBackend(op.Key) {
			return 0, fmt.Errorf("key %x is kept for the backend: keys begin with 0x10 or more", op.Key)
		}
	}
	return s.commit(ctx, &b)
}

func (s *Store) commit(ctx context.Context, b *store.Batch) (uint64, error) {
	d, release, err := s.use()
	if err != nil {
		return 0, err
	}
	defer release()
	if err := s.room(b); err != nil {
		return 0, err
	}
	f, known, err := s.admit(d, b)
	if err != nil || f == nil {
		return known, err
	}
	// What was admitted will be written: to stop waiting would only mean not
	// to know.
	<-f.landed
	if f.err != nil {
		return 0, fmt.Errorf("%w: write a batch: %w", store.ErrUnavailable, f.err)
	}
	s.watches.tell(f)
	if f.marks {
		return f.version, s.writeSentinel(f.version, false)
	}
	return f.version, nil
}

// room refuses a batch that the disk has no room for.
func (s *Store) room(b *store.Batch) error {
	free, err := s.o.Free(s.dir)
	if err != nil {
		return fmt.Errorf("see how much room the disk has: %w", err)
	}
	grows := uint64(0)
	for _, op := range b.Ops {
		grows += uint64(len(op.Value))
	}
	floor := s.o.Floor
	if grows <= 4<<10 { // a deletion, a head move
		floor = min(floor, headroom)
	}
	if free < floor+2*grows {
		return fmt.Errorf("%w: %d MB free for %s: nothing was written; free some room and try again", store.ErrFull, free>>20, s.dir)
	}
	return nil
}

// admit checks a batch against what is stored and under way, gives it its
// version and hands it to Badger. A batch that was applied before gives its
// version instead of a flight.
func (s *Store) admit(d *db.DB, b *store.Batch) (*flight, uint64, error) {
	w := &s.writes
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return nil, 0, fmt.Errorf("%w: an earlier write failed: %w", store.ErrUnavailable, w.failed)
	}
	read := d.NewTransactionAt(w.readable(), false)
	defer read.Discard()
	identified := b.ID != [store.IDBytes]byte{}
	if identified {
		if f := w.ids[b.ID]; f != nil {
			return f, 0, nil // it is under way: wait for the same one
		}
		e, err := get(read, idKey(b.ID))
		if err != nil {
			return nil, 0, err
		}
		if len(e.Value) == 8 {
			return nil, binary.BigEndian.Uint64(e.Value), nil
		}
	}
	if err := s.hold(read, b); err != nil {
		return nil, 0, err
	}
	f := &flight{version: w.version + 1, batch: b, landed: make(chan struct{})}
	w.unmarked++
	if w.unmarked >= sentinelEvery {
		w.unmarked, f.marks = 0, true
	}
	txn := d.NewTransactionAt(w.readable(), true)
	if err := fillTxn(txn, f, identified); err != nil {
		txn.Discard()
		return nil, 0, err
	}
	w.version++
	w.flights = append(w.flights, f)
	for _, op := range b.Ops {
		w.keys[string(op.Key)] = f.version
		w.deleted[string(op.Key)] = op.Delete
	}
	if identified {
		w.ids[b.ID] = f
	}
	if err := txn.CommitAt(f.version, func(err error) { s.land(d, f, err) }); err != nil {
		go s.land(d, f, err)
	}
	return f, 0, nil
}

// hold checks conditions and fences. The lock is held.
func (s *Store) hold(read *db.Txn, b *store.Batch) error {
	for _, c := range b.Conditions {
		have, writing := s.writes.keys[string(c.Key)]
		if writing && s.writes.deleted[string(c.Key)] {
			have = 0
		}
		if !writing {
			e, err := get(read, c.Key)
			if err != nil {
				return err
			}
			have = e.Version
		}
		if have != c.Version {
			return &store.ConflictError{Key: bytes.Clone(c.Key), Version: have}
		}
	}
	for _, fence := range b.Fences {
		if !s.leases.held(fence) {
			return fmt.Errorf("%w: %s, token %d", store.ErrFenced, fence.Lease, fence.Token)
		}
	}
	return nil
}

func idKey(id [store.IDBytes]byte) []byte { return append([]byte{rowID}, id[:]...) }

func fillTxn(txn *db.Txn, f *flight, identified bool) error {
	var err error
	for _, op := range f.batch.Ops {
		if op.Delete {
			err = errors.Join(err, txn.Delete(op.Key))
		} else {
			err = errors.Join(err, txn.Set(op.Key, op.Value))
		}
	}
	if identified || len(f.batch.Ops) == 0 { // a batch of nothing still has a version
		value := binary.BigEndian.AppendUint64(nil, f.version)
		err = errors.Join(err, txn.SetEntry(db.NewEntry(idKey(f.batch.ID), value).WithTTL(idMemory)))
	}
	if f.marks {
		err = errors.Join(err, txn.Set([]byte{rowSentinel}, binary.BigEndian.AppendUint64(nil, f.version)))
	}
	if err != nil {
		return fmt.Errorf("make a transaction of %d operations: %w", len(f.batch.Ops), err)
	}
	return nil
}

// land notes that a batch was written, or was not. Batches become readable in
// the order of their versions.
func (s *Store) land(d *db.DB, f *flight, err error) {
	w := &s.writes
	w.mu.Lock()
	defer w.mu.Unlock()
	f.done, f.err = true, err
	if err != nil && w.failed == nil {
		w.failed = err
	}
	for len(w.flights) > 0 && w.flights[0].done {
		g := w.flights[0]
		w.flights = w.flights[1:]
		if g.err == nil {
			g.err = w.failed
		}
		w.visible.Store(g.version)
		for _, op := range g.batch.Ops {
			if w.keys[string(op.Key)] == g.version {
				delete(w.keys, string(op.Key))
				delete(w.deleted, string(op.Key))
			}
		}
		delete(w.ids, g.batch.ID)
		close(g.landed)
	}
	// Older versions may go, but for those that a reader that began just now
	// still looks at.
	if v := w.visible.Load(); v > w.discarded+1000 {
		d.SetDiscardTs(w.discarded)
		w.discarded = v
	}
}
