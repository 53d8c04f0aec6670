package manager

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/wire"
	"github.com/boughdev/bough/plugins/wire/handshake"
)

// Maintain implements store.Admin. It is not begun again when the process is
// lost: what it did is not known.
func (s *Storage) Maintain(ctx context.Context, op store.Operation, progress func(line string)) (store.Report, error) {
	l, err := s.link(ctx)
	if err != nil {
		return store.Report{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := l.calls.Maintain(ctx, &storagepb.MaintainRequest{Operation: storagepb.Operation(op)})
	for err == nil {
		var answer *storagepb.MaintainResponse
		if answer, err = stream.Recv(); err != nil {
			break
		}
		if report := answer.GetReport(); report != nil {
			return wire.ReportFromProto(report), nil
		}
		if progress != nil {
			progress(answer.GetProgress())
		}
	}
	if errors.Is(err, io.EOF) {
		return store.Report{}, errors.New("the storage process ended the maintenance without a report")
	}
	return store.Report{}, s.outcome(ctx, l, err)
}

// Backup implements store.Admin.
func (s *Storage) Backup(ctx context.Context, w io.Writer) error {
	l, err := s.link(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := l.calls.Backup(ctx, &storagepb.BackupRequest{})
	for err == nil {
		var chunk *storagepb.BackupChunk
		if chunk, err = stream.Recv(); err != nil {
			break
		}
		if _, err := w.Write(chunk.GetData()); err != nil {
			return fmt.Errorf("write the backup: %w", err)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return s.outcome(ctx, l, err)
}

// Restore implements store.Admin. A reader that fails gives the process up
// before the end of the backup, so that half of one is never taken for a whole.
func (s *Storage) Restore(ctx context.Context, r io.Reader) (uint64, error) {
	l, err := s.link(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := l.calls.Restore(ctx)
	if err != nil {
		return 0, s.outcome(ctx, l, err)
	}
	chunk := make([]byte, handshake.BatchBytes)
	for {
		n, failed := r.Read(chunk)
		if n > 0 {
			if err := stream.Send(&storagepb.RestoreRequest{Data: chunk[:n]}); err != nil {
				break // the process has ended the call: its answer says why
			}
		}
		if errors.Is(failed, io.EOF) {
			break
		}
		if failed != nil {
			return 0, fmt.Errorf("read the backup: %w", failed)
		}
	}
	answer, err := stream.CloseAndRecv()
	return answer.GetEntries(), s.outcome(ctx, l, err)
}
