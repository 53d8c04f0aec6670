package badger

import (
	"context"
	"sync"
)

// gate lets many use the database at once, and one swap it when nobody does.
//
// It is not a sync.RWMutex, since who scans may get or commit within the scan:
// those must still be let in while the one who wants to swap waits for the
// scan. Without a scan newcomers wait, so that the swap has its turn.
type gate struct {
	mu      sync.Mutex
	changed sync.Cond
	users   int
	scans   int // of the users, those that may become users again meanwhile
	wanting int
	held    bool
}

func (g *gate) init() { g.changed.L = &g.mu }

// enter waits for a swap to end, and holds the next off until leave is called.
func (g *gate) enter(scan bool) (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.held || g.wanting > 0 && g.scans == 0 {
		g.changed.Wait()
	}
	g.users++
	if scan {
		g.scans++
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.users--
		if scan {
			g.scans--
		}
		g.changed.Broadcast()
	}
}

// hold waits until nobody else is in, and lets nobody in until release is
// called.
func (g *gate) hold(ctx context.Context) (release func(), err error) {
	defer context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.changed.Broadcast()
	})()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wanting++
	defer func() {
		g.wanting--
		g.changed.Broadcast()
	}()
	for g.held || g.users > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g.changed.Wait()
	}
	g.held = true
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.held = false
		g.changed.Broadcast()
	}, nil
}
