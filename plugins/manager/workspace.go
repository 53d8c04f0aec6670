package manager

import (
	"context"
	"fmt"
	"sync"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
	"github.com/boughdev/bough/plugins/api/toolpb"
	"github.com/boughdev/bough/plugins/wire"
)

// Workspace is a workspace.Workspace in a plugin process. A process that is
// started again after a crash is told of every open session, with what the
// model has seen of its files up to then.
type Workspace struct {
	*supervisor
	tools *Tools

	mu   sync.Mutex
	open map[string]workspace.Session
}

// NewWorkspace is the workspace of a plugin that is started by the first use.
// To list its tools is none if they are known.
func NewWorkspace(c Command, known []tool.Spec) *Workspace {
	tools := NewTools(c)
	tools.specs = known
	w := &Workspace{supervisor: tools.supervisor, tools: tools, open: map[string]workspace.Session{}}
	w.prepare = w.reopen
	return w
}

var _ workspace.Workspace = (*Workspace)(nil)

// Tools implements tool.Provider.
func (w *Workspace) Tools(ctx context.Context) ([]tool.Spec, error) { return w.tools.Tools(ctx) }

// Open implements workspace.Workspace.
func (w *Workspace) Open(ctx context.Context, s workspace.Session) error {
	p, err := w.use(ctx)
	if err != nil {
		return fmt.Errorf("open session %s in the workspace: %w", s.ID, err)
	}
	if _, err = toolpb.NewWorkspaceClient(p.conn).Open(ctx, wire.SessionToProto(s)); err != nil {
		return fmt.Errorf("open session %s in the workspace: %w", s.ID, p.failure(ctx, err))
	}
	s.Seen = append([]tool.FileState(nil), s.Seen...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[s.ID] = s
	return nil
}

// Close implements workspace.Workspace. Without a process there is nothing to
// end, and none is started.
func (w *Workspace) Close(ctx context.Context, sessionID string) error {
	w.mu.Lock()
	delete(w.open, sessionID)
	w.mu.Unlock()
	if w.Status().State != Running {
		return nil
	}
	p, err := w.use(ctx)
	if err != nil {
		return fmt.Errorf("close session %s in the workspace: %w", sessionID, err)
	}
	if _, err := toolpb.NewWorkspaceClient(p.conn).Close(ctx, &toolpb.CloseRequest{Session: wire.Text(sessionID)}); err != nil {
		return fmt.Errorf("close session %s in the workspace: %w", sessionID, p.failure(ctx, err))
	}
	return nil
}

// Call implements tool.Provider, and remembers which files the model has seen.
func (w *Workspace) Call(ctx context.Context, call tool.Call, progress func(tool.Progress)) (tool.Result, error) {
	result, err := w.tools.Call(ctx, call, progress)
	if len(result.Files) > 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		if s, ok := w.open[call.Session]; ok {
			s.Seen = append(s.Seen, result.Files...)
			w.open[call.Session] = s
		}
	}
	return result, err
}

// reopen tells a new process of the open sessions. One that cannot be opened
// any more fails its own calls and not those of the others.
func (w *Workspace) reopen(ctx context.Context, p *process) {
	w.mu.Lock()
	var requests []*toolpb.OpenRequest
	for _, s := range w.open {
		requests = append(requests, wire.SessionToProto(s))
	}
	w.mu.Unlock()
	client := toolpb.NewWorkspaceClient(p.conn)
	for _, request := range requests {
		if _, err := client.Open(ctx, request); err != nil {
			w.command.Logger.Error("a session could not be opened again after a restart of the workspace",
				"plugin", w.command.Name, "session", request.GetSession(), "error", err)
		}
	}
}
