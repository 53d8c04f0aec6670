// Package openai speaks Chat Completions, on the official SDK, with any
// endpoint that is compatible with it: Ollama, llama.cpp, vLLM, LM Studio,
// OpenRouter and others. docs/models.md says how to point bough at one.
package openai

import (
	"context"
	"fmt"
	"iter"
	"net"
	"net/http"
	"strings"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/boughdev/bough/host/model"
)

// Prefix begins the names of these models: openai-compatible/NAME.
const Prefix = "openai-compatible/"

const provider = "openai-compatible"

// DefaultBaseURL is where a local Ollama answers.
const DefaultBaseURL = "http://localhost:11434/v1"

// Options are the settings of New.
type Options struct {
	BaseURL string // default DefaultBaseURL
	Key     string // sent as a bearer token; empty: none is
	// FirstByte is how long an answer may take to begin; default 300 s.
	FirstByte time.Duration
}

// Provider implements model.Provider.
type Provider struct {
	o      Options
	client sdk.Client
}

// New is the provider of one endpoint.
func New(o Options) *Provider {
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if o.FirstByte == 0 {
		o.FirstByte = 300 * time.Second
	}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: o.FirstByte,
		ForceAttemptHTTP2:     true,
	}
	opts := []option.RequestOption{
		option.WithBaseURL(o.BaseURL),
		option.WithHTTPClient(&http.Client{Transport: transport}),
		option.WithMaxRetries(0), // the engine retries, and shows it
		option.WithAPIKey(o.Key),
	}
	if o.Key == "" {
		opts = append(opts, option.WithHeaderDel("Authorization"))
	}
	return &Provider{o, sdk.NewClient(opts...)}
}

// Models implements model.Provider: what the endpoint lists.
func (p *Provider) Models(ctx context.Context) ([]model.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	page, err := p.client.Models.List(ctx)
	if err != nil {
		return []model.Info{{Name: Prefix + "*", Unusable: p.classify(ctx, err).Error()}}, nil
	}
	var list []model.Info
	for _, m := range page.Data {
		list = append(list, model.Info{Name: Prefix + m.ID})
	}
	return list, nil
}

// Stream implements model.Provider.
func (p *Provider) Stream(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		body, err := encode(r, strings.TrimPrefix(r.Model, Prefix))
		if err != nil {
			yield(model.Event{}, &model.Error{Class: model.ClassBadRequest, Provider: provider, Message: err.Error(), Err: err})
			return
		}
		// The SDK's own way would copy the whole body to set "stream" in it.
		var response *http.Response
		err = p.client.Post(ctx, "chat/completions", nil, &response, option.WithRequestBody("application/json", body))
		stream := ssestream.NewStream[sdk.ChatCompletionChunk](ssestream.NewDecoder(response), err)
		defer stream.Close() //nolint:errcheck // it was only read
		a := &answer{yield: func(ev model.Event) bool { return yield(ev, nil) }}
		for stream.Next() {
			chunk := stream.Current()
			if !a.take(&chunk) {
				return
			}
		}
		if err := stream.Err(); err != nil {
			yield(model.Event{}, p.classify(ctx, err))
			return
		}
		if err := a.end(); err != nil {
			yield(model.Event{}, err)
		}
	}
}

// answer gathers what comes in pieces.
type answer struct {
	yield     func(model.Event) bool
	reasoning strings.Builder
	calls     []*call
	finish    string
	usage     *model.Usage
	stopped   bool
}

type call struct {
	index    int64
	id, name string
	input    strings.Builder
}

func (a *answer) emit(ev model.Event) bool {
	a.stopped = a.stopped || !a.yield(ev)
	return !a.stopped
}

// take handles one chunk and says whether to go on.
func (a *answer) take(c *sdk.ChatCompletionChunk) bool {
	if c.JSON.Usage.Valid() && c.Usage.TotalTokens > 0 {
		cached := c.Usage.PromptTokensDetails.CachedTokens
		a.usage = &model.Usage{
			InputTokens: int(c.Usage.PromptTokens - cached), CacheReadTokens: int(cached),
			OutputTokens: int(c.Usage.CompletionTokens), ReasoningTokens: int(c.Usage.CompletionTokensDetails.ReasoningTokens),
		}
	}
	if len(c.Choices) == 0 {
		return true
	}
	choice := &c.Choices[0]
	if choice.FinishReason != "" {
		a.finish = choice.FinishReason
	}
	for _, field := range []string{"reasoning_content", "reasoning"} {
		if text := stringField(choice.Delta.JSON.ExtraFields[field].Raw()); text != "" {
			a.reasoning.WriteString(text)
			if !a.emit(model.Event{Reasoning: text}) {
				return false
			}
			break
		}
	}
	text := choice.Delta.Content + choice.Delta.Refusal
	if choice.Delta.Refusal != "" {
		a.finish = "content_filter"
	}
	if text != "" && (!a.reasoned() || !a.emit(model.Event{Text: text})) {
		return false
	}
	for i := range choice.Delta.ToolCalls {
		if !a.reasoned() || !a.fragment(&choice.Delta.ToolCalls[i]) {
			return false
		}
	}
	return true
}

// reasoned ends the reasoning, when there was some.
func (a *answer) reasoned() bool {
	if a.reasoning.Len() == 0 {
		return !a.stopped
	}
	done := &model.Reasoning{Text: a.reasoning.String(), Provider: provider}
	a.reasoning.Reset()
	return a.emit(model.Event{ReasoningDone: done})
}

// fragment adds a piece to the call that it is of. Some servers send a call
// whole, each with the index 0: another id begins another call.
func (a *answer) fragment(f *sdk.ChatCompletionChunkChoiceDeltaToolCall) bool {
	var c *call
	for i := range a.calls {
		if a.calls[i].index == f.Index {
			c = a.calls[i]
		}
	}
	if c == nil || f.ID != "" && c.id != "" && c.id != f.ID {
		c = &call{index: f.Index}
		a.calls = append(a.calls, c)
	}
	if c.id == "" {
		c.id = f.ID
	}
	if c.name == "" {
		c.name = f.Function.Name
	}
	c.input.WriteString(f.Function.Arguments)
	return a.emit(model.Event{ToolCallDelta: &model.ToolCallDelta{ID: c.id, Name: c.name, InputBytes: c.input.Len()}})
}

// end closes the answer: a stream that ends without a finish reason was cut.
func (a *answer) end() error {
	if a.finish == "" {
		return &model.Error{Class: model.ClassNetwork, Provider: provider, Message: "the answer was cut off by the server"}
	}
	if !a.reasoned() {
		return nil
	}
	for i := range a.calls {
		c := a.calls[i]
		if c.id == "" {
			c.id = fmt.Sprintf("call_%d_%d", time.Now().UnixNano(), i)
		}
		if !a.emit(model.Event{ToolCall: &model.ToolCall{ID: c.id, Name: c.name, Input: []byte(c.input.String())}}) {
			return nil
		}
	}
	if a.usage != nil && !a.emit(model.Event{Usage: a.usage}) {
		return nil
	}
	finish := model.FinishStop
	switch {
	case a.finish == "length":
		finish = model.FinishLength
	case a.finish == "content_filter":
		finish = model.FinishRefused
	case len(a.calls) > 0:
		finish = model.FinishToolCalls
	}
	a.emit(model.Event{Finish: finish})
	return nil
}
