package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/tool"
)

func TestATurnInOrder(t *testing.T) {
	r := newRig(t,
		answer(thought("hm, "), thought("a file"), model.Event{ReasoningDone: &model.Reasoning{Opaque: []byte("sig")}},
			text("I look "), text("at both."), call("c1", "file_read", `{"filePath":"a"}`), call("c2", "file_read", `{"filePath":"b"}`), tokens(10, 5)),
		answer(text("Done."), tokens(20, 1)))
	l, heard := r.start("")
	o := r.say(l, "look at a and b")
	if o.Reason != engine.ReasonDone || o.Text != "Done." || o.Steps != 2 || o.Calls != 2 || o.Usage.InputTokens != 30 || o.ExitCode() != 0 {
		t.Fatalf("outcome %+v", o)
	}
	same(t, r.path(l.ID()), "prompt: look at a and b", "reasoning: hm, a file", "text: I look at both.",
		"tool_call: c1", "tool_call: c2", "tool_result: c1 did file_read", "tool_result: c2 did file_read", "text: Done.")

	reqs := r.model.asked()
	if len(reqs) != 2 {
		t.Fatalf("%d requests", len(reqs))
	}
	second := reqs[1].Messages
	if len(second) != 3 || second[1].Parts[0].Reasoning == nil || string(second[1].Parts[0].Reasoning.Opaque) != "sig" ||
		second[1].Parts[1].Text != "I look at both." || second[2].Role != model.Tool {
		t.Fatalf("second request: %+v", second)
	}
	if !strings.Contains(reqs[0].System, l.Folder()) || reqs[0].System != reqs[1].System || len(reqs[0].Tools) != 6 {
		t.Errorf("system prompt of %d bytes, %d tools", len(reqs[0].System), len(reqs[0].Tools))
	}
	heard.until("the end", is[engine.TurnEnded])
	var kinds []string
	next := uint64(1)
	for _, ev := range heard.all() {
		if ev.Seq-ev.Merged != next {
			t.Fatalf("event %d stands for %d more, but %d was due", ev.Seq, ev.Merged, next)
		}
		next = ev.Seq + 1
		name := fmt.Sprintf("%T", ev.Body)
		if len(kinds) == 0 || kinds[len(kinds)-1] != name {
			kinds = append(kinds, name)
		}
	}
	want := []string{"ItemStored", "TurnStarted", "ReasoningDelta", "TextDelta", "UsageCounted", "ItemStored"}
	for i, w := range want {
		if kinds[i] != "engine."+w {
			t.Fatalf("events: %v", kinds)
		}
	}
	if kinds[len(kinds)-1] != "engine.TurnEnded" || !slices.Contains(kinds, "engine.CallStarted") {
		t.Fatalf("events: %v", kinds)
	}
	rec, err := r.sessions.Get(t.Context(), l.ID())
	if err != nil {
		t.Fatal(err)
	}
	u := rec.Proto().GetUsage()
	if rec.Proto().GetOpenTurn() != nil || u.GetInputTokens() != 30 || u.GetOutputTokens() != 6 || u.GetRequests() != 2 || u.GetTurns() != 1 {
		t.Errorf("record: open %v, usage %v", rec.Proto().GetOpenTurn(), u)
	}
	if rec.Title() != "look at a and b" {
		t.Errorf("title %q", rec.Title())
	}
}

func TestWhatIsStoredBeforeEachRequest(t *testing.T) {
	var r *rig
	id := make(chan string, 1)
	at := func(head, tokens uint64, then say) say {
		return func(ctx context.Context, req *model.Request, yield func(model.Event, error) bool) {
			name := <-id
			id <- name
			rec, err := r.sessions.Get(ctx, name)
			if err != nil || rec.Proto().GetOpenTurn().GetStarts() != 1 || rec.Head().Number != head || rec.Proto().GetUsage().GetInputTokens() != tokens {
				t.Errorf("before a request: %v, open turn %v, head %s, usage %v", err, rec.Proto().GetOpenTurn(), rec.Head(), rec.Proto().GetUsage())
			}
			then(ctx, req, yield)
		}
	}
	r = newRig(t, at(1, 0, answer(call("a", "think", `{}`), tokens(7, 1))), at(3, 7, answer(text("ok"))))
	l, _ := r.start("")
	id <- l.ID()
	r.say(l, "hello")
}

