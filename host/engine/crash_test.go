package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/memstore"
	"github.com/boughdev/bough/host/tool"
)

// mortal is the connection of one process to a store that outlives it. From
// the moment it dies nothing more is written.
type mortal struct {
	*memstore.Store
	mu      sync.Mutex
	commits int
	dieAt   int  // commit, from 1; 0: never
	applied bool // whether the one at which it dies is applied
	dead    bool
}

var errDead = fmt.Errorf("the process is dead: %w", store.ErrUnavailable)

func (m *mortal) Commit(ctx context.Context, b store.Batch) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commits++
	if m.dead {
		return 0, errDead
	}
	if m.commits == m.dieAt {
		m.dead = true
		if m.applied {
			if _, err := m.Store.Commit(ctx, b); err != nil {
				return 0, err
			}
		}
		return 0, errDead
	}
	return m.Store.Commit(ctx, b)
}

func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// saga is one session that is worked on by processes that die.
type saga struct {
	t    *testing.T
	mem  *memstore.Store
	id   string
	runs map[string]int // how often each call was carried out
	acks []session.Ref  // items that were reported as stored
	life *mortal
	rig  *rig
}

const sagaSteps = 3

// speak is a model that goes on from wherever the conversation stands: three
// steps of two calls, then the end. It checks what it is told.
func (s *saga) speak(ctx context.Context, r *model.Request, yield func(model.Event, error) bool) {
	if !s.life.isDead() {
		s.check(r)
	}
	done := 0
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if p.ToolCall != nil && strings.HasSuffix(p.ToolCall.ID, "a") {
				done++
			}
		}
	}
	long := text(strings.Repeat("and so on ", 600))
	if done == sagaSteps {
		answer(long, text("the end"))(ctx, r, yield)
		return
	}
	answer(thought("hm"), long,
		call(fmt.Sprintf("s%da", done), "shell", `{}`), call(fmt.Sprintf("s%db", done), "think", `{}`))(ctx, r, yield)
}

// check compares a request with the path in the store, item by item.
func (s *saga) check(r *model.Request) {
	if err := sound(r); err != nil {
		s.t.Errorf("a request is not sound: %v", err)
	}
	var told, stored []string
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			switch {
			case p.ToolCall != nil:
				told = append(told, "call "+p.ToolCall.ID)
			case p.ToolResult != nil:
				told = append(told, "result "+p.ToolResult.CallID+" "+p.ToolResult.Text)
			case p.Reasoning != nil:
				told = append(told, "reasoning "+p.Reasoning.Text)
			default:
				told = append(told, "text "+strings.TrimSuffix(strings.TrimPrefix(p.Text, "<system-reminder>\n"), "\n</system-reminder>"))
			}
		}
	}
	for _, it := range s.rig.items(s.id) {
		p := it.Payload
		switch it.Kind() {
		case session.KindPrompt:
			stored = append(stored, "text "+p.GetPrompt().GetText())
		case session.KindText:
			stored = append(stored, "text "+p.GetText().GetText())
		case session.KindReasoning:
			stored = append(stored, "reasoning "+p.GetReasoning().GetText())
		case session.KindToolCall:
			stored = append(stored, "call "+p.GetToolCall().GetId())
		case session.KindToolResult:
			stored = append(stored, "result "+p.GetToolResult().GetCallId()+" "+p.GetToolResult().GetText())
		case session.KindNotice:
			if p.GetHidden() {
				stored = append(stored, "text "+p.GetNotice().GetText())
			}
		}
	}
	if !slices.Equal(told, stored) {
		s.t.Errorf("the model is told\n  %.4000s\nthe path is\n  %.4000s", strings.Join(told, "\n  "), strings.Join(stored, "\n  "))
	}
}

