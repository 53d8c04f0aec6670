package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
)

// SettleReport says what Settle packed: how many items, from how many stored
// bytes to how many. More says that the limit ended it.
type SettleReport struct {
	Items         int
	Before, After int64
	More          bool
}

// settleAge is how old the last items of a segment must be to be settled.
// Those of a full skeleton row are at once.
const settleAge = 24 * time.Hour

// Settle packs settled items, which are read as a rule all together or not at
// all, into bundles. It reads about limit stored bytes at most. It may run
// beside everything else, and be stopped at any moment: a bundle takes the
// place of its items in one batch, on the condition that nobody touched them.
func (s *Sessions) Settle(ctx context.Context, limit int64) (SettleReport, error) {
	var report SettleReport
	segments, err := s.segments(ctx)
	if err != nil {
		return report, err
	}
	ends := map[uint64]uint64{} // of the segments that sessions write into
	for e, err := range s.st.Scan(ctx, store.Sessions()) {
		if err != nil {
			return report, fmt.Errorf("list the sessions: %w", err)
		}
		if rec, err := recordOf(e); err == nil { // else the skeleton tells
			ends[rec.Segment()] = rec.pb.GetNextNumber() - 1
		}
	}
	for id, seg := range segments {
		if end, known := ends[id]; known && end <= seg.GetSettled() {
			continue
		}
		if report.Before >= limit {
			report.More = true
			break
		}
		if _, err := s.settleSegment(ctx, id, &report, limit); err != nil {
			return report, err
		}
	}
	return report, nil
}

// settleStored is how many stored bytes a session packs at once.
const settleStored = 2 << 20

// Settle packs what is settled of the session's own items, a few MB at most.
// It costs nothing as long as that is less than a full skeleton row.
func (o *Session) Settle(ctx context.Context) error {
	if o.ver == 0 || o.rec.GetNextNumber() <= o.settled+blockSize {
		return nil
	}
	settled, err := o.s.settleSegment(ctx, o.rec.GetSegment(), &SettleReport{}, settleStored)
	o.settled = max(o.settled, settled)
	return err
}

// settleSegment is the number up to which the items of a segment are packed.
func (s *Sessions) settleSegment(ctx context.Context, id uint64, report *SettleReport, limit int64) (uint64, error) {
	p := &packer{s: s, id: id, report: report}
	if ok, err := p.load(ctx); !ok {
		return 0, err
	}
	if err := s.pack(ctx, p, limit); err != nil && !isConflict(err) { // somebody packed or deleted items of it meanwhile
		return p.seg.GetSettled(), fmt.Errorf("pack the settled items of segment %x: %w", id, err)
	}
	return p.seg.GetSettled(), nil
}

func (s *Sessions) pack(ctx context.Context, p *packer, limit int64) error {
	end, err := s.settledEnd(ctx, p.id, p.seg.GetSettled())
	if err != nil || end <= p.seg.GetSettled() {
		return err
	}
	// The last bundle may have room for more.
	for e, err := range s.st.Scan(ctx, store.Items(p.id, max(1, p.seg.GetSettled()), end)) {
		if err == nil {
			err = p.add(ctx, e)
		}
		if err != nil {
			return err
		}
		if p.report.Before >= limit {
			p.report.More = true
			return p.flush(ctx, p.last)
		}
	}
	return p.flush(ctx, end)
}

// settledEnd is the number of the last settled item of a segment.
func (s *Sessions) settledEnd(ctx context.Context, segment, after uint64) (uint64, error) {
	rows := store.Skeletons(segment)
	back := store.Range{Start: rows.Start, End: store.SkeletonKey(segment, after+2), Reverse: true, Limit: 1, KeysOnly: true}
	for e, err := range s.st.Scan(ctx, back) { // the row that holds the next
		if err != nil {
			return 0, fmt.Errorf("read a skeleton: %w", err)
		}
		rows.Start = bytes.Clone(e.Key)
	}
	end := uint64(0)
	for e, err := range s.st.Scan(ctx, rows) {
		if err != nil {
			return 0, fmt.Errorf("read a skeleton: %w", err)
		}
		_, first, err := store.SplitNumbered(e.Key)
		if err != nil {
			return 0, err
		}
		entries, err := decodeRow(segment, first, e.Value)
		if err != nil {
			return 0, err
		}
		last := entries[len(entries)-1]
		if len(entries) < blockSize && s.now().Sub(last.Time()) < settleAge {
			break
		}
		end = last.Ref.Number
	}
	return end, nil
}

