package shellline

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wordKind says what is known of a word before the line runs.
type wordKind int

const (
	literal wordKind = iota // exactly these bytes
	glob                    // a pattern, which names of files may take the place of
	built                   // variables, substitutions, braces: not known
)

// word takes the quotes off a word. What is not known is left out.
func (r *reader) word(w *syntax.Word) (string, wordKind) {
	var b strings.Builder
	kind := literal
	for i, part := range w.Parts {
		if k := r.part(&b, part, i == 0); k > kind {
			kind = k
		}
	}
	return b.String(), kind
}

func (r *reader) part(b *strings.Builder, part syntax.WordPart, first bool) wordKind {
	switch p := part.(type) {
	case *syntax.Lit:
		return unquoted(b, p.Value, first)
	case *syntax.SglQuoted:
		if p.Dollar && strings.Contains(p.Value, `\`) {
			return built // escapes of the $'..' form
		}
		b.WriteString(p.Value)
		return literal
	case *syntax.DblQuoted:
		kind := literal
		if p.Dollar {
			kind = built // translated by a catalogue
		}
		for _, inner := range p.Parts {
			lit, ok := inner.(*syntax.Lit)
			if !ok {
				kind = built
				continue
			}
			doubleQuoted(b, lit.Value)
		}
		return kind
	}
	return built
}

// unquoted reads a stretch without quotes: backslashes, patterns, tildes and
// braces.
func unquoted(b *strings.Builder, text string, first bool) wordKind {
	kind := literal
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] == '\n' {
				continue // a line that goes on
			}
			c = text[i]
			if strings.IndexByte("*?[", c) >= 0 {
				// A quoted pattern next to an open one cannot be written
				// down here any more.
				b.WriteByte(c)
				continue
			}
		case c == '*' || c == '?' || c == '[' && text != "[":
			kind = max(kind, glob)
		case c == '{' && expands(text[i:]):
			kind = built
		case c == '~' && first && i == 0:
			// ~ and ~/x are the home folder; ~name and ~+ are not followed.
			if len(text) > 1 && text[1] != '/' {
				kind = built
			}
		case c == '~' && (i > 0 && (text[i-1] == '=' || text[i-1] == ':')):
			kind = built
		}
		b.WriteByte(c)
	}
	return kind
}

// expands tells whether an open brace may begin an expansion: it does unless it
// is closed in the same stretch with nothing to choose from.
func expands(text string) bool {
	end := strings.LastIndexByte(text, '}')
	return end < 0 || strings.Contains(text[:end], ",") || strings.Contains(text[:end], "..")
}

// doubleQuoted reads a stretch within double quotes, where a backslash only
// counts before few characters.
func doubleQuoted(b *strings.Builder, text string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0 {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
}

// safeGlob tells whether nothing that a pattern matches can be taken for an
// option or for more than one word's worth of surprise: it begins with a plain
// character and has only plain ones and patterns.
func safeGlob(text string) bool {
	const begin = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/+@:,="
	return text != "" && strings.IndexByte(begin, text[0]) >= 0 && strings.Trim(text, begin+"-*?[]") == ""
}
