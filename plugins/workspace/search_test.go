package workspace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/tool"
)

// aged writes files, each a minute older than the one before.
func (b *bench) aged(files ...string) {
	b.t.Helper()
	for i, file := range files {
		name, content, _ := strings.Cut(file, "=")
		b.write(name, content)
		at := time.Now().Add(-time.Duration(i) * time.Minute)
		if err := os.Chtimes(filepath.Join(b.dir, name), at, at); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestFileGlob(t *testing.T) {
	b := newBench(t)
	b.aged("a.go", "sub/deep/b.go", "sub/c.txt", ".git/x.go", ".env", "x/.ssh/y.go", "odd\nname.go", ".gitignore=built/\n", "built/z.go")
	for _, c := range []struct {
		input in
		want  string
	}{
		{in{"pattern": "*.go"}, "a.go\nsub/deep/b.go\n\"odd\\nname.go\"\n"},
		{in{"pattern": "**/*.go"}, "a.go\nsub/deep/b.go\n\"odd\\nname.go\"\n"},
		{in{"pattern": "./*.go"}, "a.go\n\"odd\\nname.go\"\n"},
		{in{"pattern": b.dir + "/sub/**"}, "sub/deep/b.go\nsub/c.txt\n"},
		{in{"pattern": b.dir + "/*.go"}, "a.go\n\"odd\\nname.go\"\n"},
		{in{"pattern": "**/*.{go,txt}", "path": "sub"}, "sub/deep/b.go\nsub/c.txt\n"},
		{in{"pattern": "*", "path": "built"}, "built/z.go\n"},
		{in{"pattern": "*.rs"}, "No file matches *.rs.\n"},
	} {
		if got := b.ok("file_glob", c.input); got != c.want {
			t.Errorf("%v: %q, want %q", c.input, got, c.want)
		}
	}
	b.fails("file_glob", in{"pattern": "*", "path": "subb"}, "subb does not exist; did you mean sub")
	b.fails("file_glob", in{"pattern": "*", "path": "a.go"}, "not a directory")
	b.fails("file_glob", in{"pattern": "/etc/*"}, "is absolute")
}

func TestManyFilesAreFound(t *testing.T) {
	b := newBench(t)
	for i := range 1500 {
		b.write(fmt.Sprintf("many/f%04d", i), "")
	}
	r := b.call("file_glob", in{"pattern": "f*"})
	if r.Error || r.OutputID != "output-file-glob" || strings.Count(r.Text, "\n") != 1001 ||
		!strings.HasSuffix(r.Text, "[500 older files are not shown; tool_output reads all of them, output_id output-file-glob]\n") {
		t.Errorf("%s: %q", r.OutputID, r.Text[len(r.Text)-200:])
	}
	if got := b.ok("tool_output", in{"output_id": r.OutputID, "offset": 1500}); !strings.Contains(got, "many/f") || !strings.HasSuffix(got, "[lines 1500 to 1500, the end]\n") {
		t.Errorf("%q", got)
	}
}

func TestFileGrep(t *testing.T) {
	b := newBench(t)
	b.write("a.go", "package a\n\nfunc A() {}\n\nfunc B() {}\n")
	b.write("sub/c.txt", "no func\r\n")
	b.write(".git/config", "func\n")
	b.write(".env", "func\n")
	b.write("bin", "func\x00\n")
	b.write("long", strings.Repeat("x", 5000)+"func"+strings.Repeat("y", 5000))
	b.write("\x1bodd", "func\x1b\n")
	for _, c := range []struct {
		input in
		want  string
	}{
		{in{"pattern": "^func A"}, "a.go\n3:func A() {}\n[1 match in 1 file]\n"},
		{in{"pattern": "func", "include": "*.go"}, "a.go\n3:func A() {}\n5:func B() {}\n[2 matches in 1 file]\n"},
		{in{"pattern": "func", "path": "a.go"}, "a.go\n3:func A() {}\n5:func B() {}\n[2 matches in 1 file]\n"},
		{in{"pattern": "func$", "glob": "**/*.{txt,go}"}, "sub/c.txt\n1:no func\n[1 match in 1 file]\n"},
		{in{"pattern": "func A", "-A": 1, "-B": 2}, "a.go\n1-package a\n2-\n3:func A() {}\n4-\n[1 match in 1 file]\n"},
		{in{"pattern": "func", "-C": 1, "include": "a.go"}, "a.go\n2-\n3:func A() {}\n4-\n5:func B() {}\n[2 matches in 1 file]\n"},
		{in{"pattern": "package|func B", "-C": 0, "-A": 1, "include": "a.go"}, "a.go\n1:package a\n2-\n--\n5:func B() {}\n[2 matches in 1 file]\n"},
		{in{"pattern": "func", "head_limit": 1, "include": "a.go"}, "a.go\n3:func A() {}\n[the first 1 match, in 1 file; there are more: narrow the search, or raise head_limit]\n"},
		{in{"pattern": "func", "include": "*odd"}, "\"\\x1bodd\"\n1:func␛\n[1 match in 1 file]\n"},
		{in{"pattern": "(?i)PACKAGE"}, "a.go\n1:package a\n[1 match in 1 file]\n"},
		{in{"pattern": "nothing"}, "No line matches nothing.\n"},
	} {
		if got := b.ok("file_grep", c.input); got != c.want {
			t.Errorf("%v: %q, want %q", c.input, got, c.want)
		}
	}
	if got := b.ok("file_grep", in{"pattern": "func", "include": "long"}); len(got) > 700 || !strings.Contains(got, "func") || !strings.Contains(got, "bytes …]") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	b.fails("file_grep", in{"pattern": "("}, "RE2 syntax")
	b.fails("file_grep", in{"pattern": "func", "path": "bin"}, "bin is binary")
	b.fails("file_grep", in{"pattern": "func", "include": "*.go", "glob": "*.md"}, "include and glob are the same")
	b.fails("file_grep", in{"pattern": "x", "path": "nowhere"}, "nowhere does not exist")
}

func TestManyMatchesAreKept(t *testing.T) {
	b := newBench(t)
	b.write("a.txt", strings.Repeat("a line that matches and that is not all too short\n", 3000))
	r := b.call("file_grep", in{"pattern": "matches", "head_limit": 2000})
	if r.OutputID != "output-file-grep" || !strings.Contains(r.Text, "output_id output-file-grep") || !strings.HasPrefix(r.Text, "a.txt\n1:a line") ||
		!strings.Contains(r.Text, "[the first 2000 matches, in 1 file") {
		t.Errorf("%s: %q", r.OutputID, r.Text)
	}
	if r := b.call("file_grep", in{"pattern": "matches", "head_limit": 200}); r.OutputID != "output-file-grep-2" || strings.Contains(r.Text, "output_id") {
		t.Errorf("more than 8 KiB are kept even if they are shown: %q", r.OutputID)
	}
	if r := b.call("file_grep", in{"pattern": "matches", "head_limit": 10}); r.OutputID != "" {
		t.Errorf("%q", r.OutputID)
	}
}

func TestAnInterruptedSearchSaysWhatItHas(t *testing.T) {
	b := newBench(t)
	b.write("a.txt", "x\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, input := range map[string]string{"file_grep": `{"pattern":"x"}`, "file_glob": `{"pattern":"*"}`} {
		r, err := b.w.Call(ctx, tool.Call{Session: "s-1", ID: "c", Tool: name, Input: json.RawMessage(input)}, nil)
		if err != nil || !r.Interrupted || !strings.Contains(r.Text, "[interrupted") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}
