package shell

import "testing"

// Swept is closed when a new runner has ended what killed processes left.
func Swept(r *Runner) <-chan struct{} { return r.swept }

// WithoutChildrenFiles makes runners do as on a kernel that has none.
func WithoutChildrenFiles(t *testing.T) {
	t.Helper()
	old := childrenFiles
	childrenFiles = "/nowhere/*"
	t.Cleanup(func() { childrenFiles = old })
}
