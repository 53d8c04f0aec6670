package workspace

import (
	"context"
	"fmt"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/plugins/workspace/edit"
	"github.com/boughdev/bough/plugins/workspace/folder"
)

type fileEditInput struct {
	FilePath   string `json:"filePath"`
	OldString  string `json:"oldString"`
	NewString  string `json:"newString"`
	ReplaceAll bool   `json:"replaceAll"`
}

func fileEdit(_ context.Context, c *call) (tool.Result, error) {
	var in fileEditInput
	if err := c.decode(&in); err != nil {
		return tool.Result{}, err
	}
	place, err := c.folder.Find(in.FilePath)
	if err != nil {
		return tool.Result{}, err
	}
	defer c.w.locks.take(place.Path)()
	old, err := place.Load()
	if err != nil {
		err = c.missing(place, err)
		return tool.Result{Files: c.sawGone(err)}, err
	}
	if err := c.s.current(place, old); err != nil {
		return tool.Result{}, err
	}
	changes, lines, err := edit.Parse(old.Data).Replace(in.OldString, in.NewString, in.ReplaceAll)
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s: %w", shown(place.Name), err)
	}
	sum, links, err := put(place, edit.Apply(old.Data, changes), old)
	if err != nil {
		return tool.Result{}, err
	}
	text := fmt.Sprintf("%s was edited at line %d.\n", shown(place.Name), lines[0])
	if len(lines) > 1 {
		text = fmt.Sprintf("%s was edited at %d places, the first at line %d.\n", shown(place.Name), len(lines), lines[0])
	}
	return tool.Result{
		Text:    text + otherNames(links),
		Files:   c.saw(c.written(place, sum)),
		Details: details(map[string]any{"files": []fileChange{changed(place.Name, "edited", edit.Summarize(old.Data, changes))}}),
	}, nil
}

// written is the state of a file of which a part was changed: the model knows
// all of it if it did before.
func (c *call) written(p folder.Place, sum folder.Sum) tool.FileState {
	seen, _ := c.s.last(p.Path)
	return tool.FileState{Path: p.Path, SHA256: sum[:], Written: true, Partial: !seen.whole}
}
