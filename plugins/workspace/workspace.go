// Package workspace is the local workspace: the tools that read and write the
// person's files and run their shell. It runs in a process of its own; nothing
// else touches the files.
package workspace

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs"
	contract "github.com/boughdev/bough/host/workspace"
	"github.com/boughdev/bough/plugins/workspace/folder"
	"github.com/boughdev/bough/plugins/workspace/shell"
)

// Options are the settings of New.
type Options struct {
	// OutputsDir is where whole outputs are kept.
	OutputsDir string
	// AllowOutside lets paths lead out of the session's folder.
	AllowOutside bool
	Logger       *slog.Logger // default none
}

// Workspace implements the contract of the same name.
type Workspace struct {
	o     Options
	keep  *outputs.Store
	shell *shell.Runner
	mu    sync.Mutex
	known map[string]*session
}

// session is what is known of one session.
type session struct {
	folder string
	mu     sync.Mutex
	seen   map[string]folder.Sum // by path: what the model has read or written last
	calls  sync.WaitGroup
	ctx    context.Context
	stop   context.CancelFunc
}

var _ contract.Workspace = (*Workspace)(nil)

// New is a workspace without sessions.
func New(o Options) *Workspace {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Workspace{
		o: o, keep: outputs.New(o.OutputsDir), shell: shell.New(shell.Options{Logger: o.Logger}), known: map[string]*session{},
	}
}

//go:embed tools/*.md tools/*.json
var texts embed.FS

// operation is one tool: what it is, and how it is carried out.
type operation struct {
	name   string
	effect tool.Effect
	paths  []string
	run    func(w *Workspace, c *call) (tool.Result, error)
}

var operations = []operation{
	{"file_read", tool.EffectRead, []string{"filePath"}, (*Workspace).readFile},
	{"file_write", tool.EffectWrite, []string{"filePath"}, (*Workspace).writeFile},
	{"file_edit", tool.EffectWrite, []string{"filePath"}, (*Workspace).editFile},
	{"file_apply_patch", tool.EffectWrite, []string{"patchText"}, (*Workspace).applyPatch},
	{"file_glob", tool.EffectRead, []string{"path"}, (*Workspace).glob},
	{"file_grep", tool.EffectRead, []string{"path"}, (*Workspace).grep},
	{"shell", tool.EffectExecute, nil, (*Workspace).runShell},
	{"tool_output", tool.EffectNone, nil, (*Workspace).readOutput},
}

// Tools implements tool.Provider.
func (w *Workspace) Tools(context.Context) ([]tool.Spec, error) {
	var specs []tool.Spec
	for _, op := range operations {
		text, err := texts.ReadFile("tools/" + op.name + ".md")
		if err != nil {
			return nil, fmt.Errorf("the description of %s: %w", op.name, err)
		}
		schema, err := texts.ReadFile("tools/" + op.name + ".json")
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", op.name, err)
		}
		specs = append(specs, tool.Spec{
			Name: op.name, Description: strings.TrimSpace(string(text)), InputSchema: schema, Effect: op.effect, PathFields: op.paths,
		})
	}
	return specs, nil
}

// Open implements the contract.
func (w *Workspace) Open(_ context.Context, s contract.Session) error {
	seen := map[string]folder.Sum{}
	for _, f := range s.Seen {
		if len(f.SHA256) == len(folder.Sum{}) {
			seen[f.Path] = folder.Sum(f.SHA256)
		} else {
			delete(seen, f.Path)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if have := w.known[s.ID]; have != nil { // its calls go on
		have.mu.Lock()
		defer have.mu.Unlock()
		have.folder, have.seen = s.Folder, seen
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	w.known[s.ID] = &session{folder: s.Folder, seen: seen, ctx: ctx, stop: stop}
	return nil
}

// Close implements the contract.
func (w *Workspace) Close(ctx context.Context, id string) error {
	w.mu.Lock()
	s := w.known[id]
	delete(w.known, id)
	w.mu.Unlock()
	if s == nil {
		return nil
	}
	s.stop()
	done := make(chan struct{})
	go func() { s.calls.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end what runs for session %s: %w", id, ctx.Err())
	}
}

// call is one call under way.
type call struct {
	tool.Call
	ctx      context.Context
	session  *session
	dir      *folder.Folder
	progress func(tool.Progress)
}

// Call implements tool.Provider.
func (w *Workspace) Call(ctx context.Context, c tool.Call, progress func(tool.Progress)) (tool.Result, error) {
	for _, op := range operations {
		if op.name != c.Tool {
			continue
		}
		w.mu.Lock()
		s := w.known[c.Session]
		if s != nil {
			s.calls.Add(1)
		}
		w.mu.Unlock()
		if s == nil {
			return tool.Result{}, fmt.Errorf("the workspace does not know session %s: it was not opened", c.Session)
		}
		defer s.calls.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		return w.carryOut(op, &call{Call: c, ctx: ctx, session: s, progress: progress})
	}
	return tool.Result{}, fmt.Errorf("the workspace has no tool %q", c.Tool)
}

func (w *Workspace) carryOut(op operation, c *call) (tool.Result, error) {
	c.session.mu.Lock()
	path := c.session.folder
	c.session.mu.Unlock()
	dir, err := folder.Open(path, w.o.AllowOutside)
	if err != nil {
		return failed(fmt.Errorf("the session's folder cannot be used: %w", err)), nil
	}
	defer dir.Close()
	c.dir = dir
	return op.run(w, c)
}

// failed is the result of a tool that could not do what it was asked.
func failed(err error) tool.Result {
	return tool.Result{Text: err.Error(), Error: true}
}

// input reads the input of a call into v.
func (c *call) input(v any) error {
	if err := json.Unmarshal(c.Input, v); err != nil {
		return fmt.Errorf("the input is not what %s takes: %w", c.Tool, err)
	}
	return nil
}

// saw remembers the content that the model knows of a file now.
func (s *session) saw(path string, sum folder.Sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[path] = sum
}

func (s *session) forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, path)
}

var errStale = errors.New("the file changed since you read it; read it again before you change it")

// fresh refuses a file that is not what the model knows of it. One that it has
// never read may be changed: a text that must occur is proof enough, and a
// whole new content is the person's wish.
func (s *session) fresh(f *folder.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sum, known := s.seen[f.Path]; known && sum != f.Sum {
		return fmt.Errorf("%s: %w", f.Name, errStale)
	}
	return nil
}
