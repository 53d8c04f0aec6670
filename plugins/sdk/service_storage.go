package sdk

import (
	"context"
	"io"
	"sync"

	"google.golang.org/grpc"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/wire"
	"github.com/boughdev/bough/plugins/wire/handshake"
)

// storageService serves a backend. A panic of the backend is not caught: what
// it left behind in memory could not be trusted, so the process ends and the
// next one starts from what is on the disk.
type storageService struct {
	storagepb.UnimplementedStorageServer
	backend Storage
	life    *life
	holds   holds
}

// Info implements the service.
func (s *storageService) Info(ctx context.Context, _ *storagepb.InfoRequest) (*storagepb.InfoResponse, error) {
	info, err := s.backend.Info(ctx)
	if err != nil {
		return nil, wire.StoreStatus(err)
	}
	return wire.InfoToProto(info), nil
}

// Get implements the service.
func (s *storageService) Get(ctx context.Context, request *storagepb.GetRequest) (*storagepb.GetResponse, error) {
	entries, err := s.backend.Get(ctx, request.GetKeys()...)
	if err != nil {
		return nil, wire.StoreStatus(err)
	}
	out := &storagepb.GetResponse{Entries: make([]*storagepb.Entry, len(entries))}
	for i, e := range entries {
		out.Entries[i] = wire.EntryToProto(e)
	}
	return out, nil
}

// Scan implements the service. The first answer is small, so that a reader who
// wants little has it soon.
func (s *storageService) Scan(request *storagepb.ScanRequest, stream grpc.ServerStreamingServer[storagepb.ScanResponse]) error {
	const first = 8 << 10
	batch := entryBatch{limit: first}
	for e, err := range s.backend.Scan(stream.Context(), wire.RangeFromProto(request)) {
		if err != nil {
			return wire.StoreStatus(err)
		}
		if !batch.add(e) {
			continue
		}
		if err := stream.Send(batch.take()); err != nil {
			return err
		}
		batch.limit = handshake.BatchBytes
	}
	if batch.used == 0 {
		return nil
	}
	return stream.Send(batch.take())
}

// entryBatch gathers entries for one answer. Its messages are used again for
// the next: an answer is marshalled before Send returns.
type entryBatch struct {
	limit, size, used int
	entries           []*storagepb.Entry
	answer            storagepb.ScanResponse
}

// add tells whether the batch is full.
func (b *entryBatch) add(e store.Entry) (full bool) {
	const overhead = 16 // of an entry, in the message
	if b.used == len(b.entries) {
		b.entries = append(b.entries, &storagepb.Entry{})
	}
	message := b.entries[b.used]
	message.Key, message.Value, message.Version = e.Key, e.Value, e.Version
	b.used++
	b.size += len(e.Key) + len(e.Value) + overhead
	return b.size >= b.limit
}

func (b *entryBatch) take() *storagepb.ScanResponse {
	b.answer.Entries = b.entries[:b.used]
	b.used, b.size = 0, 0
	return &b.answer
}

// Commit implements the service.
func (s *storageService) Commit(ctx context.Context, request *storagepb.CommitRequest) (*storagepb.CommitResponse, error) {
	batch, err := wire.BatchFromProto(request)
	if err != nil {
		return nil, wire.StoreStatus(err)
	}
	version, err := s.backend.Commit(ctx, batch)
	if err != nil {
		return nil, wire.StoreStatus(err)
	}
	return &storagepb.CommitResponse{Version: version}, nil
}

// Watch implements the service.
func (s *storageService) Watch(request *storagepb.WatchRequest, stream grpc.ServerStreamingServer[storagepb.WatchResponse]) error {
	ctx, end := s.life.call(stream.Context())
	defer end()
	var mu sync.Mutex // the contract does not say who calls ready
	send := func(answer *storagepb.WatchResponse) error {
		mu.Lock()
		defer mu.Unlock()
		return stream.Send(answer)
	}
	var notReady error
	ready := func() { notReady = send(&storagepb.WatchResponse{}) }
	for event, err := range s.backend.Watch(ctx, request.GetPrefix(), ready) {
		if err == nil {
			err = send(wire.EventToProto(event))
		}
		switch {
		case notReady != nil:
			return notReady
		case s.life.ctx.Err() != nil:
			return errLeaving
		case err != nil:
			return wire.StoreStatus(err)
		}
	}
	if s.life.ctx.Err() != nil {
		return errLeaving
	}
	return wire.PlainStatus(stream.Context().Err())
}

// Maintain implements the service.
func (s *storageService) Maintain(request *storagepb.MaintainRequest, stream grpc.ServerStreamingServer[storagepb.MaintainResponse]) error {
	ctx, end := s.life.call(stream.Context())
	defer end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	send := func(answer *storagepb.MaintainResponse) error {
		mu.Lock()
		defer mu.Unlock()
		return stream.Send(answer)
	}
	progress := func(line string) {
		if err := send(&storagepb.MaintainResponse{Progress: wire.Text(line)}); err != nil {
			cancel() // nobody is there to see it through
		}
	}
	report, err := s.backend.Maintain(ctx, store.Operation(request.GetOperation()), progress)
	if err != nil {
		return wire.StoreStatus(err)
	}
	return send(&storagepb.MaintainResponse{Report: wire.ReportToProto(report)})
}

// Backup implements the service.
func (s *storageService) Backup(_ *storagepb.BackupRequest, stream grpc.ServerStreamingServer[storagepb.BackupChunk]) error {
	ctx, end := s.life.call(stream.Context())
	defer end()
	w := &chunkWriter{stream: stream}
	if err := s.backend.Backup(ctx, w); err != nil {
		return wire.StoreStatus(err)
	}
	return w.flush()
}

// chunkWriter gathers what is written into chunks.
type chunkWriter struct {
	stream grpc.ServerStreamingServer[storagepb.BackupChunk]
	chunk  []byte
}

// Write implements io.Writer.
func (w *chunkWriter) Write(data []byte) (int, error) {
	written := len(data)
	for len(data) > 0 {
		n := min(len(data), handshake.BatchBytes-len(w.chunk))
		w.chunk = append(w.chunk, data[:n]...)
		data = data[n:]
		if len(w.chunk) < handshake.BatchBytes {
			break
		}
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	return written, nil
}

func (w *chunkWriter) flush() error {
	if len(w.chunk) == 0 {
		return nil
	}
	err := w.stream.Send(&storagepb.BackupChunk{Data: w.chunk})
	w.chunk = w.chunk[:0]
	return err
}

// Restore implements the service.
func (s *storageService) Restore(stream grpc.ClientStreamingServer[storagepb.RestoreRequest, storagepb.RestoreResponse]) error {
	ctx, end := s.life.call(stream.Context())
	defer end()
	entries, err := s.backend.Restore(ctx, &chunkReader{stream: stream})
	if err != nil {
		return wire.StoreStatus(err)
	}
	return stream.SendAndClose(&storagepb.RestoreResponse{Entries: entries})
}

// chunkReader reads what comes in chunks.
type chunkReader struct {
	stream grpc.ClientStreamingServer[storagepb.RestoreRequest, storagepb.RestoreResponse]
	rest   []byte
}

// Read implements io.Reader. A sender that broke off is an error and no end:
// half a backup must not pass for a whole one.
func (r *chunkReader) Read(data []byte) (int, error) {
	for len(r.rest) == 0 {
		chunk, err := r.stream.Recv()
		if err == io.EOF { //nolint:errorlint // gRPC returns it bare
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		r.rest = chunk.GetData()
	}
	n := copy(data, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
