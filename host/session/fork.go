package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
)

// ForkOptions describe a fork.
type ForkOptions struct {
	ID     string // empty: a random one
	Folder string // empty: the parent's
	Title  string // empty: `<parent's title> (fork #N)`
}

// Fork makes a session whose history is the parent's up to an item. Nothing is
// copied, and the parent may be owned by any process. A prompt is left out and
// returned, for the composer; a call brings its result along when it has one.
func (s *Sessions) Fork(ctx context.Context, parent string, at Ref, o ForkOptions) (Record, *sessionpb.Prompt, error) {
	if o.ID == "" {
		o.ID = NewID()
	}
	if err := checkID(o.ID); err != nil {
		return Record{}, nil, err
	}
	for {
		rec, prompt, err := s.tryFork(ctx, parent, at, o)
		// The parent's record changes whenever its owner writes.
		if !errors.Is(err, store.ErrConflict) {
			return rec, prompt, err
		}
		if err := ctx.Err(); err != nil {
			return Record{}, nil, err
		}
		if taken, err := s.st.Get(ctx, store.SessionKey(o.ID)); err == nil && taken[0].Version != 0 {
			return Record{}, nil, fmt.Errorf("fork session %s: there is a session %s already", parent, o.ID)
		}
	}
}

func (s *Sessions) tryFork(ctx context.Context, parent string, at Ref, o ForkOptions) (Record, *sessionpb.Prompt, error) {
	from, err := s.Get(ctx, parent)
	if err != nil {
		return Record{}, nil, err
	}
	end, prompt, err := s.boundary(ctx, from, at)
	if err != nil {
		return Record{}, nil, fmt.Errorf("fork session %s: %w", parent, err)
	}
	counter, err := s.st.Get(ctx, store.ForksKey(parent))
	if err != nil {
		return Record{}, nil, fmt.Errorf("fork session %s: %w", parent, err)
	}
	forks, _ := binary.Uvarint(counter[0].Value)
	forks++
	now := s.now()
	rec := &sessionpb.Session{
		Id: o.ID, Head: end.Ref.proto(), Segment: newSegment(now), NextNumber: 1,
		Folder: from.Folder(), Model: from.pb.GetModel(), Mode: from.pb.GetMode(), Settings: from.pb.GetSettings(),
		CreatedUnixMs: now.UnixMilli(), ActiveUnixMs: now.UnixMilli(), ForkedFrom: parent,
		Title: o.Title, TitleSource: sessionpb.TitleSource_TITLE_SOURCE_PERSON, FirstTitle: from.pb.GetFirstTitle(),
		Items: end.Depth, PayloadBytes: end.PathBytes,
	}
	if o.Folder != "" {
		rec.Folder = o.Folder
	}
	if o.Title == "" {
		rec.Title = forkTitle(from.Title(), forks)
	}
	segment, err := proto.Marshal(&sessionpb.Segment{Base: end.Ref.proto(), Session: o.ID, CreatedUnixMs: now.UnixMilli()})
	if err != nil {
		return Record{}, nil, fmt.Errorf("encode a segment: %w", err)
	}
	var b store.Batch
	b.Require(store.SessionKey(parent), from.version)
	b.Require(store.ForksKey(parent), counter[0].Version)
	b.Require(store.SessionKey(o.ID), 0)
	b.Require(store.SegmentKey(rec.GetSegment()), 0)
	b.Put(store.ForksKey(parent), binary.AppendUvarint(nil, forks))
	b.Put(store.SegmentKey(rec.GetSegment()), segment)
	if err := putRecord(&b, nil, rec); err != nil {
		return Record{}, nil, err
	}
	v, err := s.st.Commit(ctx, b)
	if err != nil {
		return Record{}, nil, fmt.Errorf("fork session %s: %w", parent, err)
	}
	return Record{pb: rec, version: v}, prompt, nil
}

func forkTitle(title string, n uint64) string {
	suffix := fmt.Sprintf(" (fork #%d)", n)
	return cutAtWord(title, maxTitle-len(suffix)) + suffix
}

