// Package handshake is what both ends of a plugin connection agree on before
// the first call: the cookie and version of the protocol, the environment
// names, the limits of a message, the options of a gRPC connection, and that
// only the same user may be at the other end of a local socket.
package handshake

import (
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

const (
	// CookieKey is the environment variable that tells a program that a host
	// started it as a plugin. It is no secret.
	CookieKey = "BOUGH_PLUGIN_COOKIE"
	// CookieValue is what CookieKey must hold.
	CookieValue = "5c1f0d7ab6d94f3f9e0b62a8417cb1d3"
	// Version is the version of the plugin protocol.
	Version = 1
	// Kind is the name under which go-plugin knows the set of services.
	Kind = "bough"

	// LogLevelKey names the environment variable that tells a plugin the least
	// level that its host keeps: debug, info, warn or error.
	LogLevelKey = "BOUGH_LOG_LEVEL"
	// ReadyKey names the environment variable with the number of the file
	// descriptor on which a shared storage process tells its starter how far
	// it is (see ReadyOpening).
	ReadyKey = "BOUGH_READY_FD"
	// TokenKey is the metadata key of every call to a shared storage process.
	TokenKey = "bough-token"

	// MaxMessage is the most bytes of one message, both ways: 64 MiB.
	MaxMessage = 64 << 20
	// BatchBytes is how much a streamed answer gathers before it is sent.
	BatchBytes = 256 << 10
	// CancelGrace is how long a tool has to answer after its call was
	// cancelled.
	CancelGrace = 5 * time.Second
)

// The lines that a shared storage process writes to its starter.
const (
	// ReadyOpening: it owns the directory and opens the store, which may take
	// long after a crash.
	ReadyOpening = "opening"
	// ReadyOwned: another process owns the directory, and this one ends.
	ReadyOwned = "owned"
	// ReadyServing: it can be attached to.
	ReadyServing = "serving"
	// ReadyFailed begins a line that tells why it ends.
	ReadyFailed = "failed "
)

// never keeps gRPC from probing a peer: one that is stopped (SIGSTOP) does not
// answer, yet it keeps its leases. A peer that died is told by the socket.
const never = time.Duration(math.MaxInt64)

// The windows are as large as a few batches, so that a stream does not wait
// for its reader's acknowledgements; being fixed, they need no probing either.
const (
	streamWindow = 2 << 20
	connWindow   = 8 << 20
	bufferBytes  = 64 << 10
)

// ServerOptions are the options of every plugin's gRPC server.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxSendMsgSize(MaxMessage),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connWindow),
		grpc.WriteBufferSize(bufferBytes),
		grpc.ReadBufferSize(bufferBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: never}),
	}
}

// DialOptions are the options of every connection to a plugin, besides its
// credentials.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithWriteBufferSize(bufferBytes),
		grpc.WithReadBufferSize(bufferBytes),
		grpc.WithIdleTimeout(0), // an idle connection stays: others count on it
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(), // what may be sent again is decided by the caller
	}
}

// PeerCredentials are the credentials of a local gRPC server: nothing is sent,
// and a connection of another user is refused.
func PeerCredentials() credentials.TransportCredentials { return peerCredentials{} }
