package badger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	db "github.com/dgraph-io/badger/v4"

	"github.com/boughdev/bough/host/store"
)

// readers are the versions that somebody reads at: merges keep what they see.
type readers struct {
	mu sync.Mutex
	at map[uint64]int
}

// read is one reader.
type read struct {
	s       *Store
	txn     *db.Txn
	version uint64
}

func (r *readers) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = map[uint64]int{}
}

func (s *Store) beginRead(d *db.DB) *read {
	s.readers.mu.Lock()
	defer s.readers.mu.Unlock()
	version := s.writes.readable()
	s.readers.at[version]++
	return &read{s, d.NewTransactionAt(version, false), version}
}

func (r *read) end() {
	r.txn.Discard()
	r.s.readers.mu.Lock()
	defer r.s.readers.mu.Unlock()
	if r.s.readers.at[r.version]--; r.s.readers.at[r.version] == 0 {
		delete(r.s.readers.at, r.version)
	}
}

// letGo tells Badger which versions nobody reads at: of two versions of a key
// that are at most this old, only the newer is of use.
func (s *Store) letGo(d *db.DB) {
	s.readers.mu.Lock()
	defer s.readers.mu.Unlock()
	oldest := s.writes.readable()
	for v := range s.readers.at {
		oldest = min(oldest, v)
	}
	d.SetDiscardTs(oldest)
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, keys ...[]byte) ([]store.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, release, err := s.use()
	if err != nil {
		return nil, err
	}
	defer release()
	r := s.beginRead(d)
	defer r.end()
	out := make([]store.Entry, len(keys))
	for i, k := range keys {
		out[i].Key = bytes.Clone(k)
		if len(k) == 0 || k[0] < firstKey {
			continue // the store has no such key
		}
		if out[i], err = s.get(r.txn, k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// get reads any row, also this package's own.
func (s *Store) get(txn *db.Txn, key []byte) (store.Entry, error) {
	e := store.Entry{Key: bytes.Clone(key)}
	if err := s.trust.keys(key); err != nil {
		return e, err
	}
	item, err := txn.Get(key)
	if errors.Is(err, db.ErrKeyNotFound) {
		return e, nil
	}
	if err == nil {
		e.Version = item.Version()
		e.Value, err = s.valueOf(txn, item)
	}
	if err != nil {
		return e, fmt.Errorf("read key %x: %w", key, err)
	}
	return e, nil
}

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, rg store.Range) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		d, release, err := s.useToScan()
		if err != nil {
			yield(store.Entry{}, err)
			return
		}
		defer release()
		r := s.beginRead(d)
		defer r.end()
		if bytes.Compare(rg.Start, []byte{firstKey}) < 0 {
			rg.Start = []byte{firstKey}
		}
		n := 0
		err = s.walk(ctx, r, rg, func(item *db.Item) error {
			e := store.Entry{Key: item.KeyCopy(nil), Version: item.Version()}
			if !rg.KeysOnly {
				v, err := s.valueOf(r.txn, item)
				if err != nil {
					return fmt.Errorf("read key %x: %w", e.Key, err)
				}
				e.Value = v
			}
			n++
			if !yield(e, nil) || n == rg.Limit {
				return errEnough
			}
			return nil
		})
		if err != nil {
			yield(store.Entry{}, err)
		}
	}
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// walk visits the items of a range, and ends with an error rather than at a
// block that cannot be read.
func (s *Store) walk(ctx context.Context, r *read, rg store.Range, visit func(*db.Item) error) error {
	it := r.txn.NewIterator(db.IteratorOptions{Reverse: rg.Reverse, PrefetchValues: false})
	defer it.Close()
	compared := comparer(s, rg)
	for seek(it, rg); it.Valid(); it.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		key := it.Item().Key()
		if outside(key, rg) {
			return compared.end()
		}
		if err := compared.at(key); err != nil {
			return err
		}
		if err := visit(it.Item()); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return compared.end()
}

// comparing has the blocks of a range compared a window ahead of a walk.
type comparing struct {
	t       *trust
	rg      store.Range
	begun   bool
	bound   []byte // where the next window begins
	allDone bool   // nothing is left to the end of the range
}

func comparer(s *Store, rg store.Range) *comparing {
	return &comparing{t: &s.trust, rg: rg}
}

// at makes sure that the walk may show a key, and saw all before it.
func (c *comparing) at(key []byte) error {
	for !c.allDone {
		if c.begun && (c.rg.Reverse && bytes.Compare(key, c.bound) > 0 || !c.rg.Reverse && bytes.Compare(key, c.bound) < 0) {
			return nil
		}
		if err := c.step(); err != nil {
			return err
		}
	}
	return nil
}

// end makes sure that the walk ended because the range did.
func (c *comparing) end() error {
	for !c.allDone {
		if c.begun && outside(c.bound, c.rg) {
			return nil
		}
		if err := c.step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparing) step() (err error) {
	from := c.bound
	switch {
	case c.rg.Reverse:
		if !c.begun && len(c.rg.End) > 0 {
			from = c.rg.End
		}
		c.bound, err = c.t.behind(from)
	default:
		if !c.begun {
			from = c.rg.Start
		}
		c.bound, err = c.t.ahead(from)
	}
	c.begun, c.allDone = true, c.bound == nil
	return err
}

// seek goes to the first key of the range in its direction.
func seek(it *db.Iterator, r store.Range) {
	switch {
	case !r.Reverse:
		it.Seek(r.Start)
	case len(r.End) == 0:
		it.Rewind()
	default:
		it.Seek(r.End)
		if it.Valid() && bytes.Equal(it.Item().Key(), r.End) { // the end is not in the range
			it.Next()
		}
	}
}

func outside(key []byte, r store.Range) bool {
	if r.Reverse {
		return bytes.Compare(key, r.Start) < 0
	}
	return len(r.End) > 0 && bytes.Compare(key, r.End) >= 0
}
