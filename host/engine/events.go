package engine

import (
	"time"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/tool"
)

// Event is one thing that happened in a live session. Events are numbered from
// 1 in the order they happened, and delivered in that order.
type Event struct {
	Seq uint64
	// Merged counts the events just before Seq that this one stands for as
	// well, because the subscriber was behind. Seq-Merged is the first of
	// them, so a subscriber that keeps count sees that nothing is missing.
	Merged uint64
	Time   time.Time
	Body   Body
}

// Body is what happened: one of the types of this file. What they point to is
// not to be changed.
type Body interface{ body() }

type (
	// TurnStarted says that a turn was begun, or resumed after a crash. Its
	// first item is stored already.
	TurnStarted struct {
		Prompt session.Ref
		Starts int // times it was begun or resumed; 1: it is new
	}
	// TextDelta is the next piece of the answer.
	TextDelta struct{ Text string }
	// ReasoningDelta is the next piece of the model's reasoning.
	ReasoningDelta struct{ Text string }
	// CallDelta tells how far the model is with writing a call.
	CallDelta struct {
		ID         string // as the model writes it; the stored call may have another
		Name       string
		InputBytes int
	}
	// ItemStored says that an item is in the history for good. What was
	// streamed of it before is to be replaced by it.
	ItemStored struct {
		Ref, Parent session.Ref
		Payload     *sessionpb.Payload
	}
	// CallStarted says that a call passed all checks and is being carried out.
	CallStarted struct {
		Call   tool.Call
		Parent string // id of the batch call that it belongs to; mostly empty
	}
	// CallProgress is output of a running call, raw bytes.
	CallProgress struct {
		CallID  string
		Stream  tool.Stream
		Data    []byte
		Omitted int // bytes left out before Data, because the subscriber was behind
	}
	// CallFinished says that a call has a result. Its item follows when the
	// results of the calls before it are there.
	CallFinished struct {
		CallID, Parent string
		Name           string
		Result         tool.Result
		Duration       time.Duration
	}
	// Denied says that a call was refused.
	Denied struct{ Denial }
	// Retrying says that a request failed and is sent again after Wait.
	Retrying struct {
		Class    model.Class
		Message  string
		Wait     time.Duration
		Attempt  int // the one that failed, from 1
		Attempts int // at most
		// Replaced is how many bytes were streamed of the failed attempt. They
		// stand until the next attempt says something, which replaces them.
		Replaced int
	}
	// Noticed is something that the host says to the person, which is in no
	// item.
	Noticed struct {
		Level  string // info, warning, error
		Source string // such as turn, session, workspace
		Text   string
	}
	// UsageCounted is what a model's step cost, failed attempts included.
	UsageCounted struct {
		Step model.Usage
		Turn model.Usage // up to now
	}
	// TurnEnded is the last event of a turn.
	TurnEnded struct{ Outcome Outcome }
	// Resync says that the subscriber was so far behind that events were
	// dropped. It has to read the path again.
	Resync struct {
		Dropped   uint64
		TurnEnded *Outcome // of the last turn that ended among them
	}
	// Ended is the last event of a live session. Err is nil after Close.
	Ended struct{ Err error }
)

func (TurnStarted) body()    {}
func (TextDelta) body()      {}
func (ReasoningDelta) body() {}
func (CallDelta) body()      {}
func (ItemStored) body()     {}
func (CallStarted) body()    {}
func (CallProgress) body()   {}
func (CallFinished) body()   {}
func (Denied) body()         {}
func (Retrying) body()       {}
func (Noticed) body()        {}
func (UsageCounted) body()   {}
func (TurnEnded) body()      {}
func (Resync) body()         {}
func (Ended) body()          {}
