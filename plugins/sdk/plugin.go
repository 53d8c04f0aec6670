// Package sdk is what a plugin's main calls: it serves implementations of the
// host's contracts (host/store, host/tool, host/workspace, host/model) over the
// plugin protocol and takes care of the process: handshake, limits, logging,
// and leaving when the host does. docs/plugin-protocol.md describes what it
// speaks, for plugins in other languages.
//
// Serve is for plugins that each host starts for itself, ServeStorage for the
// storage process that all hosts of a state directory share.
package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/grpc"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
	"github.com/boughdev/bough/plugins/api/modelpb"
	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/api/toolpb"
)

// Plugin is what one process offers. At least one of the contracts is set;
// a Workspace brings its own tools, so Tools must not be set beside it.
type Plugin struct {
	Name, Version string
	Store         Storage
	Tools         tool.Provider
	Workspace     workspace.Workspace
	Models        model.Provider

	// Logger gets what the SDK has to tell; nil: Logger().
	Logger *slog.Logger
	// Close ends what the plugin still does when the process is to leave. It
	// has until ctx ends, about a second; then the process ends anyway.
	Close func(ctx context.Context) error
}

// Storage is a storage backend with its maintenance side.
type Storage interface {
	store.Store
	store.Admin
}

// check tells what is wrong with the description of a plugin.
func (p *Plugin) check() error {
	switch {
	case p.Name == "":
		return errors.New("sdk: a plugin needs a name")
	case p.Tools != nil && p.Workspace != nil:
		return fmt.Errorf("sdk: plugin %s sets both Tools and Workspace: a workspace brings its own tools", p.Name)
	case p.Store == nil && p.Tools == nil && p.Workspace == nil && p.Models == nil:
		return fmt.Errorf("sdk: plugin %s offers nothing: set Store, Tools, Workspace or Models", p.Name)
	}
	return nil
}

// kinds lists what the plugin offers, for the log.
func (p *Plugin) kinds() []string {
	var kinds []string
	for _, k := range []struct {
		name string
		set  bool
	}{{"storage", p.Store != nil}, {"tools", p.Tools != nil}, {"workspace", p.Workspace != nil}, {"models", p.Models != nil}} {
		if k.set {
			kinds = append(kinds, k.name)
		}
	}
	return kinds
}

// register puts the services of the plugin on a gRPC server.
func (p *Plugin) register(server *grpc.Server, l *life) {
	if p.Store != nil {
		storagepb.RegisterStorageServer(server, &storageService{backend: p.Store, life: l})
	}
	if p.Models != nil {
		modelpb.RegisterModelsServer(server, &modelService{provider: p.Models, life: l})
	}
	provider := p.Tools
	if p.Workspace != nil {
		provider = p.Workspace
		toolpb.RegisterWorkspaceServer(server, &workspaceService{workspace: p.Workspace, life: l})
	}
	if provider != nil {
		toolpb.RegisterToolsServer(server, &toolService{provider: provider, life: l})
	}
}
