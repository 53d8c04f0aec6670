package session

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"

	"github.com/boughdev/bough/host/session/sessionpb"
)

// stored is one item, or several in a bundle, as it lies in the store. The
// parent of each but the first is the one before.
type stored struct {
	ref, parent Ref
	value       []byte // nil: it is not there
	skip, count int    // of a bundle: how many are wanted, after how many that are not
}

// A group is what one core unpacks at a time: enough to be worth handing over,
// little enough that the first items come soon.
const (
	groupItems = 64
	groupBytes = 256 << 10
)

type group struct {
	in   []stored
	out  []*Item
	errs []error
	err  error // the source ended with it
	done chan struct{}
}

// decodeAll unpacks the stored items on all cores and yields them in order. At
// most a few groups a core are under way, so memory stays bounded.
func decodeAll(ctx context.Context, source iter.Seq2[stored, error], yield func(*Item, error) bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cores := runtime.GOMAXPROCS(0)
	todo := make(chan *group, cores)
	inOrder := make(chan *group, 4*cores)
	for range cores {
		go func() {
			for g := range todo {
				g.decode()
				close(g.done)
			}
		}()
	}
	go feed(ctx, source, todo, inOrder)
	for g := range inOrder {
		<-g.done
		if g.err != nil {
			yield(nil, g.err)
			return
		}
		for i, it := range g.out {
			if !yield(it, g.errs[i]) {
				return
			}
		}
	}
	if err := context.Cause(ctx); err != nil {
		yield(nil, err)
	}
}

// feed cuts the source into groups. It ends when the source does, or ctx.
func feed(ctx context.Context, source iter.Seq2[stored, error], todo, inOrder chan<- *group) {
	defer close(inOrder)
	defer close(todo)
	send := func(g *group) bool {
		select {
		case inOrder <- g:
		case <-ctx.Done():
			return false
		}
		if g.err != nil {
			close(g.done)
			return false
		}
		select {
		case todo <- g:
			return true
		case <-ctx.Done():
			close(g.done)
			return false
		}
	}
	g := &group{done: make(chan struct{})}
	items, bytes := 0, 0
	for s, err := range source {
		if err != nil {
			if len(g.in) > 0 && !send(g) {
				return
			}
			send(&group{err: err, done: make(chan struct{})})
			return
		}
		g.in = append(g.in, s)
		items += s.count
		bytes += len(s.value)
		if items >= groupItems || bytes >= groupBytes {
			if !send(g) {
				return
			}
			g, items, bytes = &group{done: make(chan struct{})}, 0, 0
		}
	}
	if len(g.in) > 0 {
		send(g)
	}
}

var errMissing = errors.New("it is not in the store")

func (g *group) decode() {
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	for _, s := range g.in {
		s.each(room, func(it *Item, err error) {
			g.out, g.errs = append(g.out, it), append(g.errs, err)
		})
	}
}

// rooms is memory to unpack into: what is parsed shares nothing with it.
var rooms = sync.Pool{New: func() any { return new([]byte) }}

// each gives the parsed items. With an error one still has its place.
func (s stored) each(room *[]byte, give func(*Item, error)) {
	plains, err := [][]byte(nil), errMissing
	if s.value != nil {
		plains, err = unpackAll(room, s.value)
	}
	if err == nil && s.skip+s.count > len(plains) {
		err = errBundle
	}
	parent := s.parent
	for i := range s.count {
		it := &Item{Ref: Ref{s.ref.Segment, s.ref.Number + uint64(i)}, Parent: parent}
		parent = it.Ref
		itemErr := err
		if err == nil {
			it.Payload, itemErr = parsePayload(plains[s.skip+i])
		}
		if itemErr != nil {
			it.Payload = &sessionpb.Payload{}
			give(it, &DamagedError{it.Ref, itemErr})
			continue
		}
		give(it, nil)
	}
}
