// Package conformance holds the tests that a storage backend must pass. A
// backend's own test is a few lines:
//
//	func TestConformance(t *testing.T) {
//		conformance.RunStorage(t, func(t *testing.T) conformance.Backend { ... })
//	}
package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/memstore"
)

// Backend is one store under test, empty at first.
type Backend struct {
	Store store.Store
	// Reopen closes the store and opens what it left; nil: the backend keeps
	// nothing.
	Reopen func(t *testing.T) store.Store
}

// RunStorage runs the whole suite; open is called for a fresh store each time
// and registers its own clean-up.
func RunStorage(t *testing.T, open func(t *testing.T) Backend) {
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, b Backend)
	}{
		{"get and scan", testScan},
		{"conditions", testConditions},
		{"a batch sent twice", testTwice},
		{"leases and fences", testLeases},
		{"limits", testLimits},
		{"watches", testWatch},
		{"concurrent writers lose no update", testConcurrent},
		{"a random workload equals a plain map", testRandom},
		{"what was committed is there after a restart", testReopen},
		{"a cancelled call", testCancelled},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open(t)) })
	}
}

func key(s string) []byte { return append([]byte{'T'}, s...) }

func put(t *testing.T, s store.Store, kv ...string) uint64 {
	t.Helper()
	var b store.Batch
	for i := 0; i < len(kv); i += 2 {
		b.Put(key(kv[i]), []byte(kv[i+1]))
	}
	v, err := s.Commit(t.Context(), b)
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return v
}

func scan(t *testing.T, s store.Store, r store.Range) string {
	t.Helper()
	var out bytes.Buffer
	for e, err := range s.Scan(t.Context(), r) {
		if err != nil {
			t.Fatalf("scan: %v", err)
		}
		fmt.Fprintf(&out, "%s=%s ", e.Key[1:], e.Value)
	}
	return out.String()
}

func testScan(t *testing.T, b Backend) {
	s := b.Store
	v := put(t, s, "a", "1", "b", "2", "ba", "3", "c", "", "d", "5")
	if v == 0 {
		t.Error("a commit has version 0")
	}
	entries, err := s.Get(t.Context(), key("b"), key("zz"), key("c"))
	if err != nil {
		t.Fatal(err)
	}
	if string(entries[0].Value) != "2" || entries[0].Version != v || entries[1].Version != 0 || entries[1].Value != nil ||
		entries[2].Version != v || len(entries[2].Value) != 0 {
		t.Errorf("get = %+v, want versions %d, 0, %d", entries, v, v)
	}
	for _, tt := range []struct {
		name string
		r    store.Range
		want string
	}{
		{"all", store.Prefix([]byte("T")), "a=1 b=2 ba=3 c= d=5 "},
		{"bounds", store.Range{Start: key("b"), End: key("c")}, "b=2 ba=3 "},
		{"prefix", store.Prefix(key("b")), "b=2 ba=3 "},
		{"limit", store.Range{Start: key("b"), End: key("z"), Limit: 2}, "b=2 ba=3 "},
		{"reverse", store.Range{Start: key("b"), End: key("d"), Reverse: true}, "c= ba=3 b=2 "},
		{"reverse, limit", store.Range{Start: key(""), End: key("z"), Reverse: true, Limit: 1}, "d=5 "},
		{"keys only", store.Range{Start: key("a"), End: key("b"), KeysOnly: true}, "a= "},
		{"empty", store.Range{Start: key("x"), End: key("y")}, ""},
	} {
		if got := scan(t, s, tt.r); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	// A scan shows one moment, whatever is written meanwhile.
	var seen []string
	for e, err := range s.Scan(t.Context(), store.Prefix([]byte("T"))) {
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) == 0 {
			put(t, s, "bb", "new", "d", "changed")
		}
		seen = append(seen, string(e.Key[1:])+"="+string(e.Value))
	}
	if want := []string{"a=1", "b=2", "ba=3", "c=", "d=5"}; !slices.Equal(seen, want) {
		t.Errorf("a scan beside a write saw %q, want %q", seen, want)
	}
}

func testConditions(t *testing.T, b Backend) {
	s := b.Store
	v := put(t, s, "k", "1")
	commit := func(at uint64, on string) error {
		var b store.Batch
		b.Require(key(on), at)
		b.Put(key("k"), []byte("2"))
		b.Put(key("side"), []byte("x"))
		_, err := s.Commit(t.Context(), b)
		return err
	}
	var conflict *store.ConflictError
	if err := commit(v+1, "k"); !errors.Is(err, store.ErrConflict) || !errors.As(err, &conflict) || conflict.Version != v {
		t.Errorf("a wrong version gives %v, want a conflict at version %d", err, v)
	}
	if err := commit(0, "k"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("'absent' on a key that is there gives %v", err)
	}
	if err := commit(7, "nothing"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a version of an absent key gives %v", err)
	}
	if got := scan(t, s, store.Prefix([]byte("T"))); got != "k=1 " {
		t.Errorf("after refused batches: %q", got)
	}
	if err := commit(v, "k"); err != nil {
		t.Errorf("the right version gives %v", err)
	}
	if err := commit(v, "k"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an outdated version gives %v", err)
	}
}

