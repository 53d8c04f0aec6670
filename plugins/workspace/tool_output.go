package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs"
	"github.com/boughdev/bough/host/tool/outputs/lines"
)

type toolOutputInput struct {
	OutputID      string  `json:"output_id"`
	Pattern       string  `json:"pattern"`
	Offset        *number `json:"offset"`
	Limit         *number `json:"limit"`
	ByteOffset    *number `json:"byte_offset"`
	ContextBefore *number `json:"context_before"`
	ContextAfter  *number `json:"context_after"`
}

func toolOutput(ctx context.Context, c *call) (tool.Result, error) {
	var in toolOutputInput
	if err := c.decode(&in); err != nil {
		return tool.Result{}, err
	}
	at, err := between("byte_offset", in.ByteOffset, 0, 0, 1<<53)
	if err != nil {
		return tool.Result{}, err
	}
	switch {
	case at > 0 && (in.Pattern != "" || (in.Offset != nil && *in.Offset > 1)):
		return tool.Result{}, errors.New("byte_offset goes with limit only: leave pattern and offset out")
	case in.Pattern != "":
		return c.searchOutput(ctx, in)
	case at > 0:
		return c.outputBytes(in, at)
	}
	return c.outputLines(in)
}

// outputLines shows lines of an output.
func (c *call) outputLines(in toolOutputInput) (tool.Result, error) {
	offset, err := between("offset", in.Offset, 1, 1, 1<<53)
	if err != nil {
		return tool.Result{}, err
	}
	limit, err := between("limit", in.Limit, outputs.DefaultReadLines, 1, outputs.MaxReadLines)
	if err != nil {
		return tool.Result{}, err
	}
	limit = min(limit, int64(c.w.limits.Lines-4))
	page, err := c.w.outputs.Lines(c.Session, in.OutputID, offset, int(limit), c.w.limits.Bytes)
	if err != nil {
		return tool.Result{}, err
	}
	if offset > 1 && offset > page.Total {
		return tool.Result{}, fmt.Errorf("offset is %d, but the output has %s", offset, count(page.Total, "line", "lines"))
	}
	var text []byte
	last := offset - 1
	for _, l := range page.Lines {
		line := lines.Visible(l.Text)
		if l.Cut > 0 {
			line += fmt.Sprintf("[… %d more bytes of line %d, from byte_offset %d]", l.Cut, l.Number, l.Start+int64(len(l.Text)))
		}
		if len(text)+len(line) > c.w.limits.Bytes-noteRoom && len(text) > 0 {
			break
		}
		text = append(append(text, line...), '\n')
		last = l.Number
	}
	return tool.Result{Text: string(text) + more("lines", offset, last, page.Total, "offset", last+1)}, nil
}

// more says which part of an output was shown and how to go on.
func more(what string, first, last, total int64, field string, next int64) string {
	if last >= total {
		return fmt.Sprintf("[%s %d to %d, the end]\n", what, first, last)
	}
	return fmt.Sprintf("[%s %d to %d of %d; go on with %s %d]\n", what, first, last, total, field, next)
}

// outputBytes shows an output from a byte on.
func (c *call) outputBytes(in toolOutputInput, at int64) (tool.Result, error) {
	limit, err := between("limit", in.Limit, outputs.DefaultReadLines, 1, outputs.MaxReadLines)
	if err != nil {
		return tool.Result{}, err
	}
	data, size, err := c.w.outputs.Bytes(c.Session, in.OutputID, at, c.w.limits.Bytes)
	if err != nil {
		return tool.Result{}, err
	}
	if at >= size {
		return tool.Result{}, fmt.Errorf("byte_offset is %d, but the output has %s", at, count(size, "byte", "bytes"))
	}
	shown, used := lines.VisibleHead(data, c.w.limits.Bytes-noteRoom)
	if n := lines.Until(data[:used], int(min(limit, int64(c.w.limits.Lines-4)))); n < used {
		used = n
		shown = lines.AppendVisible(nil, data[:used])
	}
	text := string(shown)
	if used > 0 && data[used-1] != '\n' {
		text += "\n"
	}
	return tool.Result{Text: text + more("bytes", at, at+int64(used), size, "byte_offset", at+int64(used))}, nil
}

// searchOutput shows the lines of an output that match.
func (c *call) searchOutput(ctx context.Context, in toolOutputInput) (tool.Result, error) {
	var q lines.Query
	var err error
	if q.Pattern, err = lines.Compile(in.Pattern); err != nil {
		return tool.Result{}, err
	}
	offset, err := between("offset", in.Offset, 1, 1, 1<<53)
	if err != nil {
		return tool.Result{}, err
	}
	// One limit serves reading and searching, so a larger one is no mistake.
	limit, err := between("limit", in.Limit, outputs.DefaultMatches, 1, outputs.MaxReadLines)
	if err != nil {
		return tool.Result{}, err
	}
	before, err := between("context_before", in.ContextBefore, 0, 0, outputs.MaxContext)
	if err != nil {
		return tool.Result{}, err
	}
	after, err := between("context_after", in.ContextAfter, 0, 0, outputs.MaxContext)
	if err != nil {
		return tool.Result{}, err
	}
	q.Before, q.After = int(before), int(after)
	m, err := c.w.outputs.Search(ctx, c.Session, in.OutputID, outputs.Query{
		Query: q, From: offset, Max: int(min(limit, outputs.MaxMatches)), MaxBytes: c.w.limits.Bytes - 2*noteRoom,
	})
	if err != nil {
		return tool.Result{}, err
	}
	switch {
	case m.Count == 0:
		m.Text = fmt.Sprintf("No line matches %s.\n", shown(in.Pattern))
	case m.More:
		m.Text += fmt.Sprintf("[the first %s; go on with offset %d]\n", count(m.Count, "match", "matches"), m.Last+1)
	default:
		m.Text += fmt.Sprintf("[%s]\n", count(m.Count, "match", "matches"))
	}
	return tool.Result{Text: m.Text}, nil
}
