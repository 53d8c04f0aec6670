package search_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/boughdev/bough/host/tool/outputs/lines"
	"github.com/boughdev/bough/plugins/workspace/folder"
	"github.com/boughdev/bough/plugins/workspace/search"
)

func TestWhatIsLeftOut(t *testing.T) {
	dir, f := tree(t,
		"a.go", ".github/ci.yml", ".git/config", ".ssh/id", ".env", ".env.local", ".env.example", "x/.npmrc", "x/id_rsa", "x/b.go",
		".gitignore=*.log\nnode_modules/\n", "c.log", "x/c.log", "node_modules/m/index.js", "node_modules/m/c.log", "weird\nname.go", "\xff\xfe.go", "sub/.gitignore=!c.log\n", "sub/c.log")
	if err := os.Symlink("x", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		start, pattern string
		want           []string
	}{
		{".", "**", []string{".env.example", ".github/ci.yml", ".gitignore", "a.go", "link", "out", "sub/.gitignore", "sub/c.log", "weird\nname.go", "x/b.go", "\xff\xfe.go"}},
		{".", "*.go", []string{"a.go", "weird\nname.go", "x/b.go", "\xff\xfe.go"}},
		{"x", "*.go", []string{"x/b.go"}},
		{"x", "b.*", []string{"x/b.go"}},
		{"x", "x/b.go", nil},
		{"node_modules", "**", []string{"node_modules/m/index.js"}},
		{"sub", "*.log", []string{"sub/c.log"}},
		{".git", "**", []string{".git/config"}},
	} {
		if got := find(t, f, c.start, c.pattern); !slices.Equal(got, c.want) {
			t.Errorf("%s in %s: %q", c.pattern, c.start, got)
		}
	}
}

