package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/policy"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/memstore"
	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
)

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// say is one scripted answer: it yields events until yield returns false.
type say func(ctx context.Context, r *model.Request, yield func(model.Event, error) bool)

// actor is a model that gives its answers in turn and remembers what it was
// asked.
type actor struct {
	mu       sync.Mutex
	script   []say
	requests []*model.Request
	images   bool
}

func (a *actor) Models(context.Context) ([]model.Info, error) {
	return []model.Info{{Name: "test/model", Images: a.images}}, nil
}

func (a *actor) Stream(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
	if len(a.script) == 0 {
		return func(yield func(model.Event, error) bool) {
			yield(model.Event{}, &model.Error{Class: model.ClassBadRequest, Message: "the script is over"})
		}
	}
	next := a.script[0]
	a.script = a.script[1:]
	return func(yield func(model.Event, error) bool) { next(ctx, r, yield) }
}

func (a *actor) asked() []*model.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// answer yields the events and then a finish.
func answer(events ...model.Event) say {
	return func(_ context.Context, _ *model.Request, yield func(model.Event, error) bool) {
		finish := model.FinishStop
		for _, e := range events {
			if e.ToolCall != nil {
				finish = model.FinishToolCalls
			}
			if !yield(e, nil) {
				return
			}
		}
		yield(model.Event{Finish: finish}, nil)
	}
}

// broken yields the events and then an error.
func broken(err error, events ...model.Event) say {
	return func(_ context.Context, _ *model.Request, yield func(model.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		yield(model.Event{}, err)
	}
}

// hang yields the events, says that it did, and then nothing until ctx ends.
func hang(reached chan<- struct{}, events ...model.Event) say {
	return func(ctx context.Context, _ *model.Request, yield func(model.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		close(reached)
		<-ctx.Done()
		yield(model.Event{}, ctx.Err())
	}
}

func text(s string) model.Event    { return model.Event{Text: s} }
func thought(s string) model.Event { return model.Event{Reasoning: s} }
func tokens(in, out int) model.Event {
	return model.Event{Usage: &model.Usage{InputTokens: in, OutputTokens: out}}
}

func call(id, name, input string) model.Event {
	return model.Event{ToolCall: &model.ToolCall{ID: id, Name: name, Input: json.RawMessage(input)}}
}

// handler carries out a call in a test.
type handler func(ctx context.Context, c tool.Call, progress func(tool.Progress)) (tool.Result, error)

// bench is a workspace whose tools are told what to do by the test.
type bench struct {
	mu     sync.Mutex
	do     map[string]handler
	opened []workspace.Session
	closed []string
	calls  []tool.Call
}

func (b *bench) Tools(context.Context) ([]tool.Spec, error) {
	path := json.RawMessage(`{"type":"object","properties":{"filePath":{"type":"string"},"n":{"type":"integer"}},"required":["filePath"]}`)
	return []tool.Spec{
		{Name: "file_read", Effect: tool.EffectRead, PathFields: []string{"filePath"}, InputSchema: path},
		{Name: "file_write", Effect: tool.EffectWrite, PathFields: []string{"filePath"}, InputSchema: path},
		{Name: "shell", Effect: tool.EffectExecute},
		{Name: "think", Effect: tool.EffectNone},
	}, nil
}

func (b *bench) Call(ctx context.Context, c tool.Call, progress func(tool.Progress)) (tool.Result, error) {
	b.mu.Lock()
	b.calls = append(b.calls, c)
	do := b.do[c.Tool]
	b.mu.Unlock()
	if do == nil {
		return tool.Result{Text: "did " + c.Tool}, nil
	}
	return do(ctx, c, progress)
}

func (b *bench) Open(_ context.Context, s workspace.Session) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = append(b.opened, s)
	return nil
}

func (b *bench) Close(_ context.Context, id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = append(b.closed, id)
	return nil
}

func (b *bench) called() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	for _, c := range b.calls {
		ids = append(ids, c.ID)
	}
	return ids
}

// rig is an engine with everything around it.
type rig struct {
	t        *testing.T
	store    store.Store
	sessions *session.Sessions
	model    *actor
	bench    *bench
	config   engine.Config
	policy   policy.Options
	models   func(ctx context.Context) (model.Provider, error) // nil: the model
	engine   *engine.Engine
}

