// Package repotest holds the rules of the repository as tests: which package
// may import which, that each says what it is for, how long a file may be.
package repotest

import (
	"bytes"
	"errors"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/boughdev/bough/"

// arrows says what each part may import of the others, besides its own
// sub-packages. The longest matching folder counts. docs/architecture.md draws
// the same table; see also docs/decisions/0001.
var arrows = map[string][]string{
	"host/store":               {},
	"host/session":             {"host/store"},
	"host/tool":                {},
	"host/model":               {"host/tool"},
	"host/workspace":           {"host/tool"},
	"host/policy":              {"host/session", "host/store", "host/tool"},
	"host/engine":              {"host"},
	"plugins/api":              {},
	"plugins/wire":             {"plugins/api", "host/store", "host/tool", "host/model", "host/workspace"},
	"plugins/sdk":              {"plugins/api", "plugins/wire", "host/store", "host/tool", "host/model", "host/workspace"},
	"plugins/manager":          {"plugins/api", "plugins/wire", "host/store", "host/tool", "host/model", "host/workspace"},
	"plugins/conformance":      {"host/store"},
	"plugins/badger":           {"plugins/sdk", "host/store"},
	"plugins/workspace":        {"plugins/sdk", "host/tool", "host/workspace"},
	"plugins/models":           {"plugins/sdk", "host/model", "host/tool"},
	"plugins/models/modeltest": {},
	"cmd/bough":                {"host", "plugins/sdk", "plugins/manager", "plugins/badger", "plugins/workspace"},
	"cmd/bough-models":         {"plugins/sdk", "plugins/models"},
	"contrib":                  {"host", "plugins/sdk", "plugins/manager", "plugins/badger", "plugins/models/modeltest"},
}

// heavy libraries and the only folders that may import them.
var confined = map[string][]string{
	"github.com/dgraph-io/badger":        {"plugins/badger"},
	"github.com/openai/openai-go":        {"plugins/models"},
	"github.com/hashicorp/go-plugin":     {"plugins/sdk", "plugins/manager"},
	"google.golang.org/grpc":             {"plugins/api", "plugins/wire", "plugins/sdk", "plugins/manager"},
	"github.com/spf13/cobra":             {"cmd"},
	"github.com/klauspost/compress/zstd": {"host/session"},
}

func TestImportsFollowTheArrows(t *testing.T) {
	for dir, pkg := range packages(t) {
		allowed, known := rule(dir)
		if !known {
			t.Errorf("%s: no rule says what this package may import: add one to arrows", dir)
			continue
		}
		for _, imp := range pkg.Imports {
			if inner, ours := strings.CutPrefix(imp, module); ours {
				if !within(inner, append(allowed, part(dir))) {
					t.Errorf("%s must not import %s", dir, inner)
				}
				continue
			}
			for lib, homes := range confined {
				if strings.HasPrefix(imp, lib) && !within(dir, homes) {
					t.Errorf("%s must not import %s: only %s may", dir, imp, strings.Join(homes, ", "))
				}
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for dir, pkg := range packages(t) {
		if len(pkg.GoFiles) > 0 && pkg.Doc == "" {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	const most = 500
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".pb.go") {
			return
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		limit := most
		if strings.HasSuffix(path, "_test.go") {
			limit = 2 * most
		}
		if n := bytes.Count(data, []byte("\n")); n > limit {
			t.Errorf("%s has %d lines, at most %d: is it one job?", path, n, limit)
		}
	})
}

func TestNamesOfJunkDrawers(t *testing.T) {
	for dir := range packages(t) {
		switch filepath.Base(dir) {
		case "util", "utils", "common", "misc", "helpers", "shared":
			t.Errorf("%s: name the package after its job", dir)
		}
	}
}

// rule is what the package in dir may import.
func rule(dir string) ([]string, bool) {
	p := part(dir)
	allowed, ok := arrows[p]
	return allowed, ok
}

// part is the longest key of arrows that dir lies in.
func part(dir string) string {
	best := ""
	for key := range arrows {
		if within(dir, []string{key}) && len(key) > len(best) {
			best = key
		}
	}
	return best
}

func within(dir string, parents []string) bool {
	for _, p := range parents {
		if p != "" && (dir == p || strings.HasPrefix(dir, p+"/")) {
			return true
		}
	}
	return false
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// packages are the packages of the module by their folder; tests are left out,
// since a test may stand on any part that it needs to be real.
func packages(t *testing.T) map[string]*build.Package {
	t.Helper()
	found := map[string]*build.Package{}
	top := root(t)
	walk(t, func(path string) {
		dir := filepath.Dir(path)
		rel, err := filepath.Rel(top, dir)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, ".go") || found[rel] != nil {
			return
		}
		pkg, err := build.ImportDir(dir, build.ImportComment)
		if err != nil {
			var empty *build.NoGoError
			if errors.As(err, &empty) {
				return
			}
			t.Fatalf("%s: %v", rel, err)
		}
		found[rel] = pkg
	})
	if len(found) < 5 {
		t.Fatalf("only %d packages found below %s", len(found), top)
	}
	return found
}

func walk(t *testing.T, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case ".git", "bin", "tools", "testdata":
				return filepath.SkipDir
			}
			return nil
		}
		visit(path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
