// Package memstore is the storage contract in memory: small, obvious and
// complete. Backends are checked against it, and tests that need no disk and
// sessions that are not to be kept run on it. Nothing survives the process.
package memstore

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
	"sort"
	"sync"

	"github.com/boughdev/bough/host/store"
)

// Store keeps everything in a map. The zero value is not ready: use New.
type Store struct {
	mu       sync.Mutex
	entries  map[string]store.Entry
	keys     []string // sorted
	version  uint64
	applied  map[[store.IDBytes]byte]uint64
	leases   map[string]*lease
	tokens   map[string]uint64
	watchers map[*watcher]struct{}
}

// New is an empty store.
func New() *Store {
	return &Store{
		entries:  map[string]store.Entry{},
		applied:  map[[store.IDBytes]byte]uint64{},
		leases:   map[string]*lease{},
		tokens:   map[string]uint64{},
		watchers: map[*watcher]struct{}{},
	}
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, keys ...[]byte) ([]store.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]store.Entry, len(keys))
	for i, k := range keys {
		out[i] = store.Entry{Key: bytes.Clone(k)}
		if e, ok := s.entries[string(k)]; ok {
			out[i] = store.Entry{Key: bytes.Clone(k), Value: bytes.Clone(e.Value), Version: e.Version}
		}
	}
	return out, nil
}

// Scan implements store.Store; it works on a copy of the range.
func (s *Store) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for _, e := range s.snapshot(r) {
			if err := ctx.Err(); err != nil {
				yield(store.Entry{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (s *Store) snapshot(r store.Range) []store.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := sort.SearchStrings(s.keys, string(r.Start))
	to := len(s.keys)
	if len(r.End) > 0 {
		to = max(from, sort.SearchStrings(s.keys, string(r.End)))
	}
	keys := slices.Clone(s.keys[from:to])
	if r.Reverse {
		slices.Reverse(keys)
	}
	if r.Limit > 0 && len(keys) > r.Limit {
		keys = keys[:r.Limit]
	}
	out := make([]store.Entry, len(keys))
	for i, k := range keys {
		e := s.entries[k]
		out[i] = store.Entry{Key: []byte(k), Version: e.Version}
		if !r.KeysOnly {
			out[i].Value = bytes.Clone(e.Value)
		}
	}
	return out
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, b store.Batch) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := store.CheckBatch(&b); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	identified := b.ID != [store.IDBytes]byte{}
	if v, ok := s.applied[b.ID]; identified && ok {
		return v, nil
	}
	for _, c := range b.Conditions {
		if have := s.entries[string(c.Key)].Version; have != c.Version {
			return 0, &store.ConflictError{Key: bytes.Clone(c.Key), Version: have}
		}
	}
	for _, f := range b.Fences {
		if l := s.leases[f.Lease]; l == nil || l.token != f.Token {
			return 0, fmt.Errorf("%w: %s, token %d", store.ErrFenced, f.Lease, f.Token)
		}
	}
	s.version++
	changed := map[string]bool{}
	for _, op := range b.Ops {
		s.apply(op)
		changed[string(op.Key)] = true
	}
	if identified {
		s.applied[b.ID] = s.version
	}
	s.tell(changed)
	return s.version, nil
}

func (s *Store) apply(op store.Op) {
	k := string(op.Key)
	at, present := slices.BinarySearch(s.keys, k)
	switch {
	case op.Delete && present:
		delete(s.entries, k)
		s.keys = slices.Delete(s.keys, at, at+1)
	case !op.Delete:
		if !present {
			s.keys = slices.Insert(s.keys, at, k)
		}
		s.entries[k] = store.Entry{Value: bytes.Clone(op.Value), Version: s.version}
	}
}

// Info implements store.Store.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	return store.Info{Backend: "memory", Version: "1", Location: "memory of this process", PID: os.Getpid()}, ctx.Err()
}
