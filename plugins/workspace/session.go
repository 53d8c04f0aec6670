package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
	"github.com/boughdev/bough/plugins/workspace/folder"
)

// session is an open session.
type session struct {
	id     string
	ctx    context.Context // ends when it is closed
	cancel context.CancelFunc
	calls  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	folder string
	seen   map[string]record // by the path of the file
}

// record is the last that the model has seen of a file.
type record struct {
	sum   []byte // of the content; nil: the file was not there
	whole bool   // it has seen all of that content
}

func newSession(id string) *session {
	s := &session{id: id}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// open sets what is known of the session.
func (s *session) open(known workspace.Session) {
	s.mu.Lock()
	s.folder = known.Folder
	s.seen = map[string]record{}
	s.mu.Unlock()
	s.note(known.Seen)
}

// enter counts a call in; false: the session is closed.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.calls.Add(1)
	return true
}

// close ends the session's calls and waits for their end.
func (s *session) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	done := make(chan struct{})
	go func() {
		s.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close session %s: its calls do not end: %w", s.id, ctx.Err())
	}
}

func (s *session) path() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.folder
}

// note remembers what the model has seen. Ranges of a content do not add up to
// the whole of it; but a range takes nothing away from a whole that was seen.
func (s *session) note(files []tool.FileState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range files {
		before, known := s.seen[f.Path]
		now := record{sum: f.SHA256, whole: !f.Partial}
		if known && bytes.Equal(before.sum, now.sum) {
			now.whole = now.whole || before.whole
		}
		s.seen[f.Path] = now
	}
}

// last is what the model has seen last of a file.
func (s *session) last(path string) (record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, known := s.seen[path]
	return r, known
}

// staleError is a file that is not what the model takes it for.
type staleError struct{ name, what string }

func (e *staleError) Error() string {
	return fmt.Sprintf("%s %s, so nothing was written to it: read it first, then decide again", e.name, e.what)
}

// current refuses to write to a file that changed since the model saw it last.
// file is what is there now; nil: nothing. A part that was seen will do: what a
// part is replaced by is matched with the content anyhow. So will a file that
// was never looked at.
func (s *session) current(p folder.Place, file *folder.File) error {
	seen, known := s.last(p.Path)
	switch {
	case !known:
		return nil
	case file == nil && seen.sum != nil:
		return &staleError{shown(p.Name), "was deleted since you last saw it"}
	case file != nil && seen.sum == nil:
		return &staleError{shown(p.Name), "was not there when you last looked, but is now"}
	case file != nil && !bytes.Equal(seen.sum, file.Sum[:]):
		return &staleError{shown(p.Name), "was changed since you last saw it"}
	}
	return nil
}

// replaceable refuses also to write over content that the model has not seen
// whole.
func (s *session) replaceable(p folder.Place, file *folder.File) error {
	if err := s.current(p, file); err != nil || file == nil || len(file.Data) == 0 {
		return err
	}
	switch seen, known := s.last(p.Path); {
	case !known:
		return &staleError{shown(p.Name), "is there already and you have not read it"}
	case !seen.whole:
		return &staleError{shown(p.Name), "is there already and you have read only a part of it"}
	}
	return nil
}

// locks are held by the calls that change files, one a file.
type locks struct {
	mu   sync.Mutex
	held map[string]*lock
}

type lock struct {
	mu      sync.Mutex
	waiting int
}

// take waits until nobody else of this process changes a file. The function
// that it returns lets the next one.
func (l *locks) take(path string) (release func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*lock{}
	}
	this := l.held[path]
	if this == nil {
		this = &lock{}
		l.held[path] = this
	}
	this.waiting++
	l.mu.Unlock()
	this.mu.Lock()
	return func() {
		this.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if this.waiting--; this.waiting == 0 {
			delete(l.held, path)
		}
	}
}

// errGone wraps an error of a file that is not there.
type errGone struct {
	error
	state tool.FileState
}

func (e *errGone) Unwrap() error { return e.error }

// sawGone gives what the model sees by an error: that a file is not there.
func (c *call) sawGone(err error) []tool.FileState {
	var gone *errGone
	if errors.As(err, &gone) {
		return c.saw(gone.state)
	}
	return nil
}

// saw notes what the model sees of files. It is called while they are locked:
// the next call must know.
func (c *call) saw(files ...tool.FileState) []tool.FileState {
	c.s.note(files)
	return files
}