func TestTheNewestComesFirst(t *testing.T) {
	dir, f := tree(t, "old", "new", "middle")
	for i, name := range []string{"old", "middle", "new"} {
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	filter, _ := search.NewFilter("*")
	found, err := search.Find(t.Context(), f, place(t, f, "."), filter)
	if err != nil || strings.Join(found.Names, " ") != "new middle old" {
		t.Errorf("%v, %v", found, err)
	}
}

func query(t *testing.T, pattern string) search.Query {
	t.Helper()
	p, err := lines.Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return search.Query{Query: lines.Query{Pattern: p}, Max: 100}
}

func grep(t *testing.T, f *folder.Folder, start string, q search.Query) (string, search.Matches) {
	t.Helper()
	m, err := search.Grep(t.Context(), f, place(t, f, start), q)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, file := range m.Files {
		fmt.Fprintf(&b, "%s(%d) %s", file.Name, file.Lines, file.Text)
	}
	return b.String(), m
}

func TestGrep(t *testing.T) {
	dir, f := tree(t, "a.go=one\ntwo\nthree\ntwo again\n", "x/b.go=two\n", "x/c.md=two\n", "bin=two\x00\n", ".env=two\n", ".gitignore=ignored\n", "ignored=two\n", "crlf=two\r\n", "\xff=two")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	all := "a.go(2) 2:two\n4:two again\ncrlf(1) 1:two\nx/b.go(1) 1:two\nx/c.md(1) 1:two\n\xff(1) 1:two\n"
	if got, m := grep(t, f, ".", query(t, "two")); got != all || m.Lines != 6 || m.More || m.Unreadable > 0 {
		t.Errorf("%q, %+v", got, m)
	}
	q := query(t, "two")
	q.Filter, _ = search.NewFilter("*.go")
	q.Before, q.After = 1, 1
	if got, _ := grep(t, f, ".", q); got != "a.go(2) 1-one\n2:two\n3-three\n4:two again\nx/b.go(1) 1:two\n" {
		t.Errorf("%q", got)
	}
	if got, _ := grep(t, f, "x/c.md", query(t, "w")); got != "x/c.md(1) 1:two\n" {
		t.Errorf("%q", got)
	}
	for n, want := range map[int]string{1: "a.go(1) 2:two\n", 2: "a.go(2) 2:two\n4:two again\n", 3: "a.go(2) 2:two\n4:two again\ncrlf(1) 1:two\n"} {
		q := query(t, "two")
		q.Max = n
		if got, m := grep(t, f, ".", q); got != want || m.Lines != n || !m.More {
			t.Errorf("%d: %q, %+v", n, got, m)
		}
	}
	if _, err := search.Grep(t.Context(), f, place(t, f, "bin"), query(t, "two")); !errors.Is(err, lines.ErrBinary) {
		t.Error(err)
	}
	if _, err := search.Grep(t.Context(), f, place(t, f, "none"), query(t, "two")); !os.IsNotExist(errors.Unwrap(err)) {
		t.Error(err)
	}
	if _, err := search.Grep(t.Context(), f, place(t, f, "pipe"), query(t, "two")); err == nil {
		t.Error("a pipe was searched")
	}
}

// TestTheAnswerIsTheSameEachTime searches many files with several limits.
func TestTheAnswerIsTheSameEachTime(t *testing.T) {
	var paths []string
	for i := range 400 {
		paths = append(paths, fmt.Sprintf("d%d/f%03d=%s", i%7, i, strings.Repeat("x\nneedle\n", i%5)))
	}
	_, f := tree(t, paths...)
	q := query(t, "needle")
	q.Max = 10_000
	_, all := grep(t, f, ".", q)
	if all.Lines != 800 || all.More {
		t.Errorf("%d lines", all.Lines)
	}
	for _, n := range []int{1, 10, 100, 799} {
		q.Max = n
		want, _ := grep(t, f, ".", q)
		for range 3 {
			got, m := grep(t, f, ".", q)
			if m.Lines != n || !m.More || got != want {
				t.Fatalf("%d: %d lines\n%s", n, m.Lines, got)
			}
			for i, file := range m.Files {
				if file.Name != all.Files[i].Name || !strings.HasPrefix(all.Files[i].Text, file.Text) {
					t.Fatalf("%d: file %d is %+v, of all it is %+v", n, i, file, all.Files[i])
				}
			}
		}
	}
}

func TestAPartialAnswerIsAnAnswer(t *testing.T) {
	_, f := tree(t, "a=x", "b/c=x")
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	filter, _ := search.NewFilter("*")
	if found, err := search.Find(ctx, f, place(t, f, "."), filter); !errors.Is(err, context.DeadlineExceeded) || !found.OutOfTime {
		t.Errorf("%+v, %v", found, err)
	}
	if m, err := search.Grep(ctx, f, place(t, f, "."), query(t, "x")); !errors.Is(err, context.DeadlineExceeded) || !m.OutOfTime {
		t.Errorf("%+v, %v", m, err)
	}
	if os.Geteuid() == 0 {
		return // root can read everything
	}
	dir, f := tree(t, "a=x", "closed/b=x")
	os.Chmod(filepath.Join(dir, "closed"), 0)
	defer os.Chmod(filepath.Join(dir, "closed"), 0o755)
	if got, m := grep(t, f, ".", query(t, "x")); got != "a(1) 1:x\n" || m.Unreadable != 1 {
		t.Errorf("%q, %+v", got, m)
	}
}

func TestLargeFilesAreSearched(t *testing.T) {
	dir, f := tree(t)
	text := append(bytes.Repeat([]byte("some line of a log that is long\n"), 1<<20), "needle\n"...)
	if err := os.WriteFile(filepath.Join(dir, "big.log"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, _ := grep(t, f, ".", query(t, "^needle$")); got != "big.log(1) 1048577:needle\n" {
		t.Errorf("%q", got)
	}
}

// BenchmarkTree walks and searches 20,000 files.
func BenchmarkTree(b *testing.B) {
	dir := b.TempDir()
	for i := range 20_000 {
		sub := filepath.Join(dir, fmt.Sprintf("pkg%d/src/main", i/50))
		if i%50 == 0 {
			os.MkdirAll(sub, 0o755)
		}
		os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d.go", i)), bytes.Repeat([]byte("func something(x int) error { return nil }\n"), 60), 0o644)
	}
	f, err := folder.Open(dir, false)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	start, _ := f.Find(".")
	filter, _ := search.NewFilter("*999.go")
	b.Run("find", func(b *testing.B) {
		for b.Loop() {
			if found, err := search.Find(b.Context(), f, start, filter); err != nil || len(found.Names) != 20 {
				b.Fatal(found, err)
			}
		}
	})
	p, _ := lines.Compile("needle")
	b.Run("grep", func(b *testing.B) {
		for b.Loop() {
			if _, err := search.Grep(b.Context(), f, start, search.Query{Query: lines.Query{Pattern: p}, Max: 10}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
