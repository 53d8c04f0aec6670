package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
)

// printer shows a headless run: as text, as one JSON object at the end, or as
// JSON lines while it goes on.
type printer struct {
	env      *environment
	o        *runOptions
	id       string
	model    string
	messages []*message // of the json format with --verbose
	held     string     // the last text: it is the answer unless something follows
	isLast   atomic.Bool
	err      error // of writing; told at the end
}

func newPrinter(env *environment, o *runOptions) *printer { return &printer{env: env, o: o} }

func (p *printer) expectLast() { p.isLast.Store(true) }
func (p *printer) last() bool  { return p.isLast.Load() }

func (p *printer) begin(live *engine.Live) {
	p.id = live.ID()
	if rec, err := live.Record(); err == nil {
		p.model = rec.Proto().GetModel()
	}
	if p.o.format == "stream-json" {
		p.line(map[string]any{
			"type": "system", "subtype": "init", "session_id": p.id, "cwd": live.Folder(),
			"model": p.model, "version": version,
		})
	}
}

func (p *printer) line(v any) {
	if err := writeLine(p.env.stdout, v); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) show(ev engine.Event) {
	switch body := ev.Body.(type) {
	case engine.ItemStored:
		p.item(body.Ref, body.Payload)
	case engine.Retrying:
		p.note("retry", fmt.Sprintf("%s: %s; attempt %d of %d failed, the next one in %s",
			body.Class, body.Message, body.Attempt, body.Attempts, body.Wait.Round(time.Millisecond)))
	case engine.Denied:
		p.note("denied", fmt.Sprintf("%s was denied: %s", body.Tool, body.Reason))
	case engine.Noticed:
		if body.Level != "info" || p.o.verbose {
			p.note(body.Source, body.Text)
		}
	}
}

// note tells what is not part of the answer: on standard error, or as a line
// of the stream.
func (p *printer) note(kind, text string) {
	if p.o.format == "stream-json" {
		p.line(&message{Type: "system", Subtype: kind, Text: text, SessionID: p.id})
		return
	}
	fmt.Fprintf(p.env.stderr, "bough: %s\n", session.Printable(text))
}

func (p *printer) item(ref session.Ref, payload *sessionpb.Payload) {
	m := messageOf(p.id, ref, payload)
	if m == nil {
		return
	}
	switch {
	case p.o.format == "stream-json":
		p.line(m)
	case p.o.format == "json" && p.o.verbose:
		p.messages = append(p.messages, m)
	case p.o.format == "text" && p.o.verbose:
		if p.held != "" {
			fmt.Fprintln(p.env.stderr, p.held)
			p.held = ""
		}
		if payload.GetText() != nil {
			p.held = itemLine(payload)
		} else {
			fmt.Fprintln(p.env.stderr, itemLine(payload))
		}
	}
}

// itemLine is an item for a person who looks on.
func itemLine(p *sessionpb.Payload) string {
	switch body := p.GetBody().(type) {
	case *sessionpb.Payload_Prompt:
		return "> " + session.Printable(body.Prompt.GetText())
	case *sessionpb.Payload_Text:
		return session.Printable(body.Text.GetText())
	case *sessionpb.Payload_Reasoning:
		return "~ " + session.Printable(body.Reasoning.GetText())
	case *sessionpb.Payload_ToolCall:
		return "* " + session.CallLine(body.ToolCall.GetName(), body.ToolCall.GetInput())
	case *sessionpb.Payload_ToolResult:
		mark := "  = "
		if body.ToolResult.GetError() {
			mark = "  ! "
		}
		return mark + strings.ReplaceAll(session.Printable(strings.TrimRight(body.ToolResult.GetText(), "\n")), "\n", "\n    ")
	case *sessionpb.Payload_Notice:
		return "- " + session.Printable(body.Notice.GetText())
	case *sessionpb.Payload_Summary:
		return "(summary) " + session.Printable(body.Summary.GetText())
	}
	return "(an item that this version does not know)"
}

// outcomeJSON is the result of a run. exit_code is that of the process.
type outcomeJSON struct {
	Type            string     `json:"type"`
	Subtype         string     `json:"subtype"`
	IsError         bool       `json:"is_error"`
	ExitCode        int        `json:"exit_code"`
	DurationMS      int64      `json:"duration_ms"`
	NumTurns        int        `json:"num_turns"`
	Result          string     `json:"result"`
	StopReason      string     `json:"stop_reason"`
	SessionID       string     `json:"session_id"`
	TotalCostUSD    float64    `json:"total_cost_usd"`
	SubscriptionUSD float64    `json:"subscription_cost_usd"`
	Usage           usageJSON  `json:"usage"`
	Denials         []denial   `json:"permission_denials,omitempty"`
	Error           string     `json:"error,omitempty"`
	Turns           []*message `json:"messages,omitempty"`
}

type usageJSON struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

type denial struct {
	Tool   string `json:"tool_name"`
	CallID string `json:"tool_use_id"`
	Reason string `json:"reason"`
}

func (p *printer) end(o engine.Outcome, took time.Duration) error {
	explain := o.Explain()
	if p.o.format == "text" {
		if o.Text != "" {
			if _, err := fmt.Fprintln(p.env.stdout, session.Printable(strings.TrimRight(o.Text, "\n"))); err != nil {
				return err
			}
		}
		switch {
		case o.ExitCode() == exitDenied: // each denial was told when it came
			fmt.Fprintln(p.env.stderr, "bough: not all was allowed, so it may not be done")
		case o.ExitCode() != exitDone:
			fmt.Fprintf(p.env.stderr, "bough: %s\n", session.Printable(explain))
		}
		return p.err
	}
	r := outcomeJSON{
		Type: "result", Subtype: string(o.Reason), IsError: o.ExitCode() != exitDone, ExitCode: o.ExitCode(),
		DurationMS: took.Milliseconds(), NumTurns: o.Steps, Result: o.Text, StopReason: string(o.Reason), SessionID: p.id,
		Usage: usageJSON{o.Usage.InputTokens, o.Usage.OutputTokens, o.Usage.CacheReadTokens, o.Usage.CacheWriteTokens},
		Turns: p.messages,
	}
	if r.Subtype == string(engine.ReasonDone) {
		r.Subtype = "success"
	}
	for _, d := range o.Denials {
		r.Denials = append(r.Denials, denial{d.Tool, d.CallID, d.Reason})
	}
	if r.IsError {
		r.Error = explain
	}
	if p.o.format == "json" {
		return writeJSON(p.env.stdout, r)
	}
	p.line(r)
	return p.err
}
