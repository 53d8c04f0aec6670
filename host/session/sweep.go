package session

import (
	"context"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
)

// SweepReport says what a sweep freed.
type SweepReport struct {
	Segments int // freed whole
	Trimmed  int // freed beyond what a fork needs
}

// Sweep frees the items that no session needs any more. It may run beside
// everything else, and be stopped at any moment: the next one goes on.
//
// A segment that no session reaches stays unreached, since a fork can only be
// made of a session that is there: so what one look at all sessions does not
// need is not needed later. Segments are listed before the sessions, so that
// one made meanwhile is not taken for an orphan.
func (s *Sessions) Sweep(ctx context.Context) (SweepReport, error) {
	var report SweepReport
	segments, err := s.segments(ctx)
	if err != nil {
		return report, err
	}
	needed, err := s.needed(ctx, segments)
	if err != nil {
		return report, err
	}
	for id := range segments {
		last, used := needed[id]
		switch {
		case !used:
			report.Segments++
			err = s.free(ctx, id)
		case last != whole:
			var trimmed bool
			trimmed, err = s.trim(ctx, id, last)
			if trimmed {
				report.Trimmed++
			}
		}
		if err != nil {
			return report, fmt.Errorf("free segment %x: %w", id, err)
		}
	}
	return report, s.freeOrphans(ctx, segments)
}

// freeOrphans removes items that belong to no segment: what an import left
// that was killed. It looks at one key a segment.
func (s *Sessions) freeOrphans(ctx context.Context, segments map[uint64]*sessionpb.Segment) error {
	youngest := newSegment(s.now().Add(-orphanAge))
	for start := store.ItemKey(0, 0); ; {
		r := store.Range{Start: start, End: store.ItemKey(youngest, 0), KeysOnly: true, Limit: 1}
		var segment uint64
		found := false
		for e, err := range s.st.Scan(ctx, r) {
			if err == nil {
				segment, _, err = store.SplitNumbered(e.Key)
			}
			if err != nil {
				return fmt.Errorf("look for orphaned items: %w", err)
			}
			found = true
		}
		if !found {
			return nil
		}
		if segments[segment] == nil {
			if err := s.free(ctx, segment); err != nil {
				return fmt.Errorf("free orphaned items: %w", err)
			}
		}
		start = store.ItemKey(segment+1, 0)
	}
}

// whole marks a segment whose session is alive: all of it is kept, since any
// item of it can be returned to.
const whole = ^uint64(0)

func (s *Sessions) segments(ctx context.Context) (map[uint64]*sessionpb.Segment, error) {
	segments := map[uint64]*sessionpb.Segment{}
	for e, err := range s.st.Scan(ctx, store.Segments()) {
		if err != nil {
			return nil, fmt.Errorf("list the segments: %w", err)
		}
		seg := &sessionpb.Segment{}
		if err := proto.Unmarshal(e.Value, seg); err != nil || len(e.Key) != 9 {
			return nil, fmt.Errorf("the record of a segment (key %x) is damaged: %w", e.Key, err)
		}
		segments[binary.BigEndian.Uint64(e.Key[1:])] = seg
	}
	return segments, nil
}

// needed is, for each segment that a session reaches, the last number needed.
func (s *Sessions) needed(ctx context.Context, segments map[uint64]*sessionpb.Segment) (map[uint64]uint64, error) {
	needed := map[uint64]uint64{}
	for e, err := range s.st.Scan(ctx, store.Sessions()) {
		if err != nil {
			return nil, fmt.Errorf("list the sessions: %w", err)
		}
		rec, err := recordOf(e)
		if err != nil {
			return nil, err // without knowing what it needs nothing can be freed
		}
		need := func(ref Ref, last uint64) {
			if !ref.IsRoot() {
				needed[ref.Segment] = max(needed[ref.Segment], last)
			}
		}
		need(Ref{rec.Segment(), 1}, whole)
		need(rec.Head(), rec.Head().Number)
		base, err := s.baseOf(ctx, segments, rec.Segment())
		for err == nil && !base.IsRoot() {
			need(base, base.Number)
			base, err = s.baseOf(ctx, segments, base.Segment)
		}
		if err != nil {
			return nil, fmt.Errorf("session %s: %w; nothing was freed", rec.ID(), err)
		}
	}
	return needed, nil
}

