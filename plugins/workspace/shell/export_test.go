package shell

import (
	"testing"
	"time"
)

// Swept is closed when a new runner has ended what killed processes left.
func Swept(r *Runner) <-chan struct{} { return r.swept }

// WithoutChildrenFiles makes runners do as on a kernel that has none.
func WithoutChildrenFiles(t *testing.T) {
	t.Helper()
	old := childrenFiles
	childrenFiles = "/nowhere/*"
	t.Cleanup(func() { childrenFiles = old })
}

// Patient gives lines so long to end by themselves, after their shell has ended
// and after they were told to stop.
func Patient(r *Runner, d time.Duration) *Runner {
	r.drain, r.stopGrace = d, d
	return r
}
