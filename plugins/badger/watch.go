package badger

import (
	"bytes"
	"context"
	"iter"
	"sync"

	"github.com/boughdev/bough/host/store"
)

// backlog is how many events a watcher may be behind before it must resync.
const backlog = 1024

type watches struct {
	mu     sync.Mutex
	all    map[*watcher]struct{}
	closed bool
}

type watcher struct {
	prefix []byte
	events chan store.Event
	missed bool
	end    chan struct{}
}

// tell sends what a batch changed to those who watch it.
func (ws *watches) tell(f *flight) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.all {
		var ev store.Event
		for _, op := range f.batch.Ops {
			if bytes.HasPrefix(op.Key, w.prefix) {
				ev.Changes = append(ev.Changes, store.Change{Key: bytes.Clone(op.Key), Version: f.version, Deleted: op.Delete})
			}
		}
		if len(ev.Changes) == 0 {
			continue
		}
		if w.missed {
			ev = store.Event{Resync: true}
		}
		select {
		case w.events <- ev:
			w.missed = false
		default:
			w.missed = true
		}
	}
}

func (ws *watches) closeAll() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = true
	for w := range ws.all {
		close(w.end)
	}
	ws.all = nil
}

func (ws *watches) add(w *watcher) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return false
	}
	if ws.all == nil {
		ws.all = map[*watcher]struct{}{}
	}
	ws.all[w] = struct{}{}
	return true
}

func (ws *watches) remove(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.all, w)
}

// takeMissed tells whether something was missed, once.
func (ws *watches) takeMissed(w *watcher) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	missed := w.missed
	w.missed = false
	return missed
}

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, prefix []byte, ready func()) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		_, release, err := s.use()
		if err != nil {
			yield(store.Event{}, err)
			return
		}
		release()
		w := &watcher{prefix: bytes.Clone(prefix), events: make(chan store.Event, backlog), end: make(chan struct{})}
		if !s.watches.add(w) {
			yield(store.Event{}, store.ErrClosed)
			return
		}
		defer s.watches.remove(w)
		if ready != nil {
			ready()
		}
		for {
			select {
			case <-ctx.Done():
				yield(store.Event{}, ctx.Err())
				return
			case <-w.end:
				yield(store.Event{}, store.ErrClosed)
				return
			case ev := <-w.events:
				if !yield(ev, nil) {
					return
				}
				if len(w.events) == 0 && s.watches.takeMissed(w) && !yield(store.Event{Resync: true}, nil) {
					return
				}
			}
		}
	}
}
