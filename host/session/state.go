package session

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
)

// MoveHead makes the session stand on another item of its history, or on the
// root, and logs the move with its cause ("revert", "undo", ...). Nothing is
// deleted: the path left behind stays. It costs the same on any length.
func (o *Session) MoveHead(ctx context.Context, to Ref, cause string) error {
	rd := o.s.reader()
	var head Entry
	if !to.IsRoot() {
		if _, err := o.inReach(ctx, to); err != nil {
			return err
		}
		var err error
		if head, err = rd.entry(ctx, to); err != nil {
			return fmt.Errorf("move the head of %s to %s: %w", o.ID(), to, err)
		}
	}
	now := o.s.now().UnixMilli()
	err := o.change(ctx, store.Sync, func(rec *sessionpb.Session, b *store.Batch) error {
		move, err := proto.Marshal(&sessionpb.HeadMove{From: rec.GetHead(), To: to.proto(), Cause: cause, TimeUnixMs: now})
		if err != nil {
			return fmt.Errorf("encode a head move: %w", err)
		}
		rec.HeadMoves++
		b.Put(store.HeadMoveKey(o.ID(), rec.HeadMoves), move)
		rec.Head = to.proto()
		rec.Items, rec.PayloadBytes = head.Depth, head.PathBytes
		rec.ActiveUnixMs = max(rec.GetActiveUnixMs(), now)
		rec.OpenTurn = nil
		return nil
	})
	if err != nil {
		return err
	}
	o.head, o.path = head, nil
	return nil
}

// inReach refuses an item that no segment of the session's chain holds. Last is
// the last number of the item's segment that is the session's.
func (o *Session) inReach(ctx context.Context, ref Ref) (last uint64, err error) {
	segment, last := o.rec.GetSegment(), o.rec.GetNextNumber()-1
	base := o.base
	for segment != ref.Segment && !base.IsRoot() {
		segment, last = base.Segment, base.Number
		if base, err = o.s.base(ctx, segment); err != nil {
			return 0, err
		}
	}
	if segment != ref.Segment || ref.Number < 1 || ref.Number > last {
		return 0, fmt.Errorf("%w in session %s: %s; `bough sessions tree %s` shows its items", ErrNoItem, o.ID(), ref, o.ID())
	}
	return last, nil
}

// HeadMove is one entry of the head-move log.
type HeadMove struct {
	From, To Ref
	Cause    string
	Time     time.Time
}

// HeadMoves is the log of a session's head moves, oldest first.
func (s *Sessions) HeadMoves(ctx context.Context, id string) ([]HeadMove, error) {
	var moves []HeadMove
	for e, err := range s.st.Scan(ctx, store.HeadMoves(id)) {
		if err != nil {
			return nil, fmt.Errorf("read the head moves of session %s: %w", id, err)
		}
		m := &sessionpb.HeadMove{}
		if err := proto.Unmarshal(e.Value, m); err != nil {
			return nil, fmt.Errorf("a head move of session %s is damaged: %w", id, err)
		}
		moves = append(moves, HeadMove{refOf(m.GetFrom()), refOf(m.GetTo()), m.GetCause(), time.UnixMilli(m.GetTimeUnixMs())})
	}
	return moves, nil
}

// SavePartial keeps what has been streamed of an answer, in place of what was
// kept before. It survives this process; the next Append removes it. Nothing
// is kept for a session that is not stored yet.
func (o *Session) SavePartial(ctx context.Context, payloads []*sessionpb.Payload) error {
	if o.ver == 0 {
		return nil
	}
	value, err := proto.Marshal(&sessionpb.Partial{Payloads: payloads})
	if err != nil {
		return fmt.Errorf("encode a partial answer: %w", err)
	}
	b := store.Batch{Durability: store.Async, Fences: []store.Fence{store.FenceOf(o.lease)}}
	b.Put(store.PartialKey(o.ID()), value)
	if _, err := o.s.st.Commit(ctx, b); err != nil {
		return o.commitError(err)
	}
	return nil
}

// Partial is what SavePartial kept; nil when there is nothing.
func (o *Session) Partial(ctx context.Context) ([]*sessionpb.Payload, error) {
	entries, err := o.s.st.Get(ctx, store.PartialKey(o.ID()))
	if err != nil {
		return nil, fmt.Errorf("read the partial answer of session %s: %w", o.ID(), err)
	}
	if entries[0].Version == 0 {
		return nil, nil
	}
	p := &sessionpb.Partial{}
	if err := proto.Unmarshal(entries[0].Value, p); err != nil {
		return nil, fmt.Errorf("the partial answer of session %s is damaged: %w", o.ID(), err)
	}
	return p.GetPayloads(), nil
}

// SaveDraft keeps what is in the composer; an empty draft is removed.
func (o *Session) SaveDraft(ctx context.Context, d *sessionpb.Draft) error {
	empty := d.GetText() == "" && len(d.GetImages()) == 0
	if empty && o.ver == 0 {
		return nil
	}
	return o.change(ctx, store.Sync, func(_ *sessionpb.Session, b *store.Batch) error {
		if empty {
			b.Delete(store.DraftKey(o.ID()))
			return nil
		}
		value, err := proto.Marshal(d)
		if err != nil {
			return fmt.Errorf("encode a draft: %w", err)
		}
		b.Put(store.DraftKey(o.ID()), value)
		return nil
	})
}

// Draft is what is in the composer of a session.
func (s *Sessions) Draft(ctx context.Context, id string) (*sessionpb.Draft, error) {
	entries, err := s.st.Get(ctx, store.DraftKey(id))
	if err != nil {
		return nil, fmt.Errorf("read the draft of session %s: %w", id, err)
	}
	d := &sessionpb.Draft{}
	if err := proto.Unmarshal(entries[0].Value, d); err != nil {
		return nil, fmt.Errorf("the draft of session %s is damaged: %w", id, err)
	}
	return d, nil
}

// SetModel changes the model of the turns to come.
func (o *Session) SetModel(ctx context.Context, name string) error {
	return o.setting(ctx, func(rec *sessionpb.Session) { rec.Model = name })
}

// SetMode changes the mode of the turns to come.
func (o *Session) SetMode(ctx context.Context, mode string) error {
	return o.setting(ctx, func(rec *sessionpb.Session) { rec.Mode = mode })
}

// Touch makes the session the last active one of its folder: a person opened
// it.
func (o *Session) Touch(ctx context.Context) error {
	now := o.s.now().UnixMilli()
	return o.setting(ctx, func(rec *sessionpb.Session) { rec.ActiveUnixMs = max(rec.GetActiveUnixMs(), now) })
}

// setting changes the record; a session that is not stored yet only remembers.
func (o *Session) setting(ctx context.Context, edit func(rec *sessionpb.Session)) error {
	if o.ver == 0 {
		edit(o.rec)
		return nil
	}
	return o.change(ctx, store.Sync, func(rec *sessionpb.Session, _ *store.Batch) error {
		edit(rec)
		return nil
	})
}
