package workspace

import (
	"fmt"
	"strings"
	"time"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs"
	"github.com/boughdev/bough/host/tool/outputs/lines"
	"github.com/boughdev/bough/plugins/workspace/shell"
)

const defaultTimeout = 120 // seconds

func (w *Workspace) runShell(c *call) (tool.Result, error) {
	var in struct {
		Command    string
		TimeoutSec int
		Workdir    string
	}
	if err := c.input(&in); err != nil {
		return failed(err), nil
	}
	if in.TimeoutSec == 0 {
		in.TimeoutSec = defaultTimeout
	}
	dir := c.dir.Path()
	if in.Workdir != "" {
		place, info, err := c.top(in.Workdir)
		if err != nil {
			return failed(fmt.Errorf("workdir: %w", err)), nil
		}
		if !info.IsDir() {
			return failed(fmt.Errorf("workdir: %s is not a folder", place.Name)), nil
		}
		dir = place.Path
	}
	producer := outputs.Label(in.Command)
	if producer == "" {
		producer = "shell"
	}
	// What fits the model is not kept as a file.
	whole := w.keep.Writer(c.Session, producer, outputs.DefaultBytes)
	excerpt := outputs.NewExcerpt(tool.Limits{})
	show := newTrickle(c.progress)
	end, err := w.shell.Run(c.ctx, shell.Command{
		Line: in.Command, Dir: dir, Timeout: time.Duration(in.TimeoutSec) * time.Second,
		Output: func(p []byte) {
			whole.Write(p)   //nolint:errcheck // Finish tells
			excerpt.Write(p) //nolint:errcheck // it never fails
			show.write(p)
		},
	})
	id, keepErr := whole.Finish()
	if err != nil {
		return failed(err), nil
	}
	show.flush()
	if bytes, n := excerpt.Size(); id == "" && n > outputs.DefaultLines && keepErr == nil && bytes > 0 {
		// Many short lines: the writer kept nothing, and the excerpt leaves some out.
		if text, fits := excerpt.Whole(); !fits {
			id, keepErr = w.keep.KeepAs(c.ctx, c.Session, producer, []byte(text))
		}
	}
	return shellResult(end, excerpt.Text(id), id, keepErr, in.TimeoutSec), nil
}

func shellResult(end shell.Ending, text, id string, keepErr error, timeout int) tool.Result {
	var notes []string
	switch {
	case end.TimedOut:
		notes = append(notes, fmt.Sprintf("stopped after the time limit of %d s", timeout))
	case end.Cancelled:
		notes = append(notes, "stopped")
	case end.Signal != "":
		notes = append(notes, "ended by "+end.Signal)
	default:
		notes = append(notes, fmt.Sprintf("exit code %d", end.Exit))
	}
	if len(end.Left) > 0 {
		notes = append(notes, "background processes were ended: "+strings.Join(end.Left, ", "))
	}
	if len(end.Stuck) > 0 {
		notes = append(notes, fmt.Sprintf("processes that could not be ended: %v", end.Stuck))
	}
	if keepErr != nil {
		notes = append(notes, fmt.Sprintf("the whole output could not be kept: %v", keepErr))
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return tool.Result{
		Text: text + "(" + strings.Join(notes, "; ") + ")", Error: end.Exit != 0 || end.TimedOut || end.Cancelled || end.Signal != "",
		OutputID: id, Interrupted: end.Cancelled,
		Details: details(map[string]any{
			"exit_code": end.Exit, "signal": end.Signal, "timed_out": end.TimedOut, "duration_ms": end.Duration.Milliseconds(), "left": end.Left,
		}),
	}
}

// trickle hands output on for the person to watch: at most some of it a
// second, since nobody reads more.
type trickle struct {
	to      func(tool.Progress)
	pending []byte
	last    time.Time
}

const (
	trickleEvery = 50 * time.Millisecond
	trickleBytes = 16 << 10
)

func newTrickle(to func(tool.Progress)) *trickle { return &trickle{to: to} }

func (t *trickle) write(p []byte) {
	if t.to == nil {
		return
	}
	if t.pending = append(t.pending, p...); len(t.pending) > trickleBytes {
		t.pending = t.pending[len(t.pending)-trickleBytes:] // the newest is of interest
	}
	if time.Since(t.last) >= trickleEvery {
		t.flush()
	}
}

func (t *trickle) flush() {
	if t.to != nil && len(t.pending) > 0 {
		t.to(tool.Progress{Stream: tool.Stdout, Data: append([]byte(nil), t.pending...)})
		t.pending, t.last = t.pending[:0], time.Now()
	}
}

func (w *Workspace) readOutput(c *call) (tool.Result, error) {
	var in struct {
		OutputID      string `json:"output_id"`
		Pattern       string
		Offset        int64
		Limit         int
		ByteOffset    *int64 `json:"byte_offset"`
		ContextBefore int    `json:"context_before"`
		ContextAfter  int    `json:"context_after"`
	}
	if err := c.input(&in); err != nil {
		return failed(err), nil
	}
	switch {
	case in.Pattern != "":
		pattern, err := lines.Compile(in.Pattern)
		if err != nil {
			return failed(fmt.Errorf("pattern: %w", err)), nil
		}
		if in.Limit == 0 {
			in.Limit = outputs.DefaultMatches
		}
		q := lines.Query{Pattern: pattern, Before: in.ContextBefore, After: in.ContextAfter}
		found, err := w.keep.Search(c.ctx, c.Session, in.OutputID, q, min(in.Limit, outputs.MaxMatches), readBytes)
		if err != nil {
			return stopped(c, "", err), nil
		}
		text := found.Text
		if found.Count == 0 {
			text = "nothing matches " + in.Pattern
		} else if found.More {
			text += fmt.Sprintf("(there may be more than these %d matches)\n", found.Count)
		}
		return tool.Result{Text: text}, nil
	case in.ByteOffset != nil:
		data, size, err := w.keep.Bytes(c.Session, in.OutputID, *in.ByteOffset, readBytes)
		if err != nil {
			return failed(err), nil
		}
		return tool.Result{Text: fmt.Sprintf("%s\n(bytes %d to %d of %d)", lines.Visible(data), *in.ByteOffset, *in.ByteOffset+int64(len(data)), size)}, nil
	}
	if in.Limit == 0 {
		in.Limit = outputs.DefaultReadLines
	}
	page, err := w.keep.Lines(c.Session, in.OutputID, max(1, in.Offset), min(in.Limit, outputs.MaxReadLines), readBytes)
	if err != nil {
		return failed(err), nil
	}
	var b strings.Builder
	for _, l := range page.Lines {
		fmt.Fprintf(&b, "%6d\t%s\n", l.Number, lines.Visible(l.Text))
	}
	fmt.Fprintf(&b, "(%d of %d lines)\n", len(page.Lines), page.Total)
	return tool.Result{Text: b.String()}, nil
}
