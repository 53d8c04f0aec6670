package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/plugins/models/modeltest"
	"github.com/boughdev/bough/plugins/models/openai"
)

func serve(t *testing.T, replies ...modeltest.Reply) (*modeltest.Server, *openai.Provider) {
	t.Helper()
	s := modeltest.New(replies...)
	t.Cleanup(s.Close)
	return s, openai.New(openai.Options{BaseURL: s.BaseURL()})
}

// gather is what a request gave.
type gather struct {
	text, reasoning string
	calls           []model.ToolCall
	usage           model.Usage
	finish          model.Finish
	err             error
}

func ask(ctx context.Context, p *openai.Provider) (g gather) {
	r := &model.Request{Model: "openai-compatible/test", Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Text: "hi"}}}}}
	for ev, err := range p.Stream(ctx, r) {
		if err != nil {
			g.err = err
			break
		}
		g.text += ev.Text
		if ev.ReasoningDone != nil {
			g.reasoning += ev.ReasoningDone.Text
		}
		if ev.ToolCall != nil {
			g.calls = append(g.calls, *ev.ToolCall)
		}
		if ev.Usage != nil {
			g.usage = *ev.Usage
		}
		g.finish = max(g.finish, ev.Finish)
	}
	return g
}

func TestAnAnswer(t *testing.T) {
	s, p := serve(t, modeltest.Reply{Events: []string{
		modeltest.Delta(map[string]any{"reasoning_content": "Hm"}), modeltest.Delta(map[string]any{"reasoning_content": "…"}),
		modeltest.Delta(map[string]any{"content": "Hel"}), modeltest.Delta(map[string]any{"content": "lo"}),
		modeltest.Finish("stop"), modeltest.Usage(12, 3), "[DONE]",
	}})
	g := ask(t.Context(), p)
	if g.err != nil || g.text != "Hello" || g.reasoning != "Hm…" || g.finish != model.FinishStop || g.usage.InputTokens != 12 || g.usage.OutputTokens != 3 {
		t.Errorf("%+v", g)
	}
	var sent struct {
		Model  string
		Stream bool
	}
	if err := json.Unmarshal(s.Requests()[0], &sent); err != nil || sent.Model != "test" || !sent.Stream {
		t.Errorf("sent %s: %v", s.Requests()[0], err)
	}
	if h := s.Headers()[0].Get("Authorization"); h != "" {
		t.Errorf("without a key %q was sent", h)
	}
}

func TestParallelCallsInFragments(t *testing.T) {
	_, p := serve(t, modeltest.Reply{Events: []string{
		modeltest.CallPiece(0, "a", "file_read", `{"file`), modeltest.CallPiece(1, "b", "shell", ""),
		modeltest.CallPiece(0, "", "", `Path":"x"}`), modeltest.CallPiece(1, "", "", `{"command":"ls"}`),
		modeltest.Finish("tool_calls"), "[DONE]",
	}})
	g := ask(t.Context(), p)
	if g.err != nil || len(g.calls) != 2 || g.finish != model.FinishToolCalls {
		t.Fatalf("%+v", g)
	}
	if string(g.calls[0].Input) != `{"filePath":"x"}` || g.calls[0].ID != "a" || g.calls[1].Name != "shell" || string(g.calls[1].Input) != `{"command":"ls"}` {
		t.Errorf("calls %+v", g.calls)
	}
}

func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		reply modeltest.Reply
		class model.Class
		check func(e *model.Error) bool
	}{
		"rate limited": {modeltest.Reply{Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: `{"error":{"message":"slow down"}}`},
			model.ClassRateLimited, func(e *model.Error) bool { return e.RetryAfter == 7*time.Second && e.Message == "slow down" }},
		"rate limited, ms": {modeltest.Reply{Status: 429, Header: map[string]string{"retry-after-ms": "250"}, Body: `{}`},
			model.ClassRateLimited, func(e *model.Error) bool { return e.RetryAfter == 250*time.Millisecond }},
		"server error": {modeltest.Reply{Status: 500, Body: `oops`}, model.ClassServer, nil},
		"overloaded":   {modeltest.Reply{Status: 503, Body: `{"error":{"message":"busy"}}`}, model.ClassOverloaded, nil},
		"no key": {modeltest.Reply{Status: 401, Body: `{"error":{"message":"no key"}}`}, model.ClassAuth,
			func(e *model.Error) bool { return strings.Contains(e.Message, "BOUGH_OPENAI_COMPATIBLE_API_KEY") }},
		"too long": {modeltest.Reply{Status: 400, Body: `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`},
			model.ClassContextTooLong, nil},
		"bad request":     {modeltest.Reply{Status: 400, Body: `{"error":{"message":"what?"}}`}, model.ClassBadRequest, nil},
		"unknown model":   {modeltest.Reply{Status: 404, Body: `{"error":{"message":"no such model"}}`}, model.ClassUnknownModel, nil},
		"cut":             {modeltest.Reply{Events: []string{modeltest.Delta(map[string]any{"content": "half"})}, Cut: true}, model.ClassNetwork, nil},
		"no end":          {modeltest.Reply{Events: []string{modeltest.Delta(map[string]any{"content": "half"})}}, model.ClassNetwork, nil},
		"malformed event": {modeltest.Reply{Events: []string{modeltest.Delta(map[string]any{"content": "a"}), `{"choices": [`}}, model.ClassMalformed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := serve(t, tt.reply)
			g := ask(t.Context(), p)
			var e *model.Error
			if !errors.As(g.err, &e) || e.Class != tt.class || tt.check != nil && !tt.check(e) {
				t.Errorf("%v (%+v), want class %s", g.err, e, tt.class)
			}
		})
	}
}

