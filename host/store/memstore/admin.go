package memstore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/backup"
)

// Maintain implements store.Admin. In memory there is nothing to mend and
// nothing to give back; the figures are right all the same.
func (s *Store) Maintain(ctx context.Context, op store.Operation, _ func(line string)) (store.Report, error) {
	if err := ctx.Err(); err != nil {
		return store.Report{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := store.Figure{Name: "keys", Value: int64(len(s.keys))}
	switch op {
	case store.Stats:
		return store.Report{Figures: []store.Figure{keys, {Name: "disk.bytes"}}}, nil
	case store.Check:
		return store.Report{Figures: []store.Figure{keys}}, nil
	case store.Compact:
		return store.Report{Figures: []store.Figure{keys, {Name: "reclaimed.bytes"}}}, nil
	case store.Repair:
		return store.Report{Actions: []string{"the store is in memory and not damaged: nothing was done"}}, nil
	}
	return store.Report{}, fmt.Errorf("the store in memory has no maintenance operation %d", op)
}

// Backup implements store.Admin.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	_, err := backup.Write(w, s.Scan(ctx, store.Range{}))
	return err
}

// Restore implements store.Admin.
func (s *Store) Restore(ctx context.Context, r io.Reader) (uint64, error) {
	var all store.Batch
	n, err := backup.Read(r, func(key, value []byte) error {
		all.Put(key, value)
		return ctx.Err()
	})
	if err != nil {
		return 0, fmt.Errorf("restore: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.keys) > 0 {
		return 0, errors.New("restore: the store in memory is not empty")
	}
	s.version++
	for _, op := range all.Ops {
		s.apply(op)
	}
	return n, nil
}
