package manager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"google.golang.org/grpc"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/plugins/api/modelpb"
	"github.com/boughdev/bough/plugins/wire"
)

// Models is a model.Provider in a plugin process.
type Models struct{ *supervisor }

// NewModels is the models of a plugin that is started by the first use.
func NewModels(c Command) *Models { return &Models{newSupervisor(c)} }

var _ model.Provider = (*Models)(nil)

// Models implements model.Provider.
func (m *Models) Models(ctx context.Context) ([]model.Info, error) {
	p, err := m.use(ctx)
	if err != nil {
		return nil, m.failure(ctx, err)
	}
	answer, err := modelpb.NewModelsClient(p.conn).List(ctx, &modelpb.ListRequest{})
	if err != nil {
		return nil, m.callFailure(ctx, p, err)
	}
	var infos []model.Info
	for _, info := range answer.GetModels() {
		infos = append(infos, wire.ModelInfoFromProto(info))
	}
	return infos, nil
}

// Stream implements model.Provider.
func (m *Models) Stream(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		p, err := m.use(ctx)
		if err != nil {
			yield(model.Event{}, m.failure(ctx, err))
			return
		}
		live, cancel := context.WithCancel(ctx) // leaving the loop ends the request
		defer cancel()
		stream, err := sendRequest(live, p, r)
		finished := false
		for err == nil {
			var message *modelpb.Event
			if message, err = stream.Recv(); err != nil {
				break
			}
			event := wire.ModelEventFromProto(message)
			finished = finished || event.Finish != 0
			if !yield(event, nil) {
				return
			}
		}
		switch {
		case !errors.Is(err, io.EOF):
			yield(model.Event{}, m.callFailure(ctx, p, err))
		case !finished:
			yield(model.Event{}, &model.Error{
				Class: model.ClassMalformed, Provider: m.command.Name,
				Message: fmt.Sprintf("plugin %s ended the answer without saying why", m.command.Name),
			})
		}
	}
}

// sendRequest sends a request in parts. An error that the plugin answers them
// with is told by the stream.
func sendRequest(ctx context.Context, p *process, r *model.Request) (grpc.BidiStreamingClient[modelpb.StreamRequest, modelpb.Event], error) {
	stream, err := modelpb.NewModelsClient(p.conn).Stream(ctx)
	if err != nil {
		return nil, err
	}
	for part := range wire.RequestParts(r) {
		if err := stream.Send(part); errors.Is(err, io.EOF) {
			return stream, nil
		} else if err != nil {
			return nil, err
		}
	}
	return stream, stream.CloseSend()
}

// callFailure is what the error of a call means: the context's, or a
// *model.Error. A plugin that died is worth another try, like a connection
// that was cut.
func (m *Models) callFailure(ctx context.Context, p *process, err error) error {
	if ctx.Err() == nil && p.mayBeGone(err) {
		if stopped := p.lost(); stopped != nil {
			return &model.Error{Class: model.ClassNetwork, Provider: m.command.Name, Message: stopped.Error(), Err: stopped}
		}
	}
	return m.failure(ctx, wire.ModelError(err))
}

func (m *Models) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if known := (*model.Error)(nil); errors.As(err, &known) {
		return known
	}
	return &model.Error{Class: model.ClassUnknown, Provider: m.command.Name, Message: err.Error(), Err: err}
}
