package session

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
)

// Session is the owned side of one session: only its holder writes to it. It
// is used from one goroutine at a time. When a write fails with ErrLost, what
// is in memory is stale and the session must be closed.
type Session struct {
	s      *Sessions
	lease  store.Lease
	rec    *sessionpb.Session
	ver    uint64 // of the stored record; 0: not stored yet
	base   Ref    // of the segment
	head   Entry  // of the item it stands on; zero at the root
	tail   []Entry
	path   *Path
	warned bool

	settled uint64 // up to this number the items of the segment are packed
}

// NewOptions describe a session that is to be made.
type NewOptions struct {
	ID     string // empty: a random one
	Folder string
	Model  string
	Mode   string
	Holder store.Holder
}

func leaseName(id string) string { return "session/" + id }

// New takes the lease of a new session. Nothing is stored before it holds
// something worth keeping.
func (s *Sessions) New(ctx context.Context, o NewOptions) (*Session, error) {
	if o.ID == "" {
		o.ID = NewID()
	}
	if err := checkID(o.ID); err != nil {
		return nil, err
	}
	lease, err := s.st.Acquire(ctx, leaseName(o.ID), o.Holder)
	if err != nil {
		return nil, fmt.Errorf("make session %s: %w", o.ID, err)
	}
	now := s.now()
	return &Session{s: s, lease: lease, rec: &sessionpb.Session{
		Id: o.ID, Folder: o.Folder, Model: o.Model, Mode: o.Mode,
		Segment: newSegment(now), NextNumber: 1,
		CreatedUnixMs: now.UnixMilli(), ActiveUnixMs: now.UnixMilli(),
	}}, nil
}

// Acquire takes the lease of a session and loads what is needed to go on. A
// session that another process owns is refused with a store.HeldError, and one
// over the size ceiling with ErrTooBig.
func (s *Sessions) Acquire(ctx context.Context, id string, h store.Holder) (*Session, error) {
	if _, err := s.Get(ctx, id); err != nil {
		return nil, err
	}
	lease, err := s.st.Acquire(ctx, leaseName(id), h)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w; it can be forked meanwhile", id, err)
	}
	o, err := s.load(ctx, id, lease)
	if err != nil {
		return nil, errors.Join(err, lease.Release(context.WithoutCancel(ctx)))
	}
	return o, nil
}

func (s *Sessions) load(ctx context.Context, id string, lease store.Lease) (*Session, error) {
	rec, err := s.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if rec.pb.GetPayloadBytes() > s.ceiling {
		return nil, fmt.Errorf("%w: %s holds %d MB and storage.max_eager_load_mb allows %d; "+
			"fork it before its long part, or raise the ceiling: BOUGH_MAX_EAGER_LOAD_MB=%d does so for one run",
			ErrTooBig, id, rec.pb.GetPayloadBytes()>>20, s.ceiling>>20, rec.pb.GetPayloadBytes()>>20+1)
	}
	o := &Session{s: s, lease: lease, rec: rec.pb, ver: rec.version, warned: rec.pb.GetSizeWarned()}
	seg, err := s.segment(ctx, rec.Segment())
	if err != nil {
		return nil, err
	}
	o.base, o.settled = refOf(seg.GetBase()), seg.GetSettled()
	rd := s.reader()
	if head := rec.Head(); !head.IsRoot() {
		if o.head, err = rd.entry(ctx, head); err != nil {
			return nil, fmt.Errorf("session %s: its head: %w; run `bough sessions verify`", id, err)
		}
	}
	if o.tail, err = rd.tail(ctx, rec.Segment(), rec.pb.GetNextNumber()); err != nil {
		return nil, fmt.Errorf("session %s: %w; run `bough sessions verify`", id, err)
	}
	return o, nil
}

// base is the item that a segment begins after.
func (s *Sessions) base(ctx context.Context, segment uint64) (Ref, error) {
	seg, err := s.segment(ctx, segment)
	return refOf(seg.GetBase()), err
}

// segment is the record of a segment. Every segment that a stored session
// reaches has one.
func (s *Sessions) segment(ctx context.Context, segment uint64) (*sessionpb.Segment, error) {
	entries, err := s.st.Get(ctx, store.SegmentKey(segment))
	if err != nil {
		return nil, fmt.Errorf("read segment %x: %w", segment, err)
	}
	if entries[0].Version == 0 {
		return nil, fmt.Errorf("%w: the record of segment %x is gone, and with it what its items follow on", store.ErrDamaged, segment)
	}
	seg := &sessionpb.Segment{}
	if err := proto.Unmarshal(entries[0].Value, seg); err != nil {
		return nil, fmt.Errorf("the record of segment %x is damaged: %w", segment, err)
	}
	return seg, nil
}

