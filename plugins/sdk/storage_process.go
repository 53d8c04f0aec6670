package sdk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/wire/handshake"
	"github.com/boughdev/bough/plugins/wire/rendezvous"
)

// Backend is the store of a shared storage process.
type Backend interface {
	Storage
	// Close ends it and lets go of its directory.
	Close() error
}

// StorageServer describes the storage process of a state directory.
type StorageServer struct {
	// StateDir is where the hosts look for the process.
	StateDir string
	// Open opens the store. It is called once this process alone owns the
	// state directory.
	Open func(ctx context.Context) (Backend, error)
	// Linger is how long the process stays after its last connection is gone;
	// 0: 10 seconds.
	Linger time.Duration
	// LogFile takes what the process logs and what the runtime writes when it
	// crashes; empty: stderr, which the host that starts it sends to a file.
	LogFile string
	// Logger is used in place of one that writes to stderr.
	Logger *slog.Logger
}

const (
	defaultLinger = 10 * time.Second
	// firstClient is the least time to wait for the first connection: the
	// host that started the process may be slow.
	firstClient = 5 * time.Second
	// ownWait is how long to wait for an earlier process to let go.
	ownWait = 10 * time.Second
	// closeWait is how long the backend may take to close, and closeWaitGone
	// when its folder is not there any more.
	closeWait     = 30 * time.Second
	closeWaitGone = time.Second
	// stopWait is how long calls may go on when the process is to leave.
	stopWait = 2 * time.Second
)

// ServeStorage serves the store of a state directory to every host that
// attaches, and returns after the last one is gone and Linger is over, or when
// ctx ends or SIGTERM comes. At most one process serves a directory: started by
// a host beside another, it leaves at once; started by hand, it waits a while
// for the other to let go. When the store cannot be opened it fails and tells
// its starter why. SIGHUP, SIGINT and SIGPIPE are ignored.
func ServeStorage(ctx context.Context, s StorageServer) error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	starter := openStarter()
	defer starter.close()
	err := s.serve(ctx, starter)
	if errors.Is(err, errOwned) && starter.waits() {
		starter.tell(handshake.ReadyOwned) // it attaches to the other one
		return nil
	}
	if err != nil {
		starter.tell(handshake.ReadyFailed + strings.ReplaceAll(err.Error(), "\n", "; "))
		return err
	}
	return nil
}

func (s StorageServer) serve(ctx context.Context, starter *starter) (err error) {
	if s.LogFile != "" {
		if err := logTo(s.LogFile); err != nil {
			return err
		}
	}
	if s.Logger == nil {
		s.Logger = Logger()
	}
	if s.Linger <= 0 {
		s.Linger = defaultLinger
	}
	owner, err := s.own(ctx, starter)
	if err != nil {
		return err
	}
	defer owner.Unlock()
	starter.tell(handshake.ReadyOpening)
	backend, err := s.Open(ctx)
	if err != nil {
		return fmt.Errorf("open the store of %s: %w", s.StateDir, err)
	}
	defer func() { err = errors.Join(err, s.close(backend)) }()
	address, err := rendezvous.New(s.StateDir)
	if err != nil {
		return err
	}
	os.Remove(address.Socket) // of a process that was killed: we own the directory
	socket, err := (&net.ListenConfig{}).Listen(ctx, "unix", address.Socket)
	if err != nil {
		return fmt.Errorf("listen for hosts: %w", err)
	}
	defer address.Withdraw(s.StateDir)
	return s.attend(ctx, backend, socket, address, starter)
}

// close closes the backend, but does not wait for ever for it: one whose folder
// was deleted may never come to an end, and the end of the process closes it
// too.
func (s StorageServer) close(backend Backend) error {
	wait := closeWait
	if _, err := os.Stat(s.StateDir); errors.Is(err, fs.ErrNotExist) {
		wait = closeWaitGone
	}
	closed := make(chan error, 1)
	go func() { closed <- backend.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			return fmt.Errorf("close the store of %s: %w", s.StateDir, err)
		}
		return nil
	case <-time.After(wait):
		return fmt.Errorf("the store of %s could not be closed within %s", s.StateDir, wait)
	}
}

