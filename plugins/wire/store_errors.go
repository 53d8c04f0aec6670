package wire

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/api/storagepb"
)

// storeKinds are the failures of the contract, as they are sent.
var storeKinds = []struct {
	sentinel error
	kind     storagepb.StorageError_Kind
	code     codes.Code
}{
	{store.ErrConflict, storagepb.StorageError_KIND_CONFLICT, codes.Aborted},
	{store.ErrFenced, storagepb.StorageError_KIND_FENCED, codes.FailedPrecondition},
	{store.ErrHeld, storagepb.StorageError_KIND_HELD, codes.AlreadyExists},
	{store.ErrFull, storagepb.StorageError_KIND_FULL, codes.ResourceExhausted},
	{store.ErrTooLarge, storagepb.StorageError_KIND_TOO_LARGE, codes.InvalidArgument},
	{store.ErrDamaged, storagepb.StorageError_KIND_DAMAGED, codes.FailedPrecondition},
	{store.ErrUnavailable, storagepb.StorageError_KIND_UNAVAILABLE, codes.Unavailable},
	// A backend is closed because its process is leaving: the next one has the
	// same store.
	{store.ErrClosed, storagepb.StorageError_KIND_UNAVAILABLE, codes.Unavailable},
}

// StoreStatus is an error of a store as a plugin sends it: a gRPC status with
// a StorageError in its details. nil stays nil.
func StoreStatus(err error) error {
	if err == nil {
		return nil
	}
	for _, k := range storeKinds {
		if !errors.Is(err, k.sentinel) {
			continue
		}
		st := status.New(k.code, Text(err.Error()))
		with, failed := st.WithDetails(storageError(k.kind, err))
		if failed != nil {
			return st.Err() // the detail could not be marshalled; the code still tells
		}
		return with.Err()
	}
	return PlainStatus(err)
}

func storageError(kind storagepb.StorageError_Kind, err error) *storagepb.StorageError {
	p := &storagepb.StorageError{Kind: kind, Message: Text(err.Error())}
	if conflict := (*store.ConflictError)(nil); errors.As(err, &conflict) {
		p.Key, p.Version = conflict.Key, conflict.Version
	}
	if held := (*store.HeldError)(nil); errors.As(err, &held) {
		p.Lease, p.Holder = Text(held.Name), HolderToProto(held.Holder)
	}
	if limit := (*store.LimitError)(nil); errors.As(err, &limit) {
		p.Limit, p.Got, p.Max = Text(limit.Limit), limit.Got, limit.Max
	}
	return p
}

// StoreError is a failed storage call as its caller sees it: it matches the
// sentinels of host/store and has their types in its chain. A connection that
// was cut or refused is store.ErrUnavailable. nil stays nil.
func StoreError(err error) error {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	switch {
	case cutOff(err):
		return &remoteError{fmt.Sprintf("%s: %s", store.ErrUnavailable, err), store.ErrUnavailable}
	case !ok:
		return err // it never was on the wire
	}
	for _, d := range st.Details() {
		if p, ok := d.(*storagepb.StorageError); ok {
			if cause := storeCause(p); cause != nil {
				return withMessage(p.GetMessage(), cause)
			}
		}
	}
	switch st.Code() {
	case codes.Unavailable:
		return &remoteError{fmt.Sprintf("%s: %s", store.ErrUnavailable, st.Message()), store.ErrUnavailable}
	case codes.ResourceExhausted:
		return &remoteError{fmt.Sprintf("%s: %s", store.ErrTooLarge, st.Message()), store.ErrTooLarge}
	}
	return PlainError(err)
}

func storeCause(p *storagepb.StorageError) error {
	switch p.GetKind() {
	case storagepb.StorageError_KIND_CONFLICT:
		if len(p.GetKey()) == 0 {
			return store.ErrConflict
		}
		return &store.ConflictError{Key: p.GetKey(), Version: p.GetVersion()}
	case storagepb.StorageError_KIND_HELD:
		if p.GetHolder() == nil {
			return store.ErrHeld
		}
		return &store.HeldError{Name: p.GetLease(), Holder: HolderFromProto(p.GetHolder())}
	case storagepb.StorageError_KIND_TOO_LARGE:
		if p.GetLimit() == "" {
			return store.ErrTooLarge
		}
		return &store.LimitError{Limit: p.GetLimit(), Got: p.GetGot(), Max: p.GetMax()}
	}
	for _, k := range storeKinds {
		if k.kind == p.GetKind() {
			return k.sentinel
		}
	}
	return nil
}
