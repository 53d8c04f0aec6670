package workspace

import (
	"errors"
	"fmt"
	"strings"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/plugins/workspace/edit"
	"github.com/boughdev/bough/plugins/workspace/folder"
	"github.com/boughdev/bough/plugins/workspace/patch"
)

// step is one file of a patch, worked out and staged.
type step struct {
	place   folder.Place
	old     *folder.File // to be removed after a move or by a delete
	staged  *folder.Staged
	says    string
	summary edit.Summary
}

// applyPatch works everything out, then writes all new contents beside their
// places, and only then puts them in place: what cannot be done is known before
// anything has changed.
func (w *Workspace) applyPatch(c *call) (tool.Result, error) {
	var in struct{ PatchText string }
	if err := c.input(&in); err != nil {
		return failed(err), nil
	}
	p, err := patch.Parse(in.PatchText)
	if err != nil {
		return failed(err), nil
	}
	var steps []step
	discard := func(err error) tool.Result {
		for _, s := range steps {
			if s.staged != nil {
				err = errors.Join(err, s.staged.Discard())
			}
		}
		return failed(fmt.Errorf("%w; nothing was changed", err))
	}
	touched := map[string]bool{}
	for i := range p.Files {
		s, err := c.stage(&p.Files[i])
		if err == nil && touched[s.place.Path] {
			err = fmt.Errorf("the patch has %s twice", s.place.Name)
		}
		if s.staged != nil || err == nil {
			steps = append(steps, s)
		}
		if err != nil {
			return discard(err), nil
		}
		touched[s.place.Path] = true
	}
	return c.commit(steps), nil
}

// stage works out one file of a patch.
func (c *call) stage(f *patch.File) (step, error) {
	place, err := c.dir.Find(f.Path)
	if err != nil {
		return step{}, err
	}
	if f.Op == patch.Add {
		old, err := load(place)
		if err != nil {
			return step{}, err
		}
		if old != nil {
			return step{}, fmt.Errorf("%s is there already: use *** Update File", place.Name)
		}
		staged, err := place.Stage([]byte(f.Content), nil)
		return step{place: place, staged: staged, says: "added " + place.Name, summary: edit.Created([]byte(f.Content))}, err
	}
	file, err := place.Load()
	if err != nil {
		return step{}, notThere(place, err)
	}
	if err := c.session.fresh(file); err != nil {
		return step{}, err
	}
	if f.Op == patch.Delete {
		return step{place: place, old: file, says: "deleted " + place.Name}, nil
	}
	changes, _, err := f.Changes(edit.Parse(file.Data))
	if err != nil {
		return step{}, err
	}
	s := step{place: place, says: "changed " + place.Name, summary: edit.Summarize(file.Data, changes)}
	data := edit.Apply(file.Data, changes)
	if f.MoveTo == "" {
		s.staged, err = place.Stage(data, file)
		return s, err
	}
	if s.place, err = c.dir.Find(f.MoveTo); err != nil {
		return s, err
	}
	s.old, s.says = file, "moved "+place.Name+" to "+s.place.Name
	s.staged, err = s.place.StageAs(data, file)
	return s, err
}

// commit puts everything in place and tells how far it got.
func (c *call) commit(steps []step) tool.Result {
	var r tool.Result
	var done []string
	var diffs strings.Builder
	for i := range steps {
		s := &steps[i]
		if err := c.commitStep(s, &r); err != nil {
			for _, rest := range steps[i:] {
				if rest.staged != nil {
					err = errors.Join(err, rest.staged.Discard())
				}
			}
			r.Error = true
			r.Text = fmt.Sprintf("%v\nDone before that: %s", err, strings.Join(append(done, ""), "; "))
			return r
		}
		done = append(done, s.says)
		diffs.WriteString(s.summary.Diff)
	}
	r.Text = strings.Join(done, "\n")
	r.Details = details(map[string]any{"files": len(steps), "diff": diffs.String()})
	return r
}

func (c *call) commitStep(s *step, r *tool.Result) error {
	if s.staged != nil {
		sum, err := s.staged.Commit()
		if err != nil {
			return err
		}
		c.session.saw(s.place.Path, sum)
		r.Files = append(r.Files, tool.FileState{Path: s.place.Path, SHA256: sum[:], Written: true})
	}
	if s.old != nil {
		if err := s.old.Remove(); err != nil {
			return err
		}
		c.session.forget(s.old.Path)
		r.Files = append(r.Files, tool.FileState{Path: s.old.Path, Written: true})
	}
	return nil
}
