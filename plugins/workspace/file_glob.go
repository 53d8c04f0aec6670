package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/plugins/workspace/folder"
	"github.com/boughdev/bough/plugins/workspace/search"
)

const (
	// searchTime is how long a search may take before it answers with what it
	// has.
	searchTime = 20 * time.Second
	mostNames  = 1000
)

type fileGlobInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func fileGlob(ctx context.Context, c *call) (tool.Result, error) {
	var in fileGlobInput
	if err := c.decode(&in); err != nil {
		return tool.Result{}, err
	}
	pattern, err := c.relativePattern(in)
	if err != nil {
		return tool.Result{}, err
	}
	filter, err := search.NewFilter(pattern)
	if err != nil {
		return tool.Result{}, err
	}
	start, err := c.start(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	limited, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	found, err := search.Find(limited, c.folder, start, filter)
	if err != nil && limited.Err() == nil {
		return tool.Result{}, err
	}
	r := tool.Result{Details: details(map[string]any{"files": len(found.Names)})}
	if len(found.Names) == 0 {
		r.Text = fmt.Sprintf("No file matches %s.\n", shown(in.Pattern)) + partial(ctx, found.Partial)
		return r, nil
	}
	for i, name := range found.Names {
		found.Names[i] = shown(name)
	}
	all := strings.Join(found.Names, "\n") + "\n"
	r.Text = all
	if more := len(found.Names) - mostNames; more > 0 {
		r.Text = strings.Join(found.Names[:mostNames], "\n") + fmt.Sprintf("\n[%d older files are not shown", more)
		if id, err := c.w.outputs.KeepAs(ctx, c.Session, c.Tool, []byte(all)); err == nil {
			r.OutputID = id
			r.Text += fmt.Sprintf("; tool_output reads all of them, output_id %s", id)
		}
		r.Text += "]\n"
	}
	if found.More {
		r.Text += "[there may be more: give a narrower pattern]\n"
	}
	r.Text += partial(ctx, found.Partial)
	return r, nil
}

// relativePattern makes a pattern that begins with the session's folder
// relative to it: models write such.
func (c *call) relativePattern(in fileGlobInput) (string, error) {
	pattern := in.Pattern
	if filepath.IsAbs(pattern) {
		rel, inside := strings.CutPrefix(pattern, strings.TrimSuffix(c.folder.Path(), "/")+"/")
		if !inside || in.Path != "" {
			return "", fmt.Errorf("the pattern %s is absolute: give one that is relative to path", shown(pattern))
		}
		pattern = rel
		if !strings.Contains(rel, "/") {
			pattern = "./" + rel // not in every folder
		}
	}
	if slices.Contains(strings.Split(pattern, "/"), "..") {
		return "", fmt.Errorf("the pattern %s leads upwards: give the folder as path", shown(pattern))
	}
	return pattern, nil
}

// start is the place that a search begins at.
func (c *call) start(path string) (folder.Place, error) {
	if path == "" {
		path = "."
	}
	p, err := c.folder.Find(path)
	if err != nil {
		return p, err
	}
	if _, err = p.Lstat(); err != nil {
		var gone *errGone
		if err = c.missing(p, err); errors.As(err, &gone) {
			err = gone.error // it says nothing of a file
		}
	}
	return p, err
}

// partial says what a search did not see.
func partial(ctx context.Context, p search.Partial) string {
	var text string
	switch {
	case ctx.Err() != nil:
		text = "[interrupted: this is what was found up to then]\n"
	case p.OutOfTime:
		text = fmt.Sprintf("[stopped after %d s: this is what was found up to then; search a smaller folder]\n", int(searchTime.Seconds()))
	}
	if p.Unreadable > 0 {
		text += fmt.Sprintf("[%s could not be read]\n", count(p.Unreadable, "file or folder", "files or folders"))
	}
	return text
}
