package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/wire"
)

// Storage is a store.Store and store.Admin in a storage process. A process that
// is lost is found or started again: calls that were not answered are sent
// again, leases are taken again, and watchers are told to read again. A process
// that merely does not answer (SIGSTOP) is waited for until the call's context
// ends.
type Storage struct {
	connect  func(ctx context.Context) (*link, error)
	log      string        // where to read more
	retryFor time.Duration // see StorageOptions.RetryTimeout
	logger   *slog.Logger
	stop     func(context.Context) error // ends a process of our own; may be nil

	life context.Context // ends with Close
	end  context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	now    *link
	next   *linking // in progress; nil: none
	leases map[string]*lease
}

// linking is a connection in the making, which any number of calls wait for.
type linking struct {
	done chan struct{}
	link *link
	err  error
}

var (
	_ store.Store = (*Storage)(nil)
	_ store.Admin = (*Storage)(nil)
)

// NewStorage is the store of a plugin that this host starts for itself, with the
// first use: one that keeps its data elsewhere, so that every host may have a
// process of its own.
func NewStorage(c Command) *Storage {
	own := newSupervisor(c)
	s := newStorage(own.link, defaultRetryTimeout, "the log of this program", own.command.Logger)
	s.stop = own.Stop
	return s
}

// link is the connection to the process of a storage plugin.
func (s *supervisor) link(ctx context.Context) (*link, error) {
	p, err := s.use(ctx)
	if err != nil {
		return nil, err
	}
	return &link{calls: storagepb.NewStorageClient(p.conn), dead: p.child.exited}, nil
}

func newStorage(connect func(context.Context) (*link, error), retryFor time.Duration, log string, logger *slog.Logger) *Storage {
	s := &Storage{connect: connect, log: log, retryFor: retryFor, logger: logger, leases: map[string]*lease{}}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends the connection, and with it the leases that are still held. A
// shared process stays for others, and for a while after the last of them; one
// of our own is stopped.
func (s *Storage) Close() error {
	s.mu.Lock()
	s.end()
	if s.now != nil {
		s.now.close()
	}
	s.mu.Unlock()
	s.work.Wait()
	if s.stop != nil {
		return s.stop(context.Background())
	}
	return nil
}

// link returns a connection that works as far as is known, making one if need
// be.
func (s *Storage) link(ctx context.Context) (*link, error) {
	s.mu.Lock()
	if s.life.Err() != nil {
		s.mu.Unlock()
		return nil, store.ErrClosed
	}
	if s.now != nil && !s.now.broken() {
		defer s.mu.Unlock()
		return s.now, nil
	}
	next := s.next
	if next == nil {
		next = &linking{done: make(chan struct{})}
		s.next = next
		s.work.Go(func() { s.makeLink(next) })
	}
	s.mu.Unlock()
	select {
	case <-next.done:
		return next.link, next.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Storage) makeLink(next *linking) {
	defer close(next.done)
	l, err := s.connect(s.life)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = nil
	switch {
	case s.life.Err() != nil:
		if l != nil {
			l.close()
		}
		next.err = store.ErrClosed
	case err != nil:
		next.err = fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	default:
		if s.now != nil {
			s.now.close()
			s.logger.Info("attached to another storage process", "log", s.log)
		}
		s.now, next.link = l, l
	}
}

// outcome is what the error of a call over a link means.
func (s *Storage) outcome(ctx context.Context, l *link, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case s.life.Err() != nil:
		return store.ErrClosed
	}
	known := wire.StoreError(err)
	if errors.Is(known, context.Canceled) || l.broken() && !told(known) {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return known
}

// told tells whether an error is the answer of a backend, which counts even if
// the connection broke after it.
func told(err error) bool {
	for _, answer := range []error{
		store.ErrConflict, store.ErrFenced, store.ErrHeld, store.ErrFull, store.ErrTooLarge, store.ErrDamaged,
	} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}

const (
	// retryTries ends the trying of a call that kills every process which
	// takes it.
	retryTries = 8
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// retries bounds how often, and for how long after its first failure, a call is
// sent again.
type retries struct {
	tries int
	since time.Time
	pause time.Duration
}

// again waits before the next try. It returns nil, or the error to give up with.
func (r *retries) again(ctx context.Context, s *Storage, err error) error {
	if r.tries == 0 {
		r.since, r.pause = time.Now(), firstPause
	}
	r.tries++
	if r.tries >= retryTries || time.Since(r.since)+r.pause > s.retryFor {
		return fmt.Errorf("%w; given up after %d tries in %s; the log of the storage process is %s",
			err, r.tries, time.Since(r.since).Round(time.Millisecond), s.log)
	}
	if interrupted := pause(ctx, r.pause); interrupted != nil {
		return interrupted
	}
	r.pause = min(2*r.pause, lastPause)
	return nil
}

// do runs one call, again and again while the process is lost on the way.
func (s *Storage) do(ctx context.Context, call func(l *link) error) error {
	var r retries
	for {
		l, err := s.link(ctx)
		if err != nil {
			return err
		}
		err = s.outcome(ctx, l, call(l))
		if !errors.Is(err, store.ErrUnavailable) {
			return err
		}
		if err := r.again(ctx, s, err); err != nil {
			return err
		}
	}
}
