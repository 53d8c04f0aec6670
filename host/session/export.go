package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
)

// An export is JSON lines: a header, a line for every item of the session with
// parents before children, and an end line that counts them. It is written and
// read as a stream, and importing it gives an equal session.

const exportFormat = 1

type exportHeader struct {
	Export  string          `json:"bough_export"` // always "session"
	Format  int             `json:"format"`
	Head    string          `json:"head"`
	Session json.RawMessage `json:"session"`
}

type exportItem struct {
	Item    string          `json:"item"`
	Parent  string          `json:"parent"`
	Kind    string          `json:"kind"` // for readers; payload has the number
	Payload json.RawMessage `json:"payload,omitempty"`
	Raw     []byte          `json:"raw,omitempty"`     // in place of payload: the stored form of one that this version does not know all of
	Damaged string          `json:"damaged,omitempty"` // why the payload could not be read
}

type exportEnd struct {
	End   bool `json:"end"`
	Items int  `json:"items"`
}

// AllItems are all items of a session, the branches left behind too, parents
// before children: those of the segments it was forked from up to the fork,
// then its own. Damaged ones come as in Path.Items.
func (s *Sessions) AllItems(ctx context.Context, rec Record) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		type part struct{ segment, last uint64 }
		parts := []part{{rec.Segment(), rec.pb.GetNextNumber() - 1}}
		base, err := s.base(ctx, rec.Segment())
		for err == nil && !base.IsRoot() {
			parts = append(parts, part{base.Segment, base.Number})
			base, err = s.base(ctx, base.Segment)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		slices.Reverse(parts)
		decodeAll(ctx, func(yield func(stored, error) bool) {
			for _, p := range parts {
				if p.last == 0 {
					continue
				}
				for st, err := range storedIn(ctx, s.st, p.segment, 1, p.last) {
					if err != nil {
						yield(stored{}, fmt.Errorf("session %s: %w", rec.ID(), err))
						return
					}
					if !yield(st, nil) {
						return
					}
				}
			}
		}, func(it *Item, err error) bool {
			if it != nil {
				it.Parent = Ref{it.Ref.Segment, it.Ref.Number - 1}
				if it.Payload.GetParent() != nil {
					it.Parent = refOf(it.Payload.GetParent())
				}
			}
			return yield(it, err)
		})
	}
}

// Export writes a session as JSON lines. A damaged item is written as such.
func (s *Sessions) Export(ctx context.Context, id string, w io.Writer) error {
	rec, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	head, err := protojson.Marshal(rec.pb)
	if err != nil {
		return fmt.Errorf("export session %s: %w", id, err)
	}
	if err := enc.Encode(exportHeader{"session", exportFormat, rec.Head().String(), head}); err != nil {
		return fmt.Errorf("export session %s: %w", id, err)
	}
	n := 0
	for it, err := range s.AllItems(ctx, rec) {
		if it == nil {
			return err
		}
		line := exportItem{Item: it.Ref.String(), Parent: it.Parent.String(), Kind: it.Kind().String()}
		if err != nil {
			line.Damaged = err.Error()
		} else {
			it.Payload.Parent = nil
			if unknownWithin(it.Payload.ProtoReflect()) {
				line.Raw, err = proto.Marshal(it.Payload)
			} else {
				line.Payload, err = protojson.Marshal(it.Payload)
			}
			if err != nil {
				return fmt.Errorf("export item %s: %w", it.Ref, err)
			}
		}
		if err := enc.Encode(line); err != nil {
			return fmt.Errorf("export session %s: %w", id, err)
		}
		n++
	}
	if err := errors.Join(enc.Encode(exportEnd{true, n}), buf.Flush()); err != nil {
		return fmt.Errorf("export session %s: %w", id, err)
	}
	return nil
}

// unknownWithin tells whether a message has fields that this version does not
// know, at any depth: JSON would lose them.
func unknownWithin(m protoreflect.Message) bool {
	found := len(m.GetUnknown()) > 0
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case found || fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				found = found || unknownWithin(v.List().Get(i).Message())
			}
		default:
			found = unknownWithin(v.Message())
		}
		return !found
	})
	return found
}

