package practice

import (
	"regexp"
	"strings"
)

// alike is how alike two texts have to be for one to stand for the other.
const alike = 0.6

// nearest is the name that looks most like want; empty: none does.
func nearest(want string, names []string) string {
	best, most := "", alike
	for _, n := range names {
		if s := likeness(want, n); s > most {
			best, most = n, s
		}
	}
	return best
}

var wordPlaces = regexp.MustCompile(`[\pL\pN_]+`)

// closest finds what looks most like want in a text: the line or, when want
// has several, the lines, and the words in them; empty: nothing does.
func closest(want, text string) (found, span string) {
	const longest = 2000 // bytes of a line that is compared word by word
	lines := strings.Split(text, "\n")
	count := 1 + strings.Count(want, "\n")
	most := alike
	for i := 0; i+count <= len(lines); i++ {
		line := strings.Join(lines[i:i+count], "\n")
		if strings.TrimSpace(line) == "" || strings.Count(text, line) != 1 {
			continue // an edit has to know its place
		}
		if s := likeness(want, strings.TrimSpace(line)); s > most {
			found, span, most = line, strings.TrimSpace(line), s
		}
		if count > 1 || len(line) > longest {
			continue
		}
		words := len(wordPlaces.FindAllString(want, -1))
		places := wordPlaces.FindAllStringIndex(line, -1)
		for j := range places {
			last := j + max(words, 1) - 1
			if last >= len(places) {
				break
			}
			part := line[places[j][0]:places[last][1]]
			if s := likeness(want, part); s > most {
				found, span, most = line, part, s
			}
		}
	}
	return found, span
}

// likeness compares two texts by the pairs of letters that they share, from 0
// to 1; upper and lower case are the same.
func likeness(a, b string) float64 {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == b {
		return 1
	}
	if len(a) < 2 || len(b) < 2 {
		return 0
	}
	pairs := map[string]int{}
	for i := range len(a) - 1 {
		pairs[a[i:i+2]]++
	}
	shared := 0
	for i := range len(b) - 1 {
		if pairs[b[i:i+2]] > 0 {
			pairs[b[i:i+2]]--
			shared++
		}
	}
	return 2 * float64(shared) / float64(len(a)+len(b)-2)
}
