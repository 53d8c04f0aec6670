package session_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/memstore"
)

var me = store.Holder{PID: 1, Program: "test"}

func open(t *testing.T, st store.Store, o session.Options) *session.Sessions {
	t.Helper()
	s, err := session.Open(context.Background(), st, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func prompt(text string) *sessionpb.Payload {
	return &sessionpb.Payload{Kind: uint32(session.KindPrompt), Body: &sessionpb.Payload_Prompt{Prompt: &sessionpb.Prompt{Text: text}}}
}

func text(s string) *sessionpb.Payload {
	return &sessionpb.Payload{Kind: uint32(session.KindText), Body: &sessionpb.Payload_Text{Text: &sessionpb.Text{Text: s}}}
}

func call(id string) *sessionpb.Payload {
	return &sessionpb.Payload{Kind: uint32(session.KindToolCall), Body: &sessionpb.Payload_ToolCall{ToolCall: &sessionpb.ToolCall{Id: id, Name: "shell", Input: []byte(`{}`)}}}
}

func result(id, out string) *sessionpb.Payload {
	return &sessionpb.Payload{Kind: uint32(session.KindToolResult), Body: &sessionpb.Payload_ToolResult{ToolResult: &sessionpb.ToolResult{CallId: id, Text: out}}}
}

func textOf(it *session.Item) string {
	switch it.Kind() {
	case session.KindPrompt:
		return it.Payload.GetPrompt().GetText()
	case session.KindText:
		return it.Payload.GetText().GetText()
	case session.KindToolCall:
		return it.Payload.GetToolCall().GetId()
	case session.KindToolResult:
		return it.Payload.GetToolResult().GetText()
	}
	return ""
}

func create(t *testing.T, s *session.Sessions) *session.Session {
	t.Helper()
	o, err := s.New(context.Background(), session.NewOptions{Folder: "/home/ada/work", Holder: me})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func add(t *testing.T, o *session.Session, ps ...*sessionpb.Payload) []session.Ref {
	t.Helper()
	refs, err := o.Append(context.Background(), ps, session.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return refs
}

func onPath(t *testing.T, s *session.Sessions, head session.Ref) []string {
	t.Helper()
	p, err := s.Path(context.Background(), head)
	if err != nil {
		t.Fatal(err)
	}
	return readPath(t, p)
}

func readPath(t *testing.T, p *session.Path) []string {
	t.Helper()
	var got []string
	for it, err := range p.Items(context.Background(), 0, p.Len()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, textOf(it))
	}
	return got
}

func TestNothingIsStoredBeforeThereIsSomethingToKeep(t *testing.T) {
	ctx := context.Background()
	s := open(t, memstore.New(), session.Options{})
	o := create(t, s)
	if err := o.SetModel(ctx, "practice"); err != nil {
		t.Fatal(err)
	}
	if err := o.SavePartial(ctx, []*sessionpb.Payload{text("x")}); err != nil {
		t.Fatal(err)
	}
	if found, err := s.List(ctx, session.ListOptions{}); err != nil || len(found) != 0 {
		t.Fatalf("an empty session is listed: %v, %v", found, err)
	}
	if err := o.SaveDraft(ctx, &sessionpb.Draft{Text: "half a th"}); err != nil {
		t.Fatal(err)
	}
	rec, err := s.Latest(ctx, "/home/ada/work")
	if err != nil || rec.ID() != o.ID() {
		t.Fatalf("a session with a draft is not the latest: %v, %v", rec, err)
	}
	if d, err := s.Draft(ctx, o.ID()); err != nil || d.GetText() != "half a th" {
		t.Fatalf("draft = %v, %v", d, err)
	}
}

func TestTheSecondOwnerIsRefused(t *testing.T) {
	ctx := context.Background()
	st := memstore.New()
	s := open(t, st, session.Options{})
	o := create(t, s)
	add(t, o, prompt("hello there"))
	_, err := s.Acquire(ctx, o.ID(), me)
	var held *store.HeldError
	if !errors.As(err, &held) || held.Holder.PID != 1 {
		t.Fatalf("second Acquire = %v, want the holder", err)
	}
	if _, _, err := s.Fork(ctx, o.ID(), o.Record().Head(), session.ForkOptions{}); err != nil {
		t.Fatalf("an owned session cannot be forked: %v", err)
	}
	st.Cut("session/" + o.ID())
	second, err := s.Acquire(ctx, o.ID(), me)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Append(ctx, []*sessionpb.Payload{text("late")}, session.AppendOptions{}); !errors.Is(err, session.ErrLost) {
		t.Fatalf("a write of the former owner = %v, want ErrLost", err)
	}
	add(t, second, text("mine"))
	if got := onPath(t, s, second.Record().Head()); strings.Join(got, ",") != "hello there,mine" {
		t.Fatalf("path = %q", got)
	}
}

func TestForkBoundaries(t *testing.T) {
	for _, packed := range []bool{false, true} {
		t.Run(fmt.Sprint("packed ", packed), func(t *testing.T) { forkBoundaries(t, packed) })
	}
}

func forkBoundaries(t *testing.T, packed bool) {
	ctx := context.Background()
	now := time.Now()
	s := open(t, memstore.New(), session.Options{Now: func() time.Time { return now }})
	o := create(t, s)
	refs := add(t, o, prompt("p1"), text("t1"), call("a"), call("b"), result("a", "ra"), result("b", "rb"), text("t2"), prompt("p2"), call("c"))
	if packed {
		now = now.Add(48 * time.Hour)
		if r := settle(t, s, 1<<20); r.Items != len(refs) {
			t.Fatalf("settle = %+v", r)
		}
	}
	for _, tt := range []struct {
		at   int
		want string
		back string
	}{
		{0, "", "p1"},
		{1, "p1,t1", ""},
		{2, "p1,t1,a,b,ra", ""},
		{3, "p1,t1,a,b,ra,rb", ""},
		{4, "p1,t1,a,b,ra", ""},
		{6, "p1,t1,a,b,ra,rb,t2", ""},
		{7, "p1,t1,a,b,ra,rb,t2", "p2"},
		{8, "p1,t1,a,b,ra,rb,t2,p2,c", ""},
	} {
		rec, back, err := s.Fork(ctx, o.ID(), refs[tt.at], session.ForkOptions{})
		if err != nil {
			t.Fatalf("fork at %d: %v", tt.at, err)
		}
		if got := strings.Join(onPath(t, s, rec.Head()), ","); got != tt.want || back.GetText() != tt.back {
			t.Errorf("fork at %d: path %q, composer %q; want %q, %q", tt.at, got, back.GetText(), tt.want, tt.back)
		}
	}
	recs, err := s.List(ctx, session.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	titles := map[string]bool{}
	for _, r := range recs {
		titles[r.Title()] = true
	}
	if len(recs) != 9 || !titles["p1 (fork #8)"] {
		t.Errorf("%d sessions, titles %v", len(recs), titles)
	}
}

// TestAgainstAPlainTree does random things to several sessions and to a plain
// tree in memory; the paths must always be equal.
func TestAgainstAPlainTree(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { playTree(t, seed) })
	}
}

type plain struct {
	o     *session.Session
	head  int
	reach []int // nodes that the head may move to
}

func playTree(t *testing.T, seed uint64) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(seed, 1))
	now := time.Now()
	s := open(t, memstore.New(), session.Options{Now: func() time.Time { return now }})
	parents := []int{-1} // node 0 is the root
	texts := []string{""}
	refs := []session.Ref{session.Root}
	var live []*plain
	live = append(live, &plain{o: create(t, s), reach: []int{0}})
	pathOf := func(n int) []string {
		var p []string
		for ; n > 0; n = parents[n] {
			p = append([]string{texts[n]}, p...)
		}
		return p
	}
	for step := range 220 {
		p := live[r.IntN(len(live))]
		switch k := r.IntN(100); {
		case k < 60:
			n := 1 + r.IntN(5)
			if r.IntN(40) == 0 {
				n = 1500 // over a block
			}
			var ps []*sessionpb.Payload
			for i := range n {
				ps = append(ps, text(fmt.Sprintf("%d-%d", step, i)))
			}
			got := add(t, p.o, ps...)
			for i, ref := range got {
				parents = append(parents, p.head)
				texts = append(texts, fmt.Sprintf("%d-%d", step, i))
				refs = append(refs, ref)
				p.head = len(texts) - 1
				p.reach = append(p.reach, p.head)
			}
		case k < 75:
			to := p.reach[r.IntN(len(p.reach))]
			if p.head == 0 && to == 0 || !p.o.Stored() {
				continue
			}
			if err := p.o.MoveHead(ctx, refs[to], "test"); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			p.head = to
		case k < 82 && p.o.Stored() && len(live) < 12:
			at := p.reach[r.IntN(len(p.reach))]
			rec, _, err := s.Fork(ctx, p.o.ID(), refs[at], session.ForkOptions{})
			if err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			child, err := s.Acquire(ctx, rec.ID(), me)
			if err != nil {
				t.Fatal(err)
			}
			reach := []int{0}
			for n := at; n > 0; n = parents[n] {
				reach = append(reach, n)
			}
			live = append(live, &plain{o: child, head: at, reach: reach})
		case k < 88 && p.o.Stored():
			if err := p.o.Close(ctx); err != nil {
				t.Fatal(err)
			}
			o, err := s.Acquire(ctx, p.o.ID(), me)
			if err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			p.o = o
		case k < 90 && len(live) > 1 && p.o.Stored():
			if err := p.o.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if err := s.Delete(ctx, p.o.ID(), me); err != nil {
				t.Fatal(err)
			}
			for i, q := range live {
				if q == p {
					live = append(live[:i], live[i+1:]...)
					break
				}
			}
			continue
		case k < 92:
			if _, err := s.Sweep(ctx); err != nil {
				t.Fatalf("step %d: sweep: %v", step, err)
			}
		case k < 97:
			now = now.Add(time.Duration(r.IntN(30)) * time.Hour)
			if _, err := s.Settle(ctx, int64(1000+r.IntN(20_000))); err != nil {
				t.Fatalf("step %d: settle: %v", step, err)
			}
		default:
			if err := p.o.Settle(ctx); err != nil {
				t.Fatalf("step %d: settle the session: %v", step, err)
			}
		}
		path, err := p.o.Path(ctx)
		if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if got, want := strings.Join(readPath(t, path), " "), strings.Join(pathOf(p.head), " "); got != want {
			t.Fatalf("step %d: path of %s\n got %s\nwant %s", step, p.o.ID(), got, want)
		}
	}
	report, err := s.Verify(ctx, nil)
	if err != nil || len(report.Problems) > 0 {
		t.Fatalf("verify: %v, %+v", err, report.Problems)
	}
	for _, p := range live {
		if err := p.o.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if p.o.Stored() {
			if err := s.Delete(ctx, p.o.ID(), me); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestALaterSchemaIsRefusedUntouched(t *testing.T) {
	ctx := context.Background()
	st := memstore.New()
	var b store.Batch
	b.Put(store.SchemaKey(), []byte("2"))
	v, err := st.Commit(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Open(ctx, st, session.Options{}); err == nil || !strings.Contains(err.Error(), "use a newer bough") {
		t.Fatalf("Open = %v", err)
	}
	if e, _ := st.Get(ctx, store.SchemaKey()); e[0].Version != v {
		t.Error("the refused store was written to")
	}
}

func TestSizeCeiling(t *testing.T) {
	ctx := context.Background()
	s := open(t, memstore.New(), session.Options{MaxEagerLoadMB: 1})
	o := create(t, s)
	add(t, o, prompt("big"), text(strings.Repeat("x", 900_000)))
	if w := o.SizeWarning(); !strings.Contains(w, "storage.max_eager_load_mb") {
		t.Fatalf("no warning at 80 %%: %q", w)
	}
	if w := o.SizeWarning(); w != "" {
		t.Fatalf("warned twice: %q", w)
	}
	add(t, o, text(strings.Repeat("y", 300_000)))
	if err := o.Close(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := s.Acquire(ctx, o.ID(), me)
	if !errors.Is(err, session.ErrTooBig) || !strings.Contains(err.Error(), "fork it") || !strings.Contains(err.Error(), "BOUGH_MAX_EAGER_LOAD_MB=") {
		t.Fatalf("Acquire = %v, want both ways out", err)
	}
	rec, _, err := s.Fork(ctx, o.ID(), session.Root, session.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(ctx, rec.ID(), me); err != nil {
		t.Fatalf("the refused session was not left free to fork and open: %v", err)
	}
}

func TestTitles(t *testing.T) {
	long := "Please " + strings.Repeat("rework ", 20)
	for _, tt := range []struct{ prompt, want string }{
		{"Fix the tests", "Fix the tests"},
		{"\n\n  Two\tlines \nmore", "Two lines"},
		{"https://example.com/x", ""},
		{"/help me", ""},
		{"!ls\nlook at this", "look at this"},
		{"---\nreal words", "real words"},
		{"ring \x07the \x1b[31mbell", "ring the [31mbell"},
		{long, strings.TrimRight(long[:99], " ")[:97]},
	} {
		got := session.TitleFrom(tt.prompt)
		if tt.prompt == long {
			if n := len([]rune(got)); n > 100 || n < 90 || strings.HasSuffix(got, "rewo") {
				t.Errorf("long prompt gives %q", got)
			}
			continue
		}
		if got != tt.want {
			t.Errorf("TitleFrom(%q) = %q, want %q", tt.prompt, got, tt.want)
		}
	}
}

func TestAPersonsTitleWins(t *testing.T) {
	ctx := context.Background()
	s := open(t, memstore.New(), session.Options{})
	o := create(t, s)
	add(t, o, prompt("https://example.com"), prompt("Real question"))
	title := func() string { return o.Record().Title() }
	set := func(name string, src sessionpb.TitleSource) {
		t.Helper()
		if err := o.SetTitle(ctx, name, src); err != nil {
			t.Fatal(err)
		}
	}
	if title() != "Real question" {
		t.Fatalf("first title %q", title())
	}
	set("By the model", sessionpb.TitleSource_TITLE_SOURCE_MODEL)
	set("Mine", sessionpb.TitleSource_TITLE_SOURCE_PERSON)
	set("By the model again", sessionpb.TitleSource_TITLE_SOURCE_MODEL)
	if title() != "Mine" {
		t.Fatalf("title %q, want the person's", title())
	}
	if rec, err := s.Find(ctx, "mine"); err != nil || rec.ID() != o.ID() {
		t.Fatalf("find by title: %v, %v", rec, err)
	}
	set("default", sessionpb.TitleSource_TITLE_SOURCE_PERSON)
	if title() != "Real question" {
		t.Fatalf("title %q after default", title())
	}
	for _, bad := range []string{"", "a\nb", strings.Repeat("x", 65)} {
		if err := o.SetTitle(ctx, bad, sessionpb.TitleSource_TITLE_SOURCE_PERSON); err == nil {
			t.Errorf("name %q was taken", bad)
		}
	}
}
