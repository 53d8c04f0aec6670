// Package workspace is the local workspace: the tools that read, search and
// change the files of sessions and run shell commands there. It is what
// `bough plugin serve workspace` serves; docs/tools.md describes the tools.
//
// File tools stay within their session's folder. The shell does not: whether a
// command may run is for the host's policy to decide before it calls.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs"
	"github.com/boughdev/bough/host/tool/outputs/lines"
	"github.com/boughdev/bough/host/workspace"
	"github.com/boughdev/bough/plugins/workspace/folder"
	"github.com/boughdev/bough/plugins/workspace/shell"
)

// Options are a workspace's settings.
type Options struct {
	// OutputsDir is where whole outputs are kept, tool-output in the state
	// directory. It is made when it is first written to.
	OutputsDir string
	// AllowOutside lets the file tools leave their session's folder.
	AllowOutside bool
	// Bash is the absolute path of the shell; empty: BOUGH_BASH, or else where
	// bash usually is.
	Bash string
	// Limits bound what a model is shown of one result; zero: the defaults.
	// The host has its own, which may be stricter.
	Limits tool.Limits
	Logger *slog.Logger // nil: slog.Default()
}

// Workspace runs tools for any number of sessions. Its methods may be called
// from any goroutine.
type Workspace struct {
	outside bool
	limits  tool.Limits
	outputs *outputs.Store
	shell   *shell.Runner
	locks   locks

	mu       sync.Mutex
	stopped  bool
	sessions map[string]*session
}

var _ workspace.Workspace = (*Workspace)(nil)

// New is a workspace without sessions. It makes this process the reaper of its
// descendants; see package shell for what that asks of the rest of the process.
func New(o Options) *Workspace {
	if o.Limits.Bytes <= 0 {
		o.Limits.Bytes = outputs.DefaultBytes
	}
	if o.Limits.Lines <= 0 {
		o.Limits.Lines = outputs.DefaultLines
	}
	return &Workspace{
		outside:  o.AllowOutside,
		limits:   o.Limits,
		outputs:  outputs.New(o.OutputsDir),
		shell:    shell.New(shell.Options{Bash: o.Bash, Logger: o.Logger}),
		sessions: map[string]*session{},
	}
}

// Tools implements tool.Provider.
func (w *Workspace) Tools(context.Context) ([]tool.Spec, error) { return Specs() }

// Open implements workspace.Workspace. The folder need not be there yet; a
// call in one that is not there fails and says so.
func (w *Workspace) Open(_ context.Context, s workspace.Session) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stopped:
		return errStopped
	case s.ID == "":
		return errors.New("open a session: it has no id")
	case !strings.HasPrefix(s.Folder, "/"):
		return fmt.Errorf("open session %s: its folder %q is not absolute", s.ID, s.Folder)
	}
	known := w.sessions[s.ID]
	if known == nil {
		known = newSession(s.ID)
		w.sessions[s.ID] = known
	}
	known.open(s)
	return nil
}

// Close implements workspace.Workspace. Closing a session that is not open is
// no error.
func (w *Workspace) Close(ctx context.Context, id string) error {
	w.mu.Lock()
	s := w.sessions[id]
	delete(w.sessions, id)
	w.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.close(ctx)
}

var errStopped = errors.New("the workspace is stopping")

// Stop closes all sessions and opens no more: it is what a plugin does when its
// host is gone.
func (w *Workspace) Stop(ctx context.Context) error {
	w.mu.Lock()
	w.stopped = true
	all := w.sessions
	w.sessions = map[string]*session{}
	w.mu.Unlock()
	for _, s := range all {
		s.cancel()
	}
	var errs []error
	for _, s := range all {
		errs = append(errs, s.close(ctx))
	}
	return errors.Join(errs...)
}

// call is one use of a tool.
type call struct {
	tool.Call
	w        *Workspace
	s        *session
	folder   *folder.Folder // nil for tools that touch no files
	progress func(tool.Progress)
}

// Call implements tool.Provider.
func (w *Workspace) Call(ctx context.Context, c tool.Call, progress func(tool.Progress)) (tool.Result, error) {
	t, known := tools[c.Tool]
	if !known {
		return tool.Result{}, &tool.UnknownError{Name: c.Tool, Near: tool.Nearest(c.Tool, names())}
	}
	w.mu.Lock()
	s := w.sessions[c.Session]
	entered := s != nil && s.enter()
	w.mu.Unlock()
	if !entered {
		return tool.Result{}, fmt.Errorf("session %s is not open in the workspace", c.Session)
	}
	defer s.calls.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	this := &call{Call: c, w: w, s: s, progress: progress}
	result, err := this.run(ctx, t)
	if err != nil {
		result.Error = true
		result.Text = lines.Visible([]byte(err.Error()))
	}
	result.Interrupted = result.Interrupted || ctx.Err() != nil
	return this.bound(result, t), nil
}

// run opens the session's folder and runs the tool.
func (c *call) run(ctx context.Context, t toolKind) (tool.Result, error) {
	if !t.noFiles {
		var err error
		if c.folder, err = folder.Open(c.s.path(), c.w.outside); err != nil {
			return tool.Result{}, err
		}
		defer c.folder.Close()
	}
	return t.run(ctx, c)
}

// retained is from how many bytes on the whole text of a result is kept, so
// that the host can take it out of old requests and the model can still get at
// it.
const retained = 8 << 10

// bound keeps the whole of a long text and cuts it to what a model is shown.
func (c *call) bound(r tool.Result, t toolKind) tool.Result {
	fits := c.w.limits.Fits(r.Text)
	if t.notKept || (fits && len(r.Text) <= retained) || r.OutputID != "" {
		if !fits {
			r.Text = outputs.Bound([]byte(r.Text), c.w.limits, r.OutputID)
		}
		return r
	}
	// What is there is kept, even of a call that was interrupted.
	id, err := c.w.outputs.KeepAs(context.Background(), c.Session, c.Tool, []byte(r.Text))
	if err != nil {
		id = ""
	}
	r.OutputID = id
	if !fits {
		r.Text = outputs.Bound([]byte(r.Text), c.w.limits, id)
		if err != nil {
			r.Text += fmt.Sprintf("\n[the whole output could not be kept: %v]", err)
		}
	}
	return r
}
