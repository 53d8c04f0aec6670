package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/memstore"
)

// aged is a store with a quiet session of n items, each of some words, and a
// clock that may be set.
func aged(t *testing.T, st store.Store, n int) (s *session.Sessions, rec session.Record, texts []string, now *time.Time) {
	t.Helper()
	clock := time.Now()
	now = &clock
	s = open(t, st, session.Options{Now: func() time.Time { return *now }})
	o := create(t, s)
	for i := range n {
		texts = append(texts, fmt.Sprintf("%d: what was said at step %d of the work", i, i))
		add(t, o, text(texts[i]))
	}
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	rec, err := s.Get(t.Context(), o.ID())
	if err != nil {
		t.Fatal(err)
	}
	*now = now.Add(48 * time.Hour)
	return s, rec, texts, now
}

func settle(t *testing.T, s *session.Sessions, limit int64) session.SettleReport {
	t.Helper()
	r, err := s.Settle(t.Context(), limit)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func keys(t *testing.T, st store.Store, r store.Range) (found []store.Entry) {
	t.Helper()
	for e, err := range st.Scan(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, e)
	}
	return found
}

func TestSettledItemsAreReadOneByOneAndTogether(t *testing.T) {
	st := memstore.New()
	s, rec, texts, _ := aged(t, st, 600)
	before := settle(t, s, 1<<20)
	if before.Items != 600 || before.After >= before.Before {
		t.Fatalf("settle = %+v", before)
	}
	seg := rec.Segment()
	if n := len(keys(t, st, store.Items(seg, 1, 600))); n != 3 {
		t.Errorf("%d rows hold 600 items, and 3 are enough", n)
	}
	if got := onPath(t, s, rec.Head()); !slices.Equal(got, texts) {
		t.Errorf("the path is %q", got)
	}
	for i, want := range texts {
		it, err := s.Item(t.Context(), session.Ref{Segment: seg, Number: uint64(i + 1)})
		if err != nil || textOf(it) != want || it.Ref.Number != uint64(i+1) || it.Parent.Number != uint64(i) {
			t.Fatalf("item %d is %v: %v", i+1, it, err)
		}
		p, err := s.Path(t.Context(), session.Ref{Segment: seg, Number: uint64(i + 1)})
		if err != nil {
			t.Fatal(err)
		}
		from := max(0, i-3)
		for it, err := range p.Items(t.Context(), from, i+1) {
			if err != nil || textOf(it) != texts[from] {
				t.Fatalf("from %d to %d: %v, %v", from, i, it, err)
			}
			from++
		}
	}
	n := 0
	for it, err := range s.AllItems(t.Context(), rec) {
		if err != nil || textOf(it) != texts[n] {
			t.Fatalf("item %d: %v, %v", n, it, err)
		}
		n++
	}
	if n != 600 {
		t.Errorf("%d items in all", n)
	}
}

