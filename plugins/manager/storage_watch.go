package manager

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/wire"
)

// steadyAfter is how long a watch must have lasted for its next interruption to
// be a new one.
const steadyAfter = 5 * time.Second

// Watch implements store.Store. After a lost process it goes on over the next
// one, with a Resync in place of what was missed.
func (s *Storage) Watch(ctx context.Context, prefix []byte, ready func()) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		w := watch{s: s, prefix: prefix, ready: ready, yield: yield}
		var r retries
		for {
			l, err := s.link(ctx)
			if err == nil {
				began := time.Now()
				err = s.outcome(ctx, l, w.over(ctx, l))
				if w.left {
					return
				}
				if time.Since(began) > steadyAfter {
					r = retries{}
				}
				if errors.Is(err, store.ErrUnavailable) {
					if err = r.again(ctx, s, err); err == nil {
						continue
					}
				}
			}
			yield(store.Event{}, err)
			return
		}
	}
}

// watch is one caller's watch.
type watch struct {
	s      *Storage
	prefix []byte
	ready  func()
	yield  func(store.Event, error) bool
	begun  bool // a process has said that it watches
	left   bool // the caller has left the loop
}

// over watches over one link until it breaks or the caller leaves.
func (w *watch) over(ctx context.Context, l *link) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := l.calls.Watch(ctx, &storagepb.WatchRequest{Prefix: w.prefix})
	if err != nil {
		return err
	}
	for first := true; ; first = false {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return unreleased // a process that leaves ends its streams
		}
		if err != nil {
			return err
		}
		event := wire.EventFromProto(answer)
		if first {
			event.Resync = event.Resync || w.begun
			w.begin()
		}
		if (event.Resync || len(event.Changes) > 0) && !w.yield(event, nil) {
			w.left = true
			return nil
		}
	}
}

func (w *watch) begin() {
	if !w.begun && w.ready != nil {
		w.ready()
	}
	w.begun = true
}