// live is one process's life with the session: it opens it, resumes or
// prompts, and dies when life says so, or finishes.
func (s *saga) live(life *mortal, inCall string) (finished bool) {
	s.t.Helper()
	s.life = life
	r := newRig(s.t)
	s.rig = r
	r.store = life
	r.config.Resume = engine.ResumeAuto
	r.config.Limits.MaxStarts = 100
	forever := make([]say, 50)
	for i := range forever {
		forever[i] = s.speak
	}
	r.model.script = forever
	var mu sync.Mutex
	do := func(_ context.Context, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
		if life.isDead() {
			return tool.Result{}, errors.New("dead processes run nothing")
		}
		mu.Lock()
		s.runs[c.ID]++
		mu.Unlock()
		if c.ID == inCall {
			life.die()
		}
		return tool.Result{Text: "did " + c.ID}, nil
	}
	r.bench.do["shell"], r.bench.do["think"] = do, do

	l, heard, err := r.tryStart(s.id)
	if err == nil {
		if s.id == "" {
			s.id = l.ID()
		}
		turn := l.Running()
		if turn == nil && len(s.acks) == 0 {
			turn, err = l.Prompt(s.t.Context(), engine.Prompt{Text: "tell the story"})
		}
		if err == nil && turn != nil {
			r.wait(turn)
		}
		closeLive(s.t, l)
		heard.until("the end", is[engine.Ended])
		for _, ev := range heard.all() {
			if b, ok := ev.Body.(engine.ItemStored); ok {
				s.acks = append(s.acks, b.Ref)
			}
		}
	} else if !life.isDead() {
		s.t.Fatal(err)
	}
	if s.id != "" {
		s.mem.Cut("session/" + s.id) // as the death of a process does
		entries, err := s.mem.Get(s.t.Context(), store.SessionKey(s.id))
		if err != nil {
			s.t.Fatal(err)
		}
		if entries[0].Version == 0 {
			s.id = "" // it died before anything was stored
		}
	}
	return !life.isDead()
}

// verify compares what is stored with what was promised.
func (s *saga) verify() {
	s.t.Helper()
	items := s.rig.items(s.id)
	on := map[session.Ref]bool{}
	for _, it := range items {
		on[it.Ref] = true
	}
	for _, ref := range s.acks {
		if !on[ref] {
			s.t.Errorf("item %s was reported as stored and is gone", ref)
		}
	}
	for id, n := range s.runs {
		if n > 1 {
			s.t.Errorf("call %s was carried out %d times", id, n)
		}
	}
	path := s.rig.path(s.id)
	if !strings.HasSuffix(path[len(path)-1], "the end") {
		s.t.Errorf("the last item is %.60s", path[len(path)-1])
	}
	answers := map[string]int{}
	for _, it := range items {
		if r := it.Payload.GetToolResult(); r != nil {
			answers[r.GetCallId()]++
		}
	}
	for _, it := range items {
		if c := it.Payload.GetToolCall(); c != nil && answers[c.GetId()] != 1 {
			s.t.Errorf("call %s has %d results", c.GetId(), answers[c.GetId()])
		}
	}
	rec, err := s.rig.sessions.Get(s.t.Context(), s.id)
	if err != nil || rec.Proto().GetOpenTurn() != nil {
		s.t.Errorf("the turn is open still: %v, %v", rec.Proto().GetOpenTurn(), err)
	}
	entries, err := s.mem.Get(s.t.Context(), store.PartialKey(s.id))
	if err != nil || entries[0].Version != 0 {
		s.t.Errorf("a partial answer is left: %v", err)
	}
}

func newSaga(t *testing.T) *saga {
	t.Helper()
	mem := memstore.New()
	if _, err := session.Open(t.Context(), mem, session.Options{}); err != nil {
		t.Fatal(err)
	}
	return &saga{t: t, mem: mem, runs: map[string]int{}}
}

