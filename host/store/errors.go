package store

import (
	"errors"
	"fmt"
	"time"
)

// The kinds of failure; test with errors.Is.
var (
	// ErrConflict: a condition of the batch did not hold. Nothing was written.
	ErrConflict = errors.New("the stored state changed meanwhile")
	// ErrFenced: a fence of the batch names a lease that its sender no longer
	// holds. Nothing was written.
	ErrFenced = errors.New("the lease is no longer held")
	// ErrHeld: somebody else holds the lease.
	ErrHeld = errors.New("the lease is held")
	// ErrFull: the disk has too little room. Nothing was written.
	ErrFull = errors.New("the disk is nearly full")
	// ErrTooLarge: a limit of the contract was passed. Nothing was written.
	ErrTooLarge = errors.New("a storage limit was passed")
	// ErrDamaged: the store cannot be trusted and refuses to be used.
	ErrDamaged = errors.New("the store is damaged")
	// ErrUnavailable: the backend cannot be reached or is stopping. Whether a
	// batch was applied is not known; sending it again with its ID is safe.
	ErrUnavailable = errors.New("the storage process cannot be reached")
	// ErrClosed: the store was closed by its user.
	ErrClosed = errors.New("the store is closed")
)

// HeldError is ErrHeld with the holder.
type HeldError struct {
	Name   string
	Holder Holder
}

// Error names the lease and its holder, with pid and since when.
func (e *HeldError) Error() string {
	where := e.Holder.Program
	if where == "" {
		where = "another process"
	}
	if e.Holder.Terminal != "" {
		where += " on " + e.Holder.Terminal
	}
	if e.Holder.Host != "" {
		where += " at " + e.Holder.Host
	}
	return fmt.Sprintf("%s is held by %s, pid %d, since %s",
		e.Name, where, e.Holder.PID, e.Holder.Since.Local().Format(time.DateTime))
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// ConflictError is ErrConflict with the key whose condition failed.
type ConflictError struct {
	Key     []byte
	Version uint64 // that the key has
}

// Error names the key in hexadecimal.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s: key %x is at version %d", ErrConflict, e.Key, e.Version)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// LimitError is ErrTooLarge with the limit.
type LimitError struct {
	Limit string // such as "value bytes"
	Got   uint64
	Max   uint64
}

// Error names the limit, what was sent and what is allowed.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: %s: %d, at most %d", ErrTooLarge, e.Limit, e.Got, e.Max)
}

// Is makes errors.Is(err, ErrTooLarge) true.
func (e *LimitError) Is(target error) bool { return target == ErrTooLarge }

// CheckLease tells whether a name can be that of a lease.
func CheckLease(name string) error {
	if name == "" {
		return fmt.Errorf("%w: a lease without a name", ErrTooLarge)
	}
	if len(name) > MaxKeyBytes {
		return &LimitError{"bytes of a lease's name", uint64(len(name)), MaxKeyBytes}
	}
	return nil
}

// CheckBatch tells whether a batch keeps the limits of the contract. Backends
// and clients call it before they do anything else.
func CheckBatch(b *Batch) error {
	if n := len(b.Ops); n > MaxBatchOps {
		return &LimitError{"operations of a batch", uint64(n), MaxBatchOps}
	}
	total := 0
	for i := range b.Ops {
		op := &b.Ops[i]
		switch {
		case len(op.Key) == 0:
			return fmt.Errorf("%w: an empty key", ErrTooLarge)
		case ReservedForBackend(op.Key):
			return fmt.Errorf("key %x is kept for the backend: keys begin with 0x10 or more", op.Key)
		case len(op.Key) > MaxKeyBytes:
			return &LimitError{"bytes of a key", uint64(len(op.Key)), MaxKeyBytes}
		case len(op.Value) > MaxValueBytes:
			return &LimitError{"bytes of a value", uint64(len(op.Value)), MaxValueBytes}
		}
		total += len(op.Key) + len(op.Value)
	}
	if total > MaxBatchBytes {
		return &LimitError{"bytes of a batch", uint64(total), MaxBatchBytes}
	}
	return nil
}
