package outputs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs"
)

var _ tool.Outputs = (*outputs.Store)(nil)

func newStore(t *testing.T) (*outputs.Store, string) {
	dir := filepath.Join(t.TempDir(), "tool-output")
	return outputs.New(dir), dir
}

func keep(t *testing.T, s *outputs.Store, session, producer, text string) string {
	t.Helper()
	id, err := s.KeepAs(t.Context(), session, producer, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func read(t *testing.T, s *outputs.Store, session, id string) string {
	t.Helper()
	data, _, err := s.Bytes(session, id, 0, outputs.MaxSize)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestIDsNameTheProducer(t *testing.T) {
	s, _ := newStore(t)
	long := strings.Repeat("long-name-", 10)
	for _, c := range []struct{ producer, id string }{
		{"file_grep", "output-file-grep"},
		{"cargo-test", "output-cargo-test"},
		{"file_grep", "output-file-grep-2"},
		{"file_grep", "output-file-grep-3"},
		{"shell", "output-shell"},
		{"", "output"},
		{"", "output-2"},
		{"日本", "output-3"},
		{"../../etc/passwd", "output-etc-passwd"},
		{"MCP Server.Tool", "output-mcp-server-tool"},
		{long, ("output-" + long)[:64]},
		{long, ("output-" + long)[:61] + "-2"}, // the 62nd is a hyphen
	} {
		if id := keep(t, s, "s-1", c.producer, c.producer+"x"); id != c.id || len(id) > 64 {
			t.Errorf("%q is kept as %s, want %s", c.producer, id, c.id)
		}
	}
	if id := keep(t, s, "s-2", "file_grep", "x"); id != "output-file-grep" {
		t.Errorf("another session's is %s", id)
	}
	if got := read(t, s, "s-1", "output-file-grep-2"); got != "file_grepx" {
		t.Errorf("%q", got)
	}
}

func TestIDsAreNotUsedAgain(t *testing.T) {
	s, dir := newStore(t)
	for range 3 {
		keep(t, s, "s-1", "shell", "x")
	}
	if err := os.Remove(filepath.Join(dir, "s-1", "output-shell-2")); err != nil {
		t.Fatal(err)
	}
	for _, store := range []*outputs.Store{s, outputs.New(dir)} {
		id := keep(t, store, "s-1", "shell", "x")
		if id != "output-shell-4" && id != "output-shell-5" {
			t.Errorf("it got %s", id)
		}
	}
}

// TestStoresShareADirectory is what two processes do that know nothing of each
// other.
func TestStoresShareADirectory(t *testing.T) {
	_, dir := newStore(t)
	var mu sync.Mutex
	seen := map[string]string{}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := outputs.New(dir)
			for j := range 20 {
				text := fmt.Sprintf("output %d of %d", j, i)
				id, err := s.KeepAs(t.Context(), "s-1", "shell", []byte(text))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if before, twice := seen[id]; twice {
					t.Errorf("%s is both %q and %q", id, before, text)
				}
				seen[id] = text
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	s := outputs.New(dir)
	for id, text := range seen {
		if got := read(t, s, "s-1", id); got != text {
			t.Errorf("%s is %q, want %q", id, got, text)
		}
	}
}

func TestFilesArePrivate(t *testing.T) {
	s, dir := newStore(t)
	id := keep(t, s, "s-1", "", "secret")
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "s-1"): 0o700, filepath.Join(dir, "s-1", id): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode().Perm())
		}
	}
}

func TestHostileNamesStayInside(t *testing.T) {
	s, dir := newStore(t)
	keep(t, s, "s-1", "", "mine")
	secret := filepath.Join(filepath.Dir(dir), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "s-1", "link")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"../../secret", "/etc/passwd", "..", ".", "", "link", "a/b", "OUTPUT", "output\x00", "../s-1/output"} {
		if data, _, err := s.Bytes("s-1", id, 0, 100); err == nil {
			t.Errorf("id %q gives %q", id, data)
		}
	}
	for _, session := range []string{"..", ".", "", "../x", "a/b", "/", "-x", "a\x00b", strings.Repeat("x", 200)} {
		if _, err := s.KeepAs(t.Context(), session, "", []byte("x")); err == nil {
			t.Errorf("session %q is kept", session)
		}
		if err := s.RemoveSession(session); err == nil {
			t.Errorf("session %q is removed", session)
		}
		if _, _, err := s.Bytes(session, "output", 0, 100); err == nil {
			t.Errorf("session %q is read", session)
		}
	}
	if _, err := os.Stat(secret); err != nil {
		t.Error(err)
	}
}

