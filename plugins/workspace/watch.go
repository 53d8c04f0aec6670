package workspace

import (
	"fmt"
	"sync"
	"time"

	"github.com/boughdev/bough/host/tool"
)

const (
	// watchPause is the time between two pieces of progress: nobody reads
	// faster.
	watchPause = 50 * time.Millisecond
	// watchBytes is the most that waits for its turn. What comes on top pushes
	// the oldest out.
	watchBytes = 32 << 10
)

// watch hands on what a command writes to whoever watches. It never slows the
// command down: who is too slow sees the newest.
type watch struct {
	to    func(tool.Progress) // nil: nobody watches
	stop  chan struct{}
	ended chan struct{}
	wake  chan struct{}

	mu      sync.Mutex
	pending []byte
	dropped int64
}

func newWatch(to func(tool.Progress)) *watch {
	w := &watch{to: to, stop: make(chan struct{}), ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	if to == nil {
		close(w.ended)
	} else {
		go w.run()
	}
	return w
}

func (w *watch) add(p []byte) {
	if w.to == nil {
		return
	}
	w.mu.Lock()
	if surplus := len(w.pending) + len(p) - watchBytes; surplus > 0 {
		w.dropped += int64(surplus)
		old := min(surplus, len(w.pending))
		w.pending = append(w.pending[:0], w.pending[old:]...)
		p = p[surplus-old:]
	}
	w.pending = append(w.pending, p...)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watch) run() {
	defer close(w.ended)
	for {
		select {
		case <-w.wake:
			w.send()
		case <-w.stop:
			w.send()
			return
		}
		select {
		case <-time.After(watchPause):
		case <-w.stop:
		}
	}
}

// send hands on what waits.
func (w *watch) send() {
	w.mu.Lock()
	data, dropped := w.pending, w.dropped
	w.pending, w.dropped = nil, 0
	w.mu.Unlock()
	if dropped > 0 {
		w.to(tool.Progress{Stream: tool.Note, Data: fmt.Appendf(nil, "[%d bytes came too fast to be shown]", dropped)})
	}
	if len(data) > 0 {
		w.to(tool.Progress{Stream: tool.Stdout, Data: data})
	}
}

// end hands on the rest and returns when no more will come.
func (w *watch) end() {
	close(w.stop)
	<-w.ended
}
