package handshake

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
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
	runtimeDir, long := shortDir(t), filepath.Join(t.TempDir(), strings.Repeat("x", 150))
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ runtime, temp, want string }{
		{runtimeDir, long, runtimeDir},
		{"", runtimeDir, runtimeDir},
		{long, long, "/tmp"},
		{"relative", long, "/tmp"},
		{filepath.Join(runtimeDir, "missing"), long, "/tmp"},
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

// TestAnotherUserIsRefused needs root, to be another user for a moment.
func TestAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	const nobody = 65534
	dir := shortDir(t)
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, open := range []string{dir, path} {
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	dialled := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			dialled <- errno
			return
		}
		_, err := net.Dial("unix", path)
		dialled <- err
	}()
	if err := <-dialled; err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := PeerCredentials().ServerHandshake(conn); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("got %v", err)
	}
}
