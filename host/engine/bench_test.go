package engine_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/policy"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/memstore"
	"github.com/boughdev/bough/host/tool"
)

// longPath is a conversation of n items of about 650 bytes: 13 MB at 20,000.
func longPath(n int) []*session.Item {
	var items []*session.Item
	for i := 0; len(items) < n; i++ {
		id := fmt.Sprintf("call_%d", i)
		body := strings.Repeat(fmt.Sprintf("line %d of something that was read\n", i), 22)
		items = item(items, payload(session.KindPrompt, "", body))
		items = item(items, payload(session.KindText, "", body))
		items = item(items, payload(session.KindToolCall, id, `{"filePath":"a/b/c.go"}`))
		items = item(items, payload(session.KindToolResult, id, body+body))
	}
	return items[:n]
}

// BenchmarkMessages makes the messages of a request of 20,000 items.
func BenchmarkMessages(b *testing.B) {
	items := longPath(20_000)
	for b.Loop() {
		if len(engine.Messages(items, "test", true)) == 0 {
			b.Fatal("no messages")
		}
	}
}

// BenchmarkFirstRequest opens a session of 20,000 items, 13 MB, and prompts it:
// until the request leaves. Storage is in memory.
func BenchmarkFirstRequest(b *testing.B) {
	mem := memstore.New()
	sessions, err := session.Open(b.Context(), mem, session.Options{})
	if err != nil {
		b.Fatal(err)
	}
	sess, err := sessions.New(b.Context(), session.NewOptions{Folder: b.TempDir(), Model: "test/model"})
	if err != nil {
		b.Fatal(err)
	}
	var payloads []*sessionpb.Payload
	bytes := 0
	for _, it := range longPath(20_000) {
		payloads = append(payloads, it.Payload)
	}
	for len(payloads) > 0 {
		n := min(500, len(payloads))
		if _, err := sess.Append(b.Context(), payloads[:n], session.AppendOptions{}); err != nil {
			b.Fatal(err)
		}
		payloads = payloads[n:]
	}
	bytes = int(sess.Record().Proto().GetPayloadBytes())
	if err := sess.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	head := sess.Record().Head()
	b.SetBytes(int64(bytes))
	for b.Loop() {
		b.StopTimer()
		r := newBenchRig(b, mem)
		b.StartTimer()
		l, err := r.engine.Start(b.Context(), engine.SessionOptions{ID: sess.ID(), Holder: store.Holder{}})
		if err != nil {
			b.Fatal(err)
		}
		turn, err := l.Prompt(b.Context(), engine.Prompt{Text: "go"})
		if err != nil {
			b.Fatal(err)
		}
		<-r.asked
		b.StopTimer()
		if _, err := turn.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := l.MoveHead(b.Context(), head, "bench"); err != nil {
			b.Fatal(err)
		}
		if err := l.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkTurn is a turn of one call, storage in memory: what the engine adds.
func BenchmarkTurn(b *testing.B) {
	r := newBenchRig(b, memstore.New())
	l, err := r.engine.Start(b.Context(), engine.SessionOptions{Folder: b.TempDir(), Model: "test/model"})
	if err != nil {
		b.Fatal(err)
	}
	root := session.Root
	for b.Loop() {
		turn, err := l.Prompt(b.Context(), engine.Prompt{Text: "go"})
		if err != nil {
			b.Fatal(err)
		}
		<-r.asked
		if _, err := turn.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := l.MoveHead(b.Context(), root, "bench"); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := l.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// benchRig is an engine whose model says when it is asked.
type benchRig struct {
	engine *engine.Engine
	asked  chan struct{}
}

func newBenchRig(b *testing.B, st store.Store) *benchRig {
	b.Helper()
	r := &benchRig{asked: make(chan struct{}, 1)}
	sessions, err := session.Open(b.Context(), st, session.Options{})
	if err != nil {
		b.Fatal(err)
	}
	rules, err := policy.New(policy.Options{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.engine, err = engine.New(b.Context(), engine.Config{
		Sessions: sessions, Policy: rules, Tools: tool.NewRegistry(tool.Limits{}, nil),
		Models: func(context.Context, string) (model.Provider, error) { return r, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func (r *benchRig) Models(context.Context) ([]model.Info, error) { return nil, nil }

func (r *benchRig) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == model.Tool {
			answer(text("ok"))(ctx, req, yield)
			return
		}
		r.asked <- struct{}{}
		answer(call("a", "todo_write", `{"todos":[]}`))(ctx, req, yield)
	}
}
