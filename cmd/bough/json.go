package main

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
)

// writeJSON writes one value and a newline, indented, for people and programs.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// writeLine writes one value as one line.
func writeLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// message is one line of the stream: the shape that clients of such streams
// already read.
type message struct {
	Type      string       `json:"type"`
	Subtype   string       `json:"subtype,omitempty"`
	Message   *messageBody `json:"message,omitempty"`
	SessionID string       `json:"session_id"`
	Item      string       `json:"item,omitempty"`
	Partial   bool         `json:"partial,omitempty"`
	Text      string       `json:"text,omitempty"`
	Level     string       `json:"level,omitempty"`
}

type messageBody struct {
	Role    string    `json:"role"`
	Model   string    `json:"model,omitempty"`
	Content []content `json:"content"`
}

type content struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Source    *source         `json:"source,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
}

// messageOf is the stream line of an item; nil for a kind that has none.
func messageOf(sessionID string, ref session.Ref, p *sessionpb.Payload) *message {
	m := &message{SessionID: sessionID, Item: ref.String(), Partial: p.GetPartial()}
	speak := func(role, model string, parts ...content) *message {
		m.Type = role
		m.Message = &messageBody{Role: role, Model: model, Content: parts}
		return m
	}
	switch body := p.GetBody().(type) {
	case *sessionpb.Payload_Prompt:
		parts := []content{{Type: "text", Text: body.Prompt.GetText()}}
		for _, img := range body.Prompt.GetImages() {
			parts = append(parts, content{Type: "image", Source: &source{"stored", img.GetMediaType(), len(img.GetData())}})
		}
		return speak("user", "", parts...)
	case *sessionpb.Payload_Text:
		return speak("assistant", body.Text.GetModel(), content{Type: "text", Text: body.Text.GetText()})
	case *sessionpb.Payload_Reasoning:
		return speak("assistant", body.Reasoning.GetModel(), content{Type: "thinking", Thinking: body.Reasoning.GetText()})
	case *sessionpb.Payload_ToolCall:
		return speak("assistant", body.ToolCall.GetModel(), content{
			Type: "tool_use", ID: body.ToolCall.GetId(), Name: body.ToolCall.GetName(), Input: jsonObject(body.ToolCall.GetInput()),
		})
	case *sessionpb.Payload_ToolResult:
		return speak("user", "", content{
			Type: "tool_result", ToolUseID: body.ToolResult.GetCallId(),
			Content: body.ToolResult.GetText(), IsError: body.ToolResult.GetError(),
		})
	case *sessionpb.Payload_Notice:
		m.Type, m.Subtype = "system", "notice"
		m.Text, m.Level = body.Notice.GetText(), body.Notice.GetLevel()
		return m
	case *sessionpb.Payload_Summary:
		m.Type, m.Subtype, m.Text = "system", "summary", body.Summary.GetText()
		return m
	}
	return nil
}

// jsonObject is raw when it is valid JSON; what a model wrote that is not is
// shown as a string, so that the line stays readable.
func jsonObject(raw []byte) json.RawMessage {
	if json.Valid(raw) {
		return raw
	}
	text := string(raw)
	if !utf8.ValidString(text) {
		text = fmt.Sprintf("%q", raw)
	}
	quoted, err := json.Marshal(text)
	if err != nil { // a valid string always encodes
		return json.RawMessage(`""`)
	}
	return quoted
}
