package sample

import (
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// corpus is real code and real English: parts of the Go distribution that the
// dictionary was not made from.
type corpus struct {
	paths []string
	code  []string // one a path
	prose []string // doc comments
}

var loadCorpus = sync.OnceValues(func() (*corpus, error) {
	c := &corpus{}
	src := filepath.Join(build.Default.GOROOT, "src")
	for _, dir := range []string{"net", "net/http", "cmd/go/internal/load", "cmd/go/internal/modload", "database/sql", "log/slog", "html/template"} {
		files, _ := filepath.Glob(filepath.Join(src, dir, "*.go"))
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil || len(data) < 2000 {
				continue
			}
			rel, _ := filepath.Rel(src, f)
			c.paths, c.code = append(c.paths, rel), append(c.code, string(data))
			c.prose = append(c.prose, comments(string(data))...)
		}
	}
	if len(c.code) < 20 {
		return nil, fmt.Errorf("the source of the Go distribution, which samples are made of, is not in %s", src)
	}
	return c, nil
})

// comments are the longer comments of a file, as running text.
func comments(code string) []string {
	var found []string
	var b strings.Builder
	for line := range strings.Lines(code) {
		text, is := strings.CutPrefix(strings.TrimSpace(line), "// ")
		if is {
			b.WriteString(text + " ")
			continue
		}
		if b.Len() > 150 {
			found = append(found, b.String())
		}
		b.Reset()
	}
	return found
}
