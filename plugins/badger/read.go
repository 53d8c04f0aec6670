package badger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	db "github.com/dgraph-io/badger/v4"

	"github.com/boughdev/bough/host/store"
)

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
	txn := d.NewTransactionAt(s.writes.readable(), false)
	defer txn.Discard()
	out := make([]store.Entry, len(keys))
	for i, k := range keys {
		if out[i], err = get(txn, k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func get(txn *db.Txn, key []byte) (store.Entry, error) {
	e := store.Entry{Key: bytes.Clone(key)}
	if len(key) == 0 {
		return e, nil // the store has no empty key
	}
	item, err := txn.Get(key)
	if errors.Is(err, db.ErrKeyNotFound) {
		return e, nil
	}
	if err == nil {
		e.Version = item.Version()
		e.Value, err = item.ValueCopy(nil)
	}
	if err != nil {
		return e, fmt.Errorf("read key %x: %w: run `bough storage check`", key, err)
	}
	if e.Value == nil {
		e.Value = []byte{}
	}
	return e, nil
}

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		d, release, err := s.use()
		if err != nil {
			yield(store.Entry{}, err)
			return
		}
		defer release()
		txn := d.NewTransactionAt(s.writes.readable(), false)
		defer txn.Discard()
		it := txn.NewIterator(db.IteratorOptions{
			Reverse: r.Reverse, PrefetchValues: !r.KeysOnly, PrefetchSize: 64,
		})
		defer it.Close()
		n := 0
		for seek(it, r); it.Valid(); it.Next() {
			if err := ctx.Err(); err != nil {
				yield(store.Entry{}, err)
				return
			}
			item := it.Item()
			if outside(item.Key(), r) {
				return
			}
			e := store.Entry{Key: item.KeyCopy(nil), Version: item.Version()}
			if !r.KeysOnly {
				if e.Value, err = item.ValueCopy(nil); err != nil {
					yield(store.Entry{}, fmt.Errorf("read key %x: %w: run `bough storage check`", e.Key, err))
					return
				}
				if e.Value == nil {
					e.Value = []byte{}
				}
			}
			n++
			if !yield(e, nil) || n == r.Limit {
				return
			}
		}
	}
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
