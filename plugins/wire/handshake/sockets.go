package handshake

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// MaxSocketPath is the longest path of a Unix socket.
	MaxSocketPath = 107
	// below a socket folder, go-plugin makes plugin-dir1234567890/plugin1234567890.
	belowSocketDir = len("/plugin-dir1234567890/plugin1234567890")
)

// SocketDir makes and returns a folder that only this user can enter, with a
// path short enough for sockets whatever TMPDIR is: in XDG_RUNTIME_DIR, TMPDIR
// or /tmp, the first that will do. It stays between runs.
func SocketDir() (string, error) {
	name := fmt.Sprintf("bough-%d", os.Geteuid())
	var failed []error
	for _, base := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		dir := filepath.Join(base, name)
		switch {
		case base == "" || !filepath.IsAbs(base):
			continue
		case len(dir)+belowSocketDir > MaxSocketPath:
			failed = append(failed, fmt.Errorf("%s is too long for a socket", abbreviate(dir)))
			continue
		}
		err := makePrivate(dir)
		if err == nil {
			return dir, nil
		}
		failed = append(failed, err)
	}
	return "", fmt.Errorf("no folder for plugin sockets: %w; set XDG_RUNTIME_DIR to a short folder of your own", errors.Join(failed...))
}

// makePrivate makes dir, or checks that it is nobody else's.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is no folder", dir)
	case !ok || int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("close %s to others: %w", dir, err)
		}
	}
	return nil
}

func abbreviate(path string) string {
	if len(path) <= 80 {
		return path
	}
	return strings.TrimRight(path[:77], "/") + "..."
}
