package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/wire/handshake"
	"github.com/boughdev/bough/plugins/wire/rendezvous"
)

// link is the connection to one storage process. It is never mended: when it
// breaks, the next one is made, to whichever process then serves the store.
type link struct {
	calls storagepb.StorageClient
	dead  <-chan struct{} // closed when the connection is gone, before its calls fail

	conn *grpc.ClientConn // nil: it is somebody else's to close
	raw  net.Conn
}

func (l *link) close() {
	if l.conn != nil {
		l.conn.Close() //nolint:errcheck // nothing is left to be done about it
		l.raw.Close()
	}
}

func (l *link) broken() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

// The ways in which a storage process cannot be attached to.
var (
	// errNobody: no process serves at the address.
	errNobody = errors.New("no storage process serves here")
	// errOwned: one owns the directory and does not serve yet.
	errOwned = errors.New("another storage process owns the state directory")
	// errForeign: one serves that must not be used.
	errForeign = errors.New("the storage process cannot be used")
)

// dial connects to the process at an address, once. It fails unless that very
// process answers.
func dial(ctx context.Context, address rendezvous.Address) (*link, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, "unix", address.Socket)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", errNobody, err)
	}
	pid, err := handshake.CheckPeer(raw)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("%w: %w", errForeign, err)
	}
	if pid != 0 && pid != address.Process.PID { // 0: it lives in another PID namespace
		raw.Close()
		return nil, fmt.Errorf("%w: process %d listens where process %d should", errNobody, pid, address.Process.PID)
	}
	if address.Protocol != handshake.Version {
		raw.Close()
		return nil, fmt.Errorf("%w: process %d speaks version %d of the protocol, this program version %d: close the other bough windows, and it leaves by itself",
			errForeign, address.Process.PID, address.Protocol, handshake.Version)
	}
	once := &onceConn{Conn: raw, dead: make(chan struct{})}
	options := append(handshake.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the peer was checked above
		grpc.WithPerRPCCredentials(token{handshake.TokenKey: address.Token}),
		grpc.WithContextDialer(once.dial))
	conn, err := grpc.NewClient("passthrough:///storage", options...)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("connect to the storage process: %w", err)
	}
	return &link{calls: storagepb.NewStorageClient(conn), dead: once.dead, conn: conn, raw: once}, nil
}

// onceConn is a connection that gRPC gets once: a second wish for one means
// that the first broke. It tells of its end before gRPC does.
type onceConn struct {
	net.Conn
	mu    sync.Mutex
	given bool
	end   sync.Once
	dead  chan struct{}
}

func (c *onceConn) dial(context.Context, string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given {
		c.die()
		return nil, errNobody
	}
	c.given = true
	return c, nil
}

func (c *onceConn) die() { c.end.Do(func() { close(c.dead) }) }

// Read implements net.Conn.
func (c *onceConn) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	if err != nil {
		c.die()
	}
	return n, err
}

// Close implements net.Conn.
func (c *onceConn) Close() error {
	c.die()
	return c.Conn.Close()
}

// token is shown with every call.
type token map[string]string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return t, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: a local
// socket cannot be listened in on.
func (token) RequireTransportSecurity() bool { return false }
