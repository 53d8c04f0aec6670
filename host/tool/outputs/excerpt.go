package outputs

import (
	"bytes"
	"fmt"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs/lines"
)

// What a model is shown of one output where nothing else is configured.
const (
	DefaultBytes = 51200
	DefaultLines = 2000
)

// Excerpt takes an output of any length and keeps what a model will be shown
// of it: all, or the beginning and the end. It is used from one goroutine.
type Excerpt struct {
	limits tool.Limits
	head   []byte
	tail   ring
	size   int64
	ends   int64 // line ends
}

// NewExcerpt is an empty excerpt. Zero fields of limits mean the defaults.
func NewExcerpt(limits tool.Limits) *Excerpt {
	if limits.Bytes <= 0 {
		limits.Bytes = DefaultBytes
	}
	if limits.Lines <= 0 {
		limits.Lines = DefaultLines
	}
	return &Excerpt{limits: limits, tail: ring{size: limits.Bytes}}
}

// Write implements io.Writer and never fails.
func (e *Excerpt) Write(p []byte) (int, error) {
	e.size += int64(len(p))
	e.ends += int64(bytes.Count(p, []byte{'\n'}))
	n := min(len(p), e.limits.Bytes-len(e.head))
	e.head = append(e.head, p[:n]...)
	if n < len(p) {
		e.tail.add(p[n:])
	}
	return len(p), nil
}

// Size is the bytes and the lines that came.
func (e *Excerpt) Size() (bytes, lines int64) {
	lines = e.ends
	if last := e.last(); len(last) > 0 && last[len(last)-1] != '\n' {
		lines++
	}
	return e.size, lines
}

// last are the last bytes, as many as are held.
func (e *Excerpt) last() []byte {
	older, newer := e.tail.parts()
	if len(older)+len(newer) == 0 {
		return e.head
	}
	all := make([]byte, 0, len(e.head)+len(e.tail.buf))
	if e.tail.lost() == 0 {
		all = append(all, e.head...)
	}
	return append(append(all, older...), newer...)
}

// Whole is the visible form of everything, if it is within the limits.
func (e *Excerpt) Whole() (text string, fits bool) {
	if e.size > int64(len(e.head)) {
		return "", false
	}
	text = lines.Visible(e.head)
	return text, e.limits.Fits(text)
}

// Text is what the model is shown: everything, or the beginning and the end
// with a line between them that says how much is left out and, by the id of the
// whole, how to read it. The end gets more room, since that is where programs
// say how they fared. What is shown has no control characters.
func (e *Excerpt) Text(id string) string {
	if text, fits := e.Whole(); fits {
		return text
	}
	const note = 200 // room for the line between
	room, most := max(e.limits.Bytes-note, 2), max(e.limits.Lines-3, 2)
	head, used := lines.VisibleHead(e.head[:lines.Until(e.head, most*2/5)], room*2/5)
	head, used = wholeLines(head, used, e.head)
	last := e.last()
	if left := int(min(e.size-int64(used), int64(len(last)))); left < len(last) {
		last = last[len(last)-left:] // not what the head has
	}
	tail, tailUsed := lines.VisibleTail(lastLines(last, most-bytes.Count(head, []byte{'\n'})), room-len(head))
	tail, tailUsed = fromLineStart(tail, tailUsed, last)
	leftOut := e.size - int64(used+tailUsed)
	if leftOut == 0 { // what came is longer than what is shown of it
		return string(head) + string(tail)
	}
	ends := e.ends - int64(bytes.Count(e.head[:used], []byte{'\n'})) - int64(bytes.Count(last[len(last)-tailUsed:], []byte{'\n'}))
	how := "the rest was not kept"
	if id != "" {
		how = fmt.Sprintf("tool_output reads all of it, output_id %s", id)
	}
	return fmt.Sprintf("%s\n[… %d bytes, %d lines left out; %s …]\n%s", bytes.TrimSuffix(head, []byte{'\n'}), leftOut, ends, how, tail)
}

// lastLines is the end of text with at most n lines.
func lastLines(text []byte, n int) []byte {
	start := len(text)
	for range n {
		if start == 0 {
			break
		}
		start = bytes.LastIndexByte(text[:start-1], '\n') + 1
	}
	return text[start:]
}

// wholeLines shortens a head that used so many bytes of text to whole lines, if
// it has one.
func wholeLines(head []byte, used int, text []byte) ([]byte, int) {
	i := bytes.LastIndexByte(head, '\n')
	j := bytes.LastIndexByte(text[:used], '\n')
	if i < 0 || j < 0 || used == len(text) {
		return head, used
	}
	return head[:i+1], j + 1
}

// fromLineStart shortens a tail that used so many bytes of text to whole lines,
// if it has one.
func fromLineStart(tail []byte, used int, text []byte) ([]byte, int) {
	start := len(text) - used
	if start == 0 || text[start-1] == '\n' {
		return tail, used
	}
	i := bytes.IndexByte(tail, '\n')
	j := bytes.IndexByte(text[start:], '\n')
	if i < 0 || j < 0 || i == len(tail)-1 {
		return tail, used
	}
	return tail[i+1:], used - j - 1
}

// Bound is the excerpt of an output that is there as a whole.
func Bound(output []byte, limits tool.Limits, id string) string {
	e := NewExcerpt(limits)
	e.Write(output) //nolint:errcheck // it never fails
	return e.Text(id)
}
