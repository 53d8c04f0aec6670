package edit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// AmbiguousError is a text that occurs more than once.
type AmbiguousError struct{ Lines []int }

// Error names the places and both ways out.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("oldString occurs %d times, at lines %s: give more of the text around the one that is meant, or set replaceAll",
		len(e.Lines), numbers(e.Lines))
}

// NotFoundError is a text that does not occur.
type NotFoundError struct{ Hint string }

// Error tells what comes nearest.
func (e *NotFoundError) Error() string {
	return "oldString does not occur in the file: " + e.Hint
}

// numbers lists line numbers, the first of many.
func numbers(lines []int) string {
	const most = 20
	var b strings.Builder
	for i, n := range lines {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(lines)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}

// Replace finds the changes that put a text in the place of another: of its
// only occurrence, or with all of each. It also gives the lines where they are.
func (t *Text) Replace(old, new string, all bool) ([]Change, []int, error) {
	given := old
	old, new = t.asViewed(old), t.asViewed(new)
	switch old {
	case "":
		return nil, nil, errors.New("oldString is empty: give the text that is to be replaced, or use file_write for a new file")
	case new:
		return nil, nil, errors.New("oldString and newString are the same: there is nothing to change")
	}
	places := t.find(old)
	if len(places) == 0 && strings.Contains(old, CRLF) {
		old, new = strings.ReplaceAll(old, CRLF, LF), strings.ReplaceAll(new, CRLF, LF)
		places = t.find(old)
	}
	if len(places) == 0 {
		return nil, nil, &NotFoundError{t.hint(given)}
	}
	lines := make([]int, len(places))
	number, counted := 1, 0
	for i, at := range places {
		number += bytes.Count(t.view[counted:at], []byte{'\n'})
		lines[i], counted = number, at
	}
	if len(places) > 1 && !all {
		return nil, nil, &AmbiguousError{lines}
	}
	var changes []Change
	for _, at := range places {
		changes = append(changes, t.Change(at, at+len(old), new)...)
	}
	return changes, lines, nil
}

// find gives the places of the view where a text begins, without overlaps.
func (t *Text) find(text string) []int {
	var places []int
	for at := 0; ; {
		i := bytes.Index(t.view[at:], []byte(text))
		if i < 0 {
			return places
		}
		places = append(places, at+i)
		at += i + len(text)
	}
}
