// Package tool is the contract of tools: what a provider of tools offers, and
// what a call and its result are. The registry that finds and checks tools is
// in registry.go; whole outputs that are too long for the model are kept by
// host/tool/outputs.
package tool

import (
	"context"
	"encoding/json"
)

// Effect says the most that a call of a tool can do.
type Effect int

const (
	// EffectUnknown is treated as EffectExecute.
	EffectUnknown Effect = iota
	// EffectNone touches nothing outside the conversation.
	EffectNone
	// EffectRead reads files.
	EffectRead
	// EffectWrite writes files that the input names.
	EffectWrite
	// EffectExecute runs programs, so it can do anything.
	EffectExecute
)

// String is the name used in lists and in JSON.
func (e Effect) String() string {
	switch e {
	case EffectNone:
		return "none"
	case EffectRead:
		return "read"
	case EffectWrite:
		return "write"
	default:
		return "execute"
	}
}

// Spec describes one tool to the model and to the host.
type Spec struct {
	Name        string
	Description string
	InputSchema json.RawMessage // a JSON Schema of an object
	Effect      Effect
	PathFields  []string // the fields of the input that hold paths
}

// Call is one use of a tool.
type Call struct {
	Session string
	ID      string // unique in the session
	Tool    string
	Input   json.RawMessage
}

// Stream is where a piece of progress comes from.
type Stream int

const (
	// Stdout is a program's standard output.
	Stdout Stream = iota + 1
	// Stderr is a program's standard error.
	Stderr
	// Note is a line of the tool about its own progress.
	Note
)

// Progress is output as it comes: for the person, never for the model. Data is
// raw bytes: whoever shows it makes it harmless first.
type Progress struct {
	Stream Stream
	Data   []byte
}

// Image is a picture in a result.
type Image struct {
	MediaType string
	Data      []byte
}

// FileState is the content of one file as a call saw or left it.
type FileState struct {
	Path    string // absolute
	SHA256  []byte // of the content; nil: the file is gone
	Written bool
	Partial bool // only a range of it was shown to the model
}

// Result is what a call came to. A tool that fails says so here, with Error
// set and a text that tells the model what to do next.
type Result struct {
	Text        string          // for the model
	Error       bool            // the tool failed
	Details     json.RawMessage // an object for the person's view; may be nil
	Images      []Image
	OutputID    string // of the retained whole output; empty: Text is whole
	Files       []FileState
	Interrupted bool // cancelled before it ended; Text is partial
}

// Provider is a source of tools: the workspace, a plugin, the host itself.
type Provider interface {
	// Tools describes them. The answer does not change while the provider
	// lives.
	Tools(ctx context.Context) ([]Spec, error)

	// Call runs one. Progress may be called from one goroutine at a time
	// until Call returns; it may be nil. When ctx ends, the work is stopped,
	// all of it, and the result has Interrupted set. An error means that the
	// call could not be carried out at all (the plugin died, an unknown tool):
	// what it did up to then is not known.
	Call(ctx context.Context, call Call, progress func(Progress)) (Result, error)
}
