package folder

import (
	"testing"

	"golang.org/x/sys/unix"
)

// WithoutUnnamedFiles makes Stage do as on a file system that has none.
func WithoutUnnamedFiles(t *testing.T) {
	unnamed = unix.O_DIRECTORY // with O_RDWR that is an error everywhere
	t.Cleanup(func() { unnamed = unix.O_TMPFILE })
}