func TestAnUnknownIDNamesTheKnown(t *testing.T) {
	s, _ := newStore(t)
	var missing *outputs.NotFoundError
	if _, err := s.Lines("s-1", "output", 1, 10, 100); !errors.As(err, &missing) || !strings.Contains(err.Error(), "no outputs") {
		t.Error(err)
	}
	keep(t, s, "s-1", "shell", "x")
	if _, err := s.Lines("s-1", "output-shel", 1, 10, 100); !errors.As(err, &missing) || !strings.Contains(err.Error(), "it has output-shell") {
		t.Error(err)
	}
}

func TestForksShareOutputs(t *testing.T) {
	s, dir := newStore(t)
	one := keep(t, s, "parent", "shell", "one")
	two := keep(t, s, "parent", "shell", "two")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "parent", "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again after a crash in the middle
		if err := s.CopyTo("parent", "fork"); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, s, "fork", one); got != "one" {
		t.Errorf("%q", got)
	}
	if got := read(t, s, "fork", two); got != "two" {
		t.Errorf("%q", got)
	}
	if _, err := os.Lstat(filepath.Join(dir, "fork", "link")); err == nil {
		t.Error("what is no output came along")
	}
	a, err1 := os.Stat(filepath.Join(dir, "parent", one))
	b, err2 := os.Stat(filepath.Join(dir, "fork", one))
	if err1 != nil || err2 != nil || !os.SameFile(a, b) {
		t.Error("it is not linked", err1, err2)
	}
	if id := keep(t, s, "fork", "shell", "three"); id == one || id == two {
		t.Error("the fork's own output has the id of the parent's")
	}
	if err := s.RemoveSession("parent"); err != nil {
		t.Fatal(err)
	}
	if got := read(t, s, "fork", one); got != "one" {
		t.Errorf("%q after the parent is gone", got)
	}
	if err := s.CopyTo("parent", "fork"); err != nil {
		t.Error(err)
	}
}

