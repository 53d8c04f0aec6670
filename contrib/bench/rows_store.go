package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/boughdev/bough/contrib/bench/sample"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
)

// open is a host that opens a session, as a process of its own.
func open(shape sample.Shape, bar time.Duration, mb float64) measure {
	return func(ctx context.Context, l *lab) (string, bool, error) {
		m, err := l.store(ctx, shape)
		if err != nil {
			return "", false, err
		}
		empty, err := l.store(ctx, sample.Shape{Seed: 6, Sessions: 1, Items: 60})
		if err != nil {
			return "", false, err
		}
		base, err := l.probe(ctx, "open", empty, 3)
		if err != nil {
			return "", false, err
		}
		p, err := l.probe(ctx, "open", m, 7)
		if err != nil {
			return "", false, err
		}
		more := p.MB - base.MB
		return fmt.Sprintf("%s, %.0f MB", ms(p.Took), more), p.Took < bar && more < mb, nil
	}
}

// load reads a whole path.
func load(ctx context.Context, l *lab) (string, bool, error) {
	m, err := l.store(ctx, longer)
	if err != nil {
		return "", false, err
	}
	p, err := l.probe(ctx, "load", m, 9)
	if err != nil {
		return "", false, err
	}
	rate := float64(p.Bytes) / 1e6 / p.Took.Seconds()
	return fmt.Sprintf("%.0f MB/s", rate), rate >= 400, nil
}

// stored is the size of all item rows, as a share of the payloads.
func stored(shape sample.Shape, bar float64) measure {
	return func(ctx context.Context, l *lab) (string, bool, error) {
		m, err := l.store(ctx, shape)
		if err != nil {
			return "", false, err
		}
		p, err := l.probe(ctx, "size", m, 1)
		if err != nil {
			return "", false, err
		}
		share := p.Stored / float64(p.Bytes)
		return fmt.Sprintf("%.3f ×", share), share <= bar, nil
	}
}

// counting counts the bytes of what is committed.
type counting struct {
	store.Store
	bytes int
}

func (c *counting) Commit(ctx context.Context, b store.Batch) (uint64, error) {
	for _, op := range b.Ops {
		c.bytes += len(op.Key) + len(op.Value)
	}
	return c.Store.Commit(ctx, b)
}

// withSessions runs do with the sessions of a store, through its process.
func (l *lab) withSessions(ctx context.Context, state string, do func(s *session.Sessions, c *counting) error) (err error) {
	st, err := l.attach(ctx, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close(), endStorage(state)) }()
	c := &counting{Store: st}
	s, err := session.Open(ctx, c, session.Options{MaxEagerLoadMB: 1 << 20})
	if err != nil {
		return err
	}
	return do(s, c)
}

func fork(ctx context.Context, l *lab) (figure string, met bool, err error) {
	m, err := l.store(ctx, longest)
	if err != nil {
		return "", false, err
	}
	err = l.withSessions(ctx, m.state, func(s *session.Sessions, c *counting) error {
		rec, err := s.Get(ctx, m.ids[0])
		if err != nil {
			return err
		}
		const n = 51
		rng := rand.New(rand.NewPCG(1, 1))
		took, err := times(n, func() error {
			_, _, err := s.Fork(ctx, rec.ID(), session.Ref{Segment: rec.Segment(), Number: 1 + rng.Uint64N(rec.Head().Number)}, session.ForkOptions{})
			return err
		})
		if err != nil {
			return err
		}
		each := c.bytes / n
		cli, err := times(11, func() error { return must(l.bough(ctx, m.state, "", "sessions", "fork", rec.ID())) })
		figure = fmt.Sprintf("%s, %s, %d bytes", ms(took), ms(cli), each)
		met = took < 10*time.Millisecond && cli < 50*time.Millisecond && each < 4096
		return err
	})
	return figure, met, err
}

func headMove(ctx context.Context, l *lab) (figure string, met bool, err error) {
	m, err := l.store(ctx, longest)
	if err != nil {
		return "", false, err
	}
	err = l.withSessions(ctx, m.state, func(s *session.Sessions, c *counting) (err error) {
		o, err := s.Acquire(ctx, m.ids[0], store.Holder{Program: "bench"})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.Close(ctx)) }()
		rec := o.Record()
		last := session.Ref{Segment: rec.Segment(), Number: rec.Proto().GetNextNumber() - 1}
		const n = 51
		rng := rand.New(rand.NewPCG(1, 1))
		took, err := times(n, func() error {
			return o.MoveHead(ctx, session.Ref{Segment: last.Segment, Number: 1 + rng.Uint64N(last.Number)}, "bench")
		})
		if err != nil {
			return err
		}
		each := c.bytes / n
		figure, met = fmt.Sprintf("%s, %d bytes", ms(took), each), took < 10*time.Millisecond && each < 4096
		return o.MoveHead(ctx, last, "bench")
	})
	return figure, met, err
}

