package session

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/boughdev/bough/host/store"
)

// reader reads skeleton rows, from the end of a segment backwards, and keeps
// what it has read. It is used from one goroutine at a time.
type reader struct {
	st       store.Store
	segments map[uint64]*rows
	last     stored // what was read last of the items: a bundle has its neighbours, too
}

// rows is a stretch of a segment as far as it was read: consecutive rows, in
// order.
type rows struct {
	list []row
	all  bool // the first row of the segment is in list
	step int  // how many to read next
}

type row struct {
	rowHead
	raw     []byte
	entries []Entry // decoded when first needed
}

func (s *Sessions) reader() *reader {
	return &reader{st: s.st, segments: map[uint64]*rows{}}
}

// firstStep rows are read at first: some steps of a turn near the head, or a few
// full blocks, 50 KB, elsewhere. Each further step is four times as long, so
// that a whole path is a few reads.
const (
	firstStep = 8
	mostStep  = 4096
)

// find is the row that holds an item.
func (r *reader) find(ctx context.Context, ref Ref) (*row, error) {
	seg := r.segments[ref.Segment]
	if seg == nil {
		seg = &rows{step: firstStep}
		r.segments[ref.Segment] = seg
	}
	for !seg.all && (len(seg.list) == 0 || seg.list[0].first.Ref.Number > ref.Number) {
		if err := r.readBefore(ctx, ref, seg); err != nil {
			return nil, err
		}
	}
	if ref.Number >= seg.end() {
		if err := r.readAfter(ctx, ref, seg); err != nil {
			return nil, err
		}
	}
	i := sort.Search(len(seg.list), func(i int) bool { return seg.list[i].first.Ref.Number > ref.Number }) - 1
	if i < 0 || ref.Number >= seg.list[i].first.Ref.Number+uint64(seg.list[i].count) {
		return nil, fmt.Errorf("%w: %s", ErrNoItem, ref)
	}
	return &seg.list[i], nil
}

// readBefore reads the rows before those that are known. The first read
// begins at the item that is looked for, not at the end of the segment: what
// comes after a fork's base is of no interest to it.
func (r *reader) readBefore(ctx context.Context, ref Ref, seg *rows) error {
	rg := store.Skeletons(ref.Segment)
	if len(seg.list) > 0 {
		rg.End = store.SkeletonKey(ref.Segment, seg.list[0].first.Ref.Number)
	} else {
		rg.End = store.SkeletonKey(ref.Segment, ref.Number+1)
	}
	rg.Reverse, rg.Limit = true, seg.step
	seg.step = min(seg.step*4, mostStep)
	found, err := r.scan(ctx, rg)
	if err != nil {
		return err
	}
	seg.all = len(found) < rg.Limit
	slices.Reverse(found)
	seg.list = append(found, seg.list...)
	return nil
}

// readAfter reads on from the last row that is known to the one that holds ref.
func (r *reader) readAfter(ctx context.Context, ref Ref, seg *rows) error {
	rg := store.Skeletons(ref.Segment)
	rg.Start, rg.End = store.SkeletonKey(ref.Segment, seg.end()), store.SkeletonKey(ref.Segment, ref.Number+1)
	found, err := r.scan(ctx, rg)
	seg.list = append(seg.list, found...)
	return err
}

func (r *reader) scan(ctx context.Context, rg store.Range) ([]row, error) {
	var found []row
	for e, err := range r.st.Scan(ctx, rg) {
		if err != nil {
			return nil, fmt.Errorf("read a skeleton: %w", err)
		}
		segment, first, err := store.SplitNumbered(e.Key)
		if err != nil {
			return nil, err
		}
		rd := rowReader{b: e.Value}
		h, err := rd.head(segment, first)
		if err != nil {
			return nil, err
		}
		found = append(found, row{rowHead: h, raw: e.Value})
	}
	return found, nil
}

// end is the number after the last item that is known; 0: none is.
func (s *rows) end() uint64 {
	if len(s.list) == 0 {
		return 0
	}
	last := s.list[len(s.list)-1]
	return last.first.Ref.Number + uint64(last.count)
}

// load is the decoded entries of a row.
func (w *row) load() ([]Entry, error) {
	if w.entries == nil {
		var err error
		if w.entries, err = decodeRow(w.first.Ref.Segment, w.first.Ref.Number, w.raw); err != nil {
			return nil, err
		}
		w.raw = nil
	}
	return w.entries, nil
}

// entry is what the skeleton knows of an item.
func (r *reader) entry(ctx context.Context, ref Ref) (Entry, error) {
	if ref.IsRoot() {
		return Entry{}, fmt.Errorf("%w: the root is before the first", ErrNoItem)
	}
	w, err := r.find(ctx, ref)
	if err != nil {
		return Entry{}, err
	}
	entries, err := w.load()
	if err != nil {
		return Entry{}, err
	}
	return entries[ref.Number-w.first.Ref.Number], nil
}

// item is one item.
func (r *reader) item(ctx context.Context, ref Ref) (it *Item, err error) {
	e, err := r.entry(ctx, ref)
	if err != nil {
		return nil, err
	}
	if !r.last.moveTo(ref) {
		r.last = stored{ref: ref, count: 1}
		for s, err := range storedIn(ctx, r.st, ref.Segment, ref.Number, ref.Number) {
			if err != nil {
				r.last = stored{}
				return nil, fmt.Errorf("read item %s: %w", ref, err)
			}
			r.last = s
		}
	}
	r.last.parent = e.Parent
	r.last.each(nil, func(one *Item, oneErr error) { it, err = one, oneErr })
	return it, err
}

// moveTo wants another item of the same bundle; false: it is not in it.
func (s *stored) moveTo(ref Ref) bool {
	skip := s.skip + int(int64(ref.Number)-int64(s.ref.Number))
	if s.value == nil || ref.Segment != s.ref.Segment || skip < 0 || skip >= held(s.value) {
		return false
	}
	s.ref, s.skip = ref, skip
	return true
}

// tail is the entries at the end of a segment that are in no full block.
func (r *reader) tail(ctx context.Context, segment, next uint64) ([]Entry, error) {
	var tail []Entry
	for number := next - 1; number > 0; {
		w, err := r.find(ctx, Ref{segment, number})
		if err != nil {
			return nil, err
		}
		if w.count >= blockSize {
			break
		}
		entries, err := w.load()
		if err != nil {
			return nil, err
		}
		tail = append(slices.Clone(entries), tail...)
		number = w.first.Ref.Number - 1
	}
	return tail, nil
}
