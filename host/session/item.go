package session

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/boughdev/bough/host/session/sessionpb"
)

// Kind is what an item is. Numbers are for ever; a kind that this version does
// not know is kept, and skipped by readers.
type Kind uint8

const (
	// KindPrompt is what the person said.
	KindPrompt Kind = iota + 1
	// KindText is a piece of an answer.
	KindText
	// KindReasoning is the model's reasoning, with the provider's own data.
	KindReasoning
	// KindToolCall is the model's wish to run a tool.
	KindToolCall
	// KindToolResult answers a call.
	KindToolResult
	// KindNotice is something that the host says.
	KindNotice
	// KindSummary stands for the items before it (compaction).
	KindSummary
)

var kindNames = [...]string{"unknown", "prompt", "text", "reasoning", "tool_call", "tool_result", "notice", "summary"}

// String is the name used in exports and lists.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return kindNames[0]
	}
	return kindNames[k]
}

// Ref names an item: a number, from 1, within a segment. The zero Ref is the
// root, before the first item.
type Ref struct {
	Segment uint64
	Number  uint64
}

// Root is the place before the first item.
var Root Ref

// IsRoot tells whether r is before the first item.
func (r Ref) IsRoot() bool { return r == Root }

// String is the form used on the command line and in exports:
// the segment in hexadecimal, a dot, the number.
func (r Ref) String() string {
	if r.IsRoot() {
		return "root"
	}
	return strconv.FormatUint(r.Segment, 16) + "." + strconv.FormatUint(r.Number, 10)
}

// ParseRef reads what String writes.
func ParseRef(s string) (Ref, error) {
	if s == "root" {
		return Root, nil
	}
	seg, num, ok := strings.Cut(s, ".")
	segment, err1 := strconv.ParseUint(seg, 16, 64)
	number, err2 := strconv.ParseUint(num, 10, 64)
	if !ok || err1 != nil || err2 != nil || number == 0 {
		return Root, fmt.Errorf("%q is no item: an item is written SEGMENT.NUMBER, as `bough sessions tree` shows it", s)
	}
	return Ref{segment, number}, nil
}

func refOf(p *sessionpb.Ref) Ref { return Ref{p.GetSegment(), p.GetNumber()} }

func (r Ref) proto() *sessionpb.Ref {
	return &sessionpb.Ref{Segment: r.Segment, Number: r.Number}
}

// Item is one entry of a history. Items never change once they are stored.
type Item struct {
	Ref     Ref
	Parent  Ref
	Payload *sessionpb.Payload // its own parent field is not to be read: use Parent
}

// Kind is what the item is.
func (it *Item) Kind() Kind {
	if it.Payload.GetKind() > uint32(KindSummary) {
		return 0
	}
	return Kind(it.Payload.GetKind())
}

// Time is when the item was made.
func (it *Item) Time() time.Time { return time.UnixMilli(it.Payload.GetTimeUnixMs()) }
