package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/memstore"
	"github.com/boughdev/bough/host/tool"
)

// faulty is a store whose commits can be made to fail.
type faulty struct {
	*memstore.Store
	commits atomic.Int64
	fail    func(n int64, b store.Batch) error // nil result: as usual
}

func (f *faulty) Commit(ctx context.Context, b store.Batch) (uint64, error) {
	n := f.commits.Add(1)
	if f.fail != nil {
		if err := f.fail(n, b); err != nil {
			return 0, err
		}
	}
	return f.Store.Commit(ctx, b)
}

// writesItems tells whether a batch is of the history, not of a partial answer.
func writesItems(b store.Batch) bool {
	for _, op := range b.Ops {
		if op.Key[0] == store.ItemKey(0, 0)[0] {
			return true
		}
	}
	return false
}

func TestAFullDiskEndsTheTurnAndNothingIsHalfDone(t *testing.T) {
	for full := int64(1); full <= 4; full++ { // prompt, step, result, answer
		st := &faulty{Store: memstore.New()}
		r := newRig(t, answer(text("I"), call("a", "shell", `{}`)), answer(text("ok")))
		r.store = st
		l, _ := r.start("")
		var items int64
		st.fail = func(_ int64, b store.Batch) error {
			if writesItems(b) {
				items++
			}
			if items >= full {
				return store.ErrFull
			}
			return nil
		}
		turn, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"})
		if full == 1 {
			if !errors.Is(err, store.ErrFull) {
				t.Fatalf("a prompt that cannot be stored: %v", err)
			}
		} else {
			if err != nil {
				t.Fatal(err)
			}
			if o := r.wait(turn); !errors.Is(o.Err, store.ErrFull) || o.ExitCode() != engine.ExitError || !strings.Contains(o.Explain(), "make room") {
				t.Fatalf("full at %d: outcome %+v", full, o)
			}
			if n := len(r.items(l.ID())); n != []int{0, 0, 1, 3, 4}[full] {
				t.Errorf("full at %d: %d items", full, n)
			}
		}
		st.fail = nil
		r.model.script = []say{answer(text("fine"))}
		if o := r.say(l, "room again"); o.Reason != engine.ReasonDone {
			t.Fatalf("full at %d: the next turn: %+v", full, o)
		}
		last := r.model.asked()[len(r.model.asked())-1]
		if err := sound(last); err != nil {
			t.Errorf("full at %d: %v", full, err)
		}
		path := r.path(l.ID())
		if path[len(path)-1] != "text: fine" {
			t.Errorf("full at %d: %v", full, path)
		}
	}
}

func TestPromptAndEndAreSynced(t *testing.T) {
	st := &faulty{Store: memstore.New()}
	var mu sync.Mutex
	var got []store.Durability
	st.fail = func(_ int64, b store.Batch) error {
		mu.Lock()
		defer mu.Unlock()
		if writesItems(b) {
			got = append(got, b.Durability)
		}
		return nil
	}
	r := newRig(t, answer(call("a", "shell", `{}`)), answer(text("ok")))
	r.store = st
	r.config.Durability = store.Async
	l, _ := r.start("")
	r.say(l, "go")
	mu.Lock()
	defer mu.Unlock()
	if want := []store.Durability{store.Sync, store.Async, store.Async, store.Sync}; !slices.Equal(got, want) {
		t.Errorf("durability %v, want %v", got, want)
	}
}

func TestWhatIsTooLargeDoesNotKeepTheTurnOpen(t *testing.T) {
	st := &faulty{Store: memstore.New()}
	st.fail = func(_ int64, b store.Batch) error {
		for _, op := range b.Ops {
			if len(op.Value) > 1000 {
				return &store.LimitError{Limit: "value bytes", Got: uint64(len(op.Value)), Max: 1000}
			}
		}
		return nil
	}
	noise := make([]byte, 4000) // that cannot be compressed
	rand.NewChaCha8([32]byte{}).Read(noise)
	r := newRig(t, answer(text(fmt.Sprintf("%x", noise))))
	r.store = st
	l, _ := r.start("")
	if o := r.say(l, "go"); !errors.Is(o.Err, store.ErrTooLarge) {
		t.Fatalf("outcome %+v", o)
	}
	rec, err := r.sessions.Get(t.Context(), l.ID())
	if err != nil || rec.Proto().GetOpenTurn() != nil {
		t.Errorf("open turn %v, %v", rec.Proto().GetOpenTurn(), err)
	}
}

