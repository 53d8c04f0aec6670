package search_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/boughdev/bough/plugins/workspace/folder"
	"github.com/boughdev/bough/plugins/workspace/search"
)

func TestFilters(t *testing.T) {
	for pattern, c := range map[string]struct{ yes, no string }{
		"*.go":              {"a.go x/y/b.go .go", "a.god x.go/a"},
		"a?c":               {"abc x/aéc", "ac abbc a/c"},
		"src/*.go":          {"src/a.go", "src/x/a.go a.go x/src/a.go"},
		"src/**/*.go":       {"src/a.go src/x/a.go src/x/y/a.go", "a.go xsrc/a.go"},
		"**/test/*":         {"test/a x/test/b x/y/test/c", "test x/test/b/c"},
		"src/**":            {"src/a src/x/y", "src x/src/a"},
		"**":                {"a x/y", ""},
		"**/*":              {"a x/y", ""},
		"**/**/a":           {"a x/a", "b"},
		"*.{go,md}":         {"a.go x/b.md", "a.txt a."},
		"{src,lib}/{a,b}.c": {"src/a.c lib/b.c", "src/c.c x/src/a.c"},
		"a{b,{c,d}e}":       {"ab ace ade", "abe ac"},
		"{x}":               {"{x}", "x"},
		"[a-c]x":            {"ax bx", "dx x"},
		"[!a-c]x":           {"dx éx", "ax"},
		"[^]]x":             {"ax", "]x"},
		"[]]x":              {"]x", "ax"},
		"[[:digit:]]x":      {"1x", "ax"},
		"[a":                {"", "a [a"},
		`\*x`:               {"*x", "ax"},
		"./a/*":             {"a/b", "b/b"},
		"*a*b*c*":           {"xaxbxcx abc", "acb"},
		"文*":                {"文件 x/文", "件"},
		"a b":               {"a_b", "a/b"},
	} {
		f, err := search.NewFilter(pattern)
		if err != nil {
			t.Errorf("%q: %v", pattern, err)
			continue
		}
		for path := range strings.FieldsSeq(c.yes) {
			if path = strings.ReplaceAll(path, "_", " "); !f.Match(path) {
				t.Errorf("%q does not match %q", pattern, path)
			}
		}
		for path := range strings.FieldsSeq(c.no) {
			if f.Match(path) {
				t.Errorf("%q matches %q", pattern, path)
			}
		}
	}
	for pattern, want := range map[string]string{
		"": "empty", strings.Repeat("{a,b}", 9): "more than 256", strings.Repeat("x", 5000): "4096",
	} {
		if _, err := search.NewFilter(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v", pattern, err)
		}
	}
}

