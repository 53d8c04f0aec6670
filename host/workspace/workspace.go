// Package workspace is the contract of a workspace: the only thing that
// touches the person's files. The local one is plugins/workspace in a process
// of its own; a remote one speaks the same protocol over a connection.
package workspace

import (
	"context"

	"github.com/boughdev/bough/host/tool"
)

// Session is what a workspace knows of a session.
type Session struct {
	ID     string
	Folder string // absolute
	// Seen is what the model has read and written on the present path, newest
	// last, so that a write to a file that changed since is refused, after a
	// restart and after a head move too.
	Seen []tool.FileState
}

// Workspace runs the file and shell tools of sessions that were opened in it.
type Workspace interface {
	tool.Provider
	// Open makes a session known; opening it again replaces what was known.
	Open(ctx context.Context, s Session) error
	// Close forgets a session and ends what still runs for it, all of it,
	// before it returns.
	Close(ctx context.Context, sessionID string) error
}