func TestAConflictEndsTheSession(t *testing.T) {
	st := &faulty{Store: memstore.New()}
	r := newRig(t, answer(call("a", "shell", `{}`)), answer(text("ok")))
	r.store = st
	l, heard := r.start("")
	var after atomic.Int64
	st.fail = func(n int64, b store.Batch) error {
		if n >= 3 {
			after.Add(1)
			return &store.ConflictError{Key: []byte("k")}
		}
		return nil
	}
	turn, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	if o := r.wait(turn); !errors.Is(o.Err, session.ErrLost) {
		t.Errorf("outcome %+v", o)
	}
	heard.until("the end", is[engine.Ended])
	if n := after.Load(); n != 1 {
		t.Errorf("%d more writes were tried after the session was lost", n-1)
	}
}

func TestAStreamedAnswerIsKeptAside(t *testing.T) {
	st := &faulty{Store: memstore.New()}
	saved := make(chan string, 1000)
	st.fail = func(_ int64, b store.Batch) error {
		if op := b.Ops[0]; op.Key[0] == store.PartialKey("")[0] && !op.Delete {
			saved <- string(op.Value)
		}
		return nil
	}
	reached := make(chan struct{})
	long := strings.Repeat("all work and no play ", 500)
	r := newRig(t, hang(reached, thought("hm"), text(long), text("tail")))
	r.store = st
	l, _ := r.start("")
	turn, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	for timeout := time.After(patience); ; {
		select {
		case v := <-saved:
			if strings.Contains(v, "tail") && strings.Contains(v, long) && strings.Contains(v, "hm") {
				l.Interrupt()
				r.wait(turn)
				entries, err := st.Get(t.Context(), store.PartialKey(l.ID()))
				if err != nil || entries[0].Version != 0 {
					t.Errorf("the partial answer is still there: %v", err)
				}
				return
			}
		case <-timeout:
			t.Fatal("the answer was not kept aside")
		}
	}
}

func TestTheRateOfSavingIsBounded(t *testing.T) {
	st := &faulty{Store: memstore.New()}
	var bytes, saves atomic.Int64
	st.fail = func(_ int64, b store.Batch) error {
		if op := b.Ops[0]; op.Key[0] == store.PartialKey("")[0] && !op.Delete {
			saves.Add(1)
			bytes.Add(int64(len(op.Value)))
		}
		return nil
	}
	var events []model.Event
	const total = 4 << 20
	for range total / 64 {
		events = append(events, text(strings.Repeat("x", 64)))
	}
	r := newRig(t, answer(events...))
	r.store = st
	l, _ := r.start("")
	begun := time.Now()
	r.say(l, "go")
	// A save for each quarter that is added, and four a second.
	most := int64(10) + 30 + 4*int64(time.Since(begun)/time.Second+1)
	if saves.Load() > most || bytes.Load() > most*total {
		t.Errorf("%d saves of %d bytes together, for an answer of %d", saves.Load(), bytes.Load(), total)
	}
}

func TestTheWorkspaceKnowsWhatTheModelHasSeen(t *testing.T) {
	r := newRig(t, answer(call("a", "file_read", `{"filePath":"x"}`), call("b", "file_write", `{"filePath":"y"}`)),
		answer(call("c", "file_write", `{"filePath":"x"}`)), answer(text("ok")))
	state := func(hash byte, path string) handler {
		return func(_ context.Context, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
			name := path
			if c.ID == "c" {
				name = "/x"
			}
			return tool.Result{Text: "ok", Files: []tool.FileState{{Path: name, SHA256: []byte{hash}, Written: c.Tool == "file_write"}}}, nil
		}
	}
	r.bench.do["file_read"], r.bench.do["file_write"] = state(1, "/x"), state(2, "/y")
	l, _ := r.start("")
	r.say(l, "go")
	if n := len(r.bench.opened); n != 1 || len(r.bench.opened[0].Seen) != 0 || r.bench.opened[0].Folder != l.Folder() {
		t.Fatalf("opened %+v", r.bench.opened)
	}
	// The next turn opens the session again, with all of it: newest last.
	r.model.script = []say{answer(call("d", "think", `{}`)), answer(text("ok"))}
	r.say(l, "more")
	seen := r.bench.opened[1].Seen
	if len(seen) != 2 || seen[0].Path != "/y" || seen[1].Path != "/x" || seen[1].SHA256[0] != 2 || !seen[1].Written {
		t.Fatalf("seen %+v", seen)
	}
	// Back to before the second step, x was only read.
	var at session.Ref
	for _, it := range r.items(l.ID()) {
		if it.Payload.GetToolResult().GetCallId() == "b" {
			at = it.Ref
		}
	}
	if err := l.MoveHead(t.Context(), at, "revert"); err != nil {
		t.Fatal(err)
	}
	r.model.script = []say{answer(call("e", "think", `{}`)), answer(text("ok"))}
	r.say(l, "otherwise")
	seen = r.bench.opened[2].Seen
	if len(seen) != 2 || seen[0].Path != "/x" || seen[0].Written || seen[1].Path != "/y" {
		t.Fatalf("seen after a head move: %+v", seen)
	}
	reqs := r.model.asked()
	last := reqs[len(reqs)-1]
	if err := sound(last); err != nil {
		t.Error(err)
	}
	for _, m := range last.Messages {
		for _, p := range m.Parts {
			if p.ToolCall != nil && p.ToolCall.ID == "c" {
				t.Error("the request holds a call of the branch that was left")
			}
		}
	}
	// The same after a restart.
	closeLive(t, l)
	r.model.script = []say{answer(call("f", "think", `{}`)), answer(text("ok"))}
	again, _ := r.start(l.ID())
	r.say(again, "and now")
	if seen = r.bench.opened[3].Seen; len(seen) != 2 || seen[0].Path != "/x" {
		t.Fatalf("seen after a restart: %+v", seen)
	}
}

