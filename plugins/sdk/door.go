package sdk

import (
	"context"
	"crypto/subtle"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/boughdev/bough/plugins/wire/handshake"
)

// door is the listener of a shared process. It counts who is inside, and calls
// leave when nobody has been for the time of linger. A connection counts from
// the moment it is accepted, so one that is about to speak keeps the process.
type door struct {
	net.Listener
	linger time.Duration
	known  func() bool // whether a host that comes still finds this process
	leave  func()

	mu     sync.Mutex
	inside int
	left   bool
	timer  *time.Timer
}

func newDoor(socket net.Listener, linger time.Duration, known func() bool, leave func()) *door {
	d := &door{Listener: socket, linger: linger, known: known, leave: leave}
	d.timer = time.AfterFunc(max(linger, firstClient), d.empty)
	return d
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if d.enter() {
			return &guest{UnixConn: conn.(*net.UnixConn), door: d}, nil
		}
		conn.Close() // it finds the next process when it tries again
	}
}

func (d *door) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left {
		return false
	}
	d.inside++
	d.timer.Stop()
	return true
}

func (d *door) exit() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inside--
	if d.inside > 0 || d.left {
		return
	}
	wait := d.linger
	if !d.known() {
		wait = 0 // the state directory was removed: nobody else will come
	}
	d.timer.Reset(wait)
}

// empty is called by the timer.
func (d *door) empty() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inside == 0 && !d.left {
		d.left = true
		d.leave()
	}
}

// Close implements net.Listener.
func (d *door) Close() error {
	d.mu.Lock()
	d.left = true
	d.timer.Stop()
	d.mu.Unlock()
	return d.Listener.Close()
}

// guest is one connection.
type guest struct {
	*net.UnixConn
	door *door
	once sync.Once
}

// Close implements net.Conn.
func (g *guest) Close() error {
	g.once.Do(g.door.exit)
	return g.UnixConn.Close()
}

// checkToken refuses a caller who has not read the address file.
func checkToken(ctx context.Context, want string) error {
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		if got := md.Get(handshake.TokenKey); len(got) == 1 && subtle.ConstantTimeCompare([]byte(got[0]), []byte(want)) == 1 {
			return nil
		}
	}
	return status.Error(codes.Unauthenticated, "the token is not the one of this storage process")
}

func unaryToken(token string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if err := checkToken(ctx, token); err != nil {
			return nil, err
		}
		return handle(ctx, request)
	}
}

func streamToken(token string) grpc.StreamServerInterceptor {
	return func(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		if err := checkToken(stream.Context(), token); err != nil {
			return err
		}
		return handle(service, stream)
	}
}
