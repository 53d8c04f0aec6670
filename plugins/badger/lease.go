package badger

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/boughdev/bough/host/store"
)

// leases are held in memory: they end with this process, and with the
// connection of their holder, which calls Release.
type leases struct {
	mu     sync.Mutex
	byName map[string]*lease
}

type lease struct {
	s      *Store
	name   string
	token  uint64
	holder store.Holder
	lost   chan struct{}
}

// Acquire implements store.Store. The token is durable before the lease is
// held, so that it grows across restarts too.
func (s *Store) Acquire(ctx context.Context, name string, h store.Holder) (store.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if name == "" || len(name) >= store.MaxKeyBytes {
		return nil, &store.LimitError{Limit: "bytes of a lease's name", Got: uint64(len(name)), Max: store.MaxKeyBytes - 1}
	}
	l := &lease{s: s, name: name, holder: h, lost: make(chan struct{})}
	if err := s.leases.reserve(l); err != nil {
		return nil, err
	}
	token, err := s.nextToken(ctx, name)
	if err != nil {
		s.leases.drop(l)
		return nil, fmt.Errorf("take the lease %s: %w", name, err)
	}
	s.leases.mu.Lock()
	l.token = token
	s.leases.mu.Unlock()
	return l, nil
}

func (s *Store) nextToken(ctx context.Context, name string) (uint64, error) {
	key := append([]byte{rowToken}, name...)
	d, release, err := s.use()
	if err != nil {
		return 0, err
	}
	r := s.beginRead(d)
	e, err := s.get(r.txn, key)
	r.end()
	release()
	if err != nil {
		return 0, err
	}
	token := uint64(1)
	if v := e.Value; len(v) == 8 {
		token = binary.BigEndian.Uint64(v) + 1
	}
	var b store.Batch
	b.Put(key, binary.BigEndian.AppendUint64(nil, token))
	_, err = s.commit(ctx, &b)
	return token, err
}

func (ls *leases) reserve(l *lease) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if have := ls.byName[l.name]; have != nil {
		return &store.HeldError{Name: l.name, Holder: have.holder}
	}
	if ls.byName == nil {
		ls.byName = map[string]*lease{}
	}
	ls.byName[l.name] = l
	return nil
}

func (ls *leases) drop(l *lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.byName[l.name] == l {
		delete(ls.byName, l.name)
	}
}

func (ls *leases) held(f store.Fence) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.byName[f.Lease]
	return l != nil && l.token == f.Token && f.Token != 0
}

func (ls *leases) cutAll() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for name, l := range ls.byName {
		delete(ls.byName, name)
		close(l.lost)
	}
}

func (l *lease) Name() string          { return l.name }
func (l *lease) Lost() <-chan struct{} { return l.lost }

func (l *lease) Token() uint64 {
	l.s.leases.mu.Lock()
	defer l.s.leases.mu.Unlock()
	return l.token
}

// Release gives the lease back.
func (l *lease) Release(context.Context) error {
	l.s.leases.drop(l)
	return nil
}
