package wire

import (
	"fmt"
	"time"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/api/storagepb"
)

// EntryToProto is an entry as it is sent.
func EntryToProto(e store.Entry) *storagepb.Entry {
	return &storagepb.Entry{Key: e.Key, Value: e.Value, Version: e.Version}
}

// EntryFromProto is an entry as it was received.
func EntryFromProto(p *storagepb.Entry) store.Entry {
	return store.Entry{Key: p.GetKey(), Value: p.GetValue(), Version: p.GetVersion()}
}

// RangeToProto is a range as it is sent.
func RangeToProto(r store.Range) *storagepb.ScanRequest {
	return &storagepb.ScanRequest{
		Start: r.Start, End: r.End, Reverse: r.Reverse, KeysOnly: r.KeysOnly, Limit: unsigned(r.Limit),
	}
}

// RangeFromProto is a range as it was received.
func RangeFromProto(p *storagepb.ScanRequest) store.Range {
	return store.Range{
		Start: p.GetStart(), End: p.GetEnd(), Reverse: p.GetReverse(), KeysOnly: p.GetKeysOnly(),
		Limit: signed(p.GetLimit()),
	}
}

// BatchToProto is a batch as it is sent. A zero ID is left out.
func BatchToProto(b *store.Batch) *storagepb.CommitRequest {
	p := &storagepb.CommitRequest{
		Conditions: make([]*storagepb.Condition, len(b.Conditions)),
		Fences:     make([]*storagepb.Fence, len(b.Fences)),
		Ops:        make([]*storagepb.Op, len(b.Ops)),
		Durability: storagepb.Durability(b.Durability),
	}
	if b.ID != [store.IDBytes]byte{} {
		p.Id = b.ID[:]
	}
	for i, c := range b.Conditions {
		p.Conditions[i] = &storagepb.Condition{Key: c.Key, Version: c.Version}
	}
	for i, f := range b.Fences {
		p.Fences[i] = &storagepb.Fence{Lease: Text(f.Lease), Token: f.Token}
	}
	for i, op := range b.Ops {
		p.Ops[i] = &storagepb.Op{Key: op.Key, Value: op.Value, Delete: op.Delete}
	}
	return p
}

// BatchFromProto is a batch as it was received. An ID of a wrong length is
// refused: without it the sender's promise to itself would be broken.
func BatchFromProto(p *storagepb.CommitRequest) (store.Batch, error) {
	b := store.Batch{Durability: store.Durability(p.GetDurability())}
	switch id := p.GetId(); len(id) {
	case 0:
	case store.IDBytes:
		copy(b.ID[:], id)
	default:
		return b, fmt.Errorf("a batch has an id of %d bytes: send %d, or none", len(id), store.IDBytes)
	}
	if n := len(p.GetConditions()); n > 0 {
		b.Conditions = make([]store.Condition, n)
	}
	for i, c := range p.GetConditions() {
		b.Conditions[i] = store.Condition{Key: c.GetKey(), Version: c.GetVersion()}
	}
	if n := len(p.GetFences()); n > 0 {
		b.Fences = make([]store.Fence, n)
	}
	for i, f := range p.GetFences() {
		b.Fences[i] = store.Fence{Lease: f.GetLease(), Token: f.GetToken()}
	}
	if n := len(p.GetOps()); n > 0 {
		b.Ops = make([]store.Op, n)
	}
	for i, op := range p.GetOps() {
		b.Ops[i] = store.Op{Key: op.GetKey(), Value: op.GetValue(), Delete: op.GetDelete()}
	}
	return b, nil
}

// HolderToProto is a holder as it is sent; Since keeps milliseconds.
func HolderToProto(h store.Holder) *storagepb.Holder {
	p := &storagepb.Holder{Pid: int64(h.PID), Host: Text(h.Host), Terminal: Text(h.Terminal), Program: Text(h.Program)}
	if !h.Since.IsZero() {
		p.SinceUnixMs = h.Since.UnixMilli()
	}
	return p
}

// HolderFromProto is a holder as it was received.
func HolderFromProto(p *storagepb.Holder) store.Holder {
	h := store.Holder{PID: int(p.GetPid()), Host: p.GetHost(), Terminal: p.GetTerminal(), Program: p.GetProgram()}
	if ms := p.GetSinceUnixMs(); ms != 0 {
		h.Since = time.UnixMilli(ms)
	}
	return h
}

// EventToProto is a change event as it is sent.
func EventToProto(e store.Event) *storagepb.WatchResponse {
	p := &storagepb.WatchResponse{Resync: e.Resync}
	for _, c := range e.Changes {
		p.Changes = append(p.Changes, &storagepb.Change{Key: c.Key, Version: c.Version, Deleted: c.Deleted})
	}
	return p
}

// EventFromProto is a change event as it was received.
func EventFromProto(p *storagepb.WatchResponse) store.Event {
	e := store.Event{Resync: p.GetResync()}
	for _, c := range p.GetChanges() {
		e.Changes = append(e.Changes, store.Change{Key: c.GetKey(), Version: c.GetVersion(), Deleted: c.GetDeleted()})
	}
	return e
}

// InfoToProto is a backend's description as it is sent, with the limits that
// every backend of this contract keeps.
func InfoToProto(i store.Info) *storagepb.InfoResponse {
	return &storagepb.InfoResponse{
		Backend: Text(i.Backend), Version: Text(i.Version), Location: Text(i.Location), Pid: int64(i.PID),
		ReadOnly: i.ReadOnly, Refusal: Text(i.Refusal),
		Limits: &storagepb.Limits{
			MaxKeyBytes: store.MaxKeyBytes, MaxValueBytes: store.MaxValueBytes,
			MaxBatchOps: store.MaxBatchOps, MaxBatchBytes: store.MaxBatchBytes,
		},
	}
}

// InfoFromProto is a backend's description as it was received.
func InfoFromProto(p *storagepb.InfoResponse) store.Info {
	return store.Info{
		Backend: p.GetBackend(), Version: p.GetVersion(), Location: p.GetLocation(), PID: int(p.GetPid()),
		ReadOnly: p.GetReadOnly(), Refusal: p.GetRefusal(),
	}
}

// ReportToProto is the outcome of maintenance as it is sent.
func ReportToProto(r store.Report) *storagepb.Report {
	p := &storagepb.Report{Problems: texts(r.Problems), Actions: texts(r.Actions)}
	for _, f := range r.Figures {
		p.Figures = append(p.Figures, &storagepb.Figure{Name: Text(f.Name), Value: f.Value})
	}
	return p
}

// ReportFromProto is the outcome of maintenance as it was received.
func ReportFromProto(p *storagepb.Report) store.Report {
	r := store.Report{Problems: p.GetProblems(), Actions: p.GetActions()}
	for _, f := range p.GetFigures() {
		r.Figures = append(r.Figures, store.Figure{Name: f.GetName(), Value: f.GetValue()})
	}
	return r
}

// unsigned keeps a negative count, which no contract knows, from becoming a
// huge one.
func unsigned(n int) uint64 { return uint64(max(n, 0)) }

// signed keeps a count that a plugin lies about from becoming negative.
func signed(n uint64) int {
	const most = int(^uint(0) >> 1)
	if n > uint64(most) {
		return most
	}
	return int(n)
}
