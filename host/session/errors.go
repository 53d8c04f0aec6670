package session

import (
	"errors"
	"fmt"
	"strings"

	"github.com/boughdev/bough/host/store"
)

var (
	// ErrNotFound says that there is no session of that id or title.
	ErrNotFound = errors.New("no such session")
	// ErrNoItem says that an item is not in the store, or not in reach of the session.
	ErrNoItem = errors.New("no such item")
	// ErrLost says that the session is owned by somebody else now; what is in memory is
	// of no use any more.
	ErrLost = errors.New("this session is no longer ours")
	// ErrTooBig says that the session is over the size ceiling.
	ErrTooBig = errors.New("the session is over the size ceiling")
)

func notFound(name string) error {
	return fmt.Errorf("%w: %q; `bough sessions list` shows the ones there are", ErrNotFound, name)
}

// AmbiguousError is a title that more than one session matches.
type AmbiguousError struct {
	Name    string
	Matches []Record
}

// Error lists the matches.
func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q matches %d sessions; name one by its id:", e.Name, len(e.Matches))
	for _, r := range e.Matches {
		fmt.Fprintf(&b, "\n  %s  %s", r.ID(), r.Title())
	}
	return b.String()
}

// DamagedError is one item that cannot be read. The others can.
type DamagedError struct {
	Ref Ref
	Err error
}

// Error names the item.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("item %s cannot be read: %v; the other items of the session are not affected", e.Ref, e.Err)
}

// Unwrap is the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

func isConflict(err error) bool { return errors.Is(err, store.ErrConflict) }
