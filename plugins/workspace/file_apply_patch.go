package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/plugins/workspace/edit"
	"github.com/boughdev/bough/plugins/workspace/folder"
	"github.com/boughdev/bough/plugins/workspace/patch"
)

type fileApplyPatchInput struct {
	PatchText string `json:"patchText"`
}

func fileApplyPatch(_ context.Context, c *call) (tool.Result, error) {
	var in fileApplyPatchInput
	if err := c.decode(&in); err != nil {
		return tool.Result{}, err
	}
	parsed, err := patch.Parse(in.PatchText)
	if err != nil {
		return tool.Result{}, fmt.Errorf("nothing was changed: %w", err)
	}
	plan, err := c.planPatch(parsed)
	if err != nil {
		return tool.Result{}, fmt.Errorf("nothing was changed: %w", err)
	}
	defer plan.unlock()
	if err := plan.prepare(c.s); err != nil {
		return tool.Result{Files: c.sawGone(err)}, fmt.Errorf("nothing was changed:\n%w", err)
	}
	return plan.carryOut(c)
}

// patchPlan is what a patch does, worked out before anything is done.
type patchPlan struct {
	steps  []*patchStep
	unlock func()
}

// patchStep is what a patch does to one file.
type patchStep struct {
	file  *patch.File
	place folder.Place
	to    folder.Place // of a file that moves

	old     *folder.File   // nil: the file is new
	changes []edit.Change  // of an old file
	staged  *folder.Staged // nil: the file is deleted, or was written
	loose   bool
}

func (s *patchStep) moves() bool { return s.file.MoveTo != "" }