func TestOnlyWhatIsSettledIsPacked(t *testing.T) {
	st := memstore.New()
	s, rec, _, now := aged(t, st, 10)
	*now = now.Add(-48 * time.Hour)
	if r := settle(t, s, 1<<20); r.Items != 0 {
		t.Errorf("a session in use was packed: %+v", r)
	}
	*now = now.Add(48 * time.Hour)
	if r := settle(t, s, 1<<20); r.Items != 10 {
		t.Errorf("a quiet session was not packed: %+v", r)
	}
	all := keys(t, st, store.Range{})
	if r := settle(t, s, 1<<20); r.Items != 0 || r.Before != 0 {
		t.Errorf("a second time there was something to do: %+v", r)
	}
	if again := keys(t, st, store.Range{}); !slices.EqualFunc(all, again, func(a, b store.Entry) bool { return a.Version == b.Version }) {
		t.Error("a second time rows were written")
	}
	o, err := s.Acquire(t.Context(), rec.ID(), me)
	if err != nil {
		t.Fatal(err)
	}
	add(t, o, text("what was said on the next day"), text("and what else"))
	*now = now.Add(48 * time.Hour)
	if r := settle(t, s, 1<<20); r.Items != 12 {
		t.Errorf("a bundle with room was not filled: %+v", r)
	}
	if n := len(keys(t, st, store.Items(rec.Segment(), 1, 12))); n != 1 {
		t.Errorf("%d rows hold 12 items", n)
	}
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A session in use packs its own items when a whole row of them is there.
func TestASessionInUsePacksWhatIsSettled(t *testing.T) {
	st := memstore.New()
	s := open(t, st, session.Options{})
	o := create(t, s)
	var texts []string
	rows := func() int { return len(keys(t, st, store.Items(o.Record().Segment(), 1, 5000))) }
	for i := range 2100 {
		texts = append(texts, fmt.Sprintf("%d: what was said at step %d of the work", i, i))
		add(t, o, text(texts[i]))
		before := rows()
		if err := o.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if packs := i+1 == 1024 || i+1 == 2048; packs != (rows() < before) {
			t.Fatalf("after item %d there are %d rows, and were %d", i+1, rows(), before)
		}
	}
	if n := rows(); n != 8+52 {
		t.Errorf("%d rows hold 2100 items", n)
	}
	if got := onPath(t, s, o.Record().Head()); !slices.Equal(got, texts) {
		t.Errorf("the path has %d items, and other ones", len(got))
	}
}

// What the limit leaves is packed by the next calls.
func TestSettlingGoesOnWhereItStopped(t *testing.T) {
	s, rec, texts, _ := aged(t, memstore.New(), 1400)
	for calls := 1; ; calls++ {
		r := settle(t, s, 4000)
		if got := onPath(t, s, rec.Head()); !slices.Equal(got, texts) {
			t.Fatalf("after %d calls the path is %q", calls, got)
		}
		if !r.More {
			if calls < 3 {
				t.Errorf("the limit was not kept: %d calls", calls)
			}
			return
		}
		if calls > 100 {
			t.Fatal("it does not come to an end")
		}
	}
}

// A damaged item is left as it is, and costs no other.
func TestADamagedItemIsNotPacked(t *testing.T) {
	st := memstore.New()
	s, rec, texts, _ := aged(t, st, 30)
	var b store.Batch
	b.Put(store.ItemKey(rec.Segment(), 11), []byte{77, 1, 2, 3})
	if _, err := st.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	settle(t, s, 1<<20)
	if n := len(keys(t, st, store.Items(rec.Segment(), 1, 30))); n != 3 {
		t.Errorf("%d rows", n)
	}
	damaged(t, s, rec, texts, func(i int) bool { return i == 10 })
}

// A damaged bundle costs its items, and each is told.
func TestADamagedBundleIsToldItemByItem(t *testing.T) {
	st := memstore.New()
	s, rec, texts, _ := aged(t, st, 600)
	settle(t, s, 1<<20)
	middle := keys(t, st, store.Items(rec.Segment(), 1, 600))[1]
	noticed := 0
	for at := range middle.Value {
		broken := bytes.Clone(middle.Value)
		broken[at] ^= 0x11
		var b store.Batch
		b.Put(middle.Key, broken)
		if _, err := st.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		it, err := s.Item(t.Context(), session.Ref{Segment: rec.Segment(), Number: 400})
		if err == nil && textOf(it) == texts[399] { // a bit of the frame's header that says nothing
			continue
		}
		noticed++
		damaged(t, s, rec, texts, func(i int) bool { return i >= 256 && i < 512 })
	}
	if noticed < len(middle.Value)-2 {
		t.Errorf("of %d bytes %d were noticed when they changed", len(middle.Value), noticed)
	}
}

func damaged(t *testing.T, s *session.Sessions, rec session.Record, texts []string, is func(i int) bool) {
	t.Helper()
	p, err := s.Path(t.Context(), rec.Head())
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for it, err := range p.Items(t.Context(), 0, p.Len()) {
		var d *session.DamagedError
		if is(i) != errors.As(err, &d) || !is(i) && textOf(it) != texts[i] || it.Ref.Number != uint64(i+1) {
			t.Fatalf("item %d: %v, %v", i+1, it, err)
		}
		i++
	}
	if i != len(texts) {
		t.Fatalf("%d items of %d", i, len(texts))
	}
}

// settling packs everything right before a batch that deletes, once.
type settling struct {
	*memstore.Store
	act func()
}

func (st *settling) Commit(ctx context.Context, b store.Batch) (uint64, error) {
	if act := st.act; act != nil && slices.ContainsFunc(b.Ops, func(op store.Op) bool { return op.Delete && op.Key[0] == 'I' }) {
		st.act = nil
		act()
	}
	return st.Store.Commit(ctx, b)
}

func (st *settling) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Entry, error] {
	return st.Store.Scan(ctx, r)
}

