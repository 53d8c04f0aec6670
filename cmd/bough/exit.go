package main

import (
	"context"
	"errors"
	"fmt"
)

// Exit codes of headless runs; the same number is in the JSON result.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitDenied      = 3 // a needed permission was denied
	exitNeedsInput  = 4
	exitLimit       = 5 // a limit on time or steps was reached
	exitModel       = 6 // the model or its provider failed
	exitInterrupted = 130
)

// codedError is an error with the exit code that it means. An empty message
// says nothing more to the person: it was said already.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *codedError) Unwrap() error { return e.err }

// usagef is a mistake in how bough was called.
func usagef(format string, args ...any) error {
	return &codedError{exitUsage, fmt.Errorf(format, args...)}
}

func exitCodeOf(err error) int {
	var coded *codedError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitError
}
