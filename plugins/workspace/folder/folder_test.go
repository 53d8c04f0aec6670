package folder_test

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/boughdev/bough/plugins/workspace/folder"
)

// setup makes a folder "in" with some content beside a folder "out".
func setup(t *testing.T) (in, out string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in, out = filepath.Join(top, "in"), filepath.Join(top, "out")
	for _, dir := range []string{filepath.Join(in, "sub", "deep"), out, filepath.Join(top, "inside-out")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(in, "a.txt"), "a")
	write(t, filepath.Join(in, "sub", "b.txt"), "b")
	write(t, filepath.Join(out, "secret"), "secret")
	return in, out
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func open(t *testing.T, path string, outside bool) *folder.Folder {
	t.Helper()
	f, err := folder.Open(path, outside)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func find(t *testing.T, f *folder.Folder, name string) folder.Place {
	t.Helper()
	p, err := f.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestPathsAreFoundOrRefused(t *testing.T) {
	in, out := setup(t)
	link(t, "sub", filepath.Join(in, "to-sub"))
	link(t, filepath.Join(in, "sub", "b.txt"), filepath.Join(in, "absolute-inside"))
	link(t, "../out/secret", filepath.Join(in, "leak"))
	link(t, out, filepath.Join(in, "leak-dir"))
	link(t, "nowhere", filepath.Join(in, "dangling"))
	link(t, "loop2", filepath.Join(in, "loop1"))
	link(t, "loop1", filepath.Join(in, "loop2"))
	link(t, "../../in/a.txt", filepath.Join(in, "sub", "around"))
	link(t, in, filepath.Join(out, "alias"))
	link(t, "deep/../../..", filepath.Join(in, "sub", "up"))
	for _, c := range []struct{ name, want, wrong string }{
		{name: "a.txt", want: "a.txt"},
		{name: "./sub//b.txt", want: "sub/b.txt"},
		{name: "sub/../a.txt", want: "a.txt"},
		{name: ".", want: "."},
		{name: in, want: "."},
		{name: in + "/", want: "."},
		{name: in + "/a.txt", want: "a.txt"},
		{name: "new/dir/file", want: "new/dir/file"},
		{name: "to-sub/b.txt", want: "sub/b.txt"},
		{name: "to-sub/../a.txt", want: "a.txt"},
		{name: "absolute-inside", want: "sub/b.txt"},
		{name: "dangling", want: "nowhere"},
		{name: "a.txt/x", want: "a.txt/x"},
		{name: "ünïcode \n file", want: "ünïcode \n file"},
		{name: "~/x", want: "~/x"},
		{name: "..", wrong: "outside"},
		{name: "../out/secret", wrong: "outside"},
		{name: "sub/../../out/secret", wrong: "outside"},
		{name: "/etc/passwd", wrong: "outside"},
		{name: in + "side-out", wrong: "outside"},
		{name: in + "/../out/secret", wrong: "outside"},
		{name: "leak", wrong: "the symbolic link leak leads out"},
		{name: "leak-dir/secret", wrong: "the symbolic link leak-dir leads out"},
		{name: "sub/around", wrong: "the symbolic link sub/around leads out"},
		{name: "sub/up/out/secret", wrong: "outside"},
		{name: "loop1", wrong: "symbolic links"},
		{name: "", wrong: "empty"},
		{name: "a\x00b", wrong: "NUL"},
		{name: strings.Repeat("x/", 3000), wrong: "4096"},
	} {
		p, err := open(t, in, false).Find(c.name)
		switch {
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%q: %v, %v", c.name, p.Name, err)
		case c.wrong == "" && (err != nil || p.Name != c.want || p.Path != filepath.Join(in, c.want)):
			t.Errorf("%q: %q at %s, %v", c.name, p.Name, p.Path, err)
		}
	}
	// The folder itself may be named through a link, and its files too.
	alias := filepath.Join(out, "alias")
	for _, name := range []string{"a.txt", alias + "/a.txt", in + "/a.txt"} {
		if p := find(t, open(t, alias, false), name); p.Path != filepath.Join(in, "a.txt") || p.Name != "a.txt" {
			t.Errorf("%q: %q at %s", name, p.Name, p.Path)
		}
	}
	// Where it is allowed, paths lead out.
	for name, want := range map[string]string{
		"../out/secret": filepath.Join(out, "secret"), "leak": filepath.Join(out, "secret"), "/etc/../etc": "/etc",
		"leak-dir/alias/a.txt": "a.txt", "a.txt": "a.txt", "sub/around": "a.txt", "/..": "/", "/": "/",
	} {
		if p, err := open(t, in, true).Find(name); err != nil || p.Name != want {
			t.Errorf("%q: %q at %s, %v", name, p.Name, p.Path, err)
		}
	}
}

func TestAFolderThatIsGone(t *testing.T) {
	in, _ := setup(t)
	for path, why := range map[string]string{
		filepath.Join(in, "nothing"): "is gone; it is not made again",
		filepath.Join(in, "a.txt"):   "not a directory",
		"relative":                   "not absolute",
	} {
		if _, err := folder.Open(path, false); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	in, _ := setup(t)
	if err := syscall.Mkfifo(filepath.Join(in, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := open(t, in, false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for name, kind := range map[string]string{"pipe": "a named pipe", "sub": "a folder"} {
			_, _, err := find(t, f, name).Open()
			var wrong *folder.KindError
			if !errors.As(err, &wrong) || wrong.Kind != kind {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, _, err := find(t, open(t, in, true), "/dev/zero").Open()
		if err == nil || !strings.Contains(err.Error(), "a device") {
			t.Error(err)
		}
		if _, _, err := find(t, f, "nothing").Open(); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if _, _, err := find(t, f, "a.txt/x").Open(); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it blocks")
	}
}

func replace(t *testing.T, p folder.Place, text string) (*folder.Staged, error) {
	t.Helper()
	old, err := p.Load()
	if err != nil {
		t.Fatal(err)
	}
	return p.Stage([]byte(text), old)
}

func TestReplacingKeepsModeAndSaysWhatIsThere(t *testing.T) {
	in, _ := setup(t)
	path := filepath.Join(in, "a.txt")
	f := open(t, in, false)
	for _, mode := range []fs.FileMode{0o755, 0o600, 0o644, 0o664, 0o755 | fs.ModeSetuid} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		s, err := replace(t, find(t, f, "a.txt"), mode.String())
		if err != nil {
			t.Fatal(err)
		}
		if read(t, path) == mode.String() {
			t.Error("it is there before Commit")
		}
		sum, err := s.Commit()
		if err != nil || sum != sha256.Sum256([]byte(mode.String())) {
			t.Fatal(sum, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != mode || read(t, path) != mode.String() {
			t.Errorf("%v became %v, %v: %q", mode, info.Mode(), err, read(t, path))
		}
	}
	nothingElse(t, in, "a.txt", "sub")
}

// nothingElse checks that no temporary file was left in a folder.
func nothingElse(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s has %q, want %q", dir, got, want)
	}
}

func TestNewFilesHaveTheUsualMode(t *testing.T) {
	in, _ := setup(t)
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	s, err := find(t, open(t, in, false), "x/y/new").Stage([]byte("new"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"x": 0o750, "x/y": 0o750, "x/y/new": 0o640} {
		if info, err := os.Stat(filepath.Join(in, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has %v, %v", name, info.Mode(), err)
		}
	}
}

func TestLinksStayLinks(t *testing.T) {
	in, _ := setup(t)
	link(t, "sub/b.txt", filepath.Join(in, "link"))
	if err := os.Link(filepath.Join(in, "sub", "b.txt"), filepath.Join(in, "hard")); err != nil {
		t.Fatal(err)
	}
	s, err := replace(t, find(t, open(t, in, false), "link"), "new")
	if err != nil {
		t.Fatal(err)
	}
	if s.Links != 1 {
		t.Errorf("%d other names", s.Links)
	}
	if _, err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(filepath.Join(in, "link")); target != "sub/b.txt" || read(t, filepath.Join(in, "link")) != "new" {
		t.Error(target, err)
	}
	if got := read(t, filepath.Join(in, "hard")); got != "b" {
		t.Errorf("the other name has %q", got)
	}
}

func TestChangesInBetweenAreNotOverwritten(t *testing.T) {
	in, _ := setup(t)
	path := filepath.Join(in, "a.txt")
	f := open(t, in, false)
	for how, change := range map[string]func(){
		"was changed": func() { write(t, path, "user") },
		"was deleted": func() { os.Remove(path) },
		"a folder":    func() { os.Remove(path); os.Mkdir(path, 0o755) },
	} {
		os.RemoveAll(path)
		write(t, path, "a")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := replace(t, find(t, f, "a.txt"), "agent")
		if err != nil {
			t.Fatal(err)
		}
		change()
		os.Chtimes(path, info.ModTime(), info.ModTime()) // times tell nothing
		_, err = s.Commit()
		if err == nil || !strings.Contains(err.Error(), how) {
			t.Errorf("%s: %v", how, err)
		}
		if data, err := os.ReadFile(path); err == nil && string(data) != "user" {
			t.Errorf("%s: it has %q", how, data)
		}
		nothingElse(t, in, strings.Fields(map[bool]string{true: "sub", false: "a.txt sub"}[how == "was deleted"])...)
	}
	s, err := find(t, f, "new/file").Stage([]byte("agent"), nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(in, "new", "file"), "user")
	var changed *folder.ChangedError
	if _, err := s.Commit(); !errors.As(err, &changed) || read(t, filepath.Join(in, "new", "file")) != "user" {
		t.Error(err)
	}
}

func TestATouchIsNoChange(t *testing.T) {
	in, _ := setup(t)
	s, err := replace(t, find(t, open(t, in, false), "a.txt"), "agent")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(in, "a.txt"), time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(); err != nil {
		t.Error(err)
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	in, _ := setup(t)
	f := open(t, in, false)
	s, err := find(t, f, "x/y/z/new").Stage([]byte("new"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Discard(); err != nil {
		t.Error(err)
	}
	if s, err = replace(t, find(t, f, "a.txt"), "new"); err != nil {
		t.Fatal(err)
	}
	if err := s.Discard(); err != nil || read(t, filepath.Join(in, "a.txt")) != "a" {
		t.Error(err)
	}
	nothingElse(t, in, "a.txt", "sub")
}

func TestReadOnlyFilesStay(t *testing.T) {
	in, _ := setup(t)
	if err := os.Chmod(filepath.Join(in, "a.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := replace(t, find(t, open(t, in, false), "a.txt"), "new"); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Error(err)
	}
	if _, err := find(t, open(t, in, false), "a.txt/x").Stage(nil, nil); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Error(err)
	}
}

func TestFilesAreRemovedIfTheyAreTheSame(t *testing.T) {
	in, _ := setup(t)
	f := open(t, in, false)
	file, err := find(t, f, "a.txt").Load()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(in, "a.txt"), "b")
	if err := file.Remove(); err == nil {
		t.Error("a changed file was removed")
	}
	write(t, filepath.Join(in, "a.txt"), "a")
	if err := file.Remove(); err != nil {
		t.Error(err)
	}
	nothingElse(t, in, "sub")
}

// TestLinksThatComeInBetween swaps a folder for a link that leads out after a
// place was found.
func TestLinksThatComeInBetween(t *testing.T) {
	in, out := setup(t)
	f := open(t, in, false)
	place := find(t, f, "sub/secret")
	if err := os.RemoveAll(filepath.Join(in, "sub")); err != nil {
		t.Fatal(err)
	}
	link(t, out, filepath.Join(in, "sub"))
	if data, err := place.Load(); err == nil {
		t.Errorf("it reads %q", data.Data)
	}
	if s, err := place.Stage([]byte("x"), nil); err == nil {
		_, err = s.Commit()
		t.Errorf("it is written: %v", err)
	}
	if got := read(t, filepath.Join(out, "secret")); got != "secret" {
		t.Errorf("it has %q", got)
	}
	nothingElse(t, out, "secret")
}

func TestFileSystemsWithoutUnnamedFiles(t *testing.T) {
	folder.WithoutUnnamedFiles(t)
	t.Run("mode", TestReplacingKeepsModeAndSaysWhatIsThere)
	t.Run("new", TestNewFilesHaveTheUsualMode)
	t.Run("links", TestLinksStayLinks)
	t.Run("changes", TestChangesInBetweenAreNotOverwritten)
	t.Run("discard", TestDiscardLeavesNothing)
	in, _ := setup(t)
	s, err := replace(t, find(t, open(t, in, false), "a.txt"), "new")
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(in); err != nil || len(entries) != 3 {
		t.Errorf("%v, %v: the fallback was not taken", entries, err)
	}
	if err := s.Discard(); err != nil {
		t.Error(err)
	}
}
