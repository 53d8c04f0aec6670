package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/wire"
)

// lease is held by a stream to the storage process. When the stream breaks with
// its connection, the lease is taken again over the next one.
type lease struct {
	s      *Storage
	name   string
	holder store.Holder
	life   context.Context // ends with Release
	end    context.CancelFunc
	lost   chan struct{}
	over   chan struct{} // closed when nothing works for the lease any more

	mu      sync.Mutex
	link    *link               // that it is held over; nil: over none at the moment
	token   uint64              // the last one
	ours    map[uint64]struct{} // every token that it had
	leaving bool                // Release was called
	unknown uint64              // tries to take it again whose outcome is not known
	changed chan struct{}       // closed, and made anew, when link changes
}

type holdStream = grpc.ServerStreamingClient[storagepb.HoldResponse]

// Acquire implements store.Store.
func (s *Storage) Acquire(ctx context.Context, name string, h store.Holder) (store.Lease, error) {
	le := &lease{
		s: s, name: name, holder: h, lost: make(chan struct{}), over: make(chan struct{}),
		ours: map[uint64]struct{}{}, changed: make(chan struct{}),
	}
	le.life, le.end = context.WithCancel(s.life)
	var stream holdStream
	tried := false
	err := s.do(ctx, func(l *link) (err error) {
		var token uint64
		stream, token, err = le.hold(ctx, l)
		if err == nil {
			le.held(l, token)
		} else if tried && le.holdsItself(err) {
			err = unreleased
		}
		tried = true
		return err
	})
	if err != nil {
		le.end()
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		le.end()
		return nil, store.ErrClosed
	}
	s.leases[name] = le
	s.work.Go(func() { le.keep(stream) })
	return le, nil
}

// unreleased means that the process has not noticed yet that an earlier stream
// of ours has ended.
var unreleased = status.Error(codes.Unavailable, "the lease of a lost connection is not free yet")

// holdsItself tells whether the lease is refused because of an earlier stream
// of its own.
func (le *lease) holdsItself(err error) bool {
	held := (*store.HeldError)(nil)
	if !errors.As(wire.StoreError(err), &held) {
		return false
	}
	le.s.mu.Lock()
	other := le.s.leases[le.name]
	le.s.mu.Unlock()
	h := held.Holder
	return (other == nil || other == le) && h.PID == le.holder.PID && h.Host == le.holder.Host &&
		h.Since.UnixMilli() == le.holder.Since.UnixMilli()
}

// hold opens a stream that holds the lease. It lives until the lease's end; ctx
// bounds only the opening.
func (le *lease) hold(ctx context.Context, l *link) (holdStream, uint64, error) {
	live, cancel := context.WithCancel(le.life)
	opened := context.AfterFunc(ctx, cancel)
	request := &storagepb.HoldRequest{Name: wire.Text(le.name), Holder: wire.HolderToProto(le.holder)}
	stream, err := l.calls.Hold(live, request)
	var answer *storagepb.HoldResponse
	if err == nil {
		answer, err = stream.Recv()
	}
	if !opened() && err == nil { // ctx ended meanwhile
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, 0, err
	}
	context.AfterFunc(stream.Context(), cancel)
	return stream, answer.GetToken(), nil
}

// held notes that the lease is held over a link.
func (le *lease) held(l *link, token uint64) {
	le.mu.Lock()
	defer le.mu.Unlock()
	le.link, le.token, le.unknown = l, token, 0
	le.ours[token] = struct{}{}
	le.signal()
}

// signal wakes those who wait for a change. The lock is held.
func (le *lease) signal() {
	close(le.changed)
	le.changed = make(chan struct{})
}

// keep waits for the end of the stream, and takes the lease again, until it is
// released or lost.
func (le *lease) keep(stream holdStream) {
	defer close(le.over)
	for {
		_, err := stream.Recv() // a well-behaved process sends nothing more
		le.mu.Lock()
		l, leaving := le.link, le.leaving
		le.link = nil
		le.signal()
		le.mu.Unlock()
		if leaving {
			return
		}
		err = le.s.outcome(le.life, l, err)
		if err == nil || !errors.Is(err, store.ErrUnavailable) {
			le.lose(fmt.Errorf("the storage process ended it: %w", err))
			return
		}
		if stream, err = le.retake(); err != nil {
			le.lose(err)
			return
		}
	}
}

// retake takes the lease again. That nobody had it in between is told by the
// token, which counts acquisitions.
func (le *lease) retake() (stream holdStream, err error) {
	err = le.s.do(le.life, func(l *link) (err error) {
		var token uint64
		stream, token, err = le.hold(le.life, l)
		if err != nil {
			if le.holdsItself(err) {
				return unreleased
			}
			if !told(wire.StoreError(err)) {
				le.mu.Lock()
				le.unknown++
				le.mu.Unlock()
			}
			return err
		}
		le.mu.Lock()
		most := le.token + 1 + le.unknown
		continuous := token > le.token && token <= most
		le.mu.Unlock()
		if !continuous {
			return fmt.Errorf("%w: another holder had it meanwhile", store.ErrFenced)
		}
		le.held(l, token)
		return nil
	})
	return stream, err
}

// lose ends a lease that cannot be had back, unless its holder has just given
// it up.
func (le *lease) lose(cause error) {
	le.forget()
	le.mu.Lock()
	leaving := le.leaving
	le.mu.Unlock()
	if leaving {
		return
	}
	if le.s.life.Err() == nil {
		le.s.logger.Error("a lease was lost", "lease", le.name, "cause", cause)
	}
	le.end()
	close(le.lost)
}

func (le *lease) forget() {
	le.s.mu.Lock()
	defer le.s.mu.Unlock()
	if le.s.leases[le.name] == le {
		delete(le.s.leases, le.name)
	}
}

// fence is the token that a fence has over a link. A lease that was taken again
// has a new one; it is waited for. The fence of an unknown or a lost lease stays
// as it is: the process refuses it, unless it has the batch already.
func (s *Storage) fence(ctx context.Context, l *link, f store.Fence) (uint64, error) {
	s.mu.Lock()
	le := s.leases[f.Lease]
	s.mu.Unlock()
	if le == nil {
		return f.Token, nil
	}
	for {
		le.mu.Lock()
		_, ours := le.ours[f.Token]
		held, token, changed := le.link == l, le.token, le.changed
		le.mu.Unlock()
		switch {
		case !ours:
			return f.Token, nil
		case held:
			return token, nil
		}
		select {
		case <-changed:
		case <-le.lost:
			return f.Token, nil
		case <-le.life.Done():
			return f.Token, nil // it was released
		case <-l.dead:
			return 0, unreleased
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Name implements store.Lease.
func (le *lease) Name() string { return le.name }

// Token implements store.Lease.
func (le *lease) Token() uint64 {
	le.mu.Lock()
	defer le.mu.Unlock()
	return le.token
}

// Lost implements store.Lease.
func (le *lease) Lost() <-chan struct{} { return le.lost }

// Release implements store.Lease. It returns once another can take the lease.
func (le *lease) Release(ctx context.Context) error {
	le.forget()
	le.mu.Lock()
	le.leaving = true
	l, token := le.link, le.token
	le.mu.Unlock()
	var err error
	if l != nil {
		_, err = l.calls.Release(ctx, &storagepb.ReleaseRequest{Name: wire.Text(le.name), Token: token})
		err = le.s.outcome(ctx, l, err)
	}
	le.end()
	<-le.over
	// A lost connection has released it too, and so does the end of the
	// stream where the process does not know this call.
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClosed) || status.Code(err) == codes.Unimplemented {
		return nil
	}
	return err
}
