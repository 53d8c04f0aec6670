package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	spb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/store"
)

// received is an error after a trip over the wire, where only the status
// message goes.
func received(t *testing.T, err error) error {
	t.Helper()
	st, ok := status.FromError(err)
	if !ok {
		t.Fatalf("%v is no status", err)
	}
	data, err := proto.Marshal(st.Proto())
	if err != nil {
		t.Fatal(err)
	}
	var got spb.Status
	if err := proto.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	return status.FromProto(&got).Err()
}

func TestStoreErrorsSurvive(t *testing.T) {
	sentinels := []error{
		store.ErrConflict, store.ErrFenced, store.ErrHeld, store.ErrFull, store.ErrTooLarge,
		store.ErrDamaged, store.ErrUnavailable,
	}
	for i, sentinel := range sentinels {
		wrapped := fmt.Errorf("commit of 3 operations: %w", sentinel)
		got := StoreError(received(t, StoreStatus(wrapped)))
		if got.Error() != wrapped.Error() {
			t.Errorf("the text became %q, want %q", got, wrapped)
		}
		for j, other := range sentinels {
			if errors.Is(got, other) != (i == j) {
				t.Errorf("%v: errors.Is(%v) is %v", sentinel, other, i != j)
			}
		}
	}
	if got := StoreError(received(t, StoreStatus(store.ErrClosed))); !errors.Is(got, store.ErrUnavailable) {
		t.Errorf("a backend that closes gives %v, want ErrUnavailable", got)
	}
	if StoreStatus(nil) != nil || StoreError(nil) != nil {
		t.Error("no error became one")
	}
}

func TestTypesOfStoreErrorsSurvive(t *testing.T) {
	conflict := filled[store.ConflictError](t)
	held := filled[store.HeldError](t)
	limit := filled[store.LimitError](t)
	for _, want := range []error{&conflict, &held, &limit} {
		for _, message := range []string{"%w", "for a reason: %w"} {
			got := StoreError(received(t, StoreStatus(fmt.Errorf(message, want))))
			target := reflect.New(reflect.TypeOf(want))
			if !errors.As(got, target.Interface()) {
				t.Errorf("%T came back as %T %v", want, got, got)
				continue
			}
			same(t, target.Elem().Interface(), want)
		}
	}
}

func TestConnectionErrorsAreUnavailable(t *testing.T) {
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF,
		status.Error(codes.Unavailable, "error reading from server: EOF"),
	} {
		if got := StoreError(err); !errors.Is(got, store.ErrUnavailable) {
			t.Errorf("%v became %v, want ErrUnavailable", err, got)
		}
		if !Gone(err) {
			t.Errorf("%v is not taken for a lost plugin", err)
		}
	}
	if Gone(nil) || Gone(status.Error(codes.Unknown, "boom")) {
		t.Error("a plugin that answers is taken for lost")
	}
	tooBig := status.Error(codes.ResourceExhausted, "grpc: received message larger than max")
	if got := StoreError(tooBig); !errors.Is(got, store.ErrTooLarge) {
		t.Errorf("a message over the limit gives %v, want ErrTooLarge", got)
	}
}

func TestPlainErrors(t *testing.T) {
	for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
		wrapped := fmt.Errorf("read the file: %w", want)
		for name, got := range map[string]error{
			"plain": PlainError(received(t, PlainStatus(wrapped))),
			"store": StoreError(received(t, StoreStatus(wrapped))),
			"model": ModelError(received(t, ModelStatus(wrapped))),
		} {
			if !errors.Is(got, want) || got.Error() != wrapped.Error() {
				t.Errorf("%s: got %v, want %v", name, got, wrapped)
			}
		}
	}
	if got := PlainError(received(t, PlainStatus(errors.New("no such tool")))); got.Error() != "no such tool" {
		t.Errorf("got %q", got)
	}
	if PlainStatus(nil) != nil || PlainError(nil) != nil {
		t.Error("no error became one")
	}
	got := PlainError(status.Error(codes.Unimplemented, "unknown method Open"))
	if got.Error() != "the plugin does not offer this: unknown method Open" {
		t.Errorf("got %q", got)
	}
}

func TestModelErrorsSurvive(t *testing.T) {
	for class := model.ClassUnknown; class <= model.ClassUnknownModel; class++ {
		want := model.Error{
			Class: class, Message: "too many requests: wait", Status: 429, RetryAfter: 1500 * time.Millisecond,
			Provider: "openai", RequestID: "req_1", Err: errors.New("connection reset"),
		}
		got := (*model.Error)(nil)
		if err := ModelError(received(t, ModelStatus(fmt.Errorf("stream: %w", &want)))); !errors.As(err, &got) {
			t.Fatalf("%s came back as %T", class, err)
		}
		if got.Err == nil || got.Err.Error() != want.Err.Error() {
			t.Errorf("the cause became %v, want %v", got.Err, want.Err)
		}
		got.Err, want.Err = nil, nil
		same(t, *got, want)
	}
}

func TestEveryFieldOfAModelErrorIsTested(t *testing.T) {
	if n := reflect.TypeFor[model.Error]().NumField(); n != 7 {
		t.Errorf("model.Error has %d fields: send the new ones, and test them above", n)
	}
}

func TestOtherErrorsOfAModelAreUnknown(t *testing.T) {
	got := (*model.Error)(nil)
	err := ModelError(received(t, ModelStatus(errors.New("nil map"))))
	if !errors.As(err, &got) || got.Class != model.ClassUnknown || got.Message != "nil map" {
		t.Errorf("got %#v", err)
	}
	if ModelStatus(nil) != nil || ModelError(nil) != nil {
		t.Error("no error became one")
	}
}
