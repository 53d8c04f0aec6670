package wire

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/plugins/api/modelpb"
)

// ModelStatus is a provider's failure as a plugin sends it: a gRPC status with
// a ModelError in its details; the text of its cause is the status's message.
// An error that is no *model.Error becomes one of ClassUnknown, a context's
// end and nil stay what they are.
func ModelStatus(err error) error {
	if err == nil {
		return nil
	}
	failed := (*model.Error)(nil)
	if !errors.As(err, &failed) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return PlainStatus(err)
		}
		failed = &model.Error{Message: err.Error()}
	}
	cause := ""
	if failed.Err != nil {
		cause = failed.Err.Error()
	}
	st := status.New(codes.Unknown, Text(cause))
	with, broken := st.WithDetails(&modelpb.ModelError{
		Class: modelpb.ModelError_Class(failed.Class), Message: Text(failed.Message), Status: int32(failed.Status),
		RetryAfterMs: failed.RetryAfter.Milliseconds(), Provider: Text(failed.Provider), RequestId: Text(failed.RequestID),
	})
	if broken != nil {
		return st.Err() // the detail could not be marshalled
	}
	return with.Err()
}

// ModelError is a failed model call as its caller sees it. One with a
// ModelError in its details is a *model.Error; others are told apart by
// PlainError.
func ModelError(err error) error {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range st.Details() {
		p, ok := d.(*modelpb.ModelError)
		if !ok {
			continue
		}
		out := &model.Error{
			Class: classFromProto(p.GetClass()), Message: p.GetMessage(), Status: int(p.GetStatus()),
			RetryAfter: time.Duration(p.GetRetryAfterMs()) * time.Millisecond,
			Provider:   p.GetProvider(), RequestID: p.GetRequestId(),
		}
		if st.Message() != "" && st.Message() != out.Message {
			out.Err = errors.New(st.Message())
		}
		return out
	}
	return PlainError(err)
}

// classFromProto takes a class that this host does not know as ClassUnknown.
func classFromProto(c modelpb.ModelError_Class) model.Class {
	if _, known := modelpb.ModelError_Class_name[int32(c)]; !known {
		return model.ClassUnknown
	}
	return model.Class(c)
}