func TestASummaryCountsOnlyOnItsPath(t *testing.T) {
	r := newRig(t, answer(text("one")), answer(text("two")))
	l, _ := r.start("")
	r.say(l, "first")
	r.say(l, "second")
	closeLive(t, l)
	items := r.items(l.ID())
	sess, err := r.sessions.Acquire(t.Context(), l.ID(), store.Holder{})
	if err != nil {
		t.Fatal(err)
	}
	summary := &sessionpb.Payload{Kind: uint32(session.KindSummary), Body: &sessionpb.Payload_Summary{Summary: &sessionpb.Summary{
		Text: "they said first", ReplacesTo: &sessionpb.Ref{Segment: items[1].Ref.Segment, Number: items[1].Ref.Number},
	}}}
	if _, err := sess.Append(t.Context(), []*sessionpb.Payload{summary}, session.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := sess.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.model.script = []say{answer(text("three")), answer(text("back"))}
	l, _ = r.start(l.ID())
	r.say(l, "third")
	said := func() string {
		reqs := r.model.asked()
		var all []string
		for _, m := range reqs[len(reqs)-1].Messages {
			for _, p := range m.Parts {
				all = append(all, p.Text)
			}
		}
		return strings.Join(all, "|")
	}
	got := said()
	if strings.Contains(got, "|first") || strings.HasPrefix(got, "first") || !strings.Contains(got, "they said first") || !strings.HasSuffix(got, "second|two|third") {
		t.Errorf("with the summary: %q", got)
	}
	// Before the summary, all of it is back.
	if err := l.MoveHead(t.Context(), items[3].Ref, "revert"); err != nil {
		t.Fatal(err)
	}
	r.say(l, "fourth")
	if got := said(); got != "first|one|second|two|fourth" {
		t.Errorf("without the summary: %q", got)
	}
}

func TestAForkIsToldWhatTheParentWouldBe(t *testing.T) {
	r := newRig(t, answer(text("I"), call("a", "think", `{}`)), answer(text("one")), answer(text("two")), answer(text("two")))
	l, _ := r.start("")
	r.say(l, "first")
	items := r.items(l.ID())
	rec, _, err := r.sessions.Fork(t.Context(), l.ID(), items[len(items)-1].Ref, session.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.say(l, "second")
	fork, err := r.engine.Start(t.Context(), engine.SessionOptions{ID: rec.ID()})
	if err != nil {
		t.Fatal(err)
	}
	defer closeLive(t, fork)
	r.say(fork, "second")
	reqs := r.model.asked()
	a, b := reqs[len(reqs)-2], reqs[len(reqs)-1]
	if x, y := messagesJSON(t, a), messagesJSON(t, b); x != y {
		t.Errorf("the parent was told\n%s\nthe fork\n%s", x, y)
	}
	// Forked in the middle of a step, the call has no result.
	rec, _, err = r.sessions.Fork(t.Context(), l.ID(), items[1].Ref, session.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.model.script = []say{answer(text("ok"))}
	second, err := r.engine.Start(t.Context(), engine.SessionOptions{ID: rec.ID()})
	if err != nil {
		t.Fatal(err)
	}
	defer closeLive(t, second)
	r.say(second, "on")
	reqs = r.model.asked()
	if err := sound(reqs[len(reqs)-1]); err != nil {
		t.Error(err)
	}
}
