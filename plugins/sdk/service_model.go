package sdk

import (
	"context"

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
func (s *modelService) Stream(request *modelpb.StreamRequest, stream grpc.ServerStreamingServer[modelpb.Event]) (err error) {
	defer s.life.rescue("model "+request.GetModel(), &err)
	ctx, end := s.life.call(stream.Context())
	defer end()
	for event, err := range s.provider.Stream(ctx, wire.RequestFromProto(request)) {
		if err != nil {
			return wire.ModelStatus(err)
		}
		if err := stream.Send(wire.ModelEventToProto(event)); err != nil {
			return err
		}
	}
	return nil
}
