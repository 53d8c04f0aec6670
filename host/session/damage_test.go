package session_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/memstore"
)

// between runs act once, right before the sessions are scanned.
type between struct {
	*memstore.Store
	act func()
}

func (b *between) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Entry, error] {
	if b.act != nil && bytes.Equal(r.Start, store.Sessions().Start) {
		act := b.act
		b.act = nil
		act()
	}
	return b.Store.Scan(ctx, r)
}

func TestSweepSparesTheAncestorsOfAForkMadeMeanwhile(t *testing.T) {
	ctx := context.Background()
	st := &between{Store: memstore.New()}
	s := open(t, st, session.Options{})
	o := create(t, s)
	refs := add(t, o, prompt("one"), text("two"))
	if err := o.Close(ctx); err != nil {
		t.Fatal(err)
	}
	var fork string
	st.act = func() { // after the segments were listed, before the sessions are
		rec, _, err := s.Fork(ctx, o.ID(), refs[1], session.ForkOptions{})
		if err != nil {
			t.Fatal(err)
		}
		fork = rec.ID()
		f, err := s.Acquire(ctx, fork, me)
		if err != nil {
			t.Fatal(err)
		}
		add(t, f, prompt("three"))
		if err := f.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(ctx, o.ID(), me); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	rec, err := s.Get(ctx, fork)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(onPath(t, s, rec.Head()), ","); got != "one,two,three" {
		t.Errorf("path %q", got)
	}
}

func TestSweepDoesNotFreeTheItemsOfALostSegmentRecord(t *testing.T) {
	ctx := context.Background()
	st := memstore.New()
	now := time.Now()
	s := open(t, st, session.Options{Now: func() time.Time { return now }})
	o := create(t, s)
	refs := add(t, o, prompt("one"), text("two"))
	var b store.Batch
	b.Delete(store.SegmentKey(refs[0].Segment))
	if _, err := st.Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
	now = now.Add(48 * time.Hour)
	if _, err := s.Sweep(ctx); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("sweep = %v, want damage", err)
	}
	n := 0
	for range st.Scan(ctx, store.Items(refs[0].Segment, 1, 100)) {
		n++
	}
	if n != 2 {
		t.Errorf("%d items are left of 2", n)
	}
}

func TestAForkDoesNotTakeAResultOfAnotherBranch(t *testing.T) {
	ctx := context.Background()
	s := open(t, memstore.New(), session.Options{})
	o := create(t, s)
	refs := add(t, o, prompt("p"), call("a"))
	if err := o.MoveHead(ctx, refs[0], "test"); err != nil {
		t.Fatal(err)
	}
	add(t, o, call("a"), result("a", "other branch"))
	rec, _, err := s.Fork(ctx, o.ID(), refs[1], session.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if rec.Head() != refs[1] {
		t.Errorf("the fork ends at %s (%v), not at the call %s", rec.Head(), onPath(t, s, rec.Head()), refs[1])
	}
}

func TestImportMapsWhatASummaryStandsFor(t *testing.T) {
	ctx := context.Background()
	s := open(t, memstore.New(), session.Options{})
	o := create(t, s)
	refs := add(t, o, prompt("p"), text("t"))
	add(t, o, &sessionpb.Payload{Kind: uint32(session.KindSummary), Body: &sessionpb.Payload_Summary{Summary: &sessionpb.Summary{
		Text: "short", ReplacesTo: &sessionpb.Ref{Segment: refs[1].Segment, Number: refs[1].Number}}}})
	other := open(t, memstore.New(), session.Options{})
	rec, err := other.Import(ctx, strings.NewReader(export(t, s, o.ID())), session.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	it, err := other.Item(ctx, rec.Head())
	if err != nil {
		t.Fatal(err)
	}
	to := it.Payload.GetSummary().GetReplacesTo()
	if _, err := other.Item(ctx, session.Ref{Segment: to.GetSegment(), Number: to.GetNumber()}); err != nil {
		t.Errorf("after import the summary stands for an item that is not there: %v", err)
	}
}

func TestAnUnknownKindSurvivesExportAndImport(t *testing.T) {
	ctx := context.Background()
	s := open(t, memstore.New(), session.Options{})
	o := create(t, s)
	p := &sessionpb.Payload{Kind: 40}
	p.ProtoReflect().SetUnknown([]byte{0xfa, 0x06, 3, 'a', 'b', 'c'})
	add(t, o, prompt("p"), p)
	other := open(t, memstore.New(), session.Options{})
	rec, err := other.Import(ctx, strings.NewReader(export(t, s, o.ID())), session.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	it, err := other.Item(ctx, rec.Head())
	if err != nil || len(it.Payload.ProtoReflect().GetUnknown()) == 0 {
		t.Errorf("the body of an unknown kind is gone: %v, %v", it.Payload, err)
	}
}

func TestADamagedRecordCostsOneSession(t *testing.T) {
	ctx := context.Background()
	st := memstore.New()
	s := open(t, st, session.Options{})
	bad, good := create(t, s), create(t, s)
	add(t, bad, prompt("x"))
	add(t, good, prompt("y"))
	var b store.Batch
	b.Put(store.SessionKey(bad.ID()), []byte{0xff, 1, 2})
	if _, err := st.Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
	recs, err := s.List(ctx, session.ListOptions{})
	if err != nil || len(recs) != 2 {
		t.Fatalf("list = %v, %v", recs, err)
	}
	for _, rec := range recs {
		if damaged := rec.Damage() != nil; damaged != (rec.ID() == bad.ID()) {
			t.Errorf("session %s: damage %v", rec.ID(), rec.Damage())
		}
	}
	if rec, err := s.Latest(ctx, good.Record().Folder()); recs[0].Damage() == nil && (err != nil || rec.ID() != good.ID()) ||
		recs[0].Damage() != nil && (err == nil || !strings.Contains(err.Error(), bad.ID())) {
		t.Errorf("the latest is %s, %v", rec.ID(), err)
	}
}

func TestALostSegmentRecordIsToldNotTakenForTheStart(t *testing.T) {
	ctx := context.Background()
	st := memstore.New()
	s := open(t, st, session.Options{})
	rec := branched(t, s)
	var b store.Batch
	b.Delete(store.SegmentKey(rec.Segment()))
	if _, err := st.Commit(ctx, b); err != nil {
		t.Fatal(err)
	}
	n := 0
	var told error
	for _, err := range s.AllItems(ctx, rec) {
		if err != nil {
			told = err
		}
		n++
	}
	if told == nil {
		t.Errorf("%d items are given as the whole session, without a word", n)
	}
}
