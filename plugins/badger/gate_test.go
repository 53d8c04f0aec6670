package badger

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
)

func swap(t *testing.T, g *gate, do func()) {
	release, err := g.hold(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	do()
	release()
}

// Who scans may get within the scan, though another waits to swap.
func TestTheGateLetsInWhoIsWithinAScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		g.init()
		scanned := g.enter(true)
		swapped := false
		var all sync.WaitGroup
		all.Go(func() { swap(t, &g, func() { swapped = true }) })
		synctest.Wait()
		g.enter(false)()
		if swapped {
			t.Error("the swap went on within a scan")
		}
		scanned()
		all.Wait()
		if !swapped {
			t.Error("the swap had no turn")
		}
	})
}

// Newcomers wait for one who waits to swap.
func TestTheGateHoldsNewcomersOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		g.init()
		got := g.enter(false)
		var order []string
		var all sync.WaitGroup
		all.Go(func() { swap(t, &g, func() { order = append(order, "swap") }) })
		synctest.Wait()
		all.Go(func() {
			leave := g.enter(false)
			order = append(order, "newcomer")
			leave()
		})
		synctest.Wait()
		if len(order) > 0 {
			t.Error("not held off:", order)
		}
		got()
		all.Wait()
		if len(order) != 2 || order[0] != "swap" {
			t.Error(order)
		}
	})
}

// Who gives up waiting to swap is in nobody's way.
func TestTheGateForgetsWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate
		g.init()
		leave := g.enter(false)
		defer leave()
		ctx, cancel := context.WithCancel(t.Context())
		var err error
		var all sync.WaitGroup
		all.Go(func() { _, err = g.hold(ctx) })
		synctest.Wait()
		cancel()
		all.Wait()
		if err == nil {
			t.Error("held while another is in")
		}
		g.enter(false)()
	})
}
