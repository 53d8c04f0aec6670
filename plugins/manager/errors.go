package manager

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrStopped is the failure of a plugin whose user has stopped it.
var ErrStopped = errors.New("the plugin was stopped")

// StoppedError says that a plugin's process ended during a call, or before it
// was ready for one. What it did of the call is not known.
type StoppedError struct {
	Plugin string
	Exit   string   // such as "exit status 2", or why it was ended
	Stderr []string // the last lines of its stderr, at most 20
}

// Error names the plugin, how it ended and its last lines.
func (e *StoppedError) Error() string {
	s := fmt.Sprintf("plugin %s stopped (%s)", e.Plugin, e.Exit)
	return s + lastLines(e.Stderr)
}

// StartError says that a plugin could not be started.
type StartError struct {
	Plugin string
	Reason string   // such as "it did not answer within 10s"
	Exit   string   // how the process ended; empty: there was none
	Stderr []string // the last lines of its stderr, at most 20
	Err    error    // the cause; may be nil
}

// Error names the plugin, the reason, how it ended and its last lines.
func (e *StartError) Error() string {
	s := fmt.Sprintf("plugin %s could not be started: %s", e.Plugin, e.Reason)
	if e.Exit != "" {
		s += " (" + e.Exit + ")"
	}
	return s + lastLines(e.Stderr)
}

// Unwrap is the cause.
func (e *StartError) Unwrap() error { return e.Err }

// DisabledError says that a plugin crashed too often to be tried again at once.
type DisabledError struct {
	Plugin string
	Until  time.Time // when it is tried again
	Err    error     // how it ended the last time
}

// Error names the plugin, until when, and the last reason.
func (e *DisabledError) Error() string {
	return fmt.Sprintf("plugin %s is switched off until %s, because it failed repeatedly: %v", e.Plugin, e.Until.Format(time.TimeOnly), e.Err)
}

// Unwrap is how it ended the last time.
func (e *DisabledError) Unwrap() error { return e.Err }

func lastLines(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return "; its last lines were:\n  " + strings.Join(lines, "\n  ")
}
