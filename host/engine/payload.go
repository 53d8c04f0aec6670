package engine

import (
	"strings"
	"time"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/tool"
)

// Prompt is what the person says.
type Prompt struct {
	Text   string
	Images []PromptImage
}

// PromptImage is a picture that goes with a prompt.
type PromptImage struct {
	Name      string
	MediaType string
	Data      []byte
}

func promptPayload(p Prompt) *sessionpb.Payload {
	body := &sessionpb.Prompt{Text: valid(p.Text)}
	for _, img := range p.Images {
		body.Images = append(body.Images, &sessionpb.Image{MediaType: img.MediaType, Data: img.Data, Name: valid(img.Name)})
	}
	return &sessionpb.Payload{Kind: uint32(session.KindPrompt), Body: &sessionpb.Payload_Prompt{Prompt: body}}
}

func textPayload(text, name string) *sessionpb.Payload {
	return &sessionpb.Payload{Kind: uint32(session.KindText), Body: &sessionpb.Payload_Text{
		Text: &sessionpb.Text{Text: valid(text), Model: name},
	}}
}

func reasoningPayload(r *model.Reasoning, name string) *sessionpb.Payload {
	return &sessionpb.Payload{Kind: uint32(session.KindReasoning), Body: &sessionpb.Payload_Reasoning{
		Reasoning: &sessionpb.Reasoning{Text: valid(r.Text), Opaque: r.Opaque, Provider: r.Provider, Model: name},
	}}
}

func callPayload(c tool.Call, name string) *sessionpb.Payload {
	return &sessionpb.Payload{Kind: uint32(session.KindToolCall), Body: &sessionpb.Payload_ToolCall{
		ToolCall: &sessionpb.ToolCall{Id: c.ID, Name: valid(c.Tool), Input: c.Input, Model: name},
	}}
}

func resultPayload(c tool.Call, r tool.Result, took time.Duration) *sessionpb.Payload {
	body := &sessionpb.ToolResult{
		CallId: c.ID, Name: valid(c.Tool), Text: valid(r.Text), Error: r.Error, Details: r.Details,
		OutputId: r.OutputID, Interrupted: r.Interrupted, DurationMs: took.Milliseconds(),
	}
	for _, img := range r.Images {
		body.Images = append(body.Images, &sessionpb.Image{MediaType: img.MediaType, Data: img.Data})
	}
	for _, f := range r.Files {
		body.Files = append(body.Files, &sessionpb.FileState{Path: valid(f.Path), Sha256: f.SHA256, Written: f.Written, Partial: f.Partial})
	}
	return &sessionpb.Payload{Kind: uint32(session.KindToolResult), Partial: r.Interrupted, Body: &sessionpb.Payload_ToolResult{ToolResult: body}}
}

// noticePayload is something that the host says. The model is told only what
// is hidden, as a reminder.
func noticePayload(level, source, text string, hidden bool) *sessionpb.Payload {
	return &sessionpb.Payload{Kind: uint32(session.KindNotice), Hidden: hidden, Body: &sessionpb.Payload_Notice{
		Notice: &sessionpb.Notice{Text: valid(text), Source: source, Level: level},
	}}
}

// valid is text that the store takes: models and tools may send anything.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
