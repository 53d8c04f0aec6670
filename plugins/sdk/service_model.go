package sdk

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/plugins/api/modelpb"
	"github.com/boughdev/bough/plugins/wire"
)

// modelService serves a model.Provider.
type modelService struct {
	modelpb.UnimplementedModelsServer
	provider model.Provider
	life     *life
}

// List implements the service.
func (s *modelService) List(ctx context.Context, _ *modelpb.ListRequest) (_ *modelpb.ListResponse, err error) {
	defer s.life.rescue("the list of models", &err)
	ctx, end := s.life.call(ctx)
	defer end()
	infos, err := s.provider.Models(ctx)
	if err != nil {
		return nil, wire.ModelStatus(err)
	}
	out := &modelpb.ListResponse{}
	for _, info := range infos {
		out.Models = append(out.Models, wire.ModelInfoToProto(info))
	}
	return out, nil
}

// Stream implements the service.
func (s *modelService) Stream(stream grpc.BidiStreamingServer[modelpb.StreamRequest, modelpb.Event]) (err error) {
	request, err := receiveRequest(stream)
	if err != nil {
		return err
	}
	defer s.life.rescue("model "+request.Model, &err)
	ctx, end := s.life.call(stream.Context())
	defer end()
	for event, err := range s.provider.Stream(ctx, request) {
		if err != nil {
			return wire.ModelStatus(err)
		}
		if err := stream.Send(wire.ModelEventToProto(event)); err != nil {
			return err
		}
	}
	return nil
}

// receiveRequest puts the parts of a request together.
func receiveRequest(stream grpc.BidiStreamingServer[modelpb.StreamRequest, modelpb.Event]) (*model.Request, error) {
	first, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	request := wire.RequestFromProto(first)
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return request, nil
		}
		if err != nil {
			return nil, err
		}
		wire.AddMessages(request, part)
	}
}
