package handshake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
)

// CheckPeer fails unless the process at the other end of a Unix socket belongs
// to this user. It returns that process's id; for a listening process that is
// the one that began to listen.
func CheckPeer(conn net.Conn) (pid int, err error) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("check the peer of a %T: it is no socket", conn)
	}
	control, err := raw.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("check the peer of a socket: %w", err)
	}
	var peer *unix.Ucred
	var failed error
	err = control.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err = errors.Join(err, failed); err != nil {
		return 0, fmt.Errorf("check the peer of a socket: %w", err)
	}
	if want := os.Geteuid(); int(peer.Uid) != want {
		return 0, fmt.Errorf("the process at the other end of the socket belongs to user %d, not to %d", peer.Uid, want)
	}
	return int(peer.Pid), nil
}

type peerCredentials struct{}

type peerInfo struct{ credentials.CommonAuthInfo }

// AuthType implements credentials.AuthInfo.
func (peerInfo) AuthType() string { return "peer" }

// ServerHandshake implements credentials.TransportCredentials.
func (peerCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if _, err := CheckPeer(conn); err != nil {
		return nil, nil, err
	}
	return conn, peerInfo{}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (c peerCredentials) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return c.ServerHandshake(conn)
}

// Info implements credentials.TransportCredentials.
func (peerCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "peer"}
}

// Clone implements credentials.TransportCredentials.
func (c peerCredentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName implements credentials.TransportCredentials.
func (peerCredentials) OverrideServerName(string) error { return nil }
