package manager

import (
	"syscall"
	"testing"
	"time"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/conformance"
)

// TestConformance is the whole suite against Badger in a process of its own,
// which is killed wherever the suite opens the store again.
func TestConformance(t *testing.T) {
	conformance.RunStorage(t, func(t *testing.T) conformance.Backend {
		o := storageOptions(t, "badger", "50ms")
		leaveNothing(t, "mark-"+t.Name())
		s := attach(t, o)
		return conformance.Backend{Store: s, Reopen: func(t *testing.T) store.Store {
			pid := storagePID(t, o)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			kill(t, pid, syscall.SIGKILL)
			within(t, 5*time.Second, "the process is dead", func() bool { return !alive(pid) })
			s = attach(t, o)
			return s
		}}
	})
}
