package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/wire/rendezvous"
)

// StorageOptions says where the shared storage process of a state directory is,
// and how to start it.
type StorageOptions struct {
	StateDir string
	Command  []string // the program, which calls sdk.ServeStorage, and its arguments

	Env     []string // added to the process's environment, as NAME=VALUE
	PassEnv []string // see Command.PassEnv

	// LogFile takes what the process writes; empty: logs/storage.log below
	// StateDir. At the start of a process it is moved aside when it is long.
	LogFile string
	Logger  *slog.Logger // nil: slog.Default()

	StartTimeout time.Duration // until a new process owns the directory; 0: 10 s
	OpenTimeout  time.Duration // until it has opened the store; 0: 60 s
	// RetryTimeout is how long a call whose storage process is gone tries to
	// reach the next; 0: 30 s.
	RetryTimeout time.Duration
}

const (
	defaultOpenTimeout  = 60 * time.Second
	defaultRetryTimeout = 30 * time.Second
)

func (o StorageOptions) withDefaults() (StorageOptions, error) {
	if o.StateDir == "" || len(o.Command) == 0 {
		return o, errors.New("attach to the storage: a state directory and a command are needed")
	}
	dir, err := filepath.Abs(o.StateDir)
	if err != nil {
		return o, fmt.Errorf("attach to the storage: %w", err)
	}
	o.StateDir = dir
	if o.LogFile == "" {
		o.LogFile = filepath.Join(dir, "logs", "storage.log")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = defaultStartTimeout
	}
	if o.OpenTimeout <= 0 {
		o.OpenTimeout = defaultOpenTimeout
	}
	if o.RetryTimeout <= 0 {
		o.RetryTimeout = defaultRetryTimeout
	}
	for _, d := range []string{dir, filepath.Dir(o.LogFile)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return o, fmt.Errorf("make the state directory: %w; set BOUGH_STATE_DIR to a folder that can be written", err)
		}
	}
	return o, nil
}

// AttachStorage connects to the storage process of a state directory, starting
// it when there is none: of any number of hosts that try at once, one starts
// it. The store may be damaged; then its calls fail with store.ErrDamaged and
// only its maintenance works.
func AttachStorage(ctx context.Context, o StorageOptions) (*Storage, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	shared := &sharedStorage{o}
	s := newStorage(shared.connect, o.RetryTimeout, o.LogFile, o.Logger)
	if _, err := s.link(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// sharedStorage finds or starts the storage process of a state directory.
type sharedStorage struct{ StorageOptions }

// connect attaches to the process, or starts it.
func (s *sharedStorage) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, s.StartTimeout+s.OpenTimeout)
	defer cancel()
	var lock *rendezvous.Lock
	for {
		l, err := s.attach(ctx)
		if err == nil || !errors.Is(err, errNobody) {
			return l, err
		}
		if lock, err = rendezvous.TryLock(s.StateDir, rendezvous.StartLock); err != nil {
			return nil, err
		}
		if lock != nil {
			break
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil { // another host is starting it
			return nil, s.tooLong(err)
		}
	}
	defer lock.Unlock()
	return s.attachOrStart(ctx)
}

// attachOrStart is what the one host does that may start a process. A process
// may be there that cannot be attached to: one that is leaving, or one whose
// starter died.
func (s *sharedStorage) attachOrStart(ctx context.Context) (*link, error) {
	for {
		l, err := s.attach(ctx)
		if err == nil || !errors.Is(err, errNobody) {
			return l, err
		}
		owner, err := rendezvous.TryLock(s.StateDir, rendezvous.OwnerLock)
		if err != nil {
			return nil, err
		}
		if owner != nil {
			owner.Unlock()
			if l, err := s.start(ctx); !errors.Is(err, errOwned) {
				return l, err
			}
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return nil, s.tooLong(err)
		}
	}
}

// attach connects to the process that the address file names.
func (s *sharedStorage) attach(ctx context.Context) (*link, error) {
	address, err := rendezvous.Read(s.StateDir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || !errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("%w: %w", errNobody, err) // none, or one that a power cut left half written
		}
		return nil, err
	}
	l, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	asked, cancel := context.WithTimeout(ctx, s.StartTimeout)
	defer cancel()
	_, err = l.calls.Info(asked, &storagepb.InfoRequest{})
	switch code := status.Code(err); {
	case err == nil:
		return l, nil
	case l.broken(), code == codes.Unavailable, code == codes.Unauthenticated:
		l.close()
		return nil, fmt.Errorf("%w: %w", errNobody, err) // it is leaving, or another's
	case asked.Err() != nil && ctx.Err() == nil:
		l.close()
		return nil, fmt.Errorf("%w: process %d does not answer within %s: it is stopped or hangs. `kill -CONT %d` lets a stopped one go on, `kill %d` ends it; its log is %s",
			errForeign, address.Process.PID, s.StartTimeout, address.Process.PID, address.Process.PID, s.LogFile)
	case ctx.Err() != nil:
		l.close()
		return nil, ctx.Err()
	}
	l.close()
	return nil, fmt.Errorf("ask the storage process: %w", err)
}

// tooLong says who keeps a process from being started.
func (s *sharedStorage) tooLong(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	who := "another process holds the locks"
	if address, unread := rendezvous.Read(s.StateDir); unread == nil && address.Process.Alive() {
		who = fmt.Sprintf("process %d owns it and cannot be reached", address.Process.PID)
	}
	return fmt.Errorf("wait for the storage process of %s: %w: %s; its log is %s", s.StateDir, err, who, s.LogFile)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
