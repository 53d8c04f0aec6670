package workspace_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/tool"
	contract "github.com/boughdev/bough/host/workspace"
	"github.com/boughdev/bough/plugins/workspace"
)

type bench struct {
	t   *testing.T
	w   *workspace.Workspace
	dir string
	n   int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, w: workspace.New(workspace.Options{OutputsDir: t.TempDir()}), dir: dir}
	if err := b.w.Open(t.Context(), contract.Session{ID: "s", Folder: dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.w.Close(context.Background(), "s"); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) call(name string, input map[string]any) tool.Result {
	b.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		b.t.Fatal(err)
	}
	b.n++
	r, err := b.w.Call(b.t.Context(), tool.Call{Session: "s", ID: fmt.Sprint(b.n), Tool: name, Input: raw}, nil)
	if err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	return r
}

func (b *bench) write(name, content string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *bench) read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// want checks whether a result failed and what it says.
func (b *bench) want(r tool.Result, failed bool, text string) {
	b.t.Helper()
	if r.Error != failed || !strings.Contains(r.Text, text) {
		b.t.Errorf("failed %v: %q; want failed %v and %q", r.Error, r.Text, failed, text)
	}
}

func TestFilesAreReadWrittenAndEdited(t *testing.T) {
	b := newBench(t)
	b.want(b.call("file_write", map[string]any{"filePath": "sub/a.txt", "content": "one\ntwo\n"}), false, "was written: 2 lines added")
	r := b.call("file_read", map[string]any{"filePath": "sub/a.txt"})
	b.want(r, false, "     1\tone\n     2\ttwo\n")
	sum := sha256.Sum256([]byte("one\ntwo\n"))
	if len(r.Files) != 1 || !bytes.Equal(r.Files[0].SHA256, sum[:]) || r.Files[0].Path != filepath.Join(b.dir, "sub/a.txt") {
		t.Errorf("what was read is told as %+v", r.Files)
	}
	b.want(b.call("file_read", map[string]any{"filePath": "sub/a.txt", "offset": 2, "limit": 1}), false, "     2\ttwo")
	b.want(b.call("file_read", map[string]any{"filePath": "sub"}), false, "a.txt")
	b.want(b.call("file_read", map[string]any{"filePath": "nothing"}), true, "there is no file nothing")
	b.want(b.call("file_edit", map[string]any{"filePath": "sub/a.txt", "oldString": "two", "newString": "2"}), false, "was changed")
	b.want(b.call("file_edit", map[string]any{"filePath": "sub/a.txt", "oldString": "three", "newString": "3"}), true, "sub/a.txt")
	if got := b.read("sub/a.txt"); got != "one\n2\n" {
		t.Errorf("the file has %q", got)
	}
	b.write("bin", "a\x00b")
	b.want(b.call("file_read", map[string]any{"filePath": "bin"}), true, "is no text")
}

