// Package model is the contract of models: a request is the whole
// conversation, the answer is a stream of events. Providers live in plugins
// (plugins/models); practice and script, which need no key and no network, are
// in the folders below.
package model

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/boughdev/bough/host/tool"
)

// Info describes one model.
type Info struct {
	Name            string // provider/model, or practice, or script:FILE
	ContextTokens   int    // 0: unknown
	MaxOutputTokens int    // 0: unknown
	Images          bool
	Reasoning       bool
	Unusable        string // why it cannot be used; empty: it can
}

// Provider is a source of models. Its methods may be called from any
// goroutine.
type Provider interface {
	// Models lists what it has, the unusable ones with their reason.
	Models(ctx context.Context) ([]Info, error)
	// Stream sends one request. It never retries: the engine does, with the
	// hint of the error. The sequence ends with a Finish event, or with an
	// error, which is an *Error unless ctx ended. Breaking out of the loop
	// cancels the request.
	Stream(ctx context.Context, r *Request) iter.Seq2[Event, error]
}

// Request is one request for an answer.
type Request struct {
	Model           string
	System          string
	Messages        []Message
	Tools           []tool.Spec
	MaxOutputTokens int // 0: the model's own
	Session         string
	Settings        map[string]string // of the provider, such as "base_url"
}

// Role is who speaks.
type Role int

const (
	// User is the person, or the host in their place.
	User Role = iota + 1
	// Assistant is the model.
	Assistant
	// Tool carries results of calls.
	Tool
)

// Message is one turn of speech.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is one piece of a message; exactly one field is set.
type Part struct {
	Text       string
	Image      *Image
	Reasoning  *Reasoning
	ToolCall   *ToolCall
	ToolResult *ToolResult
}

// Image is a picture.
type Image struct {
	MediaType string
	Data      []byte
}

// Reasoning is a block of the model's reasoning.
type Reasoning struct {
	Text     string
	Opaque   []byte // the provider's own data, to be sent back as it came
	Provider string // whose data it is
}

// ToolCall is the model's wish to run a tool.
type ToolCall struct {
	ID    string
	Name  string
	Input json.RawMessage // as the model wrote it: it may be no valid JSON
}

// ToolResult answers a ToolCall.
type ToolResult struct {
	CallID string
	Text   string
	Error  bool
	Images []Image
}

// Event is one piece of an answer; exactly one field is set.
type Event struct {
	Text          string         // the next piece of the answer
	Reasoning     string         // the next piece of the reasoning
	ReasoningDone *Reasoning     // a reasoning block ended: the whole of it
	ToolCallDelta *ToolCallDelta // a call is being written
	ToolCall      *ToolCall      // a call is complete
	Usage         *Usage         // totals of this request so far
	Finish        Finish         // the last event
}

// ToolCallDelta tells how far the model is with writing a call.
type ToolCallDelta struct {
	ID, Name   string
	InputBytes int // received so far
}

// Usage counts tokens of one request.
type Usage struct {
	InputTokens      int // not counting those read from a cache
	OutputTokens     int
	CacheReadTokens  int
	CacheWriteTokens int
	ReasoningTokens  int // part of OutputTokens
}

// Finish is why an answer ended; zero: it has not.
type Finish int

const (
	// FinishStop is a whole answer.
	FinishStop Finish = iota + 1
	// FinishToolCalls asks for results.
	FinishToolCalls
	// FinishLength ran into the output limit.
	FinishLength
	// FinishRefused is an answer that the provider withheld.
	FinishRefused
)
