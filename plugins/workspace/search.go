package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs"
	"github.com/boughdev/bough/host/tool/outputs/lines"
	"github.com/boughdev/bough/plugins/workspace/folder"
)

// Bounds of one search.
const (
	mostFiles   = 1000
	mostMatches = 200
	mostVisited = 200_000
)

// hidden are names that searches leave out: version control, and what holds
// credentials.
var hidden = map[string]bool{
	".git": true, ".ssh": true, ".aws": true, ".gnupg": true, ".env": true, ".npmrc": true, ".pypirc": true, ".netrc": true,
}

// matcher makes a test of slash-separated paths: * within a name, ** across
// folders, ? one character, {a,b} either.
func matcher(pattern string) (func(string) bool, error) {
	var b strings.Builder
	b.WriteString(`^(?s:`)
	depth := 0
	for i := 0; i < len(pattern); i++ {
		switch ch := pattern[i]; {
		case strings.HasPrefix(pattern[i:], "**/"):
			b.WriteString(`(?:.*/)?`)
			i += 2
		case strings.HasPrefix(pattern[i:], "**"):
			b.WriteString(`.*`)
			i++
		case ch == '*':
			b.WriteString(`[^/]*`)
		case ch == '?':
			b.WriteString(`[^/]`)
		case ch == '{':
			depth++
			b.WriteString(`(?:`)
		case ch == '}' && depth > 0:
			depth--
			b.WriteString(`)`)
		case ch == ',' && depth > 0:
			b.WriteString(`|`)
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	b.WriteString(`)$`)
	re, err := regexp.Compile(b.String())
	if err != nil || depth != 0 {
		return nil, fmt.Errorf("%q is no pattern of paths: a { needs its }", pattern)
	}
	if !strings.Contains(pattern, "/") { // a name, wherever it is
		return func(p string) bool { return re.MatchString(path.Base(p)) }, nil
	}
	return re.MatchString, nil
}

// found is a file of a walk.
type found struct {
	place folder.Place
	rel   string // slash-separated, from the folder that is searched
}

// walk visits the regular files below a place in order of their paths; it does
// not follow links. full tells that it was cut short.
func (c *call) walk(top folder.Place, visit func(f found) (more bool, err error)) (full bool, err error) {
	visited := 0
	var in func(dir folder.Place, rel string) (bool, error)
	in = func(dir folder.Place, rel string) (bool, error) {
		if err := c.ctx.Err(); err != nil {
			return false, err
		}
		entries, err := dir.ReadDir()
		if err != nil {
			if rel == "" {
				return false, err
			}
			return true, nil // a folder that cannot be read costs its files only
		}
		for _, e := range entries {
			if visited++; visited > mostVisited {
				full = true
				return false, nil
			}
			if hidden[e.Name()] || e.Type()&fs.ModeSymlink != 0 {
				continue
			}
			place, err := c.dir.Find(filepath.Join(dir.Path, e.Name()))
			if err != nil {
				continue
			}
			name := path.Join(rel, e.Name())
			more := true
			switch {
			case e.IsDir():
				more, err = in(place, name)
			case e.Type().IsRegular():
				more, err = visit(found{place, name})
			}
			if err != nil || !more {
				return false, err
			}
		}
		return true, nil
	}
	_, err = in(top, "")
	return full, err
}

// top is the place that a search begins at.
func (c *call) top(name string) (folder.Place, fs.FileInfo, error) {
	if name == "" {
		name = "."
	}
	place, err := c.dir.Find(name)
	if err != nil {
		return place, nil, err
	}
	info, err := place.Lstat()
	if err != nil {
		return place, nil, notThere(place, err)
	}
	return place, info, nil
}

func (w *Workspace) glob(c *call) (tool.Result, error) {
	var in struct{ Pattern, Path string }
	if err := c.input(&in); err != nil {
		return failed(err), nil
	}
	match, err := matcher(in.Pattern)
	if err != nil {
		return failed(err), nil
	}
	top, info, err := c.top(in.Path)
	if err != nil {
		return failed(err), nil
	}
	if !info.IsDir() {
		return failed(fmt.Errorf("%s is not a folder", top.Name)), nil
	}
	var names []string
	full, err := c.walk(top, func(f found) (bool, error) {
		if match(f.rel) {
			names = append(names, lines.Visible([]byte(f.place.Name)))
		}
		return len(names) < mostFiles, nil
	})
	if err != nil {
		return stopped(c, strings.Join(names, "\n"), err), nil
	}
	text := strings.Join(names, "\n")
	switch {
	case len(names) == 0:
		text = "no file matches " + in.Pattern
	case len(names) == mostFiles || full:
		text += fmt.Sprintf("\n(there may be more than these %d)", len(names))
	}
	return tool.Result{Text: text, Details: details(map[string]any{"files": len(names)})}, nil
}

// stopped is what a search has when it was ended.
func stopped(c *call, text string, err error) tool.Result {
	if c.ctx.Err() != nil {
		return tool.Result{Text: text + "\n(stopped)", Interrupted: true, Error: true}
	}
	return failed(err)
}

func (w *Workspace) grep(c *call) (tool.Result, error) {
	var in struct {
		Pattern, Path, Include, Glob string
		After                        int `json:"-A"`
		Before                       int `json:"-B"`
		Around                       int `json:"-C"`
		HeadLimit                    int `json:"head_limit"`
	}
	if err := c.input(&in); err != nil {
		return failed(err), nil
	}
	pattern, err := lines.Compile(in.Pattern)
	if err != nil {
		return failed(fmt.Errorf("pattern: %w", err)), nil
	}
	include := func(string) bool { return true }
	if globs := slices.DeleteFunc([]string{in.Include, in.Glob}, func(s string) bool { return s == "" }); len(globs) > 0 {
		if include, err = matcher(globs[0]); err != nil {
			return failed(err), nil
		}
	}
	top, info, err := c.top(in.Path)
	if err != nil {
		return failed(err), nil
	}
	g := &grepping{c: c, q: lines.Query{Pattern: pattern, Before: max(in.Before, in.Around), After: max(in.After, in.Around), TextOnly: true}, limit: in.HeadLimit}
	if g.limit == 0 {
		g.limit = mostMatches
	}
	full := false
	if info.IsDir() {
		full, err = c.walk(top, func(f found) (bool, error) {
			if include(f.rel) {
				return g.file(f.place)
			}
			return true, nil
		})
	} else {
		_, err = g.file(top)
	}
	if err != nil {
		return stopped(c, string(g.out), err), nil
	}
	text := string(g.out)
	switch {
	case g.matches == 0:
		text = "nothing matches " + in.Pattern
	case g.full || full:
		text += fmt.Sprintf("(there may be more than these %d matches)\n", g.matches)
	}
	return tool.Result{Text: text, Details: details(map[string]any{"matches": g.matches, "files": g.files})}, nil
}

type grepping struct {
	c              *call
	q              lines.Query
	limit          int
	out            []byte
	matches, files int
	full           bool
}

// file searches one file and says whether to go on.
func (g *grepping) file(p folder.Place) (bool, error) {
	file, _, err := p.Open()
	if err != nil {
		return true, nil //nolint:nilerr // a file that cannot be opened costs its own lines only
	}
	defer file.Close()
	begun := false
	err = lines.Search(g.c.ctx, file, g.q, func(h lines.Hit) bool {
		if !begun {
			begun = true
			g.files++
			g.out = append(g.out, lines.Visible([]byte(p.Name))+":\n"...)
		}
		g.out = outputs.AppendHit(g.out, h, g.q)
		if h.Match {
			g.matches++
		}
		g.full = g.matches >= g.limit || len(g.out) > readBytes
		return !g.full
	})
	if g.c.ctx.Err() != nil {
		return false, g.c.ctx.Err()
	}
	if err != nil && !errors.Is(err, lines.ErrBinary) {
		return true, nil //nolint:nilerr // so does one that cannot be read
	}
	return !g.full, nil
}