func TestReadsRunTogetherAndResultsKeepTheirOrder(t *testing.T) {
	calls := []model.Event{}
	for i := range 4 {
		calls = append(calls, call(fmt.Sprintf("c%d", i), "file_read", fmt.Sprintf(`{"filePath":"f%d","n":%d}`, i, i)))
	}
	r := newRig(t, answer(calls...), answer(text("ok")))
	var together sync.WaitGroup
	together.Add(4)
	gate := make([]chan struct{}, 4)
	for i := range gate {
		gate[i] = make(chan struct{})
	}
	r.bench.do["file_read"] = func(_ context.Context, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
		var in struct{ N int }
		if err := json.Unmarshal(c.Input, &in); err != nil {
			return tool.Result{}, err
		}
		together.Done()
		together.Wait() // only if all four run at once
		<-gate[in.N]
		return tool.Result{Text: fmt.Sprint(in.N)}, nil
	}
	l, heard := r.start("")
	turn, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	finished := func(id string) func(engine.Body) bool {
		return func(b engine.Body) bool { f, ok := b.(engine.CallFinished); return ok && f.CallID == id }
	}
	stored := func(id string) func(engine.Body) bool {
		return func(b engine.Body) bool {
			s, ok := b.(engine.ItemStored)
			return ok && s.Payload.GetToolResult().GetCallId() == id
		}
	}
	close(gate[3])
	heard.until("call 3 is over", finished("c3"))
	close(gate[0])
	heard.until("result 0 is stored while 1 runs", stored("c0"))
	for _, ev := range heard.all() {
		if stored("c3")(ev.Body) {
			t.Error("result 3 is stored before 1 and 2")
		}
	}
	close(gate[2])
	close(gate[1])
	r.wait(turn)
	same(t, r.path(l.ID()), "prompt", "tool_call: c0", "tool_call: c1", "tool_call: c2", "tool_call: c3",
		"tool_result: c0 0", "tool_result: c1 1", "tool_result: c2 2", "tool_result: c3 3", "text: ok")
}

func TestWhatDisturbsEachOtherRunsInOrder(t *testing.T) {
	for _, c := range []struct {
		about    string
		calls    []model.Event
		together int // calls that run at the same time at the start
	}{
		{"writes of two files", []model.Event{call("a", "file_write", `{"filePath":"x"}`), call("b", "file_write", `{"filePath":"y"}`)}, 2},
		{"writes of one file", []model.Event{call("a", "file_write", `{"filePath":"x"}`), call("b", "file_write", `{"filePath":"./x"}`)}, 1},
		{"a read of what is written", []model.Event{call("a", "file_write", `{"filePath":"d/x"}`), call("b", "file_read", `{"filePath":"d"}`)}, 1},
		{"a read of another file", []model.Event{call("a", "file_write", `{"filePath":"d/x"}`), call("b", "file_read", `{"filePath":"d/xy"}`)}, 2},
		{"programs", []model.Event{call("a", "shell", `{}`), call("b", "shell", `{}`)}, 1},
		{"a program and a read", []model.Event{call("a", "file_read", `{"filePath":"x"}`), call("b", "shell", `{}`), call("c", "file_read", `{"filePath":"y"}`)}, 1},
		{"what touches nothing", []model.Event{call("a", "shell", `{}`), call("b", "think", `{}`)}, 2},
	} {
		t.Run(c.about, func(t *testing.T) {
			r := newRig(t, answer(c.calls...), answer(text("ok")))
			var mu sync.Mutex
			var order []string
			running := 0
			started := make(chan string, len(c.calls))
			release := make(chan struct{})
			do := func(_ context.Context, tc tool.Call, _ func(tool.Progress)) (tool.Result, error) {
				mu.Lock()
				running++
				order = append(order, tc.ID)
				mu.Unlock()
				started <- tc.ID
				<-release
				mu.Lock()
				defer mu.Unlock()
				running--
				return tool.Result{Text: "ok"}, nil
			}
			for _, name := range []string{"file_read", "file_write", "shell", "think"} {
				r.bench.do[name] = do
			}
			l, _ := r.start("")
			turn, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"})
			if err != nil {
				t.Fatal(err)
			}
			for range c.together {
				<-started
			}
			mu.Lock()
			if running != c.together {
				t.Errorf("%d run together, want %d", running, c.together)
			}
			mu.Unlock()
			close(release)
			r.wait(turn)
			if c.together == 1 {
				mu.Lock()
				defer mu.Unlock()
				if !slices.IsSorted(order) || len(order) != len(c.calls) {
					t.Errorf("order %v", order)
				}
			}
		})
	}
}

