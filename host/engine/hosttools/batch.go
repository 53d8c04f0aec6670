package hosttools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/boughdev/bough/host/tool"
)

type batchInput struct {
	ToolCalls []struct {
		Tool       string          `json:"tool"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"tool_calls"`
}

// batchCall is what the person's view is told of one call.
type batchCall struct {
	CallID      string          `json:"call_id"`
	Tool        string          `json:"tool"`
	Error       bool            `json:"error,omitempty"`
	Interrupted bool            `json:"interrupted,omitempty"`
	OutputID    string          `json:"output_id,omitempty"`
	Details     json.RawMessage `json:"details,omitempty"`
}

func (p *Provider) batch(ctx context.Context, parent tool.Call, progress func(tool.Progress)) (tool.Result, error) {
	var in batchInput
	if err := json.Unmarshal(parent.Input, &in); err != nil {
		return tool.Result{Text: "the calls cannot be read: " + err.Error(), Error: true}, nil
	}
	calls := make([]tool.Call, len(in.ToolCalls))
	for i, c := range in.ToolCalls {
		if c.Tool == Batch {
			return tool.Result{Text: fmt.Sprintf("tool_calls[%d]: a batch cannot hold a batch; nothing was run", i), Error: true}, nil
		}
		calls[i] = tool.Call{Session: parent.Session, ID: fmt.Sprintf("%s.%d", parent.ID, i+1), Tool: c.Tool, Input: c.Parameters}
	}
	if progress == nil {
		progress = func(tool.Progress) {}
	}
	results, err := p.runner.RunBatch(ctx, parent, calls, progress)
	if err != nil {
		return tool.Result{}, err
	}
	return together(calls, results)
}

// together makes one result of those of the calls. It is an error when all of
// them are.
func together(calls []tool.Call, results []tool.Result) (tool.Result, error) {
	all := tool.Result{Error: true}
	said := make([]batchCall, len(calls))
	var text strings.Builder
	for i, r := range results {
		state := "ok"
		switch {
		case r.Interrupted:
			state = "interrupted"
		case r.Error:
			state = "error"
		}
		fmt.Fprintf(&text, "[%d] %s: %s\n%s\n\n", i+1, calls[i].Tool, state, strings.TrimRight(r.Text, "\n"))
		all.Error = all.Error && r.Error
		all.Interrupted = all.Interrupted || r.Interrupted
		all.Files = append(all.Files, r.Files...)
		all.Images = append(all.Images, r.Images...)
		said[i] = batchCall{calls[i].ID, calls[i].Tool, r.Error, r.Interrupted, r.OutputID, r.Details}
	}
	details, err := json.Marshal(map[string]any{"calls": said})
	if err != nil {
		return tool.Result{}, fmt.Errorf("encode the calls of a batch: %w", err)
	}
	all.Text, all.Details = strings.TrimSpace(text.String()), details
	return all, nil
}