// What a fork needs stays though it is packed together with what is trimmed,
// and in the very moment.
func TestTrimmingSparesWhatIsPackedMeanwhile(t *testing.T) {
	for _, before := range []bool{false, true} {
		st := &settling{Store: memstore.New()}
		s, rec, texts, _ := aged(t, st, 200)
		fork, _, err := s.Fork(t.Context(), rec.ID(), session.Ref{Segment: rec.Segment(), Number: 60}, session.ForkOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), rec.ID(), me); err != nil {
			t.Fatal(err)
		}
		if before {
			settle(t, s, 1<<20)
		} else {
			st.act = func() { settle(t, s, 1<<20) }
		}
		if r, err := s.Sweep(t.Context()); err != nil || r.Trimmed != 1 {
			t.Fatalf("sweep = %+v, %v", r, err)
		}
		if st.act != nil {
			t.Fatal("nothing was packed meanwhile")
		}
		if got := onPath(t, s, fork.Head()); !slices.Equal(got, texts[:60]) {
			t.Errorf("of 60 items %d are left", len(got))
		}
		if left := keys(t, st, store.Items(rec.Segment(), 61, 200)); len(left) > 0 {
			t.Errorf("%d rows are left of what nobody needs", len(left))
		}
	}
}

func TestAfterDeletingEverythingNoRowIsLeft(t *testing.T) {
	for _, packed := range []bool{false, true} {
		t.Run(fmt.Sprint("packed ", packed), func(t *testing.T) { deleteEverything(t, packed) })
	}
}

func deleteEverything(t *testing.T, packed bool) {
	ctx := context.Background()
	st := memstore.New()
	now := time.Now()
	s := open(t, st, session.Options{Now: func() time.Time { return now }})
	o := create(t, s)
	long := " and much more of that kind, which packs well"
	refs := add(t, o, prompt("one"+long), text("two"+long), text("three"+long))
	rec, _, err := s.Fork(ctx, o.ID(), refs[1], session.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.MoveHead(ctx, refs[0], "test"); err != nil {
		t.Fatal(err)
	}
	if packed {
		now = now.Add(48 * time.Hour)
	}
	if got, err := s.Settle(ctx, 1<<20); err != nil || packed != (got.Items == 3) {
		t.Fatalf("settle = %+v, %v", got, err)
	}
	if err := s.Delete(ctx, o.ID(), me); !errors.Is(err, store.ErrHeld) {
		t.Fatalf("deleting an open session = %v, want ErrHeld", err)
	}
	if err := o.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, o.ID(), me); err != nil {
		t.Fatal(err)
	}
	report, err := s.Sweep(ctx)
	if err != nil || report.Trimmed != 1 {
		t.Fatalf("sweep = %+v, %v; want the parent's segment trimmed", report, err)
	}
	if got := strings.Join(onPath(t, s, rec.Head()), ","); got != "one"+long+",two"+long {
		t.Fatalf("the fork's path is %q after its parent was deleted", got)
	}
	if err := s.Delete(ctx, rec.ID(), me); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	for e, err := range st.Scan(ctx, store.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if string(e.Key) != string(store.SchemaKey()) {
			t.Errorf("key %x is left", e.Key)
		}
	}
}
