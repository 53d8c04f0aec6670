package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/plugins/api/toolpb"
	"github.com/boughdev/bough/plugins/wire"
	"github.com/boughdev/bough/plugins/wire/handshake"
)

// Tools is a tool.Provider in a plugin process.
type Tools struct {
	*supervisor
	grace time.Duration // for a cancelled call to answer

	mu    sync.Mutex
	specs []tool.Spec
}

// NewTools is the tools of a plugin that is started by the first use.
func NewTools(c Command) *Tools {
	return &Tools{supervisor: newSupervisor(c), grace: handshake.CancelGrace}
}

var _ tool.Provider = (*Tools)(nil)

// Tools implements tool.Provider; the plugin is asked once.
func (t *Tools) Tools(ctx context.Context) ([]tool.Spec, error) {
	t.mu.Lock()
	specs := t.specs
	t.mu.Unlock()
	if specs != nil {
		return specs, nil
	}
	p, err := t.use(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tools: %w", err)
	}
	answer, err := toolpb.NewToolsClient(p.conn).List(ctx, &toolpb.ListRequest{})
	if err != nil {
		return nil, fmt.Errorf("list tools: %w", p.failure(ctx, err))
	}
	specs = []tool.Spec{}
	for _, spec := range answer.GetTools() {
		specs = append(specs, wire.SpecFromProto(spec))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.specs = specs
	return specs, nil
}

// failure is what the error of a call means.
func (p *process) failure(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case p.mayBeGone(err):
		if stopped := p.lost(); stopped != nil {
			return stopped
		}
	}
	return fmt.Errorf("plugin %s: %w", p.name, wire.PlainError(err))
}

// Call implements tool.Provider. When ctx ends the plugin is asked to stop the
// call and has 5 s to answer with what there is; then the call is cut, and the
// result says that what the tool did is not known.
func (t *Tools) Call(ctx context.Context, call tool.Call, progress func(tool.Progress)) (tool.Result, error) {
	p, err := t.use(ctx)
	if ctx.Err() != nil {
		return tool.Result{Interrupted: true, Text: "The call was interrupted before it began."}, nil
	}
	if err != nil {
		return tool.Result{}, fmt.Errorf("call %s: %w", call.Tool, err)
	}
	// The stream outlives ctx, so that the result of a cancelled call arrives.
	live, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	client := toolpb.NewToolsClient(p.conn)
	stream, err := client.Call(live, wire.CallToProto(call))
	if err != nil {
		return tool.Result{}, fmt.Errorf("call %s: %w", call.Tool, p.failure(live, err))
	}
	c := &toolCall{call: call, client: client, process: p, live: live, cut: cut, grace: t.grace}
	forget := context.AfterFunc(ctx, c.cancel)
	defer forget()
	result, err := c.receive(stream, progress)
	if c.wasCut.Load() {
		return tool.Result{Interrupted: true, Error: true, Text: fmt.Sprintf(
			"The call was interrupted, and the tool did not stop within %s. What it did is not known.", t.grace)}, nil
	}
	return result, err
}

// toolCall is a call on its way.
type toolCall struct {
	call    tool.Call
	client  toolpb.ToolsClient
	process *process
	live    context.Context
	cut     context.CancelFunc
	grace   time.Duration
	wasCut  atomic.Bool
}

type callStream interface {
	Recv() (*toolpb.CallResponse, error)
}

// receive takes progress until the result.
func (c *toolCall) receive(stream callStream, progress func(tool.Progress)) (tool.Result, error) {
	for {
		answer, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return tool.Result{}, fmt.Errorf("call %s: plugin %s ended the call without a result", c.call.Tool, c.process.name)
		case err != nil:
			return tool.Result{}, fmt.Errorf("call %s: %w", c.call.Tool, c.process.failure(c.live, err))
		}
		switch event := answer.GetEvent().(type) {
		case *toolpb.CallResponse_Progress:
			if progress != nil {
				progress(wire.ProgressFromProto(event.Progress))
			}
		case *toolpb.CallResponse_Result:
			return wire.ResultFromProto(event.Result), nil
		}
	}
}

// cancel asks the plugin to stop the call, and cuts it when that does not help.
func (c *toolCall) cancel() {
	ctx, stop := context.WithTimeout(c.live, c.grace)
	defer stop()
	_, err := c.client.Cancel(ctx, &toolpb.CancelRequest{
		Session: wire.Text(c.call.Session), CallId: wire.Text(c.call.ID),
	})
	if status.Code(err) != codes.Unimplemented {
		<-ctx.Done() // the result came, or the time is over
	}
	if c.live.Err() == nil {
		c.wasCut.Store(true)
		c.cut()
	}
}
