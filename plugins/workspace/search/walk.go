package search

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/boughdev/bough/plugins/workspace/folder"
)

// Partial says what a search could not look at.
type Partial struct {
	OutOfTime  bool
	Unreadable int // folders and files
}

// walk visits the files below a folder, by name.
type walk struct {
	ctx     context.Context
	visit   func(file folder.Place, entry fs.DirEntry) (goOn bool)
	Partial // what it could not see
}

// below walks a folder. It is looked into even if it is itself ignored: its
// name was asked for.
func below(ctx context.Context, f *folder.Folder, start folder.Place, visit func(folder.Place, fs.DirEntry) bool) (Partial, error) {
	w := walk{ctx: ctx, visit: visit}
	files, err := outerRules(f, start)
	if err != nil {
		return w.Partial, err
	}
	entries, err := start.ReadDir()
	if err != nil {
		return w.Partial, err
	}
	w.entries(start, entries, files)
	w.OutOfTime = errors.Is(ctx.Err(), context.DeadlineExceeded)
	return w.Partial, nil
}

// outerRules are those of the folders above a place, as far as they are in the
// session's folder.
func outerRules(f *folder.Folder, start folder.Place) ([]rules, error) {
	if start.Name == "." || start.Name == start.Path {
		return nil, nil
	}
	at, err := f.Find(f.Path())
	if err != nil {
		return nil, err
	}
	var files []rules
	for part := range strings.SplitSeq(start.Name, "/") {
		if r, ok := readRules(at); ok {
			files = append(files, r)
		}
		at = at.Sub(part)
	}
	return files, nil
}

// readRules reads the .gitignore file of a folder; false: there is none that
// can be read.
func readRules(dir folder.Place) (rules, bool) {
	const most = 1 << 20
	file, _, err := dir.Sub(".gitignore").Open()
	if err != nil {
		return rules{}, false
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return rules{}, false
	}
	base := dir.Name
	if base == "." {
		base = ""
	}
	return parseRules(base, text), true
}

// folder visits what is in a folder; false: the walk is over.
func (w *walk) folder(dir folder.Place, files []rules) bool {
	entries, err := dir.ReadDir()
	if err != nil {
		w.Unreadable++
	}
	return w.entries(dir, entries, files)
}

func (w *walk) entries(dir folder.Place, entries []fs.DirEntry, files []rules) bool {
	if w.ctx.Err() != nil {
		return false
	}
	for _, e := range entries {
		if e.Name() == ".gitignore" {
			if r, ok := readRules(dir); ok {
				files = append(files[:len(files):len(files)], r)
			}
		}
	}
	for _, e := range entries {
		place := dir.Sub(e.Name())
		switch {
		case secret(e.Name()) || ignored(files, place.Name, e.IsDir()):
		case e.IsDir():
			if !w.folder(place, files) {
				return false
			}
		case !w.visit(place, e):
			return false
		}
	}
	return true
}