// Record is the session as it is stored, or will be.
func (o *Session) Record() Record {
	return Record{pb: proto.Clone(o.rec).(*sessionpb.Session), version: o.ver}
}

// ID is the session's id.
func (o *Session) ID() string { return o.rec.GetId() }

// Stored tells whether the session holds something that was worth keeping.
func (o *Session) Stored() bool { return o.ver != 0 }

// Lost is closed when somebody else may own the session.
func (o *Session) Lost() <-chan struct{} { return o.lease.Lost() }

// Close gives the session back.
func (o *Session) Close(ctx context.Context) error {
	if err := o.lease.Release(ctx); err != nil {
		return fmt.Errorf("release session %s: %w", o.ID(), err)
	}
	return nil
}

// change applies edit to a copy of the record and stores it together with
// whatever else edit puts into the batch. On an error nothing has changed, in
// memory or in the store.
func (o *Session) change(ctx context.Context, d store.Durability, edit func(rec *sessionpb.Session, b *store.Batch) error) error {
	next := proto.Clone(o.rec).(*sessionpb.Session)
	b := store.Batch{Durability: d, Fences: []store.Fence{store.FenceOf(o.lease)}}
	b.Require(store.SessionKey(o.ID()), o.ver)
	was := o.rec
	if o.ver == 0 {
		was = nil
		if err := o.begin(&b); err != nil {
			return err
		}
	}
	if err := edit(next, &b); err != nil {
		return err
	}
	if err := putRecord(&b, was, next); err != nil {
		return err
	}
	v, err := o.s.st.Commit(ctx, b)
	if err != nil {
		return o.commitError(err)
	}
	o.rec, o.ver = next, v
	return nil
}

// begin adds the segment record of a session that is stored for the first time.
func (o *Session) begin(b *store.Batch) error {
	value, err := proto.Marshal(&sessionpb.Segment{
		Base: o.base.proto(), Session: o.ID(), CreatedUnixMs: o.rec.GetCreatedUnixMs(),
	})
	if err != nil {
		return fmt.Errorf("encode a segment: %w", err)
	}
	b.Require(store.SegmentKey(o.rec.GetSegment()), 0)
	b.Put(store.SegmentKey(o.rec.GetSegment()), value)
	return nil
}

func (o *Session) commitError(err error) error {
	if errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("write to session %s: %w: %w; open it again", o.ID(), ErrLost, err)
	}
	return fmt.Errorf("write to session %s: %w", o.ID(), err)
}

// TurnChange says what an append means for the open turn.
type TurnChange int

const (
	// TurnSame leaves it as it is.
	TurnSame TurnChange = iota
	// TurnBegin opens one; the first payload is its prompt.
	TurnBegin
	// TurnResume counts one more start of the open turn.
	TurnResume
	// TurnEnd closes it.
	TurnEnd
)

// AppendOptions go with an append.
type AppendOptions struct {
	Turn       TurnChange
	Usage      *sessionpb.Usage // added to the session's totals
	Durability store.Durability
	// KeepPartial leaves the row of the partial answer; else it is removed in
	// the same batch.
	KeepPartial bool
}