func TestUntouchedBytesStay(t *testing.T) {
	b := newBench(t)
	before := "\ufefffirst\r\nsecond\nthird\rfourth\r\nlast"
	path := b.write("mixed.txt", before)
	if err := os.Chmod(path, 0o750); err != nil {
		t.Fatal(err)
	}
	b.want(b.call("file_edit", map[string]any{"filePath": "mixed.txt", "oldString": "second", "newString": "2nd"}), false, "was changed")
	if got, want := b.read("mixed.txt"), strings.Replace(before, "second", "2nd", 1); got != want {
		t.Errorf("the file has %q, want %q", got, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestAFileThatChangedIsNotOverwritten(t *testing.T) {
	b := newBench(t)
	b.write("a.txt", "one\n")
	b.call("file_read", map[string]any{"filePath": "a.txt"})
	b.write("a.txt", "mine\n")
	for _, c := range []struct {
		tool string
		in   map[string]any
	}{
		{"file_write", map[string]any{"filePath": "a.txt", "content": "x"}},
		{"file_edit", map[string]any{"filePath": "a.txt", "oldString": "mine", "newString": "x"}},
		{"file_apply_patch", map[string]any{"patchText": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"}},
	} {
		b.want(b.call(c.tool, c.in), true, "changed since you read it")
	}
	if got := b.read("a.txt"); got != "mine\n" {
		t.Errorf("the person's text is gone: %q", got)
	}
	b.call("file_read", map[string]any{"filePath": "a.txt"})
	b.want(b.call("file_write", map[string]any{"filePath": "a.txt", "content": "x"}), false, "was replaced")

	// What the path of a resumed session knows counts as well.
	sum := sha256.Sum256([]byte("older"))
	if err := b.w.Open(t.Context(), contract.Session{ID: "s", Folder: b.dir, Seen: []tool.FileState{{Path: filepath.Join(b.dir, "a.txt"), SHA256: sum[:]}}}); err != nil {
		t.Fatal(err)
	}
	b.want(b.call("file_write", map[string]any{"filePath": "a.txt", "content": "y"}), true, "changed since you read it")
}

func TestAPatchIsAppliedWholeOrNotAtAll(t *testing.T) {
	b := newBench(t)
	b.write("a.txt", "one\ntwo\n")
	b.write("b.txt", "bee\n")
	b.want(b.call("file_apply_patch", map[string]any{"patchText": "*** Begin Patch\n*** Add File: new.txt\n+new\n*** Update File: a.txt\n@@\n-nowhere\n+x\n*** End Patch"}),
		true, "nothing was changed")
	if _, err := os.Stat(filepath.Join(b.dir, "new.txt")); err == nil {
		t.Error("a refused patch made a file")
	}
	b.want(b.call("file_apply_patch", map[string]any{"patchText": "*** Begin Patch\n*** Add File: new.txt\n+new\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Delete File: b.txt\n*** End Patch"}),
		false, "deleted b.txt")
	if b.read("new.txt") != "new\n" || b.read("a.txt") != "one\n2\n" {
		t.Errorf("new.txt %q, a.txt %q", b.read("new.txt"), b.read("a.txt"))
	}
	if left, _ := filepath.Glob(filepath.Join(b.dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNothingOutsideIsTouched(t *testing.T) {
	b := newBench(t)
	outside := filepath.Join(t.TempDir(), "o.txt")
	if err := os.WriteFile(outside, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{outside, "link", "../x"} {
		for _, c := range []struct {
			tool string
			in   map[string]any
		}{
			{"file_read", map[string]any{"filePath": path}},
			{"file_write", map[string]any{"filePath": path, "content": "x"}},
			{"file_grep", map[string]any{"pattern": "secret", "path": path}},
		} {
			if r := b.call(c.tool, c.in); !r.Error || strings.Contains(r.Text, "secret\n") {
				t.Errorf("%s %s: %q", c.tool, path, r.Text)
			}
		}
	}
	b.want(b.call("file_grep", map[string]any{"pattern": "secret"}), false, "nothing matches")
	if data, _ := os.ReadFile(outside); string(data) != "secret\n" {
		t.Errorf("the file outside has %q", data)
	}
}

func TestSearch(t *testing.T) {
	b := newBench(t)
	b.write("a.go", "package a\n\nfunc A() {}\n")
	b.write("sub/deep/b.go", "package b\n")
	b.write("sub/c.txt", "func in text\n")
	b.write(".git/config", "func\n")
	b.write(".env", "func\n")
	for pattern, want := range map[string]string{
		"**/*.go": "a.go\nsub/deep/b.go", "*.go": "a.go\nsub/deep/b.go", "sub/*": "sub/c.txt", "**/{b,c}.*": "sub/c.txt\nsub/deep/b.go", "*.rs": "no file matches *.rs",
	} {
		got := strings.Split(b.call("file_glob", map[string]any{"pattern": pattern}).Text, "\n")
		if len(got) != len(strings.Split(want, "\n")) || !strings.Contains(strings.Join(got, "\n"), strings.Split(want, "\n")[0]) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	r := b.call("file_grep", map[string]any{"pattern": `^func`})
	if !strings.Contains(r.Text, "a.go:\n3:func A() {}") || !strings.Contains(r.Text, "sub/c.txt:\n1:func in text") || strings.Contains(r.Text, ".env") || strings.Contains(r.Text, "config") {
		t.Errorf("grep: %q", r.Text)
	}
	b.want(b.call("file_grep", map[string]any{"pattern": "func", "include": "*.go"}), false, "a.go")
	b.want(b.call("file_grep", map[string]any{"pattern": "("}), true, "pattern")
}

func TestShell(t *testing.T) {
	b := newBench(t)
	b.want(b.call("shell", map[string]any{"command": "echo out; echo err >&2; exit 3"}), true, "out\nerr\n(exit code 3)")
	b.want(b.call("shell", map[string]any{"command": "mkdir d"}), false, "(exit code 0)")
	b.want(b.call("shell", map[string]any{"command": "pwd", "workdir": "d"}), false, filepath.Join(b.dir, "d"))
	b.want(b.call("shell", map[string]any{"command": "x", "workdir": "nowhere"}), true, "workdir")
	began := time.Now()
	b.want(b.call("shell", map[string]any{"command": "sleep 600", "timeoutSec": 1}), true, "stopped after the time limit of 1 s")
	b.want(b.call("shell", map[string]any{"command": "sleep 600 & echo started"}), false, "background processes were ended: sleep")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	r := b.call("shell", map[string]any{"command": "seq 1 100000"})
	if r.OutputID == "" || len(r.Text) > 60_000 || !strings.Contains(r.Text, r.OutputID) || !strings.Contains(r.Text, "100000\n") {
		t.Fatalf("a long output: id %q, %d bytes", r.OutputID, len(r.Text))
	}
	b.want(b.call("tool_output", map[string]any{"output_id": r.OutputID, "offset": 50000, "limit": 1}), false, "50000")
	b.want(b.call("tool_output", map[string]any{"output_id": r.OutputID, "pattern": "^77777$"}), false, "77777")
	b.want(b.call("tool_output", map[string]any{"output_id": r.OutputID, "byte_offset": 0}), false, "1\n2\n3\n")
	b.want(b.call("tool_output", map[string]any{"output_id": "output-nothing"}), true, "output-nothing")
}

func TestACancelledCommandSaysWhatItHad(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan struct{})
	go func() { <-seen; cancel() }()
	r, err := b.w.Call(ctx, tool.Call{Session: "s", ID: "x", Tool: "shell", Input: json.RawMessage(`{"command":"echo begun; sleep 600"}`)}, func(p tool.Progress) {
		if bytes.Contains(p.Data, []byte("begun")) {
			close(seen)
		}
	})
	if err != nil || !r.Interrupted || !strings.Contains(r.Text, "begun") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAVanishedFolderIsSaidAndNotMade(t *testing.T) {
	b := newBench(t)
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	b.want(b.call("file_write", map[string]any{"filePath": "a", "content": "x"}), true, "folder cannot be used")
	if _, err := os.Stat(b.dir); err == nil {
		t.Error("the folder was made again")
	}
}

func TestEveryToolHasItsDocs(t *testing.T) {
	docs, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	specs, err := newBench(t).w.Tools(t.Context())
	if err != nil || len(specs) != 8 {
		t.Fatalf("%d tools, %v", len(specs), err)
	}
	for _, s := range specs {
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal(s.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		for _, word := range append([]string{s.Name}, keys(schema.Properties)...) {
			if !bytes.Contains(docs, []byte("`"+word+"`")) {
				t.Errorf("docs/tools.md does not name `%s` of %s", word, s.Name)
			}
		}
	}
}

func keys(m map[string]any) (names []string) {
	for k := range m {
		names = append(names, k)
	}
	return names
}
