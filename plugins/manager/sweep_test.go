package manager

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSweepRemovesOnlyWhatIsLeftOver(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "bt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	listen := func(name string) *net.UnixListener {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", filepath.Join(dir, "plugin1"))
		if err != nil {
			t.Fatal(err)
		}
		return l.(*net.UnixListener)
	}
	live := listen("plugin-dir1")
	defer live.Close()
	dead := listen("plugin-dir2")
	dead.SetUnlinkOnClose(false)
	dead.Close()
	if err := os.MkdirAll(filepath.Join(base, "plugin-dir3", "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	left := func() []string {
		found, _ := filepath.Glob(filepath.Join(base, "*"))
		return found
	}
	sweep(base, time.Now().Add(-time.Hour))
	if got := left(); len(got) != 3 {
		t.Errorf("young folders were removed: %v are left", got)
	}
	sweep(base, time.Now().Add(time.Hour))
	got := left()
	if len(got) != 2 || filepath.Base(got[0]) != "plugin-dir1" || filepath.Base(got[1]) != "plugin-dir3" {
		t.Errorf("%v are left", got)
	}
}
