package search

import (
	"cmp"
	"context"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/boughdev/bough/plugins/workspace/folder"
)

// mostFound bounds how many files one search by name remembers.
const mostFound = 200_000

// Found are the files of a search by name.
type Found struct {
	Names []string // as a person calls them, the newest first
	More  bool     // there may be more than were remembered
	Partial
}

// Find finds the files below a folder that a filter chooses by their paths
// relative to it.
func Find(ctx context.Context, f *folder.Folder, start folder.Place, filter *Filter) (Found, error) {
	type file struct {
		name    string
		changed time.Time
	}
	var files []file
	var found Found
	prefix := relativeTo(start)
	partial, err := below(ctx, f, start, func(p folder.Place, e fs.DirEntry) bool {
		if !filter.Match(strings.TrimPrefix(p.Name, prefix)) {
			return true
		}
		if len(files) == mostFound {
			found.More = true
			return false
		}
		file := file{name: p.Name}
		if info, err := p.Lstat(); err == nil { // else it is gone by now
			file.changed = info.ModTime()
		}
		files = append(files, file)
		return true
	})
	if err != nil {
		return found, err
	}
	slices.SortStableFunc(files, func(a, b file) int {
		return cmp.Or(b.changed.Compare(a.changed), strings.Compare(a.name, b.name))
	})
	for _, file := range files {
		found.Names = append(found.Names, file.name)
	}
	found.Partial = partial
	return found, ctx.Err()
}

// relativeTo is what the names of all files below a folder begin with.
func relativeTo(start folder.Place) string {
	switch start.Name {
	case ".":
		return ""
	case "/":
		return "/"
	}
	return start.Name + "/"
}