// Backtracking over these would not end within the life of the test.
func TestHostileFiltersAreCheap(t *testing.T) {
	for _, pattern := range []string{strings.Repeat("*a", 100) + "b", strings.Repeat("**/a/", 100) + "b", strings.Repeat("[a-z]*", 100) + "0"} {
		f, err := search.NewFilter(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if f.Match(strings.Repeat("a", 1000)) || f.Match(strings.Repeat("a/", 1000)+"a") {
			t.Errorf("%q matches", pattern)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("a*/**/[b-d]?{x,y}", "a/b/cex")
	f.Add(`\[[[:alpha:]]`, "[a")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		filter, err := search.NewFilter(pattern)
		if err != nil {
			return
		}
		filter.Match(path)
		if strings.ContainsAny(path, "\\*?[]{}") || path == "" {
			return
		}
		if same, err := search.NewFilter(path); err == nil && !same.Match(strings.TrimPrefix(path, "./")) {
			t.Fatalf("%q does not match itself", path)
		}
	})
}

// tree makes files of a list of paths; a path that ends with a slash is a
// folder.
func tree(t *testing.T, paths ...string) (dir string, f *folder.Folder) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		path, content, _ := strings.Cut(path, "=")
		full := filepath.Join(dir, path)
		if strings.HasSuffix(path, "/") {
			full += "/x"
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, "/") {
			if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	f, err = folder.Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return dir, f
}

func place(t *testing.T, f *folder.Folder, name string) folder.Place {
	t.Helper()
	p, err := f.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// find gives the names that a search finds, sorted.
func find(t *testing.T, f *folder.Folder, start, pattern string) []string {
	t.Helper()
	filter, err := search.NewFilter(pattern)
	if err != nil {
		t.Fatal(err)
	}
	found, err := search.Find(t.Context(), f, place(t, f, start), filter)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(slices.Values(found.Names))
}

// TestIgnoredAsByGit asks Git which files of a tricky tree it ignores.
func TestIgnoredAsByGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	var paths []string
	for _, dir := range []string{"", "a/", "a/b/", "build/", "src/", "src/build/", "doc/", "doc/frotz/", "a/foo/", "deep/x/y/z/", "keep/", "sp ace/"} {
		for _, name := range []string{
			"x.o", "x.c", "foo", "bar", "keep.o", "debug.log", "Debug.log", "#hash", "!bang", "trail ", "[x]", "a1", "ab", "b2", "frotz", "tmp~", "日本", "z.txt", "*star", `back\slash`,
		} {
			if (dir == "a/" && name == "foo") || (dir == "doc/" && name == "frotz") {
				continue
			}
			paths = append(paths, dir+name+"=x")
		}
	}
	for name, files := range map[string]map[string]string{
		"usual":      {".gitignore": "*.o\n!keep.o\n/build\ndebug.log\n# comment\n\n*~\n"},
		"folders":    {".gitignore": "build/\nfoo/\nfrotz/\n"},
		"anchored":   {".gitignore": "/foo\ndoc/frotz\n/a/b/x.c\nsrc/*.o\n"},
		"stars":      {".gitignore": "**/foo\na/**\n!a/b/\ndeep/**/z\n"},
		"stars 2":    {".gitignore": "a/**/x.c\n**/build/*.o\nx**.c\n**\n!**/\n!*.c\n"},
		"escapes":    {".gitignore": "\\#hash\n\\!bang\ntrail\\ \nb2   \n\\[x\\]\n\\*star\n"},
		"classes":    {".gitignore": "a[0-9]\n[!a-z]*.log\nb[[:digit:]]\n[]x]*.txt\n"},
		"nested":     {".gitignore": "*.o\n", "a/.gitignore": "!x.o\n*.c\n", "a/b/.gitignore": "!*.c\nx.o\n/foo\n"},
		"negated":    {".gitignore": "*\n!*/\n!*.c\n!keep/**\nkeep/foo\n"},
		"parents":    {".gitignore": "src/\n!src/x.c\n", "src/.gitignore": "!*\n"},
		"bytes":      {".gitignore": "日??\n日*\n"},
		"crlf":       {".gitignore": "*.o\r\nfoo\r\n"},
		"bom":        {".gitignore": "\xef\xbb\xbf*.o\n"},
		"odd":        {".gitignore": "/\n!\n//\n\\\n[\n**/\n ***\na//b\n./foo\n"},
		"middle":     {".gitignore": "a/b\nsrc/build\n"},
		"with space": {".gitignore": "sp ace/foo\nsp\\ ace/bar\n"},
	} {
		t.Run(name, func(t *testing.T) {
			all := slices.Clone(paths)
			for path, text := range files {
				all = append(all, path+"="+text)
			}
			dir, f := tree(t, all...)
			git := func(args ...string) string {
				cmd := exec.Command("git", append([]string{"-C", dir, "-c", "core.excludesFile=", "-c", "core.quotePath=false"}, args...)...)
				cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				return string(out)
			}
			git("init", "-q")
			if err := os.Remove(filepath.Join(dir, ".git", "info", "exclude")); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			want := strings.Split(strings.TrimSuffix(git("ls-files", "-o", "--exclude-standard", "-z"), "\x00"), "\x00")
			slices.Sort(want)
			got := find(t, f, ".", "**")
			for _, path := range got {
				if !slices.Contains(want, path) {
					t.Errorf("Git ignores %q", path)
				}
			}
			for _, path := range want {
				if path != "" && !slices.Contains(got, path) {
					t.Errorf("Git does not ignore %q", path)
				}
			}
		})
	}
}
