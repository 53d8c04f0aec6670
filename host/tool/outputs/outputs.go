// Package outputs keeps the whole outputs of tool calls that are too long for
// the model, so that it can read and search the rest by an id, and makes the
// bounded text that the model is given instead.
//
// An output is the file DIR/SESSION/ID, its bytes as they came. Any number of
// processes may write to one directory. What is here lives as long as its
// session: retention removes it, and nothing else.
package outputs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Store is the outputs of all sessions of a state directory. It does nothing
// before its first use; its methods may be called from any goroutine.
type Store struct {
	dir   string
	sizes sizes

	mu   sync.Mutex
	last map[string]int // the number of the newest output of a session and base
}

// sizes bound one output; they are variables of a store for its tests alone.
type sizes struct {
	head, tail int64  // what is kept of the beginning and the end
	reserve    uint64 // bytes of the disk that outputs leave free
}

const (
	// MaxSize is how much of one output is kept: 90 MiB of its beginning and
	// 10 MiB of its end, with a line between them that says what is missing.
	MaxSize = 100 << 20

	headSize = 90 << 20
	tailSize = MaxSize - headSize
	// reserve is left free for the store, which a full disk would kill.
	reserve = 128 << 20
)

// New is the store in dir, which is made when it is first written to.
func New(dir string) *Store {
	return &Store{dir: dir, sizes: sizes{headSize, tailSize, reserve}, last: map[string]int{}}
}

// NotFoundError is an output that its session does not have.
type NotFoundError struct {
	Session, ID string
	Have        []string // ids that the session has, a few of them
}

// Error names what there is instead.
func (e *NotFoundError) Error() string {
	switch {
	case len(e.Have) == 0:
		return fmt.Sprintf("there is no output %q: this session has kept no outputs", e.ID)
	default:
		return fmt.Sprintf("there is no output %q in this session; it has %s", e.ID, strings.Join(e.Have, ", "))
	}
}

var (
	sessionForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	idForm      = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
)

// session opens the folder of a session. With make it is made where it is not
// there; without, the error of one that is not there is fs.ErrNotExist.
func (s *Store) session(id string, make bool) (*os.Root, error) {
	if !sessionForm.MatchString(id) {
		return nil, fmt.Errorf("session id %q cannot name a folder", id)
	}
	if make {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the folder of tool outputs: %w", err)
		}
	}
	top, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	if make {
		if err := top.Mkdir(id, 0o700); err == nil {
			err = syncDir(top, ".")
			if err != nil {
				return nil, err
			}
		} else if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make the folder for the outputs of session %s: %w", id, err)
		}
	}
	return top.OpenRoot(id)
}

func syncDir(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("make a folder durable: %w", err)
	}
	return nil
}

// open opens an output to read it.
func (s *Store) open(session, id string) (*os.File, error) {
	root, err := s.session(session, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotFoundError{Session: session, ID: id}
	}
	if err != nil {
		return nil, fmt.Errorf("open the outputs of session %s: %w", session, err)
	}
	defer root.Close()
	if idForm.MatchString(id) {
		file, err := root.Open(id)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("open output %s of session %s: %w", id, session, err)
		}
	}
	const most = 10
	have, err := names(root)
	if err != nil {
		return nil, fmt.Errorf("list the outputs of session %s: %w", session, err)
	}
	slices.Sort(have)
	if len(have) > most {
		have = append(have[:most], fmt.Sprintf("… (%d more)", len(have)-most))
	}
	return nil, &NotFoundError{Session: session, ID: id, Have: have}
}

func names(root *os.Root) ([]string, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Readdirnames(-1)
}

// RemoveSession removes all outputs of a session. One without outputs is no
// error.
func (s *Store) RemoveSession(session string) error {
	if !sessionForm.MatchString(session) {
		return fmt.Errorf("session id %q cannot name a folder", session)
	}
	top, err := os.OpenRoot(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the outputs of session %s: %w", session, err)
	}
	defer top.Close()
	if err := top.RemoveAll(session); err != nil {
		return fmt.Errorf("remove the outputs of session %s: %w", session, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.last {
		if strings.HasPrefix(key, session+"/") {
			delete(s.last, key)
		}
	}
	return nil
}

// CopyTo gives a fork the outputs of its parent, under the same ids. They are
// linked, so that no bytes are copied, where the file system can do that. One
// that the fork has already stays.
//
// Those that the fork's path does not refer to come along: to know which it
// does, a million items would have to be read.
func (s *Store) CopyTo(parent, fork string) error {
	from, err := s.session(parent, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the outputs of session %s: %w", parent, err)
	}
	defer from.Close()
	ids, err := names(from)
	if err != nil {
		return fmt.Errorf("list the outputs of session %s: %w", parent, err)
	}
	to, err := s.session(fork, true)
	if err != nil {
		return fmt.Errorf("open the outputs of session %s: %w", fork, err)
	}
	defer to.Close()
	top, err := os.OpenRoot(s.dir)
	if err != nil {
		return fmt.Errorf("open the folder of tool outputs: %w", err)
	}
	defer top.Close()
	for _, id := range ids {
		if info, err := from.Lstat(id); !idForm.MatchString(id) || err != nil || !info.Mode().IsRegular() {
			continue // it is no output, or gone by now
		}
		if err := link(top, filepath.Join(parent, id), filepath.Join(fork, id)); err != nil {
			return fmt.Errorf("give output %s of session %s to session %s: %w", id, parent, fork, err)
		}
	}
	return syncDir(to, ".")
}

// Orphans removes the outputs of sessions that are not there any more and in
// which nothing changed for the time of grace: a deletion that failed, or a
// write that was cut off, left them. owned tells whether a session is there.
func (s *Store) Orphans(ctx context.Context, grace time.Duration, owned func(session string) (bool, error)) (removed []string, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the sessions with outputs: %w", err)
	}
	before := time.Now().Add(-grace)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		session := e.Name()
		if !e.IsDir() || !sessionForm.MatchString(session) {
			continue
		}
		if is, err := owned(session); err != nil {
			return removed, fmt.Errorf("look for session %s: %w", session, err)
		} else if is {
			continue
		}
		if changed, err := s.changedSince(session, before); err != nil || changed {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return removed, fmt.Errorf("look at the outputs of session %s: %w", session, err)
			}
			continue
		}
		if err := s.RemoveSession(session); err != nil {
			return removed, err
		}
		removed = append(removed, session)
	}
	return removed, nil
}

// changedSince tells whether anything in the folder of a session is newer.
func (s *Store) changedSince(session string, before time.Time) (bool, error) {
	root, err := s.session(session, false)
	if err != nil {
		return false, err
	}
	defer root.Close()
	all, err := names(root)
	if err != nil {
		return false, err
	}
	for _, name := range append(all, ".") {
		info, err := root.Lstat(name)
		if err != nil {
			return false, err
		}
		if info.ModTime().After(before) {
			return true, nil
		}
	}
	return false, nil
}
