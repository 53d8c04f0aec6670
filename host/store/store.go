// Package store is the storage contract: ordered keys, atomic batches with
// conditions, leases bound to their holder's life, and watches. A backend
// (see plugins/badger) implements it, plugins/conformance proves it, and
// nothing above it knows which backend is used. The layout of bough's own keys
// is in keys.go.
package store

import (
	"context"
	"io"
	"iter"
	"time"
)

// Limits that every backend keeps. A backend may have narrower ones (Info).
const (
	// MaxKeyBytes is the longest key.
	MaxKeyBytes = 256
	// MaxValueBytes is the largest value: 32 MiB.
	MaxValueBytes = 32 << 20
	// MaxBatchOps is the most operations of one batch.
	MaxBatchOps = 2048
	// MaxBatchBytes is the most that keys and values of one batch add up to:
	// 48 MiB.
	MaxBatchBytes = 48 << 20
	// IDBytes is the length of a batch's id.
	IDBytes = 16
	// IDMemory is how long a backend must know the id of an applied batch.
	IDMemory = 10 * time.Minute
)

// Store is an ordered set of keys with versions. All methods may be called
// from any goroutine. Errors match (errors.Is) the sentinels of errors.go, and
// wrap their cause.
type Store interface {
	// Get returns one entry for each key, in the order asked for. A key that
	// is absent has version 0 and a nil value.
	Get(ctx context.Context, keys ...[]byte) ([]Entry, error)

	// Scan yields the entries of a range in key order (or in reverse), as of
	// one moment. The slices of an entry are the caller's. The sequence ends
	// after the first error. Callers do not keep a scan open while they wait
	// for a person.
	Scan(ctx context.Context, r Range) iter.Seq2[Entry, error]

	// Commit applies the batch, all of it or nothing, and returns once it is
	// as durable as asked. The version returned is that of every key written.
	// A batch with an ID that was applied before is not applied again; the
	// version of the first time is returned. Conditions and fences of such a
	// batch are not looked at.
	Commit(ctx context.Context, b Batch) (version uint64, err error)

	// Acquire takes the lease of that name, or fails at once with a HeldError
	// that tells who has it.
	Acquire(ctx context.Context, name string, h Holder) (Lease, error)

	// Watch yields what batches change below prefix, from the moment that
	// ready is called (once; it may be nil) until ctx ends. Event.Resync says
	// that the watcher was too slow and must read the range again.
	Watch(ctx context.Context, prefix []byte, ready func()) iter.Seq2[Event, error]

	// Info describes the backend.
	Info(ctx context.Context) (Info, error)
}

// Admin is the maintenance side of a store. It also works, as far as can be,
// on a store that refuses everything else because it is damaged.
type Admin interface {
	// Maintain runs one operation; progress gets lines for people and may be
	// nil.
	Maintain(ctx context.Context, op Operation, progress func(line string)) (Report, error)
	// Backup writes a consistent copy of the whole store.
	Backup(ctx context.Context, w io.Writer) error
	// Restore replaces the contents of an empty or damaged store by a backup
	// and returns the number of entries. A store with contents is refused; a
	// damaged one is moved aside first, never deleted.
	Restore(ctx context.Context, r io.Reader) (entries uint64, err error)
}

// Entry is one key with its value and version.
type Entry struct {
	Key     []byte
	Value   []byte
	Version uint64 // grows with every write of the key; 0: absent
}

// Range selects the keys k with Start <= k < End.
type Range struct {
	Start, End []byte // empty: no bound
	Reverse    bool   // from End towards Start
	KeysOnly   bool   // entries come without values
	Limit      int    // 0: all
}

// Prefix is the range of all keys that begin with p.
func Prefix(p []byte) Range {
	return Range{Start: p, End: PrefixEnd(p)}
}

// PrefixEnd is the first key after all that begin with p; nil when there is
// none.
func PrefixEnd(p []byte) []byte {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] < 0xff {
			end := append([]byte(nil), p[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}

// Batch is a set of writes that are applied together.
type Batch struct {
	// ID makes sending the batch twice harmless. Zero: no such promise; the
	// client library gives every batch one.
	ID         [IDBytes]byte
	Conditions []Condition
	Fences     []Fence
	Ops        []Op // of two on one key the later counts
	Durability Durability
}

// Put adds a write of value under key.
func (b *Batch) Put(key, value []byte) { b.Ops = append(b.Ops, Op{Key: key, Value: value}) }

// Delete adds the removal of key; removing an absent key is no error.
func (b *Batch) Delete(key []byte) { b.Ops = append(b.Ops, Op{Key: key, Delete: true}) }

// Require adds the condition that key has that version; 0 means absent.
func (b *Batch) Require(key []byte, version uint64) {
	b.Conditions = append(b.Conditions, Condition{Key: key, Version: version})
}

// Condition is a version that a key must have for a batch to be applied.
type Condition struct {
	Key     []byte
	Version uint64 // 0: the key is absent
}

// Fence is a lease that must still be held, with this token, for a batch to be
// applied.
type Fence struct {
	Lease string
	Token uint64
}

// Op is one write.
type Op struct {
	Key    []byte
	Value  []byte
	Delete bool
}

// Durability says when a commit is answered.
type Durability int

const (
	// Sync answers after the bytes are on the disk.
	Sync Durability = iota
	// Async answers once the batch survives the process; a power cut may take
	// it, together with all later ones, never without them.
	Async
)

// Holder says who has a lease.
type Holder struct {
	PID      int
	Host     string // machine
	Terminal string // empty: none
	Program  string // such as "bough -p"
	Since    time.Time
}

// Lease is a named right that one holder at a time has. It ends with the
// connection of its holder, so with the holder's process, and not before.
type Lease interface {
	// Name is what it was acquired as.
	Name() string
	// Token grows with every acquisition of the name; it is the fence of the
	// holder's batches. After a lost connection was mended and the lease
	// taken again it is a new one.
	Token() uint64
	// Lost is closed when the lease is gone for good.
	Lost() <-chan struct{}
	// Release gives the lease back; releasing twice is no error.
	Release(ctx context.Context) error
}

// FenceOf is the fence of a lease as it is now.
func FenceOf(l Lease) Fence { return Fence{Lease: l.Name(), Token: l.Token()} }

// Event is what one batch changed below a watched prefix.
type Event struct {
	Changes []Change
	Resync  bool
}

// Change is one changed key.
type Change struct {
	Key     []byte
	Version uint64
	Deleted bool
}

// Info describes a backend.
type Info struct {
	Backend, Version, Location string
	PID                        int
	ReadOnly                   bool   // writes are refused: the disk is nearly full
	Refusal                    string // why the store cannot be used; empty: it can
}

// Operation is a kind of maintenance.
type Operation int

const (
	// Stats reports sizes and counts.
	Stats Operation = iota + 1
	// Check reads everything and compares it with its checksums.
	Check
	// Compact gives deleted bytes back to the disk.
	Compact
	// Repair saves what can be read of a damaged store. What it cannot read
	// is moved aside, never deleted.
	Repair
)

// Report is the outcome of maintenance.
type Report struct {
	Figures  []Figure
	Problems []string // what is wrong, one sentence each; none: sound
	Actions  []string // what was done
}

// Figure is one measured number. Names in use: "disk.bytes", "keys",
// "disk.free.bytes", "reclaimed.bytes".
type Figure struct {
	Name  string
	Value int64
}