// Append stores payloads after the head and moves the head to the last of
// them, all in one batch with the indexes and counters. Their parent and,
// where it is zero, their time are set. It may be called with no payload, to
// change the turn only.
func (o *Session) Append(ctx context.Context, payloads []*sessionpb.Payload, a AppendOptions) ([]Ref, error) {
	var added []Entry
	tail := o.tail
	err := o.change(ctx, a.Durability, func(rec *sessionpb.Session, b *store.Batch) (err error) {
		if added, err = o.place(b, payloads); err != nil {
			return err
		}
		if len(added) > 0 {
			tail = putSkeleton(b, tail, added)
			last := added[len(added)-1]
			rec.Head, rec.NextNumber = last.Ref.proto(), last.Ref.Number+1
			rec.ActiveUnixMs = max(rec.GetActiveUnixMs(), last.UnixMS)
			rec.Items, rec.PayloadBytes = last.Depth, last.PathBytes
			nameAfter(rec, payloads)
		}
		o.changeTurn(rec, a.Turn, added)
		addUsage(rec, a.Usage)
		rec.SizeWarned = rec.GetSizeWarned() || o.nearCeiling(rec)
		if !a.KeepPartial {
			b.Delete(store.PartialKey(o.ID()))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	o.tail = tail
	refs := make([]Ref, len(added))
	for i, e := range added {
		refs[i] = e.Ref
	}
	if len(added) > 0 {
		o.head = added[len(added)-1]
		if o.path != nil {
			o.path.extend(added)
		}
	}
	return refs, nil
}

// place gives payloads their refs, parents and times and puts them into the
// batch.
func (o *Session) place(b *store.Batch, payloads []*sessionpb.Payload) ([]Entry, error) {
	added := make([]Entry, 0, len(payloads))
	before := o.head
	ref := Ref{o.rec.GetSegment(), o.rec.GetNextNumber()}
	for _, p := range payloads {
		p.Parent = nil
		if prev := (Ref{ref.Segment, ref.Number - 1}); before.Ref != prev {
			p.Parent = before.Ref.proto()
		}
		if p.GetTimeUnixMs() == 0 {
			p.TimeUnixMs = o.s.now().UnixMilli()
		}
		value, size, err := encodePayload(p)
		if err != nil {
			return nil, fmt.Errorf("session %s: %w", o.ID(), err)
		}
		b.Put(store.ItemKey(ref.Segment, ref.Number), value)
		e := Entry{
			Ref: ref, Parent: before.Ref, Kind: Kind(p.GetKind()), Partial: p.GetPartial(), Hidden: p.GetHidden(),
			Size: size, Depth: before.Depth + 1, PathBytes: before.PathBytes + uint64(size), UnixMS: p.GetTimeUnixMs(),
		}
		added = append(added, e)
		before = e
		ref.Number++
	}
	return added, nil
}

// putSkeleton adds the row of the added entries, merges full blocks, and is
// the new tail: the entries that are not in a full block yet.
func putSkeleton(b *store.Batch, tail, added []Entry) []Entry {
	first := added[0].Ref
	added[0].rowStart = true
	// What lies behind tail is nobody's: an append that failed may have written
	// there, and is written over.
	all := append(tail, added...)
	if len(all) < blockSize {
		b.Put(store.SkeletonKey(first.Segment, first.Number), encodeRow(added))
		return all
	}
	for _, e := range tail {
		if e.rowStart {
			b.Delete(store.SkeletonKey(e.Ref.Segment, e.Ref.Number))
		}
	}
	for len(all) >= blockSize {
		b.Put(store.SkeletonKey(all[0].Ref.Segment, all[0].Ref.Number), encodeRow(all[:blockSize]))
		all = all[blockSize:]
	}
	if len(all) == 0 {
		return nil
	}
	b.Put(store.SkeletonKey(all[0].Ref.Segment, all[0].Ref.Number), encodeRow(all))
	rest := append([]Entry(nil), all...)
	rest[0].rowStart = true
	return rest
}

func (o *Session) changeTurn(rec *sessionpb.Session, t TurnChange, added []Entry) {
	switch t {
	case TurnBegin:
		turn := &sessionpb.OpenTurn{StartedUnixMs: o.s.now().UnixMilli(), Starts: 1}
		if len(added) > 0 {
			turn.Prompt = added[0].Ref.proto()
		}
		rec.OpenTurn = turn
	case TurnResume:
		if rec.OpenTurn != nil {
			rec.OpenTurn.Starts++
		}
	case TurnEnd:
		rec.OpenTurn = nil
	}
}

func addUsage(rec *sessionpb.Session, u *sessionpb.Usage) {
	if u == nil {
		return
	}
	if rec.Usage == nil {
		rec.Usage = &sessionpb.Usage{}
	}
	rec.Usage.InputTokens += u.GetInputTokens()
	rec.Usage.OutputTokens += u.GetOutputTokens()
	rec.Usage.CacheReadTokens += u.GetCacheReadTokens()
	rec.Usage.CacheWriteTokens += u.GetCacheWriteTokens()
	rec.Usage.Requests += u.GetRequests()
	rec.Usage.Turns += u.GetTurns()
}

func (o *Session) nearCeiling(rec *sessionpb.Session) bool {
	return rec.GetPayloadBytes() >= o.s.ceiling/10*8
}

// SizeWarning is what to tell the person once when the session has reached 80 %
// of the size ceiling; empty otherwise and from then on.
func (o *Session) SizeWarning() string {
	if o.warned || !o.rec.GetSizeWarned() {
		return ""
	}
	o.warned = true
	return fmt.Sprintf("this session holds %d MB of the %d MB that storage.max_eager_load_mb allows to be opened: "+
		"fork it before its long part, or raise the ceiling", o.rec.GetPayloadBytes()>>20, o.s.ceiling>>20)
}
