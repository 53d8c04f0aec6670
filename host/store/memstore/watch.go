package memstore

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/boughdev/bough/host/store"
)

// backlog is how many events a watcher may be behind before it must resync.
const backlog = 256

type watcher struct {
	prefix string
	events chan store.Event
	missed bool
}

// tell sends the changed keys to those who watch them. The lock is held.
func (s *Store) tell(changed map[string]bool) {
	for w := range s.watchers {
		var ev store.Event
		for k := range changed {
			if strings.HasPrefix(k, w.prefix) {
				e, present := s.entries[k]
				v := e.Version
				if !present {
					v = s.version
				}
				ev.Changes = append(ev.Changes, store.Change{Key: []byte(k), Version: v, Deleted: !present})
			}
		}
		if len(ev.Changes) == 0 {
			continue
		}
		slices.SortFunc(ev.Changes, func(a, b store.Change) int { return strings.Compare(string(a.Key), string(b.Key)) })
		ev.Resync = w.missed
		if w.missed {
			ev.Changes = nil
		}
		select {
		case w.events <- ev:
			w.missed = false
		default:
			w.missed = true
		}
	}
}

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, prefix []byte, ready func()) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		w := &watcher{prefix: string(prefix), events: make(chan store.Event, backlog)}
		s.mu.Lock()
		s.watchers[w] = struct{}{}
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			delete(s.watchers, w)
			s.mu.Unlock()
		}()
		if ready != nil {
			ready()
		}
		for {
			select {
			case <-ctx.Done():
				yield(store.Event{}, ctx.Err())
				return
			case ev := <-w.events:
				if !yield(ev, nil) {
					return
				}
				// What was missed since is told even when nothing more comes.
				if len(w.events) == 0 && s.takeMissed(w) && !yield(store.Event{Resync: true}, nil) {
					return
				}
			}
		}
	}
}

func (s *Store) takeMissed(w *watcher) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	missed := w.missed
	w.missed = false
	return missed
}