func testTwice(t *testing.T, b Backend) {
	batch := store.Batch{ID: [store.IDBytes]byte{1, 2, 3}}
	batch.Require(key("once"), 0)
	batch.Put(key("once"), []byte("1"))
	first, err := b.Store.Commit(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.Store.Commit(t.Context(), batch)
	if err != nil || second != first {
		t.Errorf("the same batch again = %d, %v; want %d", second, err, first)
	}
}

func testLeases(t *testing.T, b Backend) {
	s := b.Store
	holder := store.Holder{PID: 42, Host: "h", Terminal: "pts/1", Program: "suite", Since: time.UnixMilli(1_700_000_000_000)}
	l, err := s.Acquire(t.Context(), "session/x", holder)
	if err != nil {
		t.Fatal(err)
	}
	var held *store.HeldError
	if _, err := s.Acquire(t.Context(), "session/x", store.Holder{PID: 43}); !errors.As(err, &held) {
		t.Fatalf("a second Acquire = %v", err)
	}
	if held.Holder.PID != 42 || held.Holder.Terminal != "pts/1" || !held.Holder.Since.Equal(holder.Since) {
		t.Errorf("the holder is told as %+v", held.Holder)
	}
	write := func(f store.Fence) error {
		batch := store.Batch{Fences: []store.Fence{f}}
		batch.Put(key("fenced"), []byte("1"))
		_, err := s.Commit(t.Context(), batch)
		return err
	}
	old := store.FenceOf(l)
	if err := write(old); err != nil {
		t.Errorf("the holder's write = %v", err)
	}
	if err := write(store.Fence{Lease: "session/x", Token: old.Token + 1}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a wrong token = %v", err)
	}
	if err := errors.Join(l.Release(t.Context()), l.Release(t.Context())); err != nil {
		t.Fatalf("release, twice: %v", err)
	}
	if err := write(old); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a write after the release = %v", err)
	}
	again, err := s.Acquire(t.Context(), "session/x", store.Holder{PID: 43})
	if err != nil {
		t.Fatal(err)
	}
	if again.Token() <= old.Token {
		t.Errorf("the second token is %d, the first %d", again.Token(), old.Token)
	}
	if err := write(old); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a write of the former holder = %v", err)
	}
}

func testLimits(t *testing.T, b Backend) {
	var many store.Batch
	for i := range store.MaxBatchOps + 1 {
		many.Put(key(fmt.Sprint(i)), nil)
	}
	var long, big, huge store.Batch
	long.Put(bytes.Repeat([]byte("k"), store.MaxKeyBytes+1), nil)
	big.Put(key("big"), make([]byte, store.MaxValueBytes+1))
	half := make([]byte, store.MaxValueBytes)
	huge.Put(key("a"), half)
	huge.Put(key("b"), half)
	for name, batch := range map[string]store.Batch{"operations": many, "key": long, "value": big, "batch": huge} {
		var limit *store.LimitError
		if _, err := b.Store.Commit(t.Context(), batch); !errors.Is(err, store.ErrTooLarge) || !errors.As(err, &limit) || limit.Max == 0 {
			t.Errorf("%s over the limit = %v", name, err)
		}
	}
	if got := scan(t, b.Store, store.Prefix([]byte("T"))); got != "" {
		t.Errorf("a refused batch wrote %q", got)
	}
	// The largest batch that is allowed is applied whole.
	var full store.Batch
	for i := range store.MaxBatchOps {
		k := append(key(fmt.Sprintf("%04d", i)), bytes.Repeat([]byte("k"), store.MaxKeyBytes-5)...)
		full.Put(k, bytes.Repeat([]byte("v"), 890))
	}
	if _, err := b.Store.Commit(t.Context(), full); err != nil {
		t.Errorf("a batch of %d operations = %v", store.MaxBatchOps, err)
	}
	var value store.Batch
	value.Put(key("half"), half)
	if _, err := b.Store.Commit(t.Context(), value); err != nil {
		t.Errorf("a value of %d bytes = %v", len(half), err)
	}
}

func testWatch(t *testing.T, b Backend) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := make(chan struct{})
	events := make(chan store.Event)
	var wg sync.WaitGroup
	wg.Go(func() {
		for ev, err := range b.Store.Watch(ctx, key("w"), func() { close(ready) }) {
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("watch: %v", err)
				}
				return
			}
			events <- ev
		}
	})
	<-ready
	put(t, b.Store, "other", "1")
	v := put(t, b.Store, "w1", "1", "x", "2")
	ev := <-events
	if len(ev.Changes) != 1 || string(ev.Changes[0].Key) != string(key("w1")) || ev.Changes[0].Version != v || ev.Changes[0].Deleted {
		t.Errorf("event = %+v, want w1 at version %d alone", ev, v)
	}
	var del store.Batch
	del.Delete(key("w1"))
	if _, err := b.Store.Commit(t.Context(), del); err != nil {
		t.Fatal(err)
	}
	if ev := <-events; len(ev.Changes) != 1 || !ev.Changes[0].Deleted {
		t.Errorf("event = %+v, want a deletion", ev)
	}
	cancel()
	wg.Wait()
}

