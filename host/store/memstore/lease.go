package memstore

import (
	"context"

	"github.com/boughdev/bough/host/store"
)

// lease is a held name.
type lease struct {
	s      *Store
	name   string
	token  uint64
	holder store.Holder
	lost   chan struct{}
}

// Acquire implements store.Store.
func (s *Store) Acquire(ctx context.Context, name string, h store.Holder) (store.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := store.CheckLease(name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[name]; l != nil {
		return nil, &store.HeldError{Name: name, Holder: l.holder}
	}
	s.tokens[name]++
	l := &lease{s: s, name: name, token: s.tokens[name], holder: h, lost: make(chan struct{})}
	s.leases[name] = l
	return l, nil
}

// Cut ends a lease as a lost connection would; tests use it.
func (s *Store) Cut(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[name]; l != nil {
		delete(s.leases, name)
		close(l.lost)
	}
}

func (l *lease) Name() string          { return l.name }
func (l *lease) Token() uint64         { return l.token }
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release gives the lease back.
func (l *lease) Release(context.Context) error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.s.leases[l.name] == l {
		delete(l.s.leases, l.name)
	}
	return nil
}
