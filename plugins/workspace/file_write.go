package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/plugins/workspace/edit"
	"github.com/boughdev/bough/plugins/workspace/folder"
)

type fileWriteInput struct {
	FilePath string  `json:"filePath"`
	Content  *string `json:"content"`
}

func fileWrite(_ context.Context, c *call) (tool.Result, error) {
	var in fileWriteInput
	if err := c.decode(&in); err != nil {
		return tool.Result{}, err
	}
	if in.Content == nil {
		return tool.Result{}, errors.New("the input of file_write has no content: give all of the new content")
	}
	place, err := c.folder.Find(in.FilePath)
	if err != nil {
		return tool.Result{}, err
	}
	defer c.w.locks.take(place.Path)()
	old, err := load(place)
	if err != nil {
		return tool.Result{}, err
	}
	content := []byte(*in.Content)
	if old != nil && bytes.Equal(old.Data, content) {
		return tool.Result{
			Text:  fmt.Sprintf("%s has this content already; nothing was written.\n", shown(place.Name)),
			Files: c.saw(tool.FileState{Path: place.Path, SHA256: old.Sum[:]}),
		}, nil
	}
	if err := c.s.replaceable(place, old); err != nil {
		return tool.Result{}, err
	}
	sum, links, err := put(place, content, old)
	if err != nil {
		return tool.Result{}, err
	}
	what, change := "made", edit.Created(content)
	if old != nil {
		what, change = "replaced", edit.Summarize(old.Data, edit.Between(old.Data, content))
	}
	ends := edit.Ends{}
	ends.Count(content, 0)
	text := fmt.Sprintf("%s was %s: %s, %s.\n", shown(place.Name), what,
		count(len(edit.SplitLines(string(content))), "line", "lines"), count(len(content), "byte", "bytes"))
	return tool.Result{
		Text:    text + otherEnds(old, ends) + otherNames(links),
		Files:   c.saw(tool.FileState{Path: place.Path, SHA256: sum[:], Written: true}),
		Details: details(map[string]any{"files": []fileChange{changed(place.Name, what, change)}}),
	}, nil
}

// load reads the file at a place; nil: there is none.
func load(p folder.Place) (*folder.File, error) {
	file, err := p.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return file, err
}

// put writes a content in the place of an old one.
func put(p folder.Place, content []byte, old *folder.File) (sum folder.Sum, links int, err error) {
	staged, err := p.Stage(content, old)
	if err != nil {
		return sum, 0, err
	}
	sum, err = staged.Commit()
	return sum, staged.Links, err
}

// otherEnds says that a file has other line ends than before.
func otherEnds(old *folder.File, now edit.Ends) string {
	if old == nil {
		return ""
	}
	var before edit.Ends
	before.Count(old.Data, 0)
	if before == (edit.Ends{}) || now == (edit.Ends{}) || before.Usual() == now.Usual() {
		return ""
	}
	return fmt.Sprintf("[its lines ended with %q before and end with %q now]\n", before.Usual(), now.Usual())
}

// otherNames says that a file had other names, which are another file now.
func otherNames(links int) string {
	if links == 0 {
		return ""
	}
	return fmt.Sprintf("[the file has %s (hard links), which keep the old content]\n", count(links, "other name", "other names"))
}

// fileChange is a changed file in the details of a result.
type fileChange struct {
	Path    string `json:"path"`
	MovedTo string `json:"moved_to,omitempty"`
	Change  string `json:"change"` // made, replaced, edited, moved, deleted
	Added   int    `json:"added"`  // lines
	Removed int    `json:"removed"`
	Diff    string `json:"diff,omitempty"`
}

func changed(name, what string, s edit.Summary) fileChange {
	return fileChange{Path: name, Change: what, Added: s.Added, Removed: s.Removed, Diff: s.Diff}
}
