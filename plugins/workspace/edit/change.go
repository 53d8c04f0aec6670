package edit

import (
	"strings"
)

// Change replaces the bytes from Start to End of a content.
type Change struct {
	Start, End int
	New        []byte
}

// Apply makes the changed content. The changes are in order and do not
// overlap.
func Apply(raw []byte, changes []Change) []byte {
	size := len(raw)
	for _, c := range changes {
		size += len(c.New) - (c.End - c.Start)
	}
	out := make([]byte, 0, size)
	at := 0
	for _, c := range changes {
		out = append(append(out, raw[at:c.Start]...), c.New...)
		at = c.End
	}
	return append(out, raw[at:]...)
}

// Change is what makes the stretch from start to end of the view read as text.
// Lines that stay the same keep their bytes, changed ones their line ends; new
// ones get the line end of their neighbours.
func (t *Text) Change(start, end int, text string) []Change {
	before, after := SplitLines(string(t.view[start:end])), SplitLines(text)
	var changes []Change
	at, line := start, 0
	for _, h := range diff(before, after) {
		for ; line < h.fromStart; line++ {
			at += len(before[line])
		}
		c := Change{Start: t.stored(at)}
		lineEnd := t.endNear(at)
		for i, text := range after[h.toStart:h.toEnd] {
			if old := h.fromStart + i; old < h.fromEnd {
				at += len(before[old])
				line++
				if strings.HasSuffix(before[old], LF) {
					lineEnd = t.endAt(at - 1)
				}
			}
			body, ended := strings.CutSuffix(text, LF)
			c.New = append(c.New, body...)
			if ended {
				c.New = append(c.New, lineEnd...)
			}
		}
		for ; line < h.fromEnd; line++ {
			at += len(before[line])
		}
		c.End = t.stored(at)
		changes = append(changes, c)
	}
	return changes
}

// Between gives the changes, line by line, that make one content of another.
func Between(old, new []byte) []Change {
	before, after := SplitLines(string(old)), SplitLines(string(new))
	var changes []Change
	at, line := 0, 0
	for _, h := range diff(before, after) {
		for ; line < h.fromStart; line++ {
			at += len(before[line])
		}
		c := Change{Start: at, New: []byte(strings.Join(after[h.toStart:h.toEnd], ""))}
		for ; line < h.fromEnd; line++ {
			at += len(before[line])
		}
		c.End = at
		changes = append(changes, c)
	}
	return changes
}
