package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is an exclusive lock on a file. It ends with Unlock or with the process.
type Lock struct{ file *os.File }

// TryLock takes a lock of the state directory; without error and lock: another
// process has it.
func TryLock(stateDir, name string) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(stateDir, name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the state directory: %w", err)
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case err == nil:
		return &Lock{file}, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		file.Close()
		return nil, nil
	}
	file.Close()
	return nil, fmt.Errorf("lock %s: %w; a state directory must be on a file system with locks: set BOUGH_STATE_DIR to a local folder", file.Name(), err)
}

// WaitLock takes a lock of the state directory as soon as it is free.
func WaitLock(ctx context.Context, stateDir, name string) (*Lock, error) {
	wait := time.NewTicker(5 * time.Millisecond)
	defer wait.Stop()
	for {
		lock, err := TryLock(stateDir, name)
		if lock != nil || err != nil {
			return lock, err
		}
		select {
		case <-wait.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock %s: %w", filepath.Join(stateDir, name), ctx.Err())
		}
	}
}

// Unlock gives the lock back. The file stays: removing it would let two
// processes lock two files of one name.
func (l *Lock) Unlock() { l.file.Close() }
