package sdk

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
	"github.com/boughdev/bough/plugins/api/toolpb"
	"github.com/boughdev/bough/plugins/wire"
	"github.com/boughdev/bough/plugins/wire/handshake"
)

// toolService serves a tool.Provider.
type toolService struct {
	toolpb.UnimplementedToolsServer
	provider tool.Provider
	life     *life

	mu      sync.Mutex
	running map[callKey]*runningCall
}

type callKey struct{ session, call string }

type runningCall struct{ cancel context.CancelFunc }

// List implements the service.
func (s *toolService) List(ctx context.Context, _ *toolpb.ListRequest) (_ *toolpb.ListResponse, err error) {
	defer s.life.rescue("the list of tools", &err)
	ctx, end := s.life.call(ctx)
	defer end()
	specs, err := s.provider.Tools(ctx)
	if err != nil {
		return nil, wire.PlainStatus(err)
	}
	out := &toolpb.ListResponse{}
	for _, spec := range specs {
		out.Tools = append(out.Tools, wire.SpecToProto(spec))
	}
	return out, nil
}

// Call implements the service.
func (s *toolService) Call(request *toolpb.CallRequest, stream grpc.ServerStreamingServer[toolpb.CallResponse]) (err error) {
	call := wire.CallFromProto(request)
	defer s.life.rescue("tool "+call.Tool, &err)
	ctx, end := s.life.call(stream.Context())
	defer end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.started(callKey{call.Session, call.ID}, cancel)()

	p := progressSender{stream: stream}
	result, err := s.provider.Call(ctx, call, p.send)
	p.end()
	if err != nil {
		return wire.PlainStatus(err)
	}
	answer := &toolpb.CallResponse{Event: &toolpb.CallResponse_Result{Result: wire.ResultToProto(result)}}
	if size := proto.Size(answer); size > handshake.MaxMessage {
		return status.Errorf(codes.ResourceExhausted, "the result of tool %s has %d bytes, at most %d can be sent", call.Tool, size, handshake.MaxMessage)
	}
	return stream.Send(answer)
}

// started makes a running call known to Cancel, until the function that it
// returns is called.
func (s *toolService) started(key callKey, cancel context.CancelFunc) (ended func()) {
	this := &runningCall{cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.running = map[callKey]*runningCall{}
	}
	s.running[key] = this
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running[key] == this {
			delete(s.running, key)
		}
	}
}

// Cancel implements the service.
func (s *toolService) Cancel(_ context.Context, request *toolpb.CancelRequest) (*toolpb.CancelResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call := s.running[callKey{request.GetSession(), request.GetCallId()}]; call != nil {
		call.cancel()
	}
	return &toolpb.CancelResponse{}, nil
}

// progressSender sends progress until the result is sent: a tool that goes on
// after its call returned must not write between the frames of a stream that
// has ended.
type progressSender struct {
	mu     sync.Mutex
	stream grpc.ServerStreamingServer[toolpb.CallResponse]
	over   bool
}

// send splits what is too long for one message.
func (p *progressSender) send(progress tool.Progress) {
	const most = 1 << 20
	p.mu.Lock()
	defer p.mu.Unlock()
	for data := progress.Data; !p.over; {
		piece := data[:min(len(data), most)]
		data = data[len(piece):]
		message := wire.ProgressToProto(tool.Progress{Stream: progress.Stream, Data: piece})
		err := p.stream.Send(&toolpb.CallResponse{Event: &toolpb.CallResponse_Progress{Progress: message}})
		p.over = err != nil // nobody listens; the call's context tells the tool
		if len(data) == 0 {
			return
		}
	}
}

func (p *progressSender) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// workspaceService serves what a workspace has beside its tools.
type workspaceService struct {
	toolpb.UnimplementedWorkspaceServer
	workspace workspace.Workspace
	life      *life
}

// Open implements the service.
func (s *workspaceService) Open(ctx context.Context, request *toolpb.OpenRequest) (_ *toolpb.OpenResponse, err error) {
	defer s.life.rescue("opening a session", &err)
	ctx, end := s.life.call(ctx)
	defer end()
	if err := s.workspace.Open(ctx, wire.SessionFromProto(request)); err != nil {
		return nil, wire.PlainStatus(err)
	}
	return &toolpb.OpenResponse{}, nil
}

// Close implements the service.
func (s *workspaceService) Close(ctx context.Context, request *toolpb.CloseRequest) (_ *toolpb.CloseResponse, err error) {
	defer s.life.rescue("closing a session", &err)
	ctx, end := s.life.call(ctx)
	defer end()
	if err := s.workspace.Close(ctx, request.GetSession()); err != nil {
		return nil, wire.PlainStatus(err)
	}
	return &toolpb.CloseResponse{}, nil
}
