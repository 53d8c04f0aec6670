package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/boughdev/bough/host/model"
)

// Reason is why a turn ended.
type Reason string

const (
	// ReasonDone is that the model gave its answer.
	ReasonDone Reason = "done"
	// ReasonError is that something failed; see Outcome.Err.
	ReasonError Reason = "error"
	// ReasonMaxTurns is that the limit of model steps was reached.
	ReasonMaxTurns Reason = "max_turns"
	// ReasonTimeLimit is that the time limit was reached.
	ReasonTimeLimit Reason = "time_limit"
	// ReasonDenied is that the answer is there, but a permission that it needed
	// could not be given because nobody could be asked.
	ReasonDenied Reason = "denied"
	// ReasonNeedsInput is that the turn cannot go on without an answer of the person.
	ReasonNeedsInput Reason = "needs_input"
	// ReasonInterrupted is that the person stopped it, or the session was
	// closed.
	ReasonInterrupted Reason = "interrupted"
)

// Denial is a call that was refused.
type Denial struct {
	CallID string
	Tool   string
	Reason string
	Asked  bool // a person said no; else nobody could be asked, or a rule forbids it
	Rule   bool // a rule forbids it, whoever could be asked
}

// Outcome is what a turn came to.
type Outcome struct {
	Reason   Reason
	Err      error        // what failed; nil but for ReasonError
	Text     string       // of the last answer; partial when it did not end
	Steps    int          // answers of the model
	Calls    int          // tool calls that it made
	Finish   model.Finish // of the last answer; 0: it did not end
	Denials  []Denial
	Usage    model.Usage // of this turn
	Duration time.Duration
}

// Exit codes of headless runs.
const (
	ExitDone        = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitDenied      = 3
	ExitNeedsInput  = 4
	ExitLimit       = 5
	ExitModel       = 6
	ExitInterrupted = 130
)

// ExitCode is the exit code of a headless run that came to this.
func (o Outcome) ExitCode() int {
	var failed *model.Error
	switch o.Reason {
	case ReasonDone:
		return ExitDone
	case ReasonDenied:
		return ExitDenied
	case ReasonNeedsInput:
		return ExitNeedsInput
	case ReasonMaxTurns, ReasonTimeLimit:
		return ExitLimit
	case ReasonInterrupted:
		return ExitInterrupted
	}
	if errors.As(o.Err, &failed) {
		return ExitModel
	}
	return ExitError
}

// Explain says in one sentence why the turn did not end well; empty when it
// did.
func (o Outcome) Explain() string {
	switch o.Reason {
	case ReasonDone:
		return ""
	case ReasonDenied:
		var said []string
		for _, d := range o.Denials {
			if !d.Asked && !d.Rule {
				said = append(said, d.Reason)
			}
		}
		return "a permission was denied: " + strings.Join(said, "; ")
	case ReasonNeedsInput:
		return "the model needs an answer to go on"
	case ReasonMaxTurns:
		return fmt.Sprintf("stopped after %d steps of the model (--max-turns); prompt again to go on", o.Steps)
	case ReasonTimeLimit:
		return fmt.Sprintf("stopped after %s (time limit); prompt again to go on", o.Duration.Round(time.Second))
	case ReasonInterrupted:
		return "interrupted"
	}
	return o.Err.Error()
}

// The causes that end a turn from outside; they are given to the context of
// the turn.
var (
	errInterrupted = errors.New("interrupted by the person")
	errTimeLimit   = errors.New("the time limit was reached")
	errClosed      = errors.New("the session was closed")
)

// advice adds to a provider's failure what the person can do about it.
func advice(name string, err *model.Error) string {
	switch err.Class {
	case model.ClassContextTooLong:
		return "the conversation is too long for " + name + ": shorten it with /compact, or fork the session before its long part"
	case model.ClassAuth:
		return "set the variable that holds the provider's key, or choose another model with -m"
	case model.ClassBilling:
		return "the provider's account has no means left: see to it there, or choose another model with -m"
	case model.ClassUnknownModel:
		return "choose another model with -m"
	case model.ClassRefused:
		return "the provider will not serve this; say it differently, or choose another model"
	}
	return ""
}