func TestCallsThatCannotBeMadeAreAnswered(t *testing.T) {
	r := newRig(t,
		answer(call("a", "FileRead", `{}`), call("b", "file_read", `{"filePath":`), call("c", "file_read", `{"filePath":7}`),
			call("d", "file_read", ``), call("e", "think", ``)),
		answer(call("f", "file_read", `{"filePath":"x"}`)),
		answer(call("g", "think", `{}`)),
		answer(text("ok")))
	r.bench.do["file_read"] = func(context.Context, tool.Call, func(tool.Progress)) (tool.Result, error) {
		return tool.Result{}, errors.New("the plugin died")
	}
	l, _ := r.start("")
	if o := r.say(l, "go"); o.Reason != engine.ReasonDone {
		t.Fatalf("outcome %+v", o)
	}
	path := r.path(l.ID())
	for i, want := range []string{"there is no tool \"FileRead\"; there is file_read", "no valid JSON", "filePath: type", "required", "did think"} {
		if !strings.Contains(path[6+i], want) {
			t.Errorf("%s: want %q", path[6+i], want)
		}
	}
	if !strings.Contains(path[12], "could not be carried out") || !strings.Contains(path[12], "the plugin died") {
		t.Errorf("a call that failed as a whole: %s", path[12])
	}
	if got := r.bench.called(); !slices.Equal(got, []string{"e", "f", "g"}) {
		t.Errorf("carried out: %v", got)
	}
	for _, req := range r.model.asked() {
		if err := sound(req); err != nil {
			t.Error(err)
		}
	}
	// A call that failed as a whole may mean a new process: the session is
	// opened again before the next one.
	if len(r.bench.opened) != 2 {
		t.Errorf("opened %d times", len(r.bench.opened))
	}
}

func TestIDsOfCallsAreUnique(t *testing.T) {
	r := newRig(t,
		answer(call("call_0", "think", `{}`), call("call_0", "think", `{}`), call("", "think", `{}`), call("bad id!", "think", `{}`)),
		answer(call("call_0", "think", `{}`)), answer(text("ok")))
	l, _ := r.start("")
	r.say(l, "go")
	ids := r.bench.called()
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 5 || !slices.Contains(ids, "call_0") {
		t.Errorf("ids %v", ids)
	}
	for _, req := range r.model.asked() {
		if err := sound(req); err != nil {
			t.Error(err)
		}
	}
}

func TestTwoHundredCallsInOneAnswer(t *testing.T) {
	const n = 200
	var calls []model.Event
	for i := range n {
		calls = append(calls, call(fmt.Sprintf("c%d", i), "file_read", fmt.Sprintf(`{"filePath":"f%d"}`, i)))
	}
	r := newRig(t, answer(calls...), answer(text("ok")))
	var mu sync.Mutex
	running, most := 0, 0
	r.bench.do["file_read"] = func(context.Context, tool.Call, func(tool.Progress)) (tool.Result, error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		defer func() {
			mu.Lock()
			running--
			mu.Unlock()
		}()
		return tool.Result{Text: "ok"}, nil
	}
	l, _ := r.start("")
	r.say(l, "go")
	items := r.items(l.ID())
	if len(items) != 2*n+2 {
		t.Fatalf("%d items", len(items))
	}
	for i := range n {
		if got := items[1+n+i].Payload.GetToolResult().GetCallId(); got != fmt.Sprintf("c%d", i) {
			t.Fatalf("result %d is of %s", i, got)
		}
	}
	if most > 8 {
		t.Errorf("%d ran at once", most)
	}
	if err := sound(r.model.asked()[1]); err != nil {
		t.Error(err)
	}
}

func TestLimits(t *testing.T) {
	loop := func(_ context.Context, _ *model.Request, yield func(model.Event, error) bool) {
		answer(text("more"), call("", "think", `{}`))(context.Background(), nil, yield)
	}
	r := newRig(t, loop, loop, loop, loop)
	r.config.Limits.MaxTurns = 3
	l, _ := r.start("")
	o := r.say(l, "go")
	if o.Reason != engine.ReasonMaxTurns || o.Steps != 3 || o.ExitCode() != engine.ExitLimit || len(r.model.asked()) != 3 {
		t.Fatalf("outcome %+v after %d requests", o, len(r.model.asked()))
	}
	path := r.path(l.ID())
	if last := path[len(path)-1]; !strings.HasPrefix(last, "notice?: This turn was stopped after 3 steps") {
		t.Errorf("last item %s", last)
	}
	rec, err := r.sessions.Get(t.Context(), l.ID())
	if err != nil || rec.Proto().GetOpenTurn() != nil {
		t.Errorf("open turn %v, %v", rec.Proto().GetOpenTurn(), err)
	}
}

