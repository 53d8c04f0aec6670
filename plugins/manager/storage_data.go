package manager

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/wire"
)

// Info implements store.Store.
func (s *Storage) Info(ctx context.Context) (info store.Info, err error) {
	err = s.do(ctx, func(l *link) error {
		answer, err := l.calls.Info(ctx, &storagepb.InfoRequest{})
		info = wire.InfoFromProto(answer)
		return err
	})
	return info, err
}

// Get implements store.Store. Entries that are too long for one answer together
// are asked for in parts.
func (s *Storage) Get(ctx context.Context, keys ...[]byte) ([]store.Entry, error) {
	if len(keys) == 0 {
		return nil, ctx.Err()
	}
	var entries []store.Entry
	err := s.do(ctx, func(l *link) error {
		answer, err := l.calls.Get(ctx, &storagepb.GetRequest{Keys: keys})
		if err != nil {
			return err
		}
		if n := len(answer.GetEntries()); n != len(keys) {
			return fmt.Errorf("the storage process answered %d keys with %d entries", len(keys), n)
		}
		entries = make([]store.Entry, len(keys))
		for i, e := range answer.GetEntries() {
			entries[i] = wire.EntryFromProto(e)
		}
		return nil
	})
	if errors.Is(err, store.ErrTooLarge) && len(keys) > 1 {
		half := len(keys) / 2
		first, err := s.Get(ctx, keys[:half]...)
		if err != nil {
			return nil, err
		}
		second, err := s.Get(ctx, keys[half:]...)
		return append(first, second...), err
	}
	return entries, err
}

// Scan implements store.Store. A scan whose process is lost begins again as
// long as nothing was yielded: what comes later would be of another moment.
func (s *Storage) Scan(ctx context.Context, r store.Range) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		yielded, over := false, false
		err := s.do(ctx, func(l *link) error {
			err := s.scan(ctx, l, r, func(e store.Entry) bool {
				yielded = true
				over = !yield(e, nil)
				return !over
			})
			if err != nil && yielded && !over {
				over = true
				yield(store.Entry{}, s.outcome(ctx, l, err))
			}
			if over {
				return nil
			}
			return err
		})
		if err != nil {
			yield(store.Entry{}, err)
		}
	}
}

func (s *Storage) scan(ctx context.Context, l *link, r store.Range, yield func(store.Entry) bool) error {
	ctx, cancel := context.WithCancel(ctx) // ends the work there when the caller leaves the loop
	defer cancel()
	stream, err := l.calls.Scan(ctx, wire.RangeToProto(r))
	if err != nil {
		return err
	}
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range answer.GetEntries() {
			if !yield(wire.EntryFromProto(e)) {
				return nil
			}
		}
	}
}

// sureFor is how long after its first sending a batch may be sent again: the
// backend forgets its ID at IDMemory, and would apply it twice.
const sureFor = store.IDMemory - time.Minute

// Commit implements store.Store. Every batch has an ID on the way, so one whose
// answer was lost is sent again. The fences of leases that were taken again
// meanwhile follow them.
func (s *Storage) Commit(ctx context.Context, b store.Batch) (version uint64, err error) {
	if err := store.CheckBatch(&b); err != nil {
		return 0, err
	}
	if b.ID == ([store.IDBytes]byte{}) {
		rand.Read(b.ID[:]) // crypto/rand never fails: it ends the process
	}
	request := wire.BatchToProto(&b)
	began := time.Now()
	doubt := error(nil) // the last failure that may have come after the batch was applied
	err = s.do(ctx, func(l *link) error {
		if doubt != nil && time.Since(began) > sureFor {
			return fmt.Errorf("a batch without an answer for %s cannot be sent again safely: %w", sureFor, doubt)
		}
		for i, f := range b.Fences {
			token, err := s.fence(ctx, l, f)
			if err != nil {
				return err
			}
			request.Fences[i].Token = token
		}
		answer, err := l.calls.Commit(ctx, request)
		doubt = err
		version = answer.GetVersion()
		return err
	})
	return version, err
}
