package model

import (
	"fmt"
	"time"
)

// Class is a kind of provider failure; it decides what the engine does.
type Class int

const (
	// ClassUnknown is not retried.
	ClassUnknown Class = iota
	// ClassRateLimited is retried after the provider's hint.
	ClassRateLimited
	// ClassOverloaded is retried with a longer wait.
	ClassOverloaded
	// ClassServer is a failure of the provider; retried.
	ClassServer
	// ClassNetwork is a connection that failed or was cut; retried.
	ClassNetwork
	// ClassContextTooLong needs a shorter conversation.
	ClassContextTooLong
	// ClassAuth is a missing or refused key.
	ClassAuth
	// ClassBilling is an account without means.
	ClassBilling
	// ClassRefused is a request that the provider will not serve.
	ClassRefused
	// ClassBadRequest is a request that the provider calls invalid.
	ClassBadRequest
	// ClassMalformed is an answer that makes no sense; retried.
	ClassMalformed
	// ClassUnknownModel is a model that the provider does not have.
	ClassUnknownModel
)

// String is the name used in events and logs.
func (c Class) String() string {
	names := [...]string{"unknown", "rate_limited", "overloaded", "server", "network",
		"context_too_long", "auth", "billing", "refused", "bad_request", "malformed", "unknown_model"}
	if c < 0 || int(c) >= len(names) {
		return names[0]
	}
	return names[c]
}

// Retryable tells whether sending the request again may help.
func (c Class) Retryable() bool {
	switch c {
	case ClassRateLimited, ClassOverloaded, ClassServer, ClassNetwork, ClassMalformed:
		return true
	}
	return false
}

// Error is a provider's failure.
type Error struct {
	Class      Class
	Message    string // what failed, on what, and what to do next
	Status     int    // HTTP; 0: none
	RetryAfter time.Duration
	Provider   string
	RequestID  string
	Err        error // the cause; may be nil
}

// Error names the provider, the message and the status.
func (e *Error) Error() string {
	s := e.Message
	if e.Provider != "" {
		s = e.Provider + ": " + s
	}
	if e.Status != 0 {
		s = fmt.Sprintf("%s (HTTP %d)", s, e.Status)
	}
	return s
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }
