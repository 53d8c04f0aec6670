package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/store"
)

// screen is how many items are read to show the last screen.
const screen = 60

// probe opens, loads or sizes a session and tells what it took.
func probe(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) != 4 {
		return fmt.Errorf("probe: %d arguments, want 4", len(args))
	}
	what, bin, state, id := args[0], args[1], args[2], args[3]
	began := time.Now()
	st, err := attach(ctx, bin, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	s, err := session.Open(ctx, st, session.Options{MaxEagerLoadMB: 1 << 20})
	if err != nil {
		return err
	}
	o, err := s.Acquire(ctx, id, store.Holder{Program: "bench"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close(ctx)) }()
	path, err := o.Path(ctx)
	if err != nil {
		return err
	}
	p := probed{Bytes: path.Bytes()}
	switch what {
	case "open":
		err = read(ctx, path, max(0, path.Len()-screen))
	case "load":
		began = time.Now()
		err = read(ctx, path, 0)
	case "size":
		for e, err := range st.Scan(ctx, store.Items(path.Head().Segment, 1, path.Head().Number)) {
			if err != nil {
				return err
			}
			p.Stored += float64(len(e.Value))
		}
	default:
		return fmt.Errorf("probe: %q is not known", what)
	}
	if err != nil {
		return err
	}
	p.Took = time.Since(began)
	if p.MB, err = resident(); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(p)
}

func read(ctx context.Context, path *session.Path, from int) error {
	for _, err := range path.Items(ctx, from, path.Len()) {
		if err != nil {
			return err
		}
	}
	return nil
}

// resident is the memory of this process, in MB.
func resident() (float64, error) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kb, err := strconv.ParseFloat(f[1], 64)
			return kb / 1024, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmRSS")
}
