package session

import (
	"context"
	"fmt"
	"iter"
	"sort"
)

// Path is the items from the root to a head, in order, known by their
// skeleton. It is read from the head backwards, only as far as is asked for.
// It is used from one goroutine at a time.
type Path struct {
	rd   *reader
	head Ref
	len  int
	size uint64
	// runs is the end of the path: consecutive items of one segment each, in
	// order. The first begins at index from; what is before was not read yet.
	runs []run
	from int
	next Ref // the item at index from-1
}

// run is a stretch of consecutive numbers of one segment.
type run struct {
	at      int // index in the path of the first
	segment uint64
	first   uint64
	count   int
}

// Path is the path from the root to head.
func (s *Sessions) Path(ctx context.Context, head Ref) (*Path, error) {
	p := &Path{rd: s.reader(), head: head, next: head}
	if head.IsRoot() {
		return p, nil
	}
	e, err := p.rd.entry(ctx, head)
	if err != nil {
		return nil, fmt.Errorf("the path to %s: %w", head, err)
	}
	p.len, p.size, p.from = int(e.Depth), e.PathBytes, int(e.Depth)
	return p, nil
}

// Path is the path to the session's head. It stays the same object while the
// head only moves forward.
func (o *Session) Path(ctx context.Context) (*Path, error) {
	if o.path == nil {
		p, err := o.s.Path(ctx, refOf(o.rec.GetHead()))
		if err != nil {
			return nil, err
		}
		o.path = p
	}
	return o.path, nil
}

// Len is the number of items.
func (p *Path) Len() int { return p.len }

// Head is the last item; Root when there is none.
func (p *Path) Head() Ref { return p.head }

// Bytes is the uncompressed size of all payloads.
func (p *Path) Bytes() uint64 { return p.size }

// extend adds items that were appended after the head.
func (p *Path) extend(added []Entry) {
	for _, e := range added {
		if n := len(p.runs); n > 0 && p.runs[n-1].follows(e.Ref) {
			p.runs[n-1].count++
		} else {
			p.runs = append(p.runs, run{p.len, e.Ref.Segment, e.Ref.Number, 1})
		}
		p.len++
		p.head, p.size = e.Ref, e.PathBytes
		p.rd.add(e)
	}
}

func (r *run) follows(ref Ref) bool {
	return ref.Segment == r.segment && ref.Number == r.first+uint64(r.count)
}

// add makes an appended entry known, if the end of its segment is known.
func (r *reader) add(e Entry) {
	seg := r.segments[e.Ref.Segment]
	if seg == nil {
		seg = &rows{step: firstStep, all: e.Ref.Number == 1}
		r.segments[e.Ref.Segment] = seg
	}
	if len(seg.list) > 0 && seg.end() < e.Ref.Number {
		return // what lies between is read when it is asked for, and e with it
	}
	if n := len(seg.list); n > 0 && seg.list[n-1].entries != nil {
		last := &seg.list[n-1]
		last.entries = append(last.entries, e)
		last.count++
		last.linear = false
		return
	}
	seg.list = append(seg.list, row{rowHead: rowHead{count: 1, first: e}, entries: []Entry{e}})
}

// reach reads the path back to index i.
func (p *Path) reach(ctx context.Context, i int) error {
	for p.from > i {
		w, err := p.rd.find(ctx, p.next)
		if err != nil {
			return fmt.Errorf("the path to %s is broken: %w; run `bough sessions verify`", p.head, err)
		}
		last := p.next.Number
		if !w.linear {
			entries, err := w.load()
			if err != nil {
				return err
			}
			// Only as far back as each is the parent of the next.
			k := int(last - w.first.Ref.Number)
			for k > 0 && entries[k].Parent == entries[k-1].Ref {
				k--
			}
			p.prepend(entries[k].Ref.Number, last)
			p.next = entries[k].Parent
			continue
		}
		p.prepend(w.first.Ref.Number, last)
		p.next = w.first.Parent
	}
	return nil
}

// prepend puts the items first..last of the segment of next before the runs.
func (p *Path) prepend(first, last uint64) {
	count := int(last-first) + 1
	p.from -= count
	if len(p.runs) > 0 {
		if r := &p.runs[0]; r.segment == p.next.Segment && r.first == last+1 {
			r.at, r.first, r.count = p.from, first, r.count+count
			return
		}
	}
	p.runs = append([]run{{p.from, p.next.Segment, first, count}}, p.runs...)
}

// Ref is the item at index i, from 0.
func (p *Path) Ref(ctx context.Context, i int) (Ref, error) {
	if i < 0 || i >= p.len {
		return Root, fmt.Errorf("%w: index %d of a path of %d", ErrNoItem, i, p.len)
	}
	if err := p.reach(ctx, i); err != nil {
		return Root, err
	}
	r := p.runs[p.runAt(i)]
	return Ref{r.segment, r.first + uint64(i-r.at)}, nil
}

func (p *Path) runAt(i int) int {
	return sort.Search(len(p.runs), func(k int) bool { return p.runs[k].at > i }) - 1
}

// Entry is what the skeleton knows of the item at index i.
func (p *Path) Entry(ctx context.Context, i int) (Entry, error) {
	ref, err := p.Ref(ctx, i)
	if err != nil {
		return Entry{}, err
	}
	return p.rd.entry(ctx, ref)
}

// Items are the items at from <= index < to, in order, unpacked and parsed on
// all cores. An item that cannot be read comes as a DamagedError with an Item
// that has only its Ref and Parent, and the sequence goes on.
func (p *Path) Items(ctx context.Context, from, to int) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		to = min(to, p.len)
		if from < 0 || from >= to {
			return
		}
		if err := p.reach(ctx, from); err != nil {
			yield(nil, err)
			return
		}
		decodeAll(ctx, p.stored(ctx, from, to), yield)
	}
}

// stored is the stored values of a stretch of the path.
func (p *Path) stored(ctx context.Context, from, to int) iter.Seq2[stored, error] {
	runs := p.runs[p.runAt(from):]
	return func(yield func(stored, error) bool) {
		var parent Ref
		if from > 0 {
			var err error
			if parent, err = p.Ref(ctx, from-1); err != nil {
				yield(stored{}, err)
				return
			}
		}
		for _, r := range runs {
			first := r.first + uint64(max(0, from-r.at))
			last := r.first + uint64(min(r.count, to-r.at)) - 1
			if r.at >= to {
				return
			}
			if !p.storedRun(ctx, r.segment, first, last, &parent, yield) {
				return
			}
		}
	}
}

// storedRun yields one stretch, and says whether to go on. A number that the
// scan does not bring is a lost item; it is told and does not end the rest.
func (p *Path) storedRun(ctx context.Context, segment, first, last uint64, parent *Ref, yield func(stored, error) bool) bool {
	want := first
	emit := func(s stored) bool {
		s.parent = *parent
		want = s.ref.Number + uint64(s.count)
		*parent = Ref{segment, want - 1}
		return yield(s, nil)
	}
	lost := func(before uint64) bool {
		for want < before {
			if !emit(stored{ref: Ref{segment, want}, count: 1}) {
				return false
			}
		}
		return true
	}
	for s, err := range storedIn(ctx, p.rd.st, segment, first, last) {
		if err != nil {
			yield(stored{}, err)
			return false
		}
		if !lost(s.ref.Number) || !emit(s) {
			return false
		}
	}
	return lost(last + 1)
}