// boundary is the last item of a fork at an item, by the table of fork
// boundaries, and the prompt that goes back to the composer.
func (s *Sessions) boundary(ctx context.Context, from Record, at Ref) (Entry, *sessionpb.Prompt, error) {
	if at.IsRoot() {
		return Entry{}, nil, nil
	}
	reach := &Session{s: s, rec: from.pb}
	var err error
	if reach.base, err = s.base(ctx, from.Segment()); err != nil {
		return Entry{}, nil, err
	}
	last, err := reach.inReach(ctx, at)
	if err != nil {
		return Entry{}, nil, err
	}
	rd := s.reader()
	e, err := rd.entry(ctx, at)
	if err != nil {
		return Entry{}, nil, err
	}
	switch e.Kind {
	case KindPrompt:
		it, err := rd.item(ctx, at)
		if err != nil {
			return Entry{}, nil, err
		}
		if e.Parent.IsRoot() {
			return Entry{}, it.Payload.GetPrompt(), nil
		}
		end, err := rd.entry(ctx, e.Parent)
		return end, it.Payload.GetPrompt(), err
	case KindToolCall:
		result, err := rd.resultOf(ctx, at, last)
		if err != nil || result.IsRoot() {
			return e, nil, err
		}
		end, err := rd.entry(ctx, result)
		return end, nil, err
	}
	return e, nil, nil
}

// Item is one item.
func (s *Sessions) Item(ctx context.Context, ref Ref) (*Item, error) {
	return s.reader().item(ctx, ref)
}

// resultOf is the item that answers a call; Root when there is none. It follows
// the call on the call's own branch, in the same segment, before the next
// prompt. Items after number last are not the session's.
func (r *reader) resultOf(ctx context.Context, call Ref, last uint64) (Ref, error) {
	it, err := r.item(ctx, call)
	if err != nil {
		return Root, err
	}
	id := it.Payload.GetToolCall().GetId()
	after := map[Ref]bool{call: true}
	for ref := (Ref{call.Segment, call.Number + 1}); ref.Number <= last; ref.Number++ {
		e, err := r.entry(ctx, ref)
		if err != nil {
			return Root, fmt.Errorf("look for the result of call %s: %w", call, err)
		}
		if !after[e.Parent] {
			continue
		}
		after[ref] = true
		switch e.Kind {
		case KindPrompt:
			return Root, nil
		case KindToolResult:
			it, err := r.item(ctx, ref)
			var damaged *DamagedError
			if err != nil && !errors.As(err, &damaged) {
				return Root, err
			}
			if err == nil && it.Payload.GetToolResult().GetCallId() == id {
				return ref, nil
			}
		}
	}
	return Root, nil
}

// Delete removes a session: its record, its places in the indexes, its draft,
// partial answer and head-move log. Its items stay until Sweep finds that no
// other session needs them. A session that another process owns is refused.
func (s *Sessions) Delete(ctx context.Context, id string, h store.Holder) (err error) {
	if _, err := s.Get(ctx, id); err != nil {
		return err
	}
	lease, err := s.st.Acquire(ctx, leaseName(id), h)
	if err != nil {
		return fmt.Errorf("delete session %s: %w; close it there first", id, err)
	}
	defer func() { err = errors.Join(err, lease.Release(context.WithoutCancel(ctx))) }()
	rec, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	b := store.Batch{Fences: []store.Fence{store.FenceOf(lease)}}
	b.Require(store.SessionKey(id), rec.version)
	b.Delete(store.SessionKey(id))
	dropIndex(&b, rec.pb)
	for _, k := range [][]byte{store.DraftKey(id), store.PartialKey(id), store.ForksKey(id)} {
		b.Delete(k)
	}
	if _, err := s.st.Commit(ctx, b); err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	return s.deleteRange(ctx, store.HeadMoves(id))
}

// deleteRange removes all keys of a range, a batch at a time.
func (s *Sessions) deleteRange(ctx context.Context, r store.Range) error {
	r.KeysOnly = true
	for {
		var b store.Batch
		r.Limit = store.MaxBatchOps
		for e, err := range s.st.Scan(ctx, r) {
			if err != nil {
				return fmt.Errorf("delete stored rows: %w", err)
			}
			b.Delete(bytes.Clone(e.Key))
		}
		if len(b.Ops) == 0 {
			return nil
		}
		if _, err := s.st.Commit(ctx, b); err != nil {
			return fmt.Errorf("delete stored rows: %w", err)
		}
	}
}