func TestSessionsAreRemoved(t *testing.T) {
	s, dir := newStore(t)
	if err := s.RemoveSession("s-1"); err != nil {
		t.Error(err)
	}
	keep(t, s, "s-1", "", "x")
	keep(t, s, "s-2", "", "x")
	if err := s.RemoveSession("s-1"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "s-2" {
		t.Error(left, err)
	}
}

func TestOrphansGoAfterAWhile(t *testing.T) {
	s, dir := newStore(t)
	owned := func(session string) (bool, error) { return session == "live", nil }
	if removed, err := s.Orphans(t.Context(), time.Hour, owned); err != nil || removed != nil {
		t.Error(removed, err)
	}
	for _, session := range []string{"live", "young", "old"} {
		id := keep(t, s, session, "", "x")
		if session == "young" {
			continue
		}
		old := time.Now().Add(-8 * 24 * time.Hour)
		for _, path := range []string{filepath.Join(dir, session, id), filepath.Join(dir, session)} {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	removed, err := s.Orphans(t.Context(), 7*24*time.Hour, owned)
	if err != nil || len(removed) != 1 || removed[0] != "old" {
		t.Error(removed, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "old")); !os.IsNotExist(err) {
		t.Error(err)
	}
	unknown := errors.New("the store is away")
	if _, err := s.Orphans(t.Context(), 0, func(string) (bool, error) { return false, unknown }); !errors.Is(err, unknown) {
		t.Error(err)
	}
}

func TestBytesAreKeptAsTheyAre(t *testing.T) {
	s, _ := newStore(t)
	text := "a\r\nb\x00\xff\x1b[31m\rc"
	if got := read(t, s, "s-1", keep(t, s, "s-1", "", text)); got != text {
		t.Errorf("%q", got)
	}
	id := keep(t, s, "s-1", "", "0123456789")
	for _, c := range []struct {
		offset int64
		max    int
		want   string
	}{{0, 3, "012"}, {3, 3, "345"}, {8, 30, "89"}, {10, 3, ""}, {1000, 3, ""}} {
		data, size, err := s.Bytes("s-1", id, c.offset, c.max)
		if err != nil || string(data) != c.want || size != 10 {
			t.Errorf("from %d: %q of %d, %v", c.offset, data, size, err)
		}
	}
}

func TestShortOutputsNeedNoFile(t *testing.T) {
	s, dir := newStore(t)
	for _, c := range []struct {
		pieces []string
		want   string
	}{{nil, ""}, {[]string{"12345678"}, ""}, {[]string{"1234", "5678", "9"}, "123456789"}} {
		w := s.Writer("s-1", "shell", 8)
		for _, p := range c.pieces {
			if _, err := w.Write([]byte(p)); err != nil {
				t.Fatal(err)
			}
		}
		id, err := w.Finish()
		if err != nil || (id != "") != (c.want != "") {
			t.Fatalf("%v: %q, %v", c.pieces, id, err)
		}
		if c.want == "" {
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("%v made %s", c.pieces, dir)
			}
		} else if got := read(t, s, "s-1", id); got != c.want {
			t.Errorf("%q", got)
		}
	}
}

func TestWhatCannotBeKeptIsSaid(t *testing.T) {
	_, dir := newStore(t)
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := outputs.New(dir)
	w := s.Writer("s-1", "shell", 0)
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("it was written")
	}
	if id, err := w.Finish(); id != "" || err == nil || !strings.Contains(err.Error(), "tool outputs") {
		t.Errorf("%q, %v", id, err)
	}
}

func TestAHugeOutputKeepsItsEnds(t *testing.T) {
	s, dir := newStore(t)
	w := s.Writer("s-1", "shell", 8<<10)
	line := []byte("0123456789abcde\n")
	chunk := bytes.Repeat(line, 4096)
	const size = 150 << 20
	for n := 0; n < size; n += len(chunk) {
		copy(chunk, fmt.Sprintf("%015d\n", n))
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	id, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "s-1", id))
	if err != nil || info.Size() > outputs.MaxSize || info.Size() < outputs.MaxSize-100 {
		t.Fatalf("%d bytes, %v", info.Size(), err)
	}
	text := read(t, s, "s-1", id)
	var lost int
	head, rest, _ := strings.Cut(text, "\n[… ")
	if _, err := fmt.Sscanf(rest, "%d bytes were dropped here", &lost); err != nil {
		t.Fatalf("%q: %v", rest[:100], err)
	}
	_, tail, _ := strings.Cut(rest, "]\n")
	if len(head)+lost+len(tail) != size {
		t.Errorf("%d + %d + %d is not %d", len(head), lost, len(tail), size)
	}
	if len(head) != 90<<20 || !strings.HasPrefix(head, "000000000000000\n") || !strings.HasSuffix(tail, string(line)) {
		t.Errorf("%q … %q", head[:20], tail[len(tail)-20:])
	}
	if !strings.Contains(tail, fmt.Sprintf("%015d\n", size-len(chunk))) {
		t.Error("the last chunk is not in the tail")
	}
}

func TestLabels(t *testing.T) {
	for command, want := range map[string]string{
		"cargo test --release":         "cargo-test",
		"  go test ./...":              "go-test",
		"go":                           "go",
		"git log --oneline":            "git-log",
		"git -C /secret log":           "git",
		"git commit -m 'token=abc'":    "git-commit",
		"ls -la /home/someone":         "ls",
		"npm run deploy-secret":        "npm-run",
		"./my-secret-script":           "",
		"/usr/bin/git log":             "",
		"PASSWORD=x git log":           "",
		"cargo test | tail":            "",
		"cargo test && rm -r /":        "",
		"cargo test > /tmp/secret":     "",
		"git log; ls":                  "",
		"git log\nls":                  "",
		"$(curl evil)":                 "",
		"unknown-program test":         "",
		"":                             "",
		"   ":                          "",
		"make very-secret-target-name": "make",
	} {
		if got := outputs.Label(command); got != want {
			t.Errorf("%q is %q, want %q", command, got, want)
		}
	}
}