// packer packs consecutive items of one segment into bundles.
type packer struct {
	s      *Sessions
	id     uint64
	report *SettleReport

	seg     *sessionpb.Segment
	version uint64 // of its record

	rows   []store.Entry // that the next bundle takes the place of
	plains [][]byte      // what they hold
	size   int           // of plains
	stored int           // of the rows
	last   uint64        // the number of the last item that was added
}

// load reads the record of the segment; it may be gone by now.
func (p *packer) load(ctx context.Context) (ok bool, err error) {
	rows, err := p.s.st.Get(ctx, store.SegmentKey(p.id))
	if err != nil || rows[0].Version == 0 {
		return false, err
	}
	p.seg, p.version = &sessionpb.Segment{}, rows[0].Version
	return true, proto.Unmarshal(rows[0].Value, p.seg)
}

// add takes one row. One that is damaged, or too large to gain, stays alone.
func (p *packer) add(ctx context.Context, e store.Entry) error {
	number := binary.BigEndian.Uint64(e.Key[len(e.Key)-8:])
	plains, err := unpackAll(nil, e.Value)
	size := 0
	for _, plain := range plains {
		size += len(plain)
	}
	alone := err != nil || size > bundleBytes
	begin := number + 1 - uint64(held(e.Value))
	if len(p.rows) > 0 && (alone || begin != p.last+1 ||
		len(p.plains)+len(plains) > bundleItems || p.size+size > bundleBytes) {
		if err := p.flush(ctx, p.last); err != nil {
			return err
		}
	}
	p.last = number
	p.report.Before += int64(len(e.Value))
	p.report.After += int64(len(e.Value))
	if alone {
		return nil
	}
	p.rows = append(p.rows, e)
	p.plains = append(p.plains, plains...)
	p.size += size
	p.stored += len(e.Value)
	return nil
}

// flush writes the bundle of what was added, where that is shorter, and
// remembers that all items up to settled are.
func (p *packer) flush(ctx context.Context, settled uint64) error {
	b := store.Batch{Durability: store.Async} // what it replaces is durable, and goes with the same batch
	b.Require(store.SegmentKey(p.id), p.version)
	if len(p.rows) > 1 {
		if err := p.bundle(&b); err != nil {
			return err
		}
	}
	next := proto.Clone(p.seg).(*sessionpb.Segment)
	next.Settled = settled
	record, err := proto.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode a segment: %w", err)
	}
	b.Put(store.SegmentKey(p.id), record)
	if p.version, err = p.s.st.Commit(ctx, b); err != nil {
		return err
	}
	p.seg = next
	p.rows, p.plains, p.size, p.stored = nil, nil, 0, 0
	return nil
}

func (p *packer) bundle(b *store.Batch) error {
	value := encodeBundle(p.plains)
	back, err := unpackAll(nil, value)
	if err != nil {
		return fmt.Errorf("read what was packed: %w", err)
	}
	for i, plain := range p.plains {
		if !bytes.Equal(plain, back[i]) {
			return fmt.Errorf("item %s was packed and is not the same when it is unpacked; nothing was changed",
				Ref{p.id, p.last + 1 - uint64(len(p.plains)-i)})
		}
	}
	if len(value) >= p.stored {
		return nil
	}
	for i, row := range p.rows {
		b.Require(row.Key, row.Version)
		if i < len(p.rows)-1 {
			b.Delete(row.Key)
		}
	}
	b.Put(p.rows[len(p.rows)-1].Key, value)
	p.report.Items += len(p.plains)
	p.report.After += int64(len(value)) - int64(p.stored)
	return nil
}
