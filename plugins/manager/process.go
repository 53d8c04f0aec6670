package manager

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/boughdev/bough/plugins/wire"
	"github.com/boughdev/bough/plugins/wire/handshake"
)

// How long each way of stopping a plugin is given before the next. All of it is
// below 5 s.
const (
	leaveTime    = 2500 * time.Millisecond // after the end of its stdin
	shutdownTime = 500 * time.Millisecond  // after go-plugin's Shutdown
	termTime     = time.Second             // after SIGTERM
)

// process is one plugin process that answers.
type process struct {
	name   string
	child  *child
	client *plugin.Client
	conn   *grpc.ClientConn
}

// startProcess starts a plugin and waits for its handshake, until abort is
// closed. Whatever goes wrong, no process is left.
func startProcess(c Command, abort <-chan struct{}) (*process, error) {
	dir, err := handshake.SocketDir()
	if err != nil {
		return nil, &StartError{Plugin: c.Name, Reason: err.Error(), Err: err}
	}
	sweepOnce(dir)
	p := &process{name: c.Name}
	answered := make(chan struct{})
	p.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: handshake.CookieKey, MagicCookieValue: handshake.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{handshake.Version: {handshake.Kind: &plugin.NetRPCUnsupportedPlugin{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			added := append(append([]string{logLevel(c.Logger)}, cmd.Env...), c.Env...)
			p.child = newChild(c, environment(os.Environ(), c.PassEnv, added))
			p.child.started = func() {
				select {
				case <-abort:
					p.child.end("killed by the host")
				case <-p.child.exited:
				case <-answered:
				}
			}
			return p.child, nil
		},
		SkipHostEnv:      true,
		StartTimeout:     c.StartTimeout,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: dir},
		GRPCDialOptions:  append(handshake.DialOptions(), grpc.WithTransportCredentials(handshake.PeerCredentials())),
		SyncStdout:       newPrinted(c),
		SyncStderr:       newPrinted(c),
		Logger:           hclog.NewNullLogger(),
	})
	protocol, err := p.client.Client()
	close(answered)
	if err == nil {
		p.conn = protocol.(*plugin.GRPCClient).Conn // the only protocol that is allowed
		return p, nil
	}
	return nil, p.startFailed(c, err)
}

// startFailed ends what there is of the process, and says what happened to it.
func (p *process) startFailed(c Command, err error) error {
	failed := &StartError{Plugin: c.Name, Reason: err.Error(), Err: err}
	if p.child == nil {
		return failed
	}
	switch {
	case strings.HasPrefix(err.Error(), "timeout while waiting"): // go-plugin has no error value for it
		failed.Reason = fmt.Sprintf("it did not answer within %s", c.StartTimeout)
		p.child.end("killed by the host")
	case strings.Contains(err.Error(), "Failed to read any lines"), strings.HasPrefix(err.Error(), "plugin exited before"):
		failed.Reason = "it ended before it was ready"
	case strings.HasPrefix(err.Error(), "Unrecognized remote plugin message"):
		line, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "Unrecognized remote plugin message: "), "\n")
		failed.Reason = fmt.Sprintf("it wrote %q where the handshake belongs: nothing may be printed to stdout before it", line)
	}
	if p.child.pid() > 0 {
		p.child.end("killed by the host")
		failed.Exit, failed.Stderr = p.child.how(), p.child.output.lines()
	}
	p.client.Kill() // removes the folder of the socket
	return failed
}

// stop ends the process: it is asked to leave, more and more urgently, and then
// killed with its whole group. It returns when the process is gone; the end of
// ctx makes the killing come at once.
func (p *process) stop(ctx context.Context) {
	p.child.stdin.Close()
	p.gone(ctx, leaveTime)
	if p.child.running() && ctx.Err() == nil {
		p.shutdown(ctx)
	}
	if p.child.running() && ctx.Err() == nil {
		p.child.signal(unix.SIGTERM)
		p.gone(ctx, termTime)
	}
	p.child.end("killed by the host, because it did not leave")
	p.client.Kill() // closes the connection and removes the folder of the socket
}

// gone waits for the end of the process.
func (p *process) gone(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-p.child.exited:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// shutdown asks in go-plugin's way. Its own client would wait without end for
// the answer of a process that hangs.
func (p *process) shutdown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	if err := p.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{}); err == nil {
		p.gone(ctx, shutdownTime)
	}
}

const (
	// settleTime is how soon the end of a process follows the end of its
	// connection, as a rule.
	settleTime = 100 * time.Millisecond
	// exitWait is how long it may follow at most.
	exitWait = 2 * time.Second
)

// mayBeGone tells whether a call, whose own context goes on, failed because the
// process is gone.
func (p *process) mayBeGone(err error) bool {
	return wire.Gone(err) || status.Code(err) == codes.Canceled && !p.child.running()
}

// lost is asked after a call that failed as if there were no plugin, and says
// how its process ended. nil: it is there and connected, so the failure was its
// answer. A process that is there without its connection is of no use; it is
// ended.
func (p *process) lost() error {
	ctx := context.Background() // a context that ended must not hide what happened
	p.gone(ctx, settleTime)
	if p.child.running() && p.conn.GetState() == connectivity.Ready {
		return nil
	}
	p.gone(ctx, exitWait)
	p.child.end("it closed its connection, and was killed")
	return p.stopped()
}

// stopped says how the process, which has ended, did so.
func (p *process) stopped() error {
	return &StoppedError{Plugin: p.name, Exit: p.child.how(), Stderr: p.child.output.lines()}
}