// baseOf is the base of a segment. One that is not among those listed was made
// since, by a fork, and its ancestors are needed as well.
func (s *Sessions) baseOf(ctx context.Context, listed map[uint64]*sessionpb.Segment, segment uint64) (Ref, error) {
	if seg := listed[segment]; seg != nil {
		return refOf(seg.GetBase()), nil
	}
	return s.base(ctx, segment)
}

// free removes a segment: its record last, so that a sweep that was stopped
// finds it again.
func (s *Sessions) free(ctx context.Context, segment uint64) error {
	if err := s.deleteRange(ctx, store.Prefix(store.ItemKey(segment, 0)[:9])); err != nil {
		return err
	}
	if err := s.deleteRange(ctx, store.Skeletons(segment)); err != nil {
		return err
	}
	var b store.Batch
	b.Delete(store.SegmentKey(segment))
	_, err := s.st.Commit(ctx, b)
	return err
}

// trim removes what lies after the last needed item of a segment whose session
// is gone. The skeleton row that holds it is cut first.
func (s *Sessions) trim(ctx context.Context, segment, last uint64) (bool, error) {
	beyond := store.Range{Start: store.ItemKey(segment, last+1), End: store.PrefixEnd(store.ItemKey(segment, 0)[:9]), KeysOnly: true, Limit: 1}
	found := false
	for _, err := range s.st.Scan(ctx, beyond) {
		if err != nil {
			return false, err
		}
		found = true
	}
	if !found {
		return false, nil
	}
	w, err := s.reader().find(ctx, Ref{segment, last})
	if err != nil {
		return false, err
	}
	entries, err := w.load()
	if err != nil {
		return false, err
	}
	if keep := int(last-w.first.Ref.Number) + 1; keep < len(entries) {
		var b store.Batch
		b.Put(store.SkeletonKey(segment, w.first.Ref.Number), encodeRow(entries[:keep]))
		if _, err := s.st.Commit(ctx, b); err != nil {
			return false, err
		}
	}
	rows := store.Skeletons(segment)
	rows.Start = store.SkeletonKey(segment, last+1)
	if err := s.deleteRange(ctx, rows); err != nil {
		return false, err
	}
	for more := true; more; {
		more, err = s.trimItems(ctx, segment, last)
		if err != nil && !isConflict(err) { // they were packed meanwhile: look again
			return false, err
		}
	}
	return true, nil
}

// trimItems removes a batch of the items after last. What is removed must be
// what was seen, since they may be packed meanwhile into a bundle that begins
// with items that are needed.
func (s *Sessions) trimItems(ctx context.Context, segment, last uint64) (more bool, err error) {
	beyond := store.Range{Start: store.ItemKey(segment, last+1), End: store.PrefixEnd(store.ItemKey(segment, 0)[:9]), Limit: 1}
	var first store.Entry
	for e, err := range s.st.Scan(ctx, beyond) {
		if err != nil {
			return false, err
		}
		first = e
	}
	if first.Version == 0 {
		return false, nil
	}
	var b store.Batch
	cut, err := cutBundle(&b, first, last)
	if err != nil {
		return false, err
	}
	if !cut {
		beyond.KeysOnly, beyond.Limit = true, store.MaxBatchOps
		for e, err := range s.st.Scan(ctx, beyond) {
			if err != nil {
				return false, err
			}
			b.Require(e.Key, e.Version)
			b.Delete(e.Key)
		}
		b.Require(first.Key, first.Version)
	}
	_, err = s.st.Commit(ctx, b)
	return true, err
}

// cutBundle leaves of a bundle that begins before it only the items up to last.
func cutBundle(b *store.Batch, e store.Entry, last uint64) (cut bool, err error) {
	segment, number, err := store.SplitNumbered(e.Key)
	if err != nil {
		return false, err
	}
	begin := number + 1 - min(uint64(held(e.Value)), number)
	if begin > last {
		return false, nil
	}
	plains, err := unpackAll(nil, e.Value)
	if err != nil {
		return false, fmt.Errorf("cut the bundle of item %s: %w", Ref{segment, last}, err)
	}
	b.Require(e.Key, e.Version)
	b.Delete(e.Key)
	b.Put(store.ItemKey(segment, last), encodeBundle(plains[:last+1-begin]))
	return true, nil
}
