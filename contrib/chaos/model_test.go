package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/boughdev/bough/plugins/models/modeltest"
)

// message is one of a Chat Completions request.
type message struct {
	Role       string `json:"role"`
	Content    text   `json:"content"`
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// text is a content, which may be a string or a list of parts.
type text string

func (t *text) UnmarshalJSON(raw []byte) error {
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, (*string)(t)) == nil {
		return nil
	}
	err := json.Unmarshal(raw, &parts)
	for _, p := range parts {
		*t += text(p.Text)
	}
	return err
}

// scripted is a model that goes on from wherever the conversation stands: so
// many steps of text and two calls, then the end.
type scripted struct {
	t     *testing.T
	steps int
	point func(where string)  // something can be cut off here
	check func(told []string) // of each request
	call  func(step int) string
}

// begin is a prompt that only opens the session.
const begin = "begin"

func (m *scripted) serve(t *testing.T) string {
	s := httptest.NewServer(m)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL + "/v1"
}

func (m *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []message `json:"messages"`
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // who asked is dead
	}
	if err := json.Unmarshal(body, &req); err != nil {
		m.t.Errorf("a request is no JSON: %v", err)
		return
	}
	m.point("request")
	if r.Context().Err() == nil {
		m.check(flat(req.Messages))
	}
	done := 0
	for _, msg := range req.Messages {
		for _, c := range msg.ToolCalls {
			if strings.HasPrefix(c.ID, "shell-") {
				done++
			}
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	events := m.answer(done)
	if last := req.Messages[len(req.Messages)-1]; last.Content == begin {
		events = modeltest.Text("Ready.").Events
	}
	for _, ev := range events {
		if _, err := fmt.Fprintf(w, "data: %s\n\n", ev); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		m.point("stream")
	}
}

func (m *scripted) answer(done int) []string {
	var events []string
	say := func(format string, args ...any) {
		events = append(events, modeltest.Delta(map[string]any{"content": fmt.Sprintf(format, args...)}))
	}
	if done >= m.steps {
		say("All %d steps ", m.steps)
		say("are done.")
		return append(events, modeltest.Finish("stop"), modeltest.Usage(10, 5), "[DONE]")
	}
	say("Step %d: ", done)
	say("%s", strings.Repeat("this is what I think of it. ", 50))
	say("So I go on.")
	write, err := json.Marshal(map[string]any{"filePath": fmt.Sprintf("step%d.txt", done), "content": fmt.Sprintf("what step %d made\n", done)})
	if err != nil {
		panic(err) // strings only
	}
	return append(events,
		modeltest.CallPiece(0, fmt.Sprintf("shell-%d", done), "shell", ""),
		modeltest.CallPiece(0, "", "", m.call(done)),
		modeltest.CallPiece(1, fmt.Sprintf("write-%d", done), "file_write", string(write)),
		modeltest.Finish("tool_calls"), modeltest.Usage(10, 5), "[DONE]")
}

// flat is what a request tells, without the system prompt.
func flat(messages []message) []string {
	var told []string
	for _, msg := range messages {
		switch msg.Role {
		case "user":
			told = append(told, "user "+string(msg.Content))
		case "assistant":
			if msg.Content != "" {
				told = append(told, "say "+string(msg.Content))
			}
			for _, c := range msg.ToolCalls {
				told = append(told, "call "+c.ID+" "+c.Function.Name)
			}
		case "tool":
			told = append(told, "result "+msg.ToolCallID+" "+string(msg.Content))
		}
	}
	return told
}
