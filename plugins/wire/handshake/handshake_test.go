package handshake

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shortDir is a temporary folder whose path leaves room for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "bt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestSocketDirIsPrivateAndShort(t *testing.T) {
	runtime, long := shortDir(t), filepath.Join(t.TempDir(), strings.Repeat("x", 150))
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ runtime, temp, want string }{
		{runtime, long, runtime},
		{"", runtime, runtime},
		{long, long, "/tmp"},
		{"relative", long, "/tmp"},
		{filepath.Join(runtime, "missing"), long, "/tmp"},
	} {
		t.Setenv("XDG_RUNTIME_DIR", test.runtime)
		t.Setenv("TMPDIR", test.temp)
		got, err := SocketDir()
		if err != nil || filepath.Dir(got) != test.want {
			t.Errorf("XDG_RUNTIME_DIR %.40q: got %s, %v, want it in %s", test.runtime, got, err, test.want)
			continue
		}
		info, err := os.Lstat(got)
		if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", got, info, err)
		}
	}
}

func TestSocketDirOfSomebodyElse(t *testing.T) {
	base := shortDir(t)
	t.Setenv("XDG_RUNTIME_DIR", base)
	t.Setenv("TMPDIR", base)
	dir, err := SocketDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := SocketDir(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("an open folder was not closed: %v, %v", info.Mode(), err)
	}
	// A link could lead anywhere.
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	if got, err := SocketDir(); err == nil && got == dir {
		t.Error("a link was taken for the folder")
	}
}

func TestCheckPeer(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	for _, network := range []string{"unix", "tcp"} {
		address := path
		if network == "tcp" {
			address = "127.0.0.1:0"
		}
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		conn, err := net.Dial(network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		pid, err := CheckPeer(conn)
		if network == "unix" && (err != nil || pid != os.Getpid()) {
			t.Errorf("unix: got %d, %v", pid, err)
		}
		if network == "tcp" && err == nil {
			t.Error("a TCP peer passed for a process of this user")
		}
	}
	one, two := net.Pipe()
	defer one.Close()
	defer two.Close()
	if _, err := CheckPeer(one); err == nil {
		t.Error("a pipe in memory passed for a process of this user")
	}
}