func newRig(t *testing.T, script ...say) *rig {
	t.Helper()
	r := &rig{t: t, store: memstore.New(), model: &actor{script: script}, bench: &bench{do: map[string]handler{}}}
	r.policy.Yolo = true
	return r
}

// start makes the engine and a live session: id, or a new one.
func (r *rig) start(id string) (*engine.Live, *listener) {
	r.t.Helper()
	l, heard, err := r.tryStart(id)
	if err != nil {
		r.t.Fatal(err)
	}
	return l, heard
}

func (r *rig) tryStart(id string) (*engine.Live, *listener, error) {
	r.t.Helper()
	r.build()
	var heard *listener
	l, err := r.engine.Start(r.t.Context(), engine.SessionOptions{
		ID: id, Folder: r.t.TempDir(), Model: "test/model",
		Attach: func(l *engine.Live) { heard = listen(r.t, l.Subscribe(100_000)) },
	})
	if err == nil {
		r.t.Cleanup(func() { closeLive(r.t, l) })
	}
	return l, heard, err
}

func (r *rig) build() {
	r.t.Helper()
	ctx := r.t.Context()
	var err error
	if r.sessions, err = session.Open(ctx, r.store, session.Options{}); err != nil {
		r.t.Fatal(err)
	}
	c := r.config
	c.Sessions, c.Workspace = r.sessions, r.bench
	c.Models = func(ctx context.Context, _ string) (model.Provider, error) {
		if r.models != nil {
			return r.models(ctx)
		}
		return r.model, nil
	}
	c.Tools = tool.NewRegistry(tool.Limits{}, nil)
	if err := c.Tools.Add(ctx, "bench", r.bench); err != nil {
		r.t.Fatal(err)
	}
	if c.Policy, err = policy.New(r.policy, append(c.Tools.Names(), "batch", "todo_write")); err != nil {
		r.t.Fatal(err)
	}
	if r.engine, err = engine.New(ctx, c); err != nil {
		r.t.Fatal(err)
	}
}

func closeLive(t *testing.T, l *engine.Live) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
}

// say prompts and waits for the end of the turn.
func (r *rig) say(l *engine.Live, prompt string) engine.Outcome {
	r.t.Helper()
	turn, err := l.Prompt(r.t.Context(), engine.Prompt{Text: prompt})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.wait(turn)
}

func (r *rig) wait(turn *engine.Turn) engine.Outcome {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	o, err := turn.Wait(ctx)
	if err != nil {
		r.t.Fatalf("the turn did not end: %v", err)
	}
	return o
}

// path is the stored items of a session, one string each.
func (r *rig) path(id string) []string {
	r.t.Helper()
	var out []string
	for _, it := range r.items(id) {
		out = append(out, describe(it))
	}
	return out
}

func (r *rig) items(id string) []*session.Item {
	r.t.Helper()
	ctx := r.t.Context()
	rec, err := r.sessions.Get(ctx, id)
	if err != nil {
		r.t.Fatal(err)
	}
	p, err := r.sessions.Path(ctx, rec.Head())
	if err != nil {
		r.t.Fatal(err)
	}
	var items []*session.Item
	for it, err := range p.Items(ctx, 0, p.Len()) {
		if err != nil {
			r.t.Fatal(err)
		}
		items = append(items, it)
	}
	return items
}

// describe is an item as "kind: text", with ~ for partial and ? for hidden.
func describe(it *session.Item) string {
	p := it.Payload
	s := it.Kind().String()
	if p.GetPartial() {
		s += "~"
	}
	if p.GetHidden() {
		s += "?"
	}
	switch it.Kind() {
	case session.KindPrompt:
		s += ": " + p.GetPrompt().GetText()
	case session.KindText:
		s += ": " + p.GetText().GetText()
	case session.KindReasoning:
		s += ": " + p.GetReasoning().GetText()
	case session.KindToolCall:
		s += ": " + p.GetToolCall().GetId()
	case session.KindToolResult:
		s += ": " + p.GetToolResult().GetCallId() + " " + p.GetToolResult().GetText()
	case session.KindNotice:
		s += ": " + p.GetNotice().GetText()
	}
	return s
}

