package manager

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sweepAge is how old the folder of a socket must be to be taken for left over.
const sweepAge = time.Hour

var swept sync.Once

// sweepOnce removes, once in the life of a host, what plugins left behind that
// were killed together with their host.
func sweepOnce(socketDir string) {
	swept.Do(func() { go sweep(socketDir, time.Now().Add(-sweepAge)) })
}

// sweep removes the folders that were made before a moment and in whose sockets
// nobody listens.
func sweep(socketDir string, before time.Time) {
	folders, err := filepath.Glob(filepath.Join(socketDir, "plugin-dir*"))
	if err != nil {
		return // the pattern is sound
	}
	for _, folder := range folders {
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() || info.ModTime().After(before) {
			continue
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if path := filepath.Join(folder, e.Name()); e.Type() == os.ModeSocket && deserted(path) {
				os.Remove(path)
			}
		}
		os.Remove(folder) // refuses unless it is empty now
	}
}

// deserted tells whether a socket's process is gone for certain.
func deserted(path string) bool {
	conn, err := net.DialTimeout("unix", path, time.Second) //nolint:noctx // it has a time-out of its own
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, unix.ECONNREFUSED)
}
