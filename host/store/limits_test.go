package store

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCheckBatch(t *testing.T) {
	ops := func(n int, key, value []byte) Batch {
		var b Batch
		for range n {
			b.Put(key, value)
		}
		return b
	}
	key := bytes.Repeat([]byte("k"), MaxKeyBytes)
	half := make([]byte, MaxBatchBytes/2)
	for _, tt := range []struct {
		name  string
		batch Batch
		limit string // "": it is allowed
	}{
		{"nothing", Batch{}, ""},
		{"the longest key", ops(1, key, nil), ""},
		{"a longer key", ops(1, append(bytes.Clone(key), 'k'), nil), "bytes of a key"},
		{"the largest value", ops(1, key, make([]byte, MaxValueBytes)), ""},
		{"a larger value", ops(1, key, make([]byte, MaxValueBytes+1)), "bytes of a value"},
		{"the most operations", ops(MaxBatchOps, key, nil), ""},
		{"one more", ops(MaxBatchOps+1, key, nil), "operations of a batch"},
		{"the most bytes", Batch{Ops: []Op{{Key: key, Value: half}, {Key: key, Value: half[2*MaxKeyBytes:]}}}, ""},
		{"one byte more", Batch{Ops: []Op{{Key: key, Value: half}, {Key: key, Value: half[2*MaxKeyBytes-1:]}}}, "bytes of a batch"},
	} {
		err := CheckBatch(&tt.batch)
		var limit *LimitError
		if tt.limit == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if !errors.As(err, &limit) || limit.Limit != tt.limit || limit.Got <= limit.Max || !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v, want the limit of %s", tt.name, err, tt.limit)
		}
	}
	for _, key := range []string{"", "\x00", "\x0fabc"} {
		b := ops(1, []byte(key), nil)
		if err := CheckBatch(&b); err == nil {
			t.Errorf("the key %x is allowed", key)
		}
	}
}

func TestErrorsSayWhatIsKnown(t *testing.T) {
	since := time.Date(2026, 11, 30, 10, 20, 30, 0, time.Local)
	held := error(&HeldError{Name: "session/x", Holder: Holder{PID: 42, Host: "desk", Terminal: "pts/3", Program: "bough -p", Since: since}})
	for _, want := range []string{"session/x", "42", "desk", "pts/3", "bough -p", "2026-11-30 10:20:30"} {
		if !strings.Contains(held.Error(), want) {
			t.Errorf("%q does not tell %q", held, want)
		}
	}
	if bare := (&HeldError{Name: "x"}).Error(); !strings.Contains(bare, "another process") {
		t.Errorf("an unknown holder is told as %q", bare)
	}
	for _, tt := range []struct{ err, is error }{
		{held, ErrHeld},
		{&ConflictError{Key: []byte{1}, Version: 7}, ErrConflict},
		{&LimitError{Limit: "bytes of a key", Got: 2, Max: 1}, ErrTooLarge},
	} {
		wrapped := fmt.Errorf("outer: %w", tt.err)
		if !errors.Is(wrapped, tt.is) {
			t.Errorf("%v is not %v", wrapped, tt.is)
		}
		var kinds []error
		for _, kind := range []error{ErrConflict, ErrFenced, ErrHeld, ErrFull, ErrTooLarge, ErrDamaged, ErrUnavailable, ErrClosed} {
			if errors.Is(wrapped, kind) {
				kinds = append(kinds, kind)
			}
		}
		if len(kinds) != 1 {
			t.Errorf("%v is taken for %v", wrapped, kinds)
		}
	}
}