// errOwned means that another process owns the directory.
var errOwned = errors.New("another storage process owns it")

// own makes this process the one that may open the store. It waits for an
// earlier one to leave, unless a host waits for it: that saw the directory free,
// so another host's process has just come before this one.
func (s StorageServer) own(ctx context.Context, starter *starter) (*rendezvous.Lock, error) {
	lock, err := rendezvous.TryLock(s.StateDir, rendezvous.OwnerLock)
	if err != nil {
		return nil, err
	}
	if lock == nil && !starter.waits() {
		ctx, cancel := context.WithTimeout(ctx, ownWait)
		defer cancel()
		if lock, err = rendezvous.WaitLock(ctx, s.StateDir, rendezvous.OwnerLock); err != nil {
			return nil, fmt.Errorf("%w, and does not leave: %w", s.owned(), err)
		}
	}
	if lock == nil {
		return nil, s.owned()
	}
	return lock, nil
}

func (s StorageServer) owned() error {
	return fmt.Errorf("serve the store of %s: %w", s.StateDir, errOwned)
}

// attend serves until it is time to leave.
func (s StorageServer) attend(ctx context.Context, backend Backend, socket net.Listener, address rendezvous.Address, starter *starter) error {
	l := &life{logger: s.Logger}
	leave := context.CancelFunc(nil)
	l.ctx, leave = context.WithCancel(ctx)
	defer leave()
	door := newDoor(socket, s.Linger, func() bool { return address.Stands(s.StateDir) }, leave)
	server := grpc.NewServer(append(handshake.ServerOptions(),
		grpc.Creds(handshake.PeerCredentials()),
		grpc.UnaryInterceptor(unaryToken(address.Token)),
		grpc.StreamInterceptor(streamToken(address.Token)),
		grpc.WaitForHandlers(true),
	)...)
	storagepb.RegisterStorageServer(server, &storageService{backend: backend, life: l})
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(door) }()
	if err := address.Write(s.StateDir); err != nil {
		server.Stop()
		return err
	}
	starter.tell(handshake.ReadyServing)
	starter.close()
	s.Logger.Info("the storage process serves", "pid", os.Getpid(), "directory", s.StateDir)
	select {
	case <-l.ctx.Done():
	case err := <-failed:
		return fmt.Errorf("serve the store of %s: %w", s.StateDir, err)
	}
	// From here on a host that comes finds nobody, and starts the next process.
	address.Withdraw(s.StateDir)
	stopServer(server)
	s.Logger.Info("the storage process leaves", "pid", os.Getpid(), "directory", s.StateDir)
	return nil
}

// stopServer lets the running calls end, and cuts those that do not.
func stopServer(server *grpc.Server) {
	stopped := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
		return
	case <-time.After(stopWait):
	}
	cut := make(chan struct{})
	go func() {
		server.Stop()
		close(cut)
	}()
	select {
	case <-cut:
	case <-time.After(stopWait): // a backend that hangs must not keep the directory
	}
}

// starter is the host that started this process and waits for it to serve.
type starter struct{ pipe *os.File }

func openStarter() *starter {
	fd, err := strconv.Atoi(os.Getenv(handshake.ReadyKey))
	if err != nil || fd < 3 {
		return &starter{}
	}
	unix.CloseOnExec(fd)
	return &starter{os.NewFile(uintptr(fd), "ready")}
}

// waits tells whether there is a host that started this process.
func (s *starter) waits() bool { return s.pipe != nil }

// tell writes a line; that the starter is gone changes nothing.
func (s *starter) tell(line string) {
	if s.pipe != nil {
		fmt.Fprintln(s.pipe, line)
	}
}

func (s *starter) close() {
	if s.pipe != nil {
		s.pipe.Close()
		s.pipe = nil
	}
}

// logTo makes a file the process's stdout and stderr, so that what the runtime
// writes about a crash lands there too.
func logTo(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of the storage process: %w", err)
	}
	defer file.Close()
	for _, fd := range []int{1, 2} {
		if err := unix.Dup3(int(file.Fd()), fd, 0); err != nil {
			return fmt.Errorf("open the log of the storage process: %w", err)
		}
	}
	return nil
}