// ImportOptions describe what becomes of an imported session.
type ImportOptions struct {
	ID     string // empty: that of the export where it is free, else a random one
	Folder string // empty: that of the export
}

// importBatch is how many items are stored at a time.
const importBatch = 512

// maxLine is the longest line of an export that is read.
const maxLine = 2 * store.MaxValueBytes

// Import makes a session of what Export wrote. Input that breaks a rule is
// refused with its line, and leaves nothing behind.
func (s *Sessions) Import(ctx context.Context, r io.Reader, o ImportOptions) (Record, error) {
	im := &importer{s: s, segment: newSegment(s.now()), placed: map[string]Entry{"root": {}}, lines: bufio.NewReaderSize(r, 64<<10)}
	rec, err := im.run(ctx, o)
	if err != nil {
		rm := s.deleteRange(context.WithoutCancel(ctx), store.Prefix(store.ItemKey(im.segment, 0)[:9]))
		rm = errors.Join(rm, s.deleteRange(context.WithoutCancel(ctx), store.Skeletons(im.segment)))
		return Record{}, errors.Join(fmt.Errorf("import line %d: %w", im.line, err), rm)
	}
	return rec, nil
}

type importer struct {
	s       *Sessions
	lines   *bufio.Reader
	line    int
	segment uint64
	placed  map[string]Entry // by the item's name in the export
	number  uint64
	tail    []Entry
	batch   store.Batch
	added   []Entry
}

// next is the next line, strictly parsed into v.
func (im *importer) next(v any) error {
	im.line++
	var line []byte
	for {
		part, err := im.lines.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return fmt.Errorf("the line is longer than %d bytes", maxLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			return errors.New("the export ends before its end line: it is not whole")
		}
		break
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("it is not a line of a bough export: %w", err)
	}
	return nil
}

func (im *importer) run(ctx context.Context, o ImportOptions) (Record, error) {
	var h exportHeader
	if err := im.next(&h); err != nil {
		return Record{}, err
	}
	if h.Export != "session" {
		return Record{}, errors.New(`field bough_export must be "session": this is no session export`)
	}
	if h.Format != exportFormat {
		return Record{}, fmt.Errorf("field format is %d, this bough reads %d", h.Format, exportFormat)
	}
	old := &sessionpb.Session{}
	if err := protojson.Unmarshal(h.Session, old); err != nil {
		return Record{}, fmt.Errorf("field session: %w", err)
	}
	for {
		var line struct {
			exportItem
			exportEnd
		}
		if err := im.next(&line); err != nil {
			return Record{}, err
		}
		if line.End {
			if line.Items != int(im.number) {
				return Record{}, fmt.Errorf("field items is %d, and there were %d", line.Items, im.number)
			}
			break
		}
		if err := im.item(ctx, line.exportItem); err != nil {
			return Record{}, err
		}
	}
	head, ok := im.placed[h.Head]
	if !ok {
		return Record{}, fmt.Errorf("field head of the first line names %q, which is no item of the export", h.Head)
	}
	if err := im.flush(ctx); err != nil {
		return Record{}, err
	}
	return im.finish(ctx, old, head, o)
}

func (im *importer) item(ctx context.Context, line exportItem) error {
	parent, ok := im.placed[line.Parent]
	if !ok {
		return fmt.Errorf("field parent names %q, which no line before has", line.Parent)
	}
	if _, twice := im.placed[line.Item]; twice || line.Item == "" {
		return fmt.Errorf("field item is %q: it must be there, and only once", line.Item)
	}
	p, err := im.payload(line)
	if err != nil {
		return err
	}
	im.number++
	ref := Ref{im.segment, im.number}
	p.Parent = nil
	if parent.Ref != (Ref{im.segment, im.number - 1}) {
		p.Parent = parent.Ref.proto()
	}
	value, size, err := encodePayload(p)
	if err != nil {
		return err
	}
	e := Entry{
		Ref: ref, Parent: parent.Ref, Kind: Kind(p.GetKind()), Partial: p.GetPartial(), Hidden: p.GetHidden(), Size: size,
		Depth: parent.Depth + 1, PathBytes: parent.PathBytes + uint64(size), UnixMS: p.GetTimeUnixMs(),
	}
	im.batch.Put(store.ItemKey(ref.Segment, ref.Number), value)
	im.added = append(im.added, e)
	im.placed[line.Item] = e
	if len(im.added) == importBatch || len(value) > 1<<20 {
		return im.flush(ctx)
	}
	return nil
}