// same compares a path with what it should begin with, entry by entry.
func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(got); i++ {
		ok = strings.HasPrefix(got[i], want[i])
	}
	if !ok {
		t.Fatalf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// listener gathers events.
type listener struct {
	t      *testing.T
	sub    *engine.Subscription
	mu     sync.Mutex
	events []engine.Event
	more   chan struct{}
}

func listen(t *testing.T, sub *engine.Subscription) *listener {
	l := &listener{t: t, sub: sub, more: make(chan struct{})}
	go func() {
		for ev := range sub.Events(context.Background()) {
			l.mu.Lock()
			l.events = append(l.events, ev)
			close(l.more)
			l.more = make(chan struct{})
			l.mu.Unlock()
		}
	}()
	t.Cleanup(sub.Close)
	return l
}

func (l *listener) all() []engine.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// until waits for an event that match accepts.
func (l *listener) until(what string, match func(engine.Body) bool) engine.Event {
	l.t.Helper()
	deadline := time.After(patience)
	for seen := 0; ; {
		l.mu.Lock()
		events, more := l.events, l.more
		l.mu.Unlock()
		for ; seen < len(events); seen++ {
			if match(events[seen].Body) {
				return events[seen]
			}
		}
		select {
		case <-more:
		case <-deadline:
			l.t.Fatalf("no event: %s", what)
		}
	}
}

// shown waits until a piece of the answer that ends so was shown.
func (l *listener) shown(end string) {
	l.t.Helper()
	l.until("text that ends with "+end, func(b engine.Body) bool {
		d, ok := b.(engine.TextDelta)
		return ok && strings.HasSuffix(d.Text, end)
	})
}

// is tells whether an event is of a type.
func is[B engine.Body](b engine.Body) bool { _, ok := b.(B); return ok }

// arrived waits for a channel to be closed.
func arrived(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("never: %s", what)
	}
}

// sound fails unless every call of a request is followed at once by exactly
// one result, in order, and nothing else is out of place.
func sound(r *model.Request) error {
	if len(r.Messages) == 0 {
		return errors.New("no messages")
	}
	ids := map[string]bool{}
	for i, m := range r.Messages {
		if len(m.Parts) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		var calls, results []string
		spoke := false
		for _, p := range m.Parts {
			switch {
			case p.ToolCall != nil:
				if ids[p.ToolCall.ID] {
					return fmt.Errorf("call id %s is used twice", p.ToolCall.ID)
				}
				ids[p.ToolCall.ID] = true
				calls = append(calls, p.ToolCall.ID)
			case p.ToolResult != nil:
				results = append(results, p.ToolResult.CallID)
			case p.Text != "":
				spoke = true
			}
		}
		switch m.Role {
		case model.Assistant:
			if len(results) > 0 || (!spoke && len(calls) == 0) {
				return fmt.Errorf("message %d of the assistant: %d results, says nothing: %v", i, len(results), !spoke)
			}
			if len(calls) == 0 {
				continue
			}
			if i+1 >= len(r.Messages) || r.Messages[i+1].Role != model.Tool {
				return fmt.Errorf("the calls of message %d have no results after them", i)
			}
			var answers []string
			for _, p := range r.Messages[i+1].Parts {
				answers = append(answers, p.ToolResult.CallID)
			}
			if !slices.Equal(calls, answers) {
				return fmt.Errorf("calls %v are answered by %v", calls, answers)
			}
		case model.Tool:
			if i == 0 || r.Messages[i-1].Role != model.Assistant || len(results) != len(m.Parts) {
				return fmt.Errorf("message %d: results without calls before them", i)
			}
		case model.User:
			if len(calls)+len(results) > 0 {
				return fmt.Errorf("message %d of the person has calls or results", i)
			}
		default:
			return fmt.Errorf("message %d has role %d", i, m.Role)
		}
	}
	return nil
}

// messagesJSON is the messages of a request as text, to compare.
func messagesJSON(t *testing.T, r *model.Request) string {
	t.Helper()
	b, err := json.MarshalIndent(r.Messages, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
