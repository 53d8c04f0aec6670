// Package hosttools are the tools that the host itself provides: the list of
// things to do, and calls in a batch. Both touch nothing but the conversation;
// what a batch calls is checked call by call.
package hosttools

import (
	"context"
	_ "embed" // descriptions and schemas
	"fmt"
	"strings"

	"github.com/boughdev/bough/host/tool"
)

// Names of the tools.
const (
	TodoWrite = "todo_write"
	Batch     = "batch"
)

//go:embed todo_write.md
var todoText string

//go:embed todo_write.json
var todoSchema []byte

//go:embed batch.md
var batchText string

//go:embed batch.json
var batchSchema []byte

// Runner carries out the calls of a batch, each checked like any other, and
// returns their results in the same order.
type Runner interface {
	RunBatch(ctx context.Context, parent tool.Call, calls []tool.Call, progress func(tool.Progress)) ([]tool.Result, error)
}

// Provider provides the host's tools. Make one with New.
type Provider struct{ runner Runner }

// New is a provider whose batches run by runner.
func New(runner Runner) *Provider { return &Provider{runner} }

// Tools implements tool.Provider.
func (p *Provider) Tools(context.Context) ([]tool.Spec, error) {
	return []tool.Spec{
		{Name: TodoWrite, Description: strings.TrimSpace(todoText), InputSchema: todoSchema, Effect: tool.EffectNone},
		{Name: Batch, Description: strings.TrimSpace(batchText), InputSchema: batchSchema, Effect: tool.EffectNone},
	}, nil
}

// Call implements tool.Provider.
func (p *Provider) Call(ctx context.Context, call tool.Call, progress func(tool.Progress)) (tool.Result, error) {
	switch call.Tool {
	case TodoWrite:
		return writeTodos(call)
	case Batch:
		return p.batch(ctx, call, progress)
	}
	return tool.Result{}, fmt.Errorf("the host has no tool %q", call.Tool)
}
