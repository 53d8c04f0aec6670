package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/boughdev/bough/host/model"
)

// The request is encoded here and not by the SDK's parameter types: they cost
// several times as much, which counts at 20,000 messages.

// request is all of a request but its messages.
type request struct {
	Model     string        `json:"model"`
	Tools     []tool        `json:"tools,omitempty"`
	MaxTokens int           `json:"max_tokens,omitempty"`
	Stream    bool          `json:"stream"`
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

// encode writes the messages one by one into a buffer that is large enough from
// the start: each further copy of many MB costs as much as the encoding.
func encode(r *model.Request, name string) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, sizeOf(r)))
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	out := request{Model: name, MaxTokens: r.MaxOutputTokens, Stream: true, Options: streamOptions{IncludeUsage: true}}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, tool{"function", toolFunction{t.Name, t.Description, t.InputSchema}})
	}
	if err := enc.Encode(out); err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	buf.Truncate(bytes.LastIndexByte(buf.Bytes(), '}'))
	buf.WriteString(`,"messages":[`)
	between := ""
	for m := range messages(r) {
		buf.WriteString(between)
		between = ","
		if err := enc.Encode(m); err != nil {
			return nil, fmt.Errorf("encode a message of the request: %w", err)
		}
	}
	buf.WriteString("]}")
	return buf.Bytes(), nil
}

// sizeOf is about how long the encoded request is, and rather too much.
func sizeOf(r *model.Request) int {
	const each = 64 // of a message: names, quotes
	size := 16<<10 + len(r.System)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			size += each + len(p.Text)
			switch {
			case p.ToolCall != nil:
				size += 2*each + len(p.ToolCall.Input)
			case p.ToolResult != nil:
				size += each + len(p.ToolResult.Text)
				for _, image := range p.ToolResult.Images {
					size += base64.StdEncoding.EncodedLen(len(image.Data))
				}
			case p.Image != nil:
				size += base64.StdEncoding.EncodedLen(len(p.Image.Data))
			}
		}
	}
	return size + size/8 // what is escaped
}

func messages(r *model.Request) iter.Seq[message] {
	return func(yield func(message) bool) {
		if r.System != "" && !yield(message{Role: "system", Content: r.System}) {
			return
		}
		for _, m := range r.Messages {
			var list []message
			switch m.Role {
			case model.User:
				list = []message{userMessage(m.Parts)}
			case model.Assistant:
				list = []message{assistantMessage(m.Parts)}
			case model.Tool:
				list = resultMessages(m.Parts)
			}
			for _, one := range list {
				if !yield(one) {
					return
				}
			}
		}
	}
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
