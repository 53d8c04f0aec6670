package lines

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
)

// Pattern is a regular expression that is matched against each line by itself,
// in time linear in the text.
type Pattern struct {
	re       *regexp.Regexp
	required []byte // every match has these bytes; empty: not known
}

// maxPattern bounds what a pattern may cost to compile.
const maxPattern = 8 << 10

// Compile reads a pattern in RE2 syntax. ^ and $ are the ends of a line, with
// or without a carriage return, and nothing in it matches a line end.
func Compile(pattern string) (*Pattern, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("the pattern has %d bytes, at most %d are taken", len(pattern), maxPattern)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl&^syntax.OneLine)
	if err != nil {
		return nil, fmt.Errorf("the pattern is no regular expression of RE2 syntax: %w", err)
	}
	tree = withinLine(tree)
	re, err := regexp.Compile(tree.String())
	if err != nil {
		return nil, fmt.Errorf("compile the pattern: %w", err)
	}
	return &Pattern{re: re, required: literal(tree.Simplify())}, nil
}

// withinLine makes an expression that cannot match across lines, so that it
// can be run on many lines at once.
func withinLine(re *syntax.Regexp) *syntax.Regexp {
	for i, sub := range re.Sub {
		re.Sub[i] = withinLine(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		if slices.Contains(re.Rune, '\n') {
			return &syntax.Regexp{Op: syntax.OpNoMatch}
		}
	case syntax.OpCharClass:
		re.Rune = without(re.Rune, '\n')
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText, syntax.OpEndLine:
		return &syntax.Regexp{Op: syntax.OpConcat, Flags: re.Flags, Sub: []*syntax.Regexp{
			{Op: syntax.OpQuest, Sub: []*syntax.Regexp{{Op: syntax.OpLiteral, Rune: []rune{'\r'}}}},
			{Op: syntax.OpEndLine},
		}}
	}
	return re
}

// without takes a character out of the ranges of a class.
func without(ranges []rune, r rune) []rune {
	var kept []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		low, high := ranges[i], ranges[i+1]
		if r < low || r > high {
			kept = append(kept, low, high)
			continue
		}
		if low < r {
			kept = append(kept, low, r-1)
		}
		if r < high {
			kept = append(kept, r+1, high)
		}
	}
	return kept
}

// literal is the longest text that every match has.
func literal(re *syntax.Regexp) []byte {
	var best []byte
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			best = []byte(string(re.Rune))
		}
	case syntax.OpCapture, syntax.OpPlus:
		best = literal(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if l := literal(sub); len(l) > len(best) {
				best = l
			}
		}
	}
	return best
}

// in tells where the first match in whole lines begins; less than 0: there is
// none. text begins at the beginning of a line.
func (p *Pattern) in(text []byte) int {
	if len(p.required) > 0 && !bytes.Contains(text, p.required) {
		return -1
	}
	at := p.re.FindIndex(text)
	if at == nil || (at[0] == len(text) && len(text) > 0 && text[len(text)-1] == '\n') {
		return -1 // the empty rest after the last line end is no line
	}
	return at[0]
}
