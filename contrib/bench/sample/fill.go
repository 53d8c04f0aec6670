package sample

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
)

// Shape is what a store is filled with.
type Shape struct {
	Seed     uint64
	Sessions int
	Items    int // of each session
	// Folder is where the sessions work; empty: in ten that are not there.
	Folder string
	// Loose leaves the items as they were written, which a session that is used
	// does only with its last ones.
	Loose bool
}

// batchItems are appended at once.
const batchItems = 400

// Fill adds sessions to a store and returns their ids, the oldest first. It
// does not wait until they are durable.
func Fill(ctx context.Context, sessions *session.Sessions, shape Shape) (ids []string, err error) {
	s, err := New(shape.Seed)
	if err != nil {
		return nil, err
	}
	for n := range shape.Sessions {
		folder := shape.Folder
		if folder == "" {
			folder = fmt.Sprintf("/home/ada/project%d", n%10)
		}
		o, err := sessions.New(ctx, session.NewOptions{Folder: folder, Model: "practice", Holder: store.Holder{Program: "bench"}})
		if err != nil {
			return ids, err
		}
		if err := fillOne(ctx, o, s, shape); err != nil {
			return ids, err
		}
		ids = append(ids, o.ID())
		if err := o.Close(ctx); err != nil {
			return ids, err
		}
	}
	return ids, nil
}

func fillOne(ctx context.Context, o *session.Session, s *Sampler, shape Shape) error {
	s.todo = nil // a session begins with a prompt
	for items := shape.Items; items > 0; {
		batch := make([]*sessionpb.Payload, min(items, batchItems))
		for i := range batch {
			batch[i] = s.Next()
		}
		items -= len(batch)
		if _, err := o.Append(ctx, batch, session.AppendOptions{Durability: store.Async}); err != nil {
			return err
		}
		if shape.Loose {
			continue
		}
		if err := o.Settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Clock is the clock of session.Options for Fill and what comes after: all
// samples are old by it, and settled. No two calls give the same time.
func Clock() func() time.Time {
	var calls atomic.Int64
	later := time.UnixMilli(begin).AddDate(10, 0, 0)
	return func() time.Time { return later.Add(time.Duration(calls.Add(1)) * time.Millisecond) }
}
