package patch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/boughdev/bough/plugins/workspace/edit"
)

// PlaceError is a chunk whose place is not found, or not for certain.
type PlaceError struct {
	Path string
	Line int // of the patch
	What string
}

// Error names the chunk.
func (e *PlaceError) Error() string {
	return fmt.Sprintf("%s: the change at line %d of the patch %s", e.Path, e.Line, e.What)
}

// Changes works out what an update changes in a text. The chunks are looked for
// in order. loose tells that white space had to be left out of the comparison
// somewhere; the text keeps its own.
func (f *File) Changes(t *edit.Text) (changes []edit.Change, loose bool, err error) {
	a := applier{text: t, view: t.View()}
	for line := range strings.Lines(a.view) {
		a.starts = append(a.starts, a.size)
		a.lines = append(a.lines, strings.TrimSuffix(line, "\n"))
		a.size += len(line)
	}
	a.starts = append(a.starts, a.size)
	for i := range f.Chunks {
		if what := a.chunk(&f.Chunks[i]); what != "" {
			return nil, false, &PlaceError{f.Path, f.Chunks[i].Line, what}
		}
	}
	return a.changes, a.loose, nil
}

// applier looks for chunks in a text.
type applier struct {
	text    *edit.Text
	view    string
	lines   []string
	starts  []int // where each line begins in view, and where the last one ends
	size    int
	next    int // the line after the last place
	changes []edit.Change
	loose   bool
}

// chunk finds the place of a chunk and notes its changes; what is wrong comes
// back as a clause.
func (a *applier) chunk(c *Chunk) (wrong string) {
	from, header := a.next, -1
	for _, h := range c.Headers {
		i := a.findLine(h, from)
		if i < 0 {
			return fmt.Sprintf("has the header %q, which is no line of the file after line %d", short(h), from)
		}
		from, header = i+1, i
	}
	var old []string
	for _, l := range c.Lines {
		if l.Kind != '+' {
			old = append(old, l.Text)
		}
	}
	if len(old) == 0 {
		at := len(a.lines)
		if header >= 0 && !c.AtEnd {
			at = header + 1
		}
		a.note(c.Lines, at)
		return ""
	}
	from = a.next
	if header >= 0 {
		from = header // the header may be repeated as the first line
	}
	at, wrong := a.find(c, old, from, header >= 0)
	if wrong != "" && c.Lines[len(c.Lines)-1].bare {
		// Empty lines at the end may be there for the eye only.
		shorter := *c
		shorter.Lines = c.Lines[:len(c.Lines)-1]
		if len(shorter.Lines) > 0 && a.chunk(&shorter) == "" {
			return ""
		}
	}
	if wrong != "" {
		return wrong
	}
	a.note(c.Lines, at)
	return ""
}

// ways are how lines are compared, the strictest first.
var ways = []func(string) string{
	func(s string) string { return s },
	func(s string) string { return strings.TrimRight(s, " \t\r") },
	strings.TrimSpace,
}

// findLine finds a line from one on; less than 0: there is none.
func (a *applier) findLine(want string, from int) int {
	for _, way := range ways {
		for i := from; i < len(a.lines); i++ {
			if way(a.lines[i]) == way(want) {
				return i
			}
		}
	}
	return -1
}

// find finds the lines of a chunk from one line on. A header says that the
// first place is meant; without one there must be one place only.
func (a *applier) find(c *Chunk, old []string, from int, header bool) (at int, wrong string) {
	for i, way := range ways {
		places := a.places(old, from, way)
		if c.AtEnd {
			places = slices.DeleteFunc(places, func(at int) bool { return at+len(old) != len(a.lines) })
		}
		if len(places) == 0 {
			continue
		}
		if len(places) > 1 && !header {
			return 0, fmt.Sprintf("fits at lines %s: give more lines around it, or a line before it after @@", numbers(places))
		}
		a.loose = a.loose || i > 0
		return places[0], ""
	}
	switch before := a.places(old, 0, strings.TrimSpace); {
	case c.AtEnd && len(before) > 0:
		return 0, fmt.Sprintf("is to be at the end of the file, but its lines are at line %s", numbers(before))
	case len(before) > 0:
		return 0, fmt.Sprintf("fits at line %s only, which comes before the change before it: give the changes in the order of the file", numbers(before))
	}
	return 0, a.nearest(old, from)
}

// places are the lines where a run of lines begins.
func (a *applier) places(want []string, from int, way func(string) string) []int {
	var found []int
	trimmed := make([]string, len(want))
	for i, w := range want {
		trimmed[i] = way(w)
	}
	for i := from; i+len(want) <= len(a.lines); i++ {
		n := 0
		for n < len(want) && way(a.lines[i+n]) == trimmed[n] {
			n++
		}
		if n == len(want) {
			found = append(found, i)
		}
	}
	return found
}

// nearest tells where lines that are nowhere come nearest.
func (a *applier) nearest(old []string, from int) string {
	best, at := 0, 0
	for i := from; i < len(a.lines); i++ {
		n := 0
		for n < len(old) && i+n < len(a.lines) && strings.TrimSpace(a.lines[i+n]) == strings.TrimSpace(old[n]) {
			n++
		}
		if n > best {
			best, at = n, i
		}
	}
	if best == 0 {
		return fmt.Sprintf("fits nowhere: no line of the file after line %d is %q; read the file again", from, short(old[0]))
	}
	have := "the end of the file"
	if at+best < len(a.lines) {
		have = fmt.Sprintf("%q", short(a.lines[at+best]))
	}
	return fmt.Sprintf("fits nowhere: it begins like line %d, but line %d is %s where the patch has %q",
		at+1, at+best+1, have, short(old[best]))
}

func numbers(places []int) string {
	const most = 10
	var b strings.Builder
	for i, p := range places {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(places)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, p+1)
	}
	return b.String()
}

// note notes the changes of a chunk that begins at a line.
func (a *applier) note(chunk []Line, at int) {
	for i := 0; i < len(chunk); {
		if chunk[i].Kind == ' ' {
			at++
			i++
			continue
		}
		from := at
		var text strings.Builder
		for ; i < len(chunk) && chunk[i].Kind != ' '; i++ {
			if chunk[i].Kind == '-' {
				at++
			} else {
				text.WriteString(chunk[i].Text + "\n")
			}
		}
		a.change(a.starts[from], a.starts[at], text.String())
	}
	a.next = at
}

// change notes one change. A last line without an end stays so.
func (a *applier) change(start, end int, text string) {
	if end == a.size && a.size > 0 && a.view[a.size-1] != '\n' {
		cut := strings.TrimSuffix(text, "\n")
		if start == end {
			cut = "\n" + cut
		}
		text = cut
	}
	a.changes = append(a.changes, a.text.Change(start, end, text)...)
}
