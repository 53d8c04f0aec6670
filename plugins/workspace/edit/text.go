// Package edit changes texts and keeps every byte that it is not told to
// change: line ends of any kind, mixed ones too, a byte order mark, a missing
// last line end. Models write \n, whatever the file has; so texts are matched
// as they are shown and changed as they are stored.
package edit

import (
	"bytes"
	"slices"
	"strings"
)

// The ends that lines can have.
const (
	LF   = "\n"
	CRLF = "\r\n"
	CR   = "\r" // of files that have no other
)

var mark = []byte("\xef\xbb\xbf")

// Text is the content of a file and its view: without a byte order mark, and
// every line ended by \n.
type Text struct {
	raw  []byte
	view []byte
	bom  int
	// cut are the places in view before which a \r is left out.
	cut []int
	cr  bool // \r alone ends lines

	ends Ends
}

// Ends counts the line ends of a text.
type Ends struct{ LF, CRLF, CR int }

// Count adds the line ends of a piece of text; before is the byte before it, or
// 0. A \r at its end counts as CR until the next piece begins with \n.
func (e *Ends) Count(piece []byte, before byte) {
	lf := bytes.Count(piece, []byte{'\n'})
	cr := bytes.Count(piece, []byte{'\r'})
	crlf := 0
	if cr > 0 {
		crlf = bytes.Count(piece, []byte(CRLF))
	}
	if before == '\r' && len(piece) > 0 && piece[0] == '\n' {
		crlf++
	}
	e.LF += lf - crlf
	e.CRLF += crlf
	e.CR += cr - crlf
}

// Usual is what ends most lines of the text.
func (e Ends) Usual() string {
	switch {
	case e.CRLF > e.LF:
		return CRLF
	case e.LF == 0 && e.CRLF == 0 && e.CR > 0:
		return CR
	}
	return LF
}

// Describe names the line ends for a model that sees \n only; empty for the
// usual kind.
func (e Ends) Describe() string {
	switch {
	case e.CRLF > 0 && e.LF > 0:
		return "mixed line ends (CRLF and LF)"
	case e.CRLF > 0:
		return "CRLF line ends"
	case e.Usual() == CR:
		return "CR line ends"
	}
	return ""
}

// HasMark tells whether a text begins with a byte order mark.
func HasMark(raw []byte) bool { return bytes.HasPrefix(raw, mark) }

// Parse makes the view of a content, which must not change while it is used.
func Parse(raw []byte) *Text {
	t := &Text{raw: raw, view: raw}
	if HasMark(raw) {
		t.bom = len(mark)
		t.view = raw[t.bom:]
	}
	t.ends.Count(t.view, 0)
	switch {
	case t.ends.Usual() == CR:
		t.cr = true
		t.view = bytes.ReplaceAll(t.view, []byte(CR), []byte(LF))
	case t.ends.CRLF > 0:
		t.cutReturns()
	}
	return t
}

// cutReturns leaves the \r of each \r\n out of the view.
func (t *Text) cutReturns() {
	view := make([]byte, 0, len(t.view)-t.ends.CRLF)
	t.cut = make([]int, 0, t.ends.CRLF)
	for rest := t.view; ; {
		i := bytes.Index(rest, []byte(CRLF))
		if i < 0 {
			t.view = append(view, rest...)
			return
		}
		view = append(view, rest[:i]...)
		t.cut = append(t.cut, len(view))
		view = append(view, '\n')
		rest = rest[i+2:]
	}
}

// View is the text as a model is shown it.
func (t *Text) View() string { return string(t.view) }

// Ends are the line ends of the text.
func (t *Text) Ends() Ends { return t.ends }

// stored is where a place of the view is in the content. The place of a line
// end is that of all of it.
func (t *Text) stored(at int) int {
	before, _ := slices.BinarySearch(t.cut, at)
	return t.bom + at + before
}

// endAt is the line end at a place of the view that has one.
func (t *Text) endAt(at int) string {
	if t.cr {
		return CR
	}
	if _, found := slices.BinarySearch(t.cut, at); found {
		return CRLF
	}
	return LF
}

// endNear is the line end that a line put at a place of the view would get: that
// of the line before, or else after.
func (t *Text) endNear(at int) string {
	if i := bytes.LastIndexByte(t.view[:at], '\n'); i >= 0 {
		return t.endAt(i)
	}
	if i := bytes.IndexByte(t.view[at:], '\n'); i >= 0 {
		return t.endAt(at + i)
	}
	return t.ends.Usual()
}

// asViewed is what a model wrote as it would stand in the view.
func (t *Text) asViewed(text string) string {
	if t.ends.CRLF > 0 || t.cr {
		return strings.ReplaceAll(text, CRLF, LF)
	}
	return text
}

// LineOf is the number, 1-based, of the line that a place of the view is in.
func (t *Text) LineOf(at int) int {
	return 1 + bytes.Count(t.view[:at], []byte{'\n'})
}

// SplitLines splits a text after each \n.
func SplitLines(text string) []string {
	parts := strings.SplitAfter(text, LF)
	if parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}