func TestNothingAnswers(t *testing.T) {
	s := modeltest.New(modeltest.Text("x"))
	url := s.BaseURL()
	s.Close()
	p := openai.New(openai.Options{BaseURL: url})
	var e *model.Error
	if g := ask(t.Context(), p); !errors.As(g.err, &e) || e.Class != model.ClassNetwork || !strings.Contains(e.Message, "is the server running?") {
		t.Errorf("%v", g.err)
	}
	list, err := p.Models(t.Context())
	if err != nil || len(list) != 1 || list[0].Unusable == "" {
		t.Errorf("models of a server that is not there: %+v, %v", list, err)
	}
}

func TestCancellationIsAtOnce(t *testing.T) {
	_, p := serve(t, modeltest.Reply{Wait: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if g := ask(ctx, p); !errors.Is(g.err, context.DeadlineExceeded) {
		t.Errorf("%v", g.err)
	}
}

func TestALongStream(t *testing.T) {
	piece := strings.Repeat("words and ", 1000)
	var pieces []string
	for range 1000 {
		pieces = append(pieces, piece)
	}
	_, p := serve(t, modeltest.Text(pieces...))
	if g := ask(t.Context(), p); g.err != nil || len(g.text) != 10_000_000 {
		t.Errorf("%d bytes, %v", len(g.text), g.err)
	}
}

func TestTheHistoryIsSentAsTheServersWantIt(t *testing.T) {
	s, p := serve(t, modeltest.Text("ok"))
	r := &model.Request{
		Model: "openai-compatible/test", System: "Be brief.",
		Tools: []tool.Spec{{Name: "shell", Description: "run", InputSchema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []model.Message{
			{Role: model.User, Parts: []model.Part{{Text: "look <at> this"}, {Image: &model.Image{MediaType: "image/png", Data: []byte{1}}}}},
			{Role: model.Assistant, Parts: []model.Part{{ToolCall: &model.ToolCall{ID: "a", Name: "shell", Input: json.RawMessage(`{broken`)}}}},
			{Role: model.Tool, Parts: []model.Part{{ToolResult: &model.ToolResult{CallID: "a", Text: "no"}}}},
			{Role: model.Assistant, Parts: []model.Part{{}}},
		},
	}
	for _, err := range p.Stream(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := `{"model":"test","messages":[{"role":"system","content":"Be brief."},` +
		`{"role":"user","content":[{"type":"text","text":"look <at> this"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQ=="}}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"shell","arguments":"{}"}}]},` +
		`{"role":"tool","content":"no","tool_call_id":"a"},{"role":"assistant","content":""}],` +
		`"tools":[{"type":"function","function":{"name":"shell","description":"run","parameters":{"type":"object"}}}],` +
		`"stream_options":{"include_usage":true},"stream":true}`
	var sent, wanted any
	if err := errors.Join(json.Unmarshal(s.Requests()[0], &sent), json.Unmarshal([]byte(want), &wanted)); err != nil || !reflect.DeepEqual(sent, wanted) {
		t.Errorf("sent\n%s\nwant\n%s\n%v", s.Requests()[0], want, err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add(modeltest.Delta(map[string]any{"content": "x"}), modeltest.Finish("stop"))
	f.Add(`{"choices":[{"delta":{"tool_calls":[{"index":-1}]}}]}`, `[DONE]`)
	f.Add(`{"error":{"message":"overloaded"}}`, "")
	f.Fuzz(func(t *testing.T, one, two string) {
		s := modeltest.New(modeltest.Reply{Events: []string{one, two}})
		defer s.Close()
		g := ask(t.Context(), openai.New(openai.Options{BaseURL: s.BaseURL()}))
		if g.err == nil && g.finish == 0 {
			t.Error("an answer ends neither well nor with an error")
		}
	})
}

func BenchmarkEncode20000(b *testing.B) {
	s, p := modeltest.New(modeltest.Text("ok")), (*openai.Provider)(nil)
	defer s.Close()
	p = openai.New(openai.Options{BaseURL: s.BaseURL()})
	r := &model.Request{Model: "openai-compatible/test"}
	for range 10_000 {
		r.Messages = append(r.Messages, model.Message{Role: model.User, Parts: []model.Part{{Text: strings.Repeat("some text ", 65)}}},
			model.Message{Role: model.Assistant, Parts: []model.Part{{Text: strings.Repeat("more text ", 65)}}})
	}
	for b.Loop() {
		for _, err := range p.Stream(b.Context(), r) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