func picker(ctx context.Context, l *lab) (figure string, met bool, err error) {
	m, err := l.store(ctx, many)
	if err != nil {
		return "", false, err
	}
	err = l.withSessions(ctx, m.state, func(s *session.Sessions, _ *counting) error {
		took, err := times(11, func() error {
			found, err := s.List(ctx, session.ListOptions{})
			if err == nil && len(found) != len(m.ids) {
				err = fmt.Errorf("%d sessions of %d are listed", len(found), len(m.ids))
			}
			return err
		})
		if err != nil {
			return err
		}
		cli, err := times(7, func() error { return must(l.bough(ctx, m.state, "", "sessions", "list")) })
		figure, met = fmt.Sprintf("%s, %s", ms(took), ms(cli)), max(took, cli) < 150*time.Millisecond
		return err
	})
	return figure, met, err
}

// appendSteps compares the durable commits of a session with the syncs of a
// file beside it, in turns.
func appendSteps(ctx context.Context, l *lab) (figure string, met bool, err error) {
	state, err := l.fresh()
	if err != nil {
		return "", false, err
	}
	items, err := sample.New(7)
	if err != nil {
		return "", false, err
	}
	err = l.withSessions(ctx, state, func(s *session.Sessions, _ *counting) (err error) {
		o, err := s.New(ctx, session.NewOptions{Folder: state, Holder: store.Holder{Program: "bench"}})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, o.Close(ctx)) }()
		sync, err := syncs(filepath.Join(state, "log"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sync.f.Close()) }()
		var shares []float64
		var each time.Duration
		for range 15 {
			const n = 100
			began := time.Now()
			for range n {
				if err := sync.one(); err != nil {
					return err
				}
			}
			disk := time.Since(began)
			began = time.Now()
			for range n {
				if _, err := o.Append(ctx, []*sessionpb.Payload{items.Next(), items.Next(), items.Next()}, session.AppendOptions{}); err != nil {
					return err
				}
			}
			each = time.Since(began) / n
			shares = append(shares, float64(disk)/float64(time.Since(began)))
		}
		share := median(shares)
		figure, met = fmt.Sprintf("%.2f (%d µs a step)", share, each.Microseconds()), share >= 0.8
		return nil
	})
	return figure, met, err
}

// synced is a file of which a little is written and synced again and again.
type synced struct {
	f  *os.File
	at int64
}

func syncs(path string) (*synced, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	const size = 64 << 20
	_, err = f.Write(make([]byte, size)) // so that no sync is one of metadata
	return &synced{f: f}, errors.Join(err, f.Sync())
}

func (s *synced) one() error {
	step := bytes.Repeat([]byte{1}, 1500) // what a step of three items takes
	if _, err := s.f.WriteAt(step, s.at); err != nil {
		return err
	}
	s.at += int64(len(step))
	return unix.Fdatasync(int(s.f.Fd()))
}

// probed is what a process that opens or reads a session tells.
type probed struct {
	Took   time.Duration
	MB     float64 // resident at the end
	Bytes  uint64  // of payloads, uncompressed
	Stored float64 // bytes of item rows
}

// probe runs a probe several times, with the storage process running, and
// gives the medians.
func (l *lab) probe(ctx context.Context, what string, m made, n int) (probed, error) {
	var took []time.Duration
	var mb []float64
	var p probed
	self, err := os.Executable()
	if err != nil {
		return p, err
	}
	for i := range n + 1 {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(ctx, self, "probe", what, l.bin, m.state, m.ids[0])
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, &p)
		}
		if err != nil {
			return p, fmt.Errorf("probe %s: %w: %s", what, err, stderr.Bytes())
		}
		if i > 0 || n == 1 { // the first starts the storage process
			took, mb = append(took, p.Took), append(mb, p.MB)
		}
	}
	p.Took, p.MB = median(took), median(mb)
	return p, endStorage(m.state)
}