// payload is the item of a line. What a summary stands for gets its new name.
func (im *importer) payload(line exportItem) (*sessionpb.Payload, error) {
	p := &sessionpb.Payload{}
	switch {
	case line.Damaged != "":
		p.Kind = uint32(KindNotice)
		p.Body = &sessionpb.Payload_Notice{Notice: &sessionpb.Notice{Text: line.Damaged, Source: "import", Level: "error"}}
	case line.Raw != nil:
		if err := proto.Unmarshal(line.Raw, p); err != nil {
			return nil, fmt.Errorf("field raw: %w", err)
		}
	default:
		if err := protojson.Unmarshal(line.Payload, p); err != nil {
			return nil, fmt.Errorf("field payload: %w", err)
		}
	}
	if p.GetKind() == 0 {
		return nil, errors.New("field payload.kind is missing")
	}
	if to := refOf(p.GetSummary().GetReplacesTo()); !to.IsRoot() {
		placed, ok := im.placed[to.String()]
		if !ok {
			return nil, fmt.Errorf("field payload.summary.replacesTo names %s, which no line before has", to)
		}
		p.GetSummary().ReplacesTo = placed.Ref.proto()
	}
	return p, nil
}

func (im *importer) flush(ctx context.Context) error {
	if len(im.added) == 0 {
		return nil
	}
	im.tail = putSkeleton(&im.batch, im.tail, im.added)
	im.batch.Durability = store.Async // the batch with the record is synced, and those before with it
	if _, err := im.s.st.Commit(ctx, im.batch); err != nil {
		return fmt.Errorf("store the items: %w", err)
	}
	im.batch, im.added = store.Batch{}, nil
	return nil
}

// finish stores the session itself: only now it is there.
func (im *importer) finish(ctx context.Context, old *sessionpb.Session, head Entry, o ImportOptions) (Record, error) {
	rec := proto.Clone(old).(*sessionpb.Session)
	rec.ImportedFrom, rec.ForkedFrom, rec.OpenTurn, rec.HeadMoves = old.GetId(), "", nil, 0
	rec.Segment, rec.NextNumber, rec.Head = im.segment, im.number+1, head.Ref.proto()
	rec.Items, rec.PayloadBytes = head.Depth, head.PathBytes
	if o.Folder != "" {
		rec.Folder = o.Folder
	}
	id := o.ID
	if id == "" {
		id = old.GetId()
		if taken, err := im.s.st.Get(ctx, store.SessionKey(id)); checkID(id) != nil || err != nil || taken[0].Version != 0 {
			id = NewID()
		}
	}
	if err := checkID(id); err != nil {
		return Record{}, err
	}
	rec.Id = id
	if rec.GetCreatedUnixMs() == 0 || rec.GetActiveUnixMs() == 0 {
		now := im.s.now().UnixMilli()
		rec.CreatedUnixMs, rec.ActiveUnixMs = now, now
	}
	seg, err := proto.Marshal(&sessionpb.Segment{Session: id, CreatedUnixMs: rec.GetCreatedUnixMs()})
	if err != nil {
		return Record{}, fmt.Errorf("encode a segment: %w", err)
	}
	var b store.Batch
	b.Require(store.SessionKey(id), 0)
	b.Require(store.SegmentKey(im.segment), 0)
	b.Put(store.SegmentKey(im.segment), seg)
	if err := putRecord(&b, nil, rec); err != nil {
		return Record{}, err
	}
	v, err := im.s.st.Commit(ctx, b)
	if isConflict(err) {
		return Record{}, fmt.Errorf("there is a session %s already; give another id with --id", id)
	}
	if err != nil {
		return Record{}, fmt.Errorf("store session %s: %w", id, err)
	}
	return Record{pb: rec, version: v}, nil
}

// orphanAge is how old items without a segment must be before a sweep frees
// them: younger ones may belong to an import that is still running.
const orphanAge = 24 * time.Hour
