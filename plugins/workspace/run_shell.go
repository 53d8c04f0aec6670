package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs"
	"github.com/boughdev/bough/host/tool/outputs/lines"
	"github.com/boughdev/bough/plugins/workspace/shell"
)

const (
	usualTimeout = 120   // seconds
	mostTimeout  = 21600 // seconds: six hours
	statusRoom   = 1000  // bytes for how it ended
	statusLines  = 8
)

type shellInput struct {
	Command    string  `json:"command"`
	TimeoutSec *number `json:"timeoutSec"`
	Workdir    string  `json:"workdir"`
}

func runShell(ctx context.Context, c *call) (tool.Result, error) {
	var in shellInput
	if err := c.decode(&in); err != nil {
		return tool.Result{}, err
	}
	timeout, err := between("timeoutSec", in.TimeoutSec, usualTimeout, 1, mostTimeout)
	if err != nil {
		return tool.Result{}, err
	}
	if strings.TrimSpace(in.Command) == "" {
		return tool.Result{}, errors.New("the command is empty")
	}
	// A command can change the folder by itself, so this is no confinement.
	dir := c.folder.Path()
	if filepath.IsAbs(in.Workdir) {
		dir = in.Workdir
	} else if in.Workdir != "" {
		dir += "/" + in.Workdir
	}
	out := newShellOutput(c, in.Command)
	ending, err := c.w.shell.Run(ctx, shell.Command{Line: in.Command, Dir: dir, Timeout: time.Duration(timeout) * time.Second, Output: out.add})
	out.watch.end()
	id, keeping := out.finish()
	if err != nil {
		return tool.Result{}, err
	}
	return out.result(ending, timeout, id, keeping), nil
}

// shellOutput takes what a command writes: whole for the disk, its ends for the
// model, some of it for the person who watches.
type shellOutput struct {
	excerpt *outputs.Excerpt
	whole   *outputs.Writer
	watch   *watch
}

func newShellOutput(c *call, command string) *shellOutput {
	producer := outputs.Label(command)
	if producer == "" {
		producer = "shell"
	}
	limits := c.w.limits
	limits.Bytes = max(limits.Bytes-statusRoom, limits.Bytes/2)
	limits.Lines = max(limits.Lines-statusLines, limits.Lines/2)
	return &shellOutput{
		excerpt: outputs.NewExcerpt(limits),
		whole:   c.w.outputs.Writer(c.Session, producer, retained),
		watch:   newWatch(c.progress),
	}
}

func (o *shellOutput) add(p []byte) {
	o.excerpt.Write(p) //nolint:errcheck // it never fails
	o.whole.Write(p)   //nolint:errcheck // Finish tells
	o.watch.add(p)
}

// finish makes what is kept durable. What the model is not shown whole is kept
// however short it is.
func (o *shellOutput) finish() (id string, err error) {
	if _, fits := o.excerpt.Whole(); !fits {
		o.whole.Keep()
	}
	return o.whole.Finish()
}

// shellDetails is the person's view of a command.
type shellDetails struct {
	ExitCode   *int     `json:"exit_code,omitempty"` // none when a signal ended it
	Signal     string   `json:"signal,omitempty"`
	TimedOut   bool     `json:"timed_out"`
	DurationMS int64    `json:"duration_ms"`
	Bytes      int64    `json:"output_bytes"`
	Lines      int64    `json:"output_lines"`
	Left       []string `json:"ended,omitempty"` // processes that it left running
	Stuck      []int    `json:"stuck,omitempty"` // processes that could not be ended
}

func (o *shellOutput) result(e shell.Ending, timeout int64, id string, keeping error) tool.Result {
	text := o.excerpt.Text(id)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	d := shellDetails{Signal: e.Signal, TimedOut: e.TimedOut, DurationMS: e.Duration.Milliseconds(), Left: e.Left, Stuck: e.Stuck}
	d.Bytes, d.Lines = o.excerpt.Size()
	if e.Exit >= 0 {
		d.ExitCode = &e.Exit
	}
	text += status(e, timeout)
	if keeping != nil {
		text += fmt.Sprintf("[the whole output could not be kept: %s]\n", lines.Visible([]byte(keeping.Error())))
	}
	return tool.Result{
		Text: text, Error: e.Exit != 0 && !e.Cancelled, Details: details(d), OutputID: id, Interrupted: e.Cancelled,
	}
}

// status says how a command ended.
func status(e shell.Ending, timeout int64) string {
	var b strings.Builder
	took := ""
	if e.Duration >= time.Second {
		took = fmt.Sprintf(" after %.1f s", e.Duration.Seconds())
	}
	switch {
	case e.Cancelled:
		fmt.Fprintf(&b, "[interrupted%s: it was ended with all that it had started]\n", took)
	case e.TimedOut:
		fmt.Fprintf(&b, "[timed out after %d s: it was ended with all that it had started; timeoutSec gives it longer]\n", timeout)
	case e.Signal != "":
		fmt.Fprintf(&b, "[ended by %s%s]\n", e.Signal, took)
	default:
		fmt.Fprintf(&b, "[exit code %d%s]\n", e.Exit, took)
	}
	if len(e.Left) > 0 {
		fmt.Fprintf(&b, "[it left processes running, which were ended: %s]\n", lines.Clip([]byte(strings.Join(e.Left, ", ")), 0, 200))
	}
	if len(e.Stuck) > 0 {
		fmt.Fprintf(&b, "[these processes could not be ended: %v]\n", e.Stuck[:min(len(e.Stuck), 20)])
	}
	return b.String()
}
