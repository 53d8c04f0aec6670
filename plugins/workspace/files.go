package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"crypto/sha256"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs"
	"github.com/boughdev/bough/host/tool/outputs/lines"
	"github.com/boughdev/bough/plugins/workspace/edit"
	"github.com/boughdev/bough/plugins/workspace/folder"
)

// Bounds of one reading.
const (
	readLines = 2000
	readBytes = outputs.DefaultBytes
	lineBytes = 2000
)

func (w *Workspace) readFile(c *call) (tool.Result, error) {
	var in struct {
		FilePath      string
		Offset, Limit int64
	}
	if err := c.input(&in); err != nil {
		return failed(err), nil
	}
	place, err := c.dir.Find(in.FilePath)
	if err != nil {
		return failed(err), nil
	}
	info, err := place.Lstat()
	if err != nil {
		return failed(notThere(place, err)), nil
	}
	if info.IsDir() {
		return listFolder(place)
	}
	file, info, err := place.Open()
	if err != nil {
		return failed(err), nil
	}
	defer file.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return failed(fmt.Errorf("read %s: %w", place.Name, err)), nil
	}
	if lines.Binary(head[:n]) {
		return failed(fmt.Errorf("%s is no text: %d bytes of binary data", place.Name, info.Size())), nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return failed(fmt.Errorf("read %s: %w", place.Name, err)), nil
	}
	sum := sha256.New()
	if in.Limit == 0 {
		in.Limit = readLines
	}
	page, err := lines.Read(io.TeeReader(file, sum), lines.Range{Offset: max(1, in.Offset), Limit: int(in.Limit), MaxBytes: readBytes, MaxLine: lineBytes})
	if err != nil {
		return failed(fmt.Errorf("read %s: %w", place.Name, err)), nil
	}
	whole := int64(len(page.Lines)) == page.Total
	state := folder.Sum(sum.Sum(nil))
	c.session.saw(place.Path, state)
	return tool.Result{
		Text: numbered(place, page, max(1, in.Offset)), Details: details(map[string]any{"path": place.Name, "lines": len(page.Lines), "total": page.Total}),
		Files: []tool.FileState{{Path: place.Path, SHA256: state[:], Partial: !whole}},
	}, nil
}

func notThere(p folder.Place, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no file %s; file_glob shows which there are", p.Name)
	}
	return err
}

func numbered(p folder.Place, page lines.Page, first int64) string {
	var b strings.Builder
	for _, l := range page.Lines {
		fmt.Fprintf(&b, "%6d\t%s", l.Number, lines.Visible(l.Text))
		if l.Cut > 0 {
			fmt.Fprintf(&b, " … (%d more bytes in this line)", l.Cut)
		}
		b.WriteByte('\n')
	}
	switch last := first + int64(len(page.Lines)) - 1; {
	case page.Total == 0:
		fmt.Fprintf(&b, "%s is empty\n", p.Name)
	case len(page.Lines) == 0:
		fmt.Fprintf(&b, "%s has only %d lines\n", p.Name, page.Total)
	case last < page.Total:
		fmt.Fprintf(&b, "(lines %d to %d of %d; offset %d reads on)\n", first, last, page.Total, last+1)
	}
	return b.String()
}

func listFolder(p folder.Place) (tool.Result, error) {
	entries, err := p.ReadDir()
	if err != nil {
		return failed(err), nil
	}
	var b strings.Builder
	for i, e := range entries {
		if i == readLines {
			fmt.Fprintf(&b, "(%d more)\n", len(entries)-i)
			break
		}
		name := lines.Visible([]byte(e.Name()))
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			name += " (a symbolic link)"
		case e.IsDir():
			name += "/"
		}
		b.WriteString(name + "\n")
	}
	if len(entries) == 0 {
		b.WriteString("the folder is empty\n")
	}
	return tool.Result{Text: b.String(), Details: details(map[string]any{"path": p.Name, "entries": len(entries)})}, nil
}

// details is a JSON object for the person's view.
func details(v map[string]any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil { // strings and numbers always encode
		return nil
	}
	return raw
}

// load reads the file at a place; nil when there is none.
func load(p folder.Place) (*folder.File, error) {
	f, err := p.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

func (w *Workspace) writeFile(c *call) (tool.Result, error) {
	var in struct{ FilePath, Content string }
	if err := c.input(&in); err != nil {
		return failed(err), nil
	}
	place, err := c.dir.Find(in.FilePath)
	if err != nil {
		return failed(err), nil
	}
	old, err := load(place)
	if err != nil {
		return failed(err), nil
	}
	data := []byte(in.Content)
	summary := edit.Created(data)
	what := "written"
	if old != nil {
		if err := c.session.fresh(old); err != nil {
			return failed(err), nil
		}
		summary = edit.Summarize(old.Data, []edit.Change{{Start: 0, End: len(old.Data), New: data}})
		what = "replaced"
	}
	return c.put(place, data, old, what, summary)
}

// put stages and commits one file and describes it.
func (c *call) put(p folder.Place, data []byte, old *folder.File, what string, s edit.Summary) (tool.Result, error) {
	staged, err := p.Stage(data, old)
	if err != nil {
		return failed(err), nil
	}
	sum, err := staged.Commit()
	if err != nil {
		return failed(errors.Join(err, staged.Discard())), nil
	}
	c.session.saw(p.Path, sum)
	text := fmt.Sprintf("%s was %s: %d lines added, %d removed.", p.Name, what, s.Added, s.Removed)
	if staged.Links > 0 {
		text += fmt.Sprintf(" It had %d other names (hard links); they keep the old content.", staged.Links)
	}
	return tool.Result{
		Text:    text,
		Details: details(map[string]any{"path": p.Name, "added": s.Added, "removed": s.Removed, "diff": s.Diff}),
		Files:   []tool.FileState{{Path: p.Path, SHA256: sum[:], Written: true}},
	}, nil
}

func (w *Workspace) editFile(c *call) (tool.Result, error) {
	var in struct {
		FilePath, OldString, NewString string
		ReplaceAll                     bool
	}
	if err := c.input(&in); err != nil {
		return failed(err), nil
	}
	if in.OldString == in.NewString {
		return failed(errors.New("oldString and newString are the same: there is nothing to change")), nil
	}
	place, err := c.dir.Find(in.FilePath)
	if err != nil {
		return failed(err), nil
	}
	file, err := place.Load()
	if err != nil {
		return failed(notThere(place, err)), nil
	}
	if err := c.session.fresh(file); err != nil {
		return failed(err), nil
	}
	changes, _, err := edit.Parse(file.Data).Replace(in.OldString, in.NewString, in.ReplaceAll)
	if err != nil {
		return failed(fmt.Errorf("%s: %w", place.Name, err)), nil
	}
	return c.put(place, edit.Apply(file.Data, changes), file, "changed", edit.Summarize(file.Data, changes))
}
