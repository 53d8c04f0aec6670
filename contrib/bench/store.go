package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/boughdev/bough/contrib/bench/sample"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/badger"
)

// makeStore makes a state directory with a store of sessions of a seed.
func makeStore(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench store DIR", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var shape sample.Shape
	flags.IntVar(&shape.Sessions, "sessions", 1, "how many sessions")
	flags.IntVar(&shape.Items, "items", 20_000, "items of each session")
	flags.Uint64Var(&shape.Seed, "seed", 1, "of the items")
	flags.StringVar(&shape.Folder, "folder", "", "where the sessions work (default: some that are not there)")
	settled := flags.Bool("settled", false, "pack them, as sessions are that were quiet for long")
	if len(args) == 0 || args[0] == "" || args[0][0] == '-' {
		flags.Usage()
		return errors.New("store: name the state directory to make, then the flags")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	ids, err := fill(ctx, args[0], shape, *settled)
	for _, id := range ids {
		fmt.Fprintln(stdout, id)
	}
	return err
}

// fill makes the store of a state directory, or adds to it. No bough may use
// it meanwhile.
func fill(ctx context.Context, state string, shape sample.Shape, settled bool) (ids []string, err error) {
	st, err := badger.Open(ctx, filepath.Join(state, "store"), badger.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	sessions, err := session.Open(ctx, st, session.Options{Now: sample.Clock()})
	if err != nil {
		return nil, err
	}
	if ids, err = sample.Fill(ctx, sessions, shape); err != nil {
		return ids, err
	}
	for more := settled; more && err == nil; {
		var r session.SettleReport
		r, err = sessions.Settle(ctx, 64<<20)
		more = r.More
	}
	if err == nil { // what was written in seconds is as if it had been in months
		_, err = st.Maintain(ctx, store.Compact, nil)
	}
	return ids, err
}
