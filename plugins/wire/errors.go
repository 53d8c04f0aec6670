package wire

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// remoteError is a failure that another process told of: its words, and what
// they mean here.
type remoteError struct {
	message string
	cause   error
}

// Error is the text that the other process sent.
func (e *remoteError) Error() string { return e.message }

// Unwrap is what errors.Is and errors.As look at.
func (e *remoteError) Unwrap() error { return e.cause }

// withMessage keeps the sender's words where they say more than the cause.
func withMessage(message string, cause error) error {
	if message == "" || message == cause.Error() {
		return cause
	}
	return &remoteError{message, cause}
}

// PlainStatus is an error without details as a plugin sends it. An error that
// is a status already, and nil, stay as they are.
func PlainStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, Text(err.Error()))
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, Text(err.Error()))
	}
	return status.Error(codes.Unknown, Text(err.Error()))
}

// PlainError is a failed call as its caller sees it: the plugin's words without
// gRPC's, matching context.Canceled and context.DeadlineExceeded where that is
// what happened. Whether the plugin is gone must be asked first (Gone).
func PlainError(err error) error {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	switch st.Code() {
	case codes.Canceled:
		return withMessage(st.Message(), context.Canceled)
	case codes.DeadlineExceeded:
		return withMessage(st.Message(), context.DeadlineExceeded)
	case codes.Unimplemented:
		return &remoteError{"the plugin does not offer this: " + st.Message(), err}
	}
	return &remoteError{st.Message(), err}
}

// Gone tells whether a call failed because there is no connection to the
// plugin, so that what it did of the call is not known.
func Gone(err error) bool {
	return cutOff(err) || status.Code(err) == codes.Unavailable
}

// cutOff tells whether a stream ended where it may not.
func cutOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
