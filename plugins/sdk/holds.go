package sdk

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/wire"
)

// releaseTime is how long a backend may take to note that a lease is free.
const releaseTime = 10 * time.Second

// holds are the leases that streams keep.
type holds struct {
	mu    sync.Mutex
	names map[string]*hold
}

// hold is one lease that a stream keeps.
type hold struct {
	lease   store.Lease
	stream  context.Context
	ask     sync.Once
	asked   chan struct{} // closed by Release
	free    chan struct{} // closed when the backend knows that the lease is free
	failure error         // of giving it back; set before free is closed
}

// Hold implements the service: the lease lives as long as the stream.
func (s *storageService) Hold(request *storagepb.HoldRequest, stream grpc.ServerStreamingServer[storagepb.HoldResponse]) error {
	ctx := stream.Context()
	if err := s.holds.settle(ctx, request.GetName()); err != nil {
		return wire.PlainStatus(err)
	}
	_, end := s.life.call(ctx)
	defer end()
	lease, err := s.backend.Acquire(ctx, request.GetName(), wire.HolderFromProto(request.GetHolder()))
	if err != nil {
		return wire.StoreStatus(err)
	}
	h := s.holds.add(ctx, lease)
	defer s.holds.end(h)
	if err := stream.Send(&storagepb.HoldResponse{Token: lease.Token()}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return wire.PlainStatus(ctx.Err())
	case <-h.asked:
		return nil
	case <-lease.Lost():
		return wire.StoreStatus(store.ErrFenced)
	case <-s.life.ctx.Done():
		return errLeaving
	}
}

// Release implements the service.
func (s *storageService) Release(ctx context.Context, request *storagepb.ReleaseRequest) (*storagepb.ReleaseResponse, error) {
	h := s.holds.find(request.GetName())
	if h == nil || h.lease.Token() != request.GetToken() {
		return &storagepb.ReleaseResponse{}, nil
	}
	h.ask.Do(func() { close(h.asked) })
	select {
	case <-h.free:
		if h.failure != nil {
			return nil, wire.StoreStatus(h.failure)
		}
		return &storagepb.ReleaseResponse{}, nil
	case <-ctx.Done():
		return nil, wire.PlainStatus(ctx.Err())
	}
}

// settle waits for a lease whose stream has ended but that the backend does not
// know to be free yet, so that a client that lets go and takes again, or dies
// and is started again, is not told that it holds the lease itself.
func (h *holds) settle(ctx context.Context, name string) error {
	old := h.find(name)
	if old == nil || old.stream.Err() == nil {
		return nil
	}
	select {
	case <-old.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *holds) find(name string) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.names[name]
}

func (h *holds) add(stream context.Context, lease store.Lease) *hold {
	this := &hold{lease: lease, stream: stream, asked: make(chan struct{}), free: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names == nil {
		h.names = map[string]*hold{}
	}
	h.names[lease.Name()] = this
	return this
}

// end gives the lease back to the backend. The stream's context may have ended,
// so it is not the one to wait with.
func (h *holds) end(this *hold) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	this.failure = this.lease.Release(ctx)
	h.mu.Lock()
	if h.names[this.lease.Name()] == this {
		delete(h.names, this.lease.Name())
	}
	h.mu.Unlock()
	close(this.free)
}
