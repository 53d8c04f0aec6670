// Package modeltest is a local server that speaks the wire format of Chat
// Completions, faults included: for tests and measurements.
package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// Reply is what the server does with one request.
type Reply struct {
	Status int               // other than 200: an error with Body
	Header map[string]string // of the response
	Body   string            // of an error
	Wait   time.Duration     // before the first byte
	Events []string          // the data of each event
	Cut    bool              // the connection is closed after the events
}

// Server answers the requests in order, the last reply again and again.
type Server struct {
	*httptest.Server
	mu       sync.Mutex
	replies  []Reply
	requests [][]byte
	headers  []http.Header
}

// New starts a server; close it with Close.
func New(replies ...Reply) *Server {
	s := &Server{replies: replies}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// BaseURL is what a client is pointed at.
func (s *Server) BaseURL() string { return s.URL + "/v1" }

// Requests are the bodies that came, oldest first.
func (s *Server) Requests() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]byte(nil), s.requests...)
}

// Headers are those of the requests that came, oldest first.
func (s *Server) Headers() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]http.Header(nil), s.headers...)
}

func (s *Server) next(body []byte, h http.Header) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.headers = append(s.requests, body), append(s.headers, h)
	r := s.replies[0]
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	return r
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"test","object":"model","created":1,"owned_by":"me"}]}`)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	reply := s.next(body, r.Header)
	if reply.Wait > 0 {
		select {
		case <-time.After(reply.Wait):
		case <-r.Context().Done():
			return
		}
	}
	for k, v := range reply.Header {
		w.Header().Set(k, v)
	}
	if reply.Status != 0 && reply.Status != http.StatusOK {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(reply.Status)
		fmt.Fprint(w, reply.Body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, ev := range reply.Events {
		fmt.Fprintf(w, "data: %s\n\n", ev)
		w.(http.Flusher).Flush()
	}
	if reply.Cut {
		panic(http.ErrAbortHandler) // closes the connection without an end
	}
}

// Text is an answer in pieces.
func Text(pieces ...string) Reply {
	var events []string
	for _, p := range pieces {
		events = append(events, Delta(map[string]any{"content": p}))
	}
	return Reply{Events: append(events, Finish("stop"), Usage(10, 5), "[DONE]")}
}

// Delta is an event with a delta.
func Delta(delta map[string]any) string {
	return encode(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": "test",
		"choices": []any{map[string]any{"index": 0, "delta": delta}}})
}

// Finish is the event that ends an answer.
func Finish(reason string) string {
	return encode(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": "test",
		"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": reason}}})
}

// Usage is the event with the counts.
func Usage(in, out int) string {
	return encode(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": "test", "choices": []any{},
		"usage": map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}})
}

// CallPiece is a fragment of a tool call.
func CallPiece(index int, id, name, arguments string) string {
	call := map[string]any{"index": index, "function": map[string]any{"arguments": arguments}}
	if id != "" {
		call["id"], call["type"] = id, "function"
		call["function"].(map[string]any)["name"] = name
	}
	return Delta(map[string]any{"tool_calls": []any{call}})
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("modeltest: " + err.Error()) // only maps of strings and numbers
	}
	return string(raw)
}
