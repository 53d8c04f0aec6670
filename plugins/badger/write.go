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
	failed  error     // a write or sync that did not succeed: nothing after it can be trusted

	visible atomic.Uint64 // every batch up to this version is readable whole
}

// flight is one batch under way.
type flight struct {
	version uint64
	batch   *store.Batch
	parts   int // transactions that Badger has not written yet
	err     error
	landed  chan struct{} // closed when it and all before it are readable
}

func (w *writes) begin(version uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version = version
	w.keys, w.deleted = map[string]uint64{}, map[string]bool{}
	w.ids = map[[store.IDBytes]byte]*flight{}
	w.flights, w.failed = nil, nil
	w.visible.Store(version)
}

func (w *writes) readable() uint64 { return w.visible.Load() }

// fail ends all writing, until the store is opened anew.
func (w *writes) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
}

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
	if f.err == nil && b.Durability == store.Sync {
		f.err = s.syncs.reach(s, f.version)
	}
	if f.err != nil {
		return 0, fmt.Errorf("%w: write a batch: %w", store.ErrUnavailable, f.err)
	}
	s.watches.tell(f)
	return f.version, nil
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
		e, err := s.get(read, idKey(b.ID))
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
	txns, err := s.transactions(d, f, identified)
	if err != nil {
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
	f.parts = len(txns)
	for _, txn := range txns {
		if err := txn.CommitAt(f.version, func(err error) { s.land(f, err) }); err != nil {
			go s.land(f, err)
		}
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
			e, err := s.version(read, c.Key)
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

// transactions makes Badger's transactions of a batch, that of its own rows
// last.
func (s *Store) transactions(d *db.DB, f *flight, identified bool) (txns []*db.Txn, err error) {
	defer func() {
		if err != nil {
			for _, t := range txns {
				t.Discard()
			}
		}
	}()
	ops := f.batch.Ops
	chosen := cut(ops)
	room := 0
	for _, c := range chunksOf(ops, chosen, f.version) {
		if room -= len(c.value) + rowCost; room < 0 {
			txns = append(txns, d.NewTransactionAt(f.version, true))
			room = txnBytes - len(c.value) - rowCost
		}
		if err := txns[len(txns)-1].Set(c.key, c.value); err != nil {
			return txns, fmt.Errorf("make a transaction of a large value: %w", err)
		}
	}
	own := d.NewTransactionAt(f.version, true)
	txns = append(txns, own)
	for i, op := range ops {
		switch {
		case op.Delete:
			err = own.Delete(op.Key)
		case chosen[i]:
			err = own.SetEntry(db.NewEntry(op.Key, chunkRow(len(op.Value), i)).WithMeta(metaChunked))
		default:
			err = own.Set(op.Key, op.Value)
		}
		if err != nil {
			return txns, fmt.Errorf("make a transaction of %d operations: %w", len(ops), err)
		}
	}
	if identified || len(ops) == 0 { // a batch of nothing still has a version
		value := binary.BigEndian.AppendUint64(nil, f.version)
		err = own.SetEntry(db.NewEntry(idKey(f.batch.ID), value).WithTTL(idMemory))
	}
	return txns, err
}

// version is the version of a key, without its value.
func (s *Store) version(txn *db.Txn, key []byte) (store.Entry, error) {
	e := store.Entry{Key: key}
	if err := s.trust.keys(key); err != nil {
		return e, err
	}
	item, err := txn.Get(key)
	if errors.Is(err, db.ErrKeyNotFound) {
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("read key %x: %w", key, err)
	}
	e.Version = item.Version()
	return e, nil
}

// land notes that a transaction was written, or was not. Batches become
// readable in the order of their versions.
func (s *Store) land(f *flight, err error) {
	w := &s.writes
	w.mu.Lock()
	defer w.mu.Unlock()
	f.parts--
	if err != nil && f.err == nil {
		f.err = err
	}
	if err != nil && w.failed == nil {
		w.failed = err
	}
	for len(w.flights) > 0 && w.flights[0].parts == 0 {
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
}

// lastMark writes a mark when nobody else writes any more.
func (s *Store) lastMark(d *db.DB) (uint64, error) {
	w := &s.writes
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return 0, w.failed
	}
	txn := d.NewTransactionAt(w.version+1, true)
	defer txn.Discard()
	if err := txn.Set([]byte{rowMark}, nil); err != nil {
		return 0, err
	}
	if err := txn.CommitAt(w.version+1, nil); err != nil {
		return 0, err
	}
	w.version++
	w.visible.Store(w.version)
	return w.version, nil
}
