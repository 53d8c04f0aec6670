package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/engine/hosttools"
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/tool"
)

func TestTodosFollowThePath(t *testing.T) {
	write := func(id, content, status string) model.Event {
		return call(id, "todo_write", fmt.Sprintf(`{"todos":[{"content":%q,"status":%q}]}`, content, status))
	}
	r := newRig(t, answer(write("a", "first", "pending")), answer(write("b", "second", "in_progress")),
		answer(write("c", "third", "nearly")), answer(call("d", "todo_write", `{"todos":[{"content":" ","status":"pending"}]}`)), answer(text("ok")))
	l, _ := r.start("")
	if o := r.say(l, "go"); o.Reason != engine.ReasonDone {
		t.Fatalf("outcome %+v", o)
	}
	items := r.items(l.ID())
	todos := func(upTo string) string {
		for i, it := range items {
			if it.Payload.GetToolResult().GetCallId() == upTo {
				return fmt.Sprint(hosttools.Todos(items[:i+1]))
			}
		}
		return fmt.Sprint(hosttools.Todos(items[:2]))
	}
	for at, want := range map[string]string{
		"nothing": "[]", "a": "[{first pending}]", "b": "[{second in_progress}]",
		"c": "[{second in_progress}]", "d": "[{second in_progress}]", // neither was valid
	} {
		if got := todos(at); got != want {
			t.Errorf("after %s: %s, want %s", at, got, want)
		}
	}
	path := r.path(l.ID())
	if !strings.Contains(path[6], "todos[].status: enum") || !strings.Contains(path[8], "content is empty") {
		t.Errorf("refusals: %s; %s", path[6], path[8])
	}
	if got := path[4]; !strings.Contains(got, "1 entries, 1 of them open") {
		t.Errorf("result %s", got)
	}
}

func TestBatch(t *testing.T) {
	entry := func(name, params string) string { return fmt.Sprintf(`{"tool":%q,"parameters":%s}`, name, params) }
	batch := func(entries ...string) model.Event {
		return call("b", "batch", `{"tool_calls":[`+strings.Join(entries, ",")+`]}`)
	}
	many := make([]string, 26)
	for i := range many {
		many[i] = entry("think", "{}")
	}
	for _, c := range []struct {
		about string
		call  model.Event
		want  []string // parts of the result, in order
		isErr bool
		ran   []string
	}{
		{"results keep their order", batch(entry("shell", "{}"), entry("think", "{}"), entry("file_read", `{"filePath":"x"}`)),
			[]string{"[1] shell: ok", "[2] think: ok", "[3] file_read: ok"}, false, []string{"b.1", "b.2", "b.3"}},
		{"one that is wrong does not stop the others", batch(entry("nope", "{}"), entry("file_read", `{}`), entry("think", "{}")),
			[]string{"[1] nope: error", "there is no tool", "[2] file_read: error", "required", "[3] think: ok"}, false, []string{"b.3"}},
		{"all wrong", batch(entry("nope", "{}")), []string{"[1] nope: error"}, true, nil},
		{"no batch in a batch", batch(entry("think", "{}"), entry("batch", `{"tool_calls":[]}`)), []string{"cannot hold a batch"}, true, nil},
		{"too many", batch(many...), []string{"maxItems"}, true, nil},
		{"none", batch(), []string{"minItems"}, true, nil},
	} {
		t.Run(c.about, func(t *testing.T) {
			r := newRig(t, answer(c.call), answer(text("ok")))
			l, _ := r.start("")
			r.say(l, "go")
			result := r.items(l.ID())[2].Payload.GetToolResult()
			at := 0
			for _, w := range c.want {
				i := strings.Index(result.GetText()[at:], w)
				if i < 0 {
					t.Fatalf("no %q in %q", w, result.GetText())
				}
				at += i
			}
			if result.GetError() != c.isErr {
				t.Errorf("error %v", result.GetError())
			}
			got := r.bench.called()
			slices.Sort(got)
			if !slices.Equal(got, c.ran) {
				t.Errorf("carried out %v, want %v", got, c.ran)
			}
		})
	}
}

func TestABatchRunsItsCallsTogether(t *testing.T) {
	r := newRig(t, answer(call("b", "batch", `{"tool_calls":[{"tool":"shell","parameters":{}},{"tool":"shell","parameters":{}},
		{"tool":"file_write","parameters":{"filePath":"x"}},{"tool":"file_write","parameters":{"filePath":"x"}}]}`)), answer(text("ok")))
	var together sync.WaitGroup
	together.Add(3) // both programs and the first of the writes
	var mu sync.Mutex
	writes := 0
	r.bench.do["shell"] = func(context.Context, tool.Call, func(tool.Progress)) (tool.Result, error) {
		together.Done()
		together.Wait()
		return tool.Result{Text: strings.Repeat("long\n", 11_000), Files: []tool.FileState{{Path: "/s"}}}, nil
	}
	r.bench.do["file_write"] = func(_ context.Context, c tool.Call, progress func(tool.Progress)) (tool.Result, error) {
		mu.Lock()
		writes++
		first := writes == 1
		mu.Unlock()
		if first != (c.ID == "b.3") {
			t.Errorf("write %s is number %d", c.ID, writes)
		}
		if first {
			together.Done()
			together.Wait()
		}
		progress(tool.Progress{Data: []byte("w")})
		return tool.Result{Text: "ok"}, nil
	}
	l, heard := r.start("")
	if o := r.say(l, "go"); o.Reason != engine.ReasonDone {
		t.Fatalf("outcome %+v", o)
	}
	result := r.items(l.ID())[2].Payload.GetToolResult()
	if n := len(result.GetText()); n > 51200 || len(result.GetFiles()) != 2 {
		t.Errorf("%d bytes, %d files", n, len(result.GetFiles()))
	}
	heard.until("a call of the batch", func(b engine.Body) bool {
		s, ok := b.(engine.CallStarted)
		return ok && s.Parent == "b" && s.Call.ID == "b.3"
	})
	heard.until("its result", func(b engine.Body) bool {
		s, ok := b.(engine.CallFinished)
		return ok && s.Parent == "b" && s.CallID == "b.1"
	})
	heard.until("its output", func(b engine.Body) bool { s, ok := b.(engine.CallProgress); return ok && s.CallID == "b" })
}
