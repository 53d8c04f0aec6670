package tool

import (
	"slices"
	"strings"
	"unicode"
)

// Snake writes a name the way tools are called: FileRead, fileRead and
// file-read are file_read.
func Snake(name string) string {
	var b strings.Builder
	var before rune
	for _, c := range name {
		switch {
		case c == '-' || c == ' ':
			c = '_'
		case unicode.IsUpper(c):
			if unicode.IsLower(before) || unicode.IsDigit(before) {
				b.WriteByte('_')
			}
			c = unicode.ToLower(c)
			before = 'A'
			b.WriteRune(c)
			continue
		}
		before = c
		b.WriteRune(c)
	}
	return b.String()
}

// Nearest are the names that look like name, most alike first, at most 3; when
// none does, all of them.
func Nearest(name string, names []string) []string {
	const most = 3
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	want := Snake(name)
	for _, n := range names {
		d := distance(want, Snake(n))
		if d <= max(2, len(want)/3) || strings.Contains(n, want) || (n != "" && strings.Contains(want, n)) {
			near = append(near, candidate{n, d})
		}
	}
	if len(near) == 0 {
		return names
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.distance - b.distance })
	near = near[:min(most, len(near))]
	found := make([]string, len(near))
	for i, c := range near {
		found[i] = c.name
	}
	return found
}

// distance counts the insertions, removals and replacements of bytes that make
// b of a.
func distance(a, b string) int {
	const longest = 128 // no name is longer; a model can write anything
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