func TestDeathAtEveryCommit(t *testing.T) {
	whole := newSaga(t)
	life := &mortal{Store: whole.mem}
	if !whole.live(life, "") {
		t.Fatal("a life without a death did not finish")
	}
	whole.verify()
	if life.commits < 12 {
		t.Fatalf("only %d commits", life.commits)
	}
	for at := 1; at <= life.commits; at++ {
		for _, applied := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d applied %v", at, applied), func(t *testing.T) {
				s := newSaga(t)
				s.live(&mortal{Store: s.mem, dieAt: at, applied: applied}, "")
				if !s.live(&mortal{Store: s.mem}, "") {
					t.Fatal("the second life did not finish")
				}
				if s.id == "" {
					t.Fatal("no session")
				}
				s.verify()
			})
		}
	}
}

func TestDeathInACall(t *testing.T) {
	for step := range sagaSteps {
		for _, which := range []string{"a", "b"} {
			id := fmt.Sprintf("s%d%s", step, which)
			s := newSaga(t)
			if s.live(&mortal{Store: s.mem}, id) {
				t.Fatalf("%s: it did not die", id)
			}
			if !s.live(&mortal{Store: s.mem}, "") {
				t.Fatalf("%s: the second life did not finish", id)
			}
			s.verify()
			path := strings.Join(s.rig.path(s.id), "\n")
			if !strings.Contains(path, "tool_result~: "+id+" interrupted by process restart") {
				t.Errorf("%s: no result says that it was interrupted", id)
			}
			if !strings.Contains(path, "notice?: bough was restarted") {
				t.Errorf("%s: the model is not told of the restart", id)
			}
		}
	}
}

func TestManyDeaths(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	for range rounds {
		s := newSaga(t)
		var deaths []int
		for {
			at := 1 + random.IntN(14)
			deaths = append(deaths, at)
			if len(deaths) > 8 {
				at = 0
			}
			if s.live(&mortal{Store: s.mem, dieAt: at, applied: random.IntN(2) == 0}, "") {
				break
			}
		}
		if s.verify(); t.Failed() {
			t.Fatalf("deaths at commits %v", deaths)
		}
	}
}

func TestWhatWasStreamedSurvives(t *testing.T) {
	mem := newSaga(t).mem
	life := &mortal{Store: mem}
	r := newRig(t)
	r.store = life
	long := strings.Repeat("all work and no play ", 1000)
	reached := make(chan struct{})
	r.model.script = []say{answer(text("I look"), call("a", "think", `{}`)), hang(reached, thought("hm"), text(long))}
	l, _ := r.start("")
	if _, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"}); err != nil {
		t.Fatal(err)
	}
	arrived(t, "the answer", reached)
	deadline := time.Now().Add(patience)
	for {
		entries, err := mem.Get(t.Context(), store.PartialKey(l.ID()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(entries[0].Value), long) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the answer was not kept aside")
		}
		time.Sleep(time.Millisecond)
	}
	life.die()
	closeLive(t, l)
	mem.Cut("session/" + l.ID())

	again := newRig(t, answer(text("and on")))
	again.store = mem
	next, _ := again.start(l.ID())
	want := []string{"prompt: go", "text: I look", "tool_call: a", "tool_result: a", "reasoning~: hm", "text~: " + long}
	same(t, again.path(l.ID()), want...)
	again.say(next, "go on")
	same(t, again.path(l.ID()), append(want, "prompt: go on", "text: and on")...)
	if err := sound(again.model.asked()[0]); err != nil {
		t.Error(err)
	}
	if !strings.Contains(messagesJSON(t, again.model.asked()[0]), long) {
		t.Error("the model is not told what it had said")
	}
}

// cutOff is a session whose turn was cut off by a death, so many times.
func cutOff(t *testing.T, resume engine.Resume, deaths int) (r *rig, id string) {
	t.Helper()
	mem := newSaga(t).mem
	for range deaths {
		r = newRig(t)
		life := &mortal{Store: mem}
		r.store = life
		r.config.Resume = engine.ResumeAuto
		reached := make(chan struct{})
		r.model.script = []say{func(ctx context.Context, _ *model.Request, yield func(model.Event, error) bool) {
			life.die()
			close(reached)
			<-ctx.Done()
			yield(model.Event{}, ctx.Err())
		}}
		l, _ := r.start(id)
		if id == "" {
			id = l.ID()
			if _, err := l.Prompt(t.Context(), engine.Prompt{Text: "go"}); err != nil {
				t.Fatal(err)
			}
		}
		arrived(t, "the request", reached)
		closeLive(t, l)
		mem.Cut("session/" + id)
	}
	r = newRig(t, answer(text("ok")))
	r.store = mem
	r.config.Resume = resume
	return r, id
}