func TestOddAnswers(t *testing.T) {
	for _, c := range []struct {
		about string
		say   say
		want  engine.Reason
		exit  int
		path  []string
	}{
		{"empty", answer(), engine.ReasonDone, 0, []string{"prompt", "notice: The model gave an empty answer"}},
		{"only reasoning", answer(thought("hm")), engine.ReasonDone, 0, []string{"prompt", "reasoning: hm", "notice: The model gave an empty"}},
		{"cut at the output limit", func(_ context.Context, _ *model.Request, yield func(model.Event, error) bool) {
			_ = yield(text("half"), nil) && yield(model.Event{Finish: model.FinishLength}, nil)
		}, engine.ReasonDone, 0, []string{"prompt", "text: half", "notice: The answer was cut off"}},
		{"withheld", func(_ context.Context, _ *model.Request, yield func(model.Event, error) bool) {
			_ = yield(text("half"), nil) && yield(model.Event{Finish: model.FinishRefused}, nil)
		}, engine.ReasonError, engine.ExitModel, []string{"prompt", "text~: half", "notice: test: the provider withheld"}},
		{"no valid text", answer(text("a\xffb")), engine.ReasonDone, 0, []string{"prompt", "text: a\uFFFDb"}},
		{"text between reasoning", answer(thought("1"), text("a"), thought("2"), text("b")), engine.ReasonDone, 0,
			[]string{"prompt", "reasoning: 1", "text: a", "reasoning: 2", "text: b"}},
	} {
		t.Run(c.about, func(t *testing.T) {
			r := newRig(t, c.say)
			l, _ := r.start("")
			o := r.say(l, "go")
			if o.Reason != c.want || o.ExitCode() != c.exit {
				t.Errorf("outcome %+v", o)
			}
			same(t, r.path(l.ID()), c.path...)
			r.model.script = []say{answer(text("next"))}
			if o := r.say(l, "and then"); o.Reason != engine.ReasonDone {
				t.Errorf("the next turn: %+v", o)
			}
			if err := sound(r.model.asked()[1]); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAModelThatCannotBeFound(t *testing.T) {
	r := newRig(t)
	r.build()
	c := r.engine.Config
	c.Tools = tool.NewRegistry(tool.Limits{}, nil)
	c.Models = func(context.Context, string) (model.Provider, error) {
		return nil, errors.New("no provider called test")
	}
	e, err := engine.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := e.Start(t.Context(), engine.SessionOptions{Folder: t.TempDir(), Model: "test/model"})
	if err != nil {
		t.Fatal(err)
	}
	defer closeLive(t, l)
	o := r.say(l, "go")
	var failed *model.Error
	if o.ExitCode() != engine.ExitModel || !errors.As(o.Err, &failed) || failed.Class != model.ClassUnknownModel || !strings.Contains(o.Explain(), "test/model") {
		t.Fatalf("outcome %+v", o)
	}
	same(t, r.path(l.ID()), "prompt: go", "notice: model \"test/model\" cannot be used")
}

func TestOneTurnAtATime(t *testing.T) {
	reached := make(chan struct{})
	r := newRig(t, hang(reached))
	l, _ := r.start("")
	turn, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	arrived(t, "the request", reached)
	if _, err := l.Prompt(t.Context(), engine.Prompt{Text: "again"}); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("a second prompt: %v", err)
	}
	if err := l.MoveHead(t.Context(), session.Root, "revert"); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("a head move: %v", err)
	}
	if l.Running() != turn {
		t.Error("the running turn is another")
	}
	l.Interrupt()
	r.wait(turn)
	if l.Running() != nil {
		t.Error("a turn that ended is running")
	}
	if _, err := l.Resume(t.Context()); !errors.Is(err, engine.ErrNoPending) {
		t.Errorf("resume: %v", err)
	}
	closeLive(t, l)
	if _, err := l.Prompt(t.Context(), engine.Prompt{Text: "late"}); !errors.Is(err, engine.ErrEnded) {
		t.Errorf("a prompt after Close: %v", err)
	}
}
