package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs/lines"
	"github.com/boughdev/bough/plugins/workspace/edit"
	"github.com/boughdev/bough/plugins/workspace/folder"
)

const (
	mostReadLines = 2000
	longestLine   = 2000 // bytes
	// largestRead is up to which size a file is read at all: its checksum and
	// the number of its lines need all of it.
	largestRead = 1 << 30
	noteRoom    = 300 // bytes for the line about what is not shown
)

type fileReadInput struct {
	FilePath string  `json:"filePath"`
	Offset   *number `json:"offset"`
	Limit    *number `json:"limit"`
}

func fileRead(ctx context.Context, c *call) (tool.Result, error) {
	var in fileReadInput
	if err := c.decode(&in); err != nil {
		return tool.Result{}, err
	}
	offset, err := between("offset", in.Offset, 1, 1, 1<<53)
	if err != nil {
		return tool.Result{}, err
	}
	limit, err := between("limit", in.Limit, mostReadLines, 1, 1<<53)
	if err != nil {
		return tool.Result{}, err
	}
	limit = min(limit, int64(min(mostReadLines, c.w.limits.Lines-4)))
	place, err := c.folder.Find(in.FilePath)
	if err != nil {
		return tool.Result{}, err
	}
	defer c.w.locks.take(place.Path)()
	info, err := place.Lstat()
	if err != nil {
		err = c.missing(place, err)
		return tool.Result{Files: c.sawGone(err)}, err
	}
	if info.IsDir() {
		return listFolder(c, place, offset, limit)
	}
	return c.readFile(ctx, place, offset, limit)
}

// missing names files that may have been meant where one is not there, and
// notes that the model knows that now.
func (c *call) missing(p folder.Place, err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = fmt.Errorf("%s does not exist", shown(p.Name))
	if entries, listing := p.Parent().ReadDir(); listing == nil {
		// Where nothing is near, Nearest gives all, this one too.
		far := strings.Repeat("\x00", 256)
		names := []string{far}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if near := tool.Nearest(p.Base(), names); !slices.Contains(near, far) {
			for i, name := range near {
				near[i] = shown(p.Parent().Sub(name).Name)
			}
			err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
		}
	}
	return &errGone{err, tool.FileState{Path: p.Path}}
}

// survey notes what a file's lines do not show while it is read.
type survey struct {
	ends Ends
	last byte
	size int64
	hash hash.Hash
}

// Ends counts line ends.
type Ends = edit.Ends

// Write implements io.Writer.
func (s *survey) Write(p []byte) (int, error) {
	if len(p) > 0 {
		s.ends.Count(p, s.last)
		s.last = p[len(p)-1]
		s.size += int64(len(p))
	}
	return s.hash.Write(p)
}

func (c *call) readFile(ctx context.Context, p folder.Place, offset, limit int64) (tool.Result, error) {
	file, info, err := p.Open()
	if err != nil {
		return tool.Result{}, err
	}
	defer file.Close()
	if info.Size() > largestRead {
		return tool.Result{}, fmt.Errorf("%s has %d MB, too much to read it as a whole: look at parts of it with the shell (head, tail, sed -n, grep)", shown(p.Name), info.Size()>>20)
	}
	head := make([]byte, 8000)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return tool.Result{}, fmt.Errorf("read %s: %w", shown(p.Name), err)
	}
	head = head[:n]
	if text, refused := notText(shown(p.Name), head, info.Size()); text != "" {
		return tool.Result{Text: text, Error: refused, Details: details(map[string]any{"path": p.Name, "bytes": info.Size()})}, nil
	}
	seen := &survey{hash: sha256.New()}
	lineEnd := byte('\n')
	if bytes.IndexByte(head, '\r') >= 0 && bytes.IndexByte(head, '\n') < 0 {
		lineEnd = '\r'
	}
	page, err := lines.Read(
		io.TeeReader(io.MultiReader(bytes.NewReader(head), untilDone{ctx, file}), seen),
		lines.Range{Offset: offset, Limit: int(limit), MaxBytes: c.w.limits.Bytes, MaxLine: longestLine, End: lineEnd},
	)
	if err != nil {
		return tool.Result{}, fmt.Errorf("read %s: %w", shown(p.Name), err)
	}
	if offset > 1 && offset > page.Total {
		return tool.Result{}, fmt.Errorf("offset is %d, but %s has %s", offset, shown(p.Name), count(page.Total, "line", "lines"))
	}
	return c.showPage(p, page, seen), nil
}

