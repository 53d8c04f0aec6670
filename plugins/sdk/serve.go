package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/boughdev/bough/plugins/wire/handshake"
)

// How long leaving may take. A host that stops a plugin kills it after 4 s.
const (
	drainTime = 1500 * time.Millisecond // for calls to answer that they were interrupted
	closeTime = 1200 * time.Millisecond // for Plugin.Close
	leaveTime = 3500 * time.Millisecond // for all of it: then the process ends itself
)

// Serve serves p to the host that started this process, until the host closes
// its standard input or dies, asks for the end, ctx ends or SIGTERM comes. It
// takes the process over: stdout carries the handshake and may only be printed
// to after that, SIGINT and SIGPIPE are ignored, and a process that does not
// come to its end within a few seconds is ended.
func Serve(ctx context.Context, p Plugin) error {
	if err := p.check(); err != nil {
		return err
	}
	if os.Getenv(handshake.CookieKey) != handshake.CookieValue {
		return fmt.Errorf("%s is a plugin: bough starts it by itself when it is needed", p.Name)
	}
	logger := p.Logger
	if logger == nil {
		logger = Logger()
	}
	// With the host gone, the pipe behind stderr is broken; that must not end
	// the process before it has cleaned up.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, hostGone := context.WithCancel(ctx)
	defer hostGone()
	go watchStdin(hostGone)

	l := &life{ctx: ctx, logger: logger}
	server := grpc.NewServer(append(handshake.ServerOptions(), grpc.Creds(handshake.PeerCredentials()))...)
	served := make(chan struct{})
	left := make(chan struct{})
	go func() {
		defer close(left)
		select {
		case <-ctx.Done():
		case <-served: // the host asked go-plugin for the end
			hostGone()
		}
		time.AfterFunc(leaveTime, func() { os.Exit(1) })
		l.drain(drainTime)
		server.Stop()
	}()
	logger.Debug("plugin serves", "name", p.Name, "version", p.Version, "kinds", p.kinds())
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: handshake.CookieKey, MagicCookieValue: handshake.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{handshake.Version: {handshake.Kind: services{plugin: &p, life: l}}},
		GRPCServer:       func([]grpc.ServerOption) *grpc.Server { return server },
		Logger:           goPluginLogger(),
	})
	close(served)
	<-left
	removeSocketDir()
	return p.leave()
}

func (p *Plugin) leave() error {
	if p.Close == nil {
		return nil
	}
	// The context of the call has ended: leaving is what follows.
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		return fmt.Errorf("close the plugin %s: %w", p.Name, err)
	}
	return nil
}

// watchStdin calls gone at the end of standard input, which is a pipe that the
// host holds open as long as it lives. Anything but a pipe says nothing.
func watchStdin(gone func()) {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil && errors.Is(err, os.ErrClosed) {
		return
	}
	gone()
}

// removeSocketDir removes the folder that the host made for the socket of this
// process, which a host that was killed can no longer do.
func removeSocketDir() {
	if dir := os.Getenv(plugin.EnvUnixSocketDir); filepath.IsAbs(dir) {
		os.Remove(dir) // refuses unless it is empty
	}
}

// services glues the gRPC services of a plugin into go-plugin.
type services struct {
	plugin.NetRPCUnsupportedPlugin
	plugin *Plugin
	life   *life
}

// GRPCServer implements plugin.GRPCPlugin.
func (s services) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	s.plugin.register(server, s.life)
	return nil
}

// GRPCClient implements plugin.GRPCPlugin; a plugin is never its own client.
func (s services) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("this side only serves")
}
