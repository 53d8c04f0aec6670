package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of a pattern for shell commands.
const (
	patternWords = 8
	patternBytes = 256
	patternChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/@:=+-"
)

// Pattern says which shell commands a rule is about: those that have exactly
// its words or, with Rest, begin with them.
type Pattern struct {
	Words []string
	Rest  bool // any words may follow, or none
}

// ParsePattern reads a pattern as people write it: "go test *" is go test with
// anything after it. It has at most 8 words and 256 bytes of the characters
// A-Z a-z 0-9 . _ / @ : = + - and a star only as the last word.
func ParsePattern(text string) (Pattern, error) {
	if len(text) > patternBytes {
		return Pattern{}, fmt.Errorf("a pattern has at most %d bytes, this one has %d", patternBytes, len(text))
	}
	words := strings.Fields(text)
	p := Pattern{Words: words}
	if n := len(words); n > 0 && words[n-1] == "*" {
		p.Words, p.Rest = words[:n-1], true
	}
	switch {
	case len(words) == 0:
		return Pattern{}, errors.New("a pattern needs at least the name of a command")
	case len(p.Words) == 0:
		return Pattern{}, errors.New("a pattern cannot be a star alone: it needs the name of a command")
	case len(words) > patternWords:
		return Pattern{}, fmt.Errorf("a pattern has at most %d words, %q has %d", patternWords, text, len(words))
	}
	for _, w := range p.Words {
		if bad := strings.Trim(w, patternChars); bad != "" {
			return Pattern{}, fmt.Errorf("%q in the pattern %q cannot be used: words are made of letters, digits and . _ / @ : = + -, and a star stands alone at the end", bad, text)
		}
	}
	return p, nil
}

// String is the pattern as people write it.
func (p Pattern) String() string {
	text := strings.Join(p.Words, " ")
	if p.Rest {
		text += " *"
	}
	return text
}

// Matches tells whether a command is one of the pattern's.
func (p Pattern) Matches(words []string) bool {
	if len(words) < len(p.Words) || !p.Rest && len(words) != len(p.Words) {
		return false
	}
	return slices.Equal(p.Words, words[:len(p.Words)])
}

// weight is greater the more a pattern says.
func (p Pattern) weight() int {
	w := 2 * len(p.Words)
	if !p.Rest {
		w++
	}
	return w
}
