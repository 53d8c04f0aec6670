package manager

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/wire/rendezvous"
)

// killRounds is how often TestStorageIsKilled kills; BOUGH_KILL_ROUNDS raises
// it.
func killRounds(t *testing.T) int {
	text := os.Getenv("BOUGH_KILL_ROUNDS")
	if text == "" {
		return 6
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestStorageIsKilled kills the storage process again and again while hosts
// commit under leases: every commit is answered, none is missing afterwards,
// and none was applied twice, which a counter would show.
func TestStorageIsKilled(t *testing.T) {
	s, o := attachNew(t, "badger")
	ctx := timeout(t, 5*time.Minute)
	clients := []*Storage{s, attach(t, o)}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	acknowledged := make([]uint64, len(clients))
	for i, client := range clients {
		lease := acquire(t, client, fmt.Sprint("session/", i))
		writers.Go(func() {
			version := uint64(0)
			for n := uint64(1); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				// The counter is written over its last version, so a batch
				// that was applied twice or not at all is a conflict.
				var b store.Batch
				b.Put(fmt.Appendf(nil, "count/%d", i), binary.BigEndian.AppendUint64(nil, n))
				b.Put(fmt.Appendf(nil, "item/%d/%08d", i, n), bytes.Repeat([]byte{byte(n)}, 1000))
				b.Require(fmt.Appendf(nil, "count/%d", i), version)
				b.Fences = append(b.Fences, store.FenceOf(lease))
				v, err := client.Commit(ctx, b)
				if err != nil {
					t.Errorf("client %d, commit %d: %v", i, n, err)
					return
				}
				version, acknowledged[i] = v, n
			}
		})
	}
	for range killRounds(t) {
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond) // any moment will do
		if a, err := rendezvous.Read(o.StateDir); err == nil && a.Process.Alive() {
			if err := syscall.Kill(a.Process.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Fatal(err)
			}
		}
	}
	time.Sleep(50 * time.Millisecond) // some commits by the last process
	close(stop)
	writers.Wait()
	for i := range clients {
		if acknowledged[i] == 0 {
			t.Errorf("client %d committed nothing", i)
		}
		t.Logf("client %d: %d commits", i, acknowledged[i])
		n := uint64(0)
		for e, err := range s.Scan(ctx, store.Prefix(fmt.Appendf(nil, "item/%d/", i))) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; string(e.Key) != fmt.Sprintf("item/%d/%08d", i, n) {
				t.Fatalf("client %d: item %d is %s", i, n, e.Key)
			}
		}
		if n != acknowledged[i] {
			t.Errorf("client %d: %d items of %d acknowledged", i, n, acknowledged[i])
		}
	}
}

// TestLeaseSurvivesTheStorage: the lease goes over to the next process, and a
// host that waits for it does not get it.
func TestLeaseSurvivesTheStorage(t *testing.T) {
	s, o := attachNew(t, "badger")
	lease := acquire(t, s, "l")
	before := lease.Token()
	kill(t, storagePID(t, o), syscall.SIGKILL)
	if _, err := s.Commit(timeout(t, 10*time.Second), fenced(lease, "a", "b")); err != nil {
		t.Fatal(err)
	}
	if isLost(lease) || lease.Token() != before+1 {
		t.Errorf("lost: %v, token %d after %d", isLost(lease), lease.Token(), before)
	}
	other := attach(t, o)
	if _, err := other.Acquire(timeout(t, 5*time.Second), "l", me("other")); !errors.Is(err, store.ErrHeld) {
		t.Errorf("the other got %v", err)
	}
}