// planPatch finds the files of a patch and locks them.
func (c *call) planPatch(p *patch.Patch) (*patchPlan, error) {
	plan := &patchPlan{}
	lines := map[string]int{}
	place := func(name string, line int) (folder.Place, error) {
		found, err := c.folder.Find(name)
		if err != nil {
			return found, err
		}
		if before, twice := lines[found.Path]; twice {
			return found, fmt.Errorf("lines %d and %d of the patch are both about %s: put all that happens to a file in one place", before, line, shown(found.Name))
		}
		lines[found.Path] = line
		return found, nil
	}
	for i := range p.Files {
		step := &patchStep{file: &p.Files[i]}
		var err error
		if step.place, err = place(step.file.Path, step.file.Line); err != nil {
			return nil, err
		}
		if step.moves() {
			if step.to, err = place(step.file.MoveTo, step.file.Line+1); err != nil {
				return nil, err
			}
		}
		plan.steps = append(plan.steps, step)
	}
	// All in the same order, so that two patches cannot wait for each other.
	var paths []string
	for path := range lines {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	var unlock []func()
	for _, path := range paths {
		unlock = append(unlock, c.w.locks.take(path))
	}
	plan.unlock = func() {
		for _, f := range unlock {
			f()
		}
	}
	return plan, nil
}

// prepare works all changes out and puts the new contents on the disk, next to
// the files. What is wrong with any of them is told of all at once, and then
// nothing stays.
func (p *patchPlan) prepare(s *session) error {
	var errs []error
	for _, step := range p.steps {
		errs = append(errs, step.read(s))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, step := range p.steps {
		if err := step.stage(); err != nil {
			return errors.Join(err, p.discard())
		}
	}
	return nil
}

func (p *patchPlan) discard() error {
	var errs []error
	for _, step := range p.steps {
		if step.staged != nil {
			errs = append(errs, step.staged.Discard())
			step.staged = nil
		}
	}
	return errors.Join(errs...)
}

// read reads the file of a step and works out its changes.
func (s *patchStep) read(session *session) (err error) {
	name := shown(s.place.Name)
	if s.old, err = load(s.place); err != nil {
		return err
	}
	if err := session.current(s.place, s.old); err != nil {
		return err
	}
	if s.file.Op == patch.Add {
		if s.old != nil {
			return fmt.Errorf("%s is there already: change it with %q, or delete it in a patch of its own", name, "*** Update File")
		}
		return nil
	}
	if s.old == nil {
		return &errGone{fmt.Errorf("%s does not exist", name), tool.FileState{Path: s.place.Path}}
	}
	if s.moves() {
		if err := s.readTarget(session); err != nil {
			return err
		}
	}
	if s.file.Op == patch.Update {
		s.changes, s.loose, err = s.file.Changes(edit.Parse(s.old.Data))
	}
	return err
}

// readTarget makes sure that a file can move to its new place.
func (s *patchStep) readTarget(session *session) error {
	there, err := load(s.to)
	if err != nil {
		return err
	}
	if there != nil {
		return fmt.Errorf("%s cannot move to %s, which is there already", shown(s.place.Name), shown(s.to.Name))
	}
	return session.current(s.to, nil)
}

// stage puts the new content of a step on the disk.
func (s *patchStep) stage() (err error) {
	switch {
	case s.file.Op == patch.Delete:
	case s.file.Op == patch.Add:
		s.staged, err = s.place.Stage([]byte(s.file.Content), nil)
	case s.moves():
		s.staged, err = s.to.StageAs(edit.Apply(s.old.Data, s.changes), s.old)
	default:
		s.staged, err = s.place.Stage(edit.Apply(s.old.Data, s.changes), s.old)
	}
	return err
}

// carryOut does what was planned. It can only fail where a file changes at this
// very moment or the disk breaks; then the result tells what was done.
func (p *patchPlan) carryOut(c *call) (tool.Result, error) {
	var text strings.Builder
	var r tool.Result
	var changes []fileChange
	for i, step := range p.steps {
		line, change, files, err := step.do(c)
		r.Files = append(r.Files, files...)
		if err != nil {
			for _, rest := range p.steps[i+1:] {
				fmt.Fprintf(&text, "not done: %s\n", shown(rest.place.Name))
			}
			r.Details = details(map[string]any{"files": changes})
			return r, errors.Join(fmt.Errorf("the patch was carried out only in part: %w\n%s", err, text.String()), p.discard())
		}
		text.WriteString(line)
		changes = append(changes, change)
	}
	r.Text = text.String()
	r.Details = details(map[string]any{"files": changes})
	return r, nil
}

// do does one step.
func (s *patchStep) do(c *call) (line string, change fileChange, files []tool.FileState, err error) {
	name := shown(s.place.Name)
	if s.file.Op == patch.Delete {
		if err := s.old.Remove(); err != nil {
			return "", change, nil, err
		}
		change = changed(s.place.Name, "deleted", edit.Summarize(s.old.Data, []edit.Change{{End: len(s.old.Data)}}))
		return name + " was deleted.\n", change, c.saw(tool.FileState{Path: s.place.Path, Written: true}), nil
	}
	seen, _ := c.s.last(s.place.Path)
	staged := s.staged
	s.staged = nil
	sum, err := staged.Commit()
	if err != nil {
		return "", change, nil, err
	}
	switch {
	case s.file.Op == patch.Add:
		files = c.saw(tool.FileState{Path: s.place.Path, SHA256: sum[:], Written: true})
		return name + " was made.\n", changed(s.place.Name, "made", edit.Created([]byte(s.file.Content))), files, nil
	case s.moves():
		files = c.saw(tool.FileState{Path: s.to.Path, SHA256: sum[:], Written: true, Partial: !seen.whole})
		if err := s.old.Remove(); err != nil {
			return "", change, files, fmt.Errorf("%s was made, but: %w", shown(s.to.Name), err)
		}
		files = append(files, c.saw(tool.FileState{Path: s.place.Path, Written: true})...)
		line = fmt.Sprintf("%s was moved to %s", name, shown(s.to.Name))
		change = changed(s.place.Name, "moved", edit.Summarize(s.old.Data, s.changes))
		change.MovedTo = s.to.Name
	default:
		files = c.saw(tool.FileState{Path: s.place.Path, SHA256: sum[:], Written: true, Partial: !seen.whole})
		line = name + " was changed"
		change = changed(s.place.Name, "edited", edit.Summarize(s.old.Data, s.changes))
	}
	if len(s.changes) > 0 {
		line += fmt.Sprintf(": %s added, %d removed", count(change.Added, "line", "lines"), change.Removed)
	}
	line += ".\n" + otherNames(staged.Links)
	if s.loose {
		line += "[white space of the patch and the file differ; the file's was kept]\n"
	}
	return line, change, files, nil
}