// untilDone is a reader that ends with its context.
type untilDone struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// showPage makes the text of a page, as many of its lines as fit.
func (c *call) showPage(p folder.Place, page lines.Page, seen *survey) tool.Result {
	var text []byte
	whole, last := true, int64(0)
	for _, l := range page.Lines {
		line := fmt.Appendf(nil, "%d\t%s", l.Number, showLine(l))
		if len(text)+len(line) > c.w.limits.Bytes-noteRoom && len(text) > 0 {
			break
		}
		whole = whole && l.Cut == 0
		text = append(append(text, line...), '\n')
		last = l.Number
	}
	first := int64(1)
	if len(page.Lines) > 0 {
		first = page.Lines[0].Number
	}
	whole = whole && first == 1 && last == page.Total
	var notes []string
	switch {
	case page.Size == 0:
		notes = append(notes, "the file is empty")
	case last < page.Total:
		notes = append(notes, fmt.Sprintf("lines %d to %d of %d; go on with offset %d", first, last, page.Total, last+1))
	case first > 1:
		notes = append(notes, fmt.Sprintf("lines %d to %d of %d, the last one", first, last, page.Total))
	}
	notes = append(notes, seen.notes(page)...)
	if len(notes) > 0 {
		text = fmt.Appendf(text, "[%s]\n", strings.Join(notes, "; "))
	}
	return tool.Result{
		Text:    string(text),
		Files:   c.saw(tool.FileState{Path: p.Path, SHA256: seen.hash.Sum(nil), Partial: !whole}),
		Details: details(map[string]any{"path": p.Name, "bytes": page.Size, "lines": page.Total, "first": first, "last": last}),
	}
}

func showLine(l lines.Line) string {
	text := l.Text
	if l.Number == 1 && l.Start == 0 && edit.HasMark(text) {
		text = text[len("\xef\xbb\xbf"):]
	}
	if l.Cut == 0 {
		text = bytes.TrimSuffix(text, []byte{'\r'})
		return lines.Visible(text)
	}
	return fmt.Sprintf("%s[… the line has %d more bytes]", lines.Visible(text), l.Cut)
}

// notes tell what the lines do not show of a file.
func (s *survey) notes(page lines.Page) []string {
	var notes []string
	if ends := s.ends.Describe(); ends != "" {
		notes = append(notes, ends)
	}
	if len(page.Lines) > 0 && page.Lines[0].Start == 0 && edit.HasMark(page.Lines[0].Text) {
		notes = append(notes, "UTF-8 byte order mark")
	}
	if s.size > 0 && s.last != '\n' && s.last != '\r' {
		notes = append(notes, "no line end at the end")
	}
	return notes
}

// listFolder lists a folder.
func listFolder(c *call, p folder.Place, offset, limit int64) (tool.Result, error) {
	entries, err := p.ReadDir()
	if err != nil {
		return tool.Result{}, err
	}
	if offset > 1 && offset > int64(len(entries)) {
		return tool.Result{}, fmt.Errorf("offset is %d, but the folder %s has %s", offset, shown(p.Name), count(len(entries), "entry", "entries"))
	}
	var text strings.Builder
	last := offset - 1
	for _, e := range entries[offset-1 : min(offset-1+limit, int64(len(entries)))] {
		line := listed(p.Sub(e.Name()), e)
		if text.Len()+len(line) > c.w.limits.Bytes-noteRoom {
			break
		}
		text.WriteString(line)
		last++
	}
	switch {
	case len(entries) == 0:
		text.WriteString("[the folder is empty]\n")
	case last < int64(len(entries)):
		fmt.Fprintf(&text, "[entries %d to %d of %d; go on with offset %d]\n", offset, last, len(entries), last+1)
	}
	return tool.Result{Text: text.String(), Details: details(map[string]any{"path": p.Name, "entries": len(entries)})}, nil
}

// listed is the line of an entry of a folder.
func listed(p folder.Place, e fs.DirEntry) string {
	name := shown(e.Name())
	switch {
	case e.IsDir():
		return name + "/\n"
	case e.Type()&fs.ModeSymlink != 0:
		target, err := p.Readlink()
		if err != nil {
			target = "?"
		}
		return fmt.Sprintf("%s -> %s\n", name, shown(target))
	case !e.Type().IsRegular():
		return fmt.Sprintf("%s (%s)\n", name, folder.Kind(e.Type()))
	}
	info, err := p.Lstat()
	if err != nil {
		return name + "\n" // it is gone by now
	}
	return fmt.Sprintf("%s\t%s\n", name, count(info.Size(), "byte", "bytes"))
}
