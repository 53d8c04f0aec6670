package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/boughdev/bough/host/model"
)

// The request is encoded here and not by the SDK's parameter types: they cost
// several times as much, which counts at 20,000 messages.

type request struct {
	Model     string        `json:"model"`
	Messages  []message     `json:"messages"`
	Tools     []tool        `json:"tools,omitempty"`
	MaxTokens int           `json:"max_tokens,omitempty"`
	Options   streamOptions `json:"stream_options"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role      string     `json:"role"`
	Content   any        `json:"content"` // a string, parts, or null
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
}

type part struct {
	Type  string    `json:"type"`
	Text  string    `json:"text,omitempty"`
	Image *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type tool struct {
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

func encode(r *model.Request, name string) ([]byte, error) {
	out := request{Model: name, MaxTokens: r.MaxOutputTokens, Options: streamOptions{IncludeUsage: true}}
	if r.System != "" {
		out.Messages = append(out.Messages, message{Role: "system", Content: r.System})
	}
	for _, m := range r.Messages {
		switch m.Role {
		case model.User:
			out.Messages = append(out.Messages, userMessage(m.Parts))
		case model.Assistant:
			out.Messages = append(out.Messages, assistantMessage(m.Parts))
		case model.Tool:
			out.Messages = append(out.Messages, resultMessages(m.Parts)...)
		}
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, tool{"function", toolFunction{t.Name, t.Description, t.InputSchema}})
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return buf.Bytes(), nil
}

func userMessage(parts []model.Part) message {
	if len(parts) == 1 && parts[0].Image == nil {
		return message{Role: "user", Content: parts[0].Text}
	}
	return message{Role: "user", Content: contentParts(parts)}
}

func contentParts(parts []model.Part) []part {
	list := []part{}
	for _, p := range parts {
		if p.Image != nil {
			list = append(list, imagePart(p.Image))
		} else if p.Text != "" {
			list = append(list, part{Type: "text", Text: p.Text})
		}
	}
	return list
}

func imagePart(img *model.Image) part {
	return part{Type: "image_url", Image: &imageURL{"data:" + img.MediaType + ";base64," + base64.StdEncoding.EncodeToString(img.Data)}}
}

func assistantMessage(parts []model.Part) message {
	m := message{Role: "assistant"}
	text := ""
	for _, p := range parts {
		text += p.Text
		if c := p.ToolCall; c != nil {
			// What a model wrote that is no JSON would make every later
			// request invalid.
			args := string(c.Input)
			if !json.Valid(c.Input) {
				args = "{}"
			}
			m.ToolCalls = append(m.ToolCalls, toolCall{c.ID, "function", function{c.Name, args}})
		}
	}
	if text != "" || len(m.ToolCalls) == 0 {
		m.Content = text
	}
	return m
}

// resultMessages are a message for each result; images, which results cannot
// have there, follow as the user's.
func resultMessages(parts []model.Part) []message {
	var list []message
	var images []part
	for _, p := range parts {
		if p.ToolResult == nil {
			continue
		}
		list = append(list, message{Role: "tool", Content: p.ToolResult.Text, CallID: p.ToolResult.CallID})
		for i := range p.ToolResult.Images {
			images = append(images, imagePart(&p.ToolResult.Images[i]))
		}
	}
	if len(images) > 0 {
		list = append(list, message{Role: "user", Content: images})
	}
	return list
}

// stringField is the string that a raw JSON value is; empty for anything else.
func stringField(raw string) string {
	var s string
	if raw == "" || json.Unmarshal([]byte(raw), &s) != nil {
		return ""
	}
	return s
}