func TestWhatBecomesOfATurnThatWasCutOff(t *testing.T) {
	t.Run("auto resumes", func(t *testing.T) {
		r, id := cutOff(t, engine.ResumeAuto, 1)
		l, _ := r.start(id)
		if turn := l.Running(); turn != nil {
			r.wait(turn)
		}
		same(t, r.path(id), "prompt: go", "notice?: bough was restarted", "text: ok")
	})
	t.Run("ask waits for an answer", func(t *testing.T) {
		r, id := cutOff(t, engine.ResumeAsk, 1)
		l, _ := r.start(id)
		prompt, starts, ok := l.Pending()
		if !ok || starts != 1 || prompt.Number != 1 || l.Running() != nil {
			t.Fatalf("pending %v %d %v", prompt, starts, ok)
		}
		turn, err := l.Resume(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if o := r.wait(turn); o.Reason != engine.ReasonDone || turn.Prompt() != prompt {
			t.Errorf("outcome %+v of %s", o, turn.Prompt())
		}
		if _, _, ok := l.Pending(); ok {
			t.Error("it is pending still")
		}
		same(t, r.path(id), "prompt: go", "notice?: bough was restarted", "text: ok")
	})
	t.Run("ask and no", func(t *testing.T) {
		r, id := cutOff(t, engine.ResumeAsk, 1)
		l, _ := r.start(id)
		if err := l.Dismiss(); err != nil {
			t.Fatal(err)
		}
		if err := l.Dismiss(); !errors.Is(err, engine.ErrNoPending) {
			t.Errorf("dismissed twice: %v", err)
		}
		same(t, r.path(id), "prompt: go", "notice?: bough was restarted in the middle of the turn before")
		closeLive(t, l)
		again, _ := r.start(id)
		if _, _, ok := again.Pending(); ok {
			t.Error("it is offered again")
		}
	})
	t.Run("ask and another prompt", func(t *testing.T) {
		r, id := cutOff(t, engine.ResumeAsk, 1)
		l, _ := r.start(id)
		r.say(l, "something else")
		if _, _, ok := l.Pending(); ok {
			t.Error("it is pending still")
		}
		same(t, r.path(id), "prompt: go", "prompt: something else", "text: ok")
	})
	t.Run("never", func(t *testing.T) {
		r, id := cutOff(t, engine.ResumeNever, 1)
		l, _ := r.start(id)
		if _, _, ok := l.Pending(); ok || l.Running() != nil {
			t.Error("it is pending or running")
		}
		same(t, r.path(id), "prompt: go", "notice: bough was restarted in the middle of this turn; it was not resumed")
	})
	t.Run("two restarts are resumed", func(t *testing.T) {
		r, id := cutOff(t, engine.ResumeAsk, 2)
		l, _ := r.start(id)
		if _, starts, ok := l.Pending(); !ok || starts != 2 {
			t.Errorf("pending %v after %d starts", ok, starts)
		}
	})
	t.Run("the third start was the last", func(t *testing.T) {
		r, id := cutOff(t, engine.ResumeAuto, 3)
		l, _ := r.start(id)
		if _, _, ok := l.Pending(); ok || l.Running() != nil {
			t.Error("it is pending or running")
		}
		path := r.path(id)
		if last := path[len(path)-1]; !strings.HasPrefix(last, "notice: This turn was begun 3 times") {
			t.Errorf("last item %s", last)
		}
		if o := r.say(l, "go on"); o.Reason != engine.ReasonDone {
			t.Errorf("the next turn: %+v", o)
		}
	})
}