func testConcurrent(t *testing.T, b Backend) {
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range each {
				if err := increment(t.Context(), b.Store); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got, want := scan(t, b.Store, store.Prefix(key("n"))), fmt.Sprintf("n=%d ", writers*each); got != want {
		t.Errorf("the counter is %q, want %q", got, want)
	}
}

func increment(ctx context.Context, s store.Store) error {
	for {
		entries, err := s.Get(ctx, key("n"))
		if err != nil {
			return err
		}
		n := 0
		if entries[0].Version != 0 {
			if _, err := fmt.Sscan(string(entries[0].Value), &n); err != nil {
				return err
			}
		}
		var b store.Batch
		b.Require(key("n"), entries[0].Version)
		b.Put(key("n"), fmt.Append(nil, n+1))
		if _, err := s.Commit(ctx, b); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// testRandom does the same to the backend and to the model in memory.
func testRandom(t *testing.T, b Backend) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	model := memstore.New()
	s := b.Store
	for step := range 400 {
		var one, two store.Batch
		for range 1 + r.IntN(6) {
			k := key(fmt.Sprint(r.IntN(40)))
			switch r.IntN(4) {
			case 0:
				one.Delete(k)
				two.Delete(k)
			case 1:
				have, err := s.Get(t.Context(), k)
				if err != nil {
					t.Fatal(err)
				}
				want, _ := model.Get(t.Context(), k)
				stale := uint64(r.IntN(4) / 3 * 1_000_000)
				one.Require(k, have[0].Version+stale)
				two.Require(k, want[0].Version+stale)
			default:
				v := bytes.Repeat([]byte{byte(step)}, r.IntN(3000))
				one.Put(k, v)
				two.Put(k, v)
			}
		}
		_, err1 := s.Commit(t.Context(), one)
		_, err2 := model.Commit(t.Context(), two)
		if errors.Is(err1, store.ErrConflict) != errors.Is(err2, store.ErrConflict) || (err1 == nil) != (err2 == nil) {
			t.Fatalf("step %d: backend %v, model %v", step, err1, err2)
		}
		rg := store.Range{Start: key(fmt.Sprint(r.IntN(40))), Reverse: r.IntN(2) == 0, Limit: r.IntN(20)}
		if r.IntN(2) == 0 {
			rg.End = key(fmt.Sprint(r.IntN(40)))
		} else {
			rg.End = []byte("U")
		}
		if got, want := scan(t, s, rg), scan(t, model, rg); got != want {
			t.Fatalf("step %d: scan %+v\n got %.300q\nwant %.300q", step, rg, got, want)
		}
		if b.Reopen != nil && step%150 == 149 {
			s = b.Reopen(t)
		}
	}
}

func testReopen(t *testing.T, b Backend) {
	if b.Reopen == nil {
		t.Skip("the backend keeps nothing")
	}
	v := put(t, b.Store, "kept", "1", "gone", "1")
	var batch store.Batch
	batch.ID = [store.IDBytes]byte{9}
	batch.Delete(key("gone"))
	dv, err := b.Store.Commit(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	l, err := b.Store.Acquire(t.Context(), "session/y", store.Holder{PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	token := l.Token()
	s := b.Reopen(t)
	if got := scan(t, s, store.Prefix([]byte("T"))); got != "kept=1 " {
		t.Errorf("after a restart: %q", got)
	}
	if e, err := s.Get(t.Context(), key("kept")); err != nil || e[0].Version != v {
		t.Errorf("the version is %d, was %d: %v", e[0].Version, v, err)
	}
	if again, err := s.Commit(t.Context(), batch); err != nil || again != dv {
		t.Errorf("the same batch after a restart = %d, %v; want %d", again, err, dv)
	}
	l2, err := s.Acquire(t.Context(), "session/y", store.Holder{PID: 2})
	if err != nil || l2.Token() <= token {
		t.Errorf("the lease after a restart: %v, token %d after %d", err, l2.Token(), token)
	}
	if nv := put(t, s, "new", "1"); nv <= dv {
		t.Errorf("version %d after %d", nv, dv)
	}
}

func testCancelled(t *testing.T, b Backend) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Store.Get(ctx, key("k")); !errors.Is(err, context.Canceled) {
		t.Errorf("get = %v", err)
	}
	var batch store.Batch
	batch.Put(key("k"), nil)
	if _, err := b.Store.Commit(ctx, batch); !errors.Is(err, context.Canceled) {
		t.Errorf("commit = %v", err)
	}
	if got := scan(t, b.Store, store.Prefix([]byte("T"))); got != "" {
		t.Errorf("a cancelled commit wrote %q", got)
	}
}
