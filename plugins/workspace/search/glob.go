// Package search finds files by name and by content below a folder of a
// session. It leaves out what Git ignores by the .gitignore files there, the
// folders of version control and files with secrets, follows no symbolic links,
// and gives what it has when the time is over or a folder cannot be read.
package search

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// glob is a pattern for paths, split at the slashes.
type glob struct {
	parts []part
	bytes bool // ? and classes stand for a byte, as in Git, and not for a character
}

// part matches one part of a path; any: zero or more parts.
type part struct {
	any     bool
	literal string // if it has no wildcards
	pattern string
}

// parseGlob reads a pattern. ** stands for any number of parts if it is one by
// itself; elsewhere it is *.
func parseGlob(pattern string, bytes bool) glob {
	g := glob{bytes: bytes}
	for text := range strings.SplitSeq(pattern, "/") {
		p := part{pattern: text}
		switch {
		case text == "**":
			p.any = true
		case !strings.ContainsAny(text, `*?[\`):
			p.literal = text
		}
		if p.any && len(g.parts) > 0 && g.parts[len(g.parts)-1].any {
			continue
		}
		g.parts = append(g.parts, p)
	}
	return g
}

// match matches a whole path. The time is bounded by the product of the
// lengths, whatever the pattern.
func (g glob) match(path string) bool {
	names := strings.Split(path, "/")
	p, n := 0, 0
	star, resume := -1, 0 // the last **, and where its next try begins
	for n < len(names) {
		switch {
		case p < len(g.parts) && g.parts[p].any:
			if p == len(g.parts)-1 {
				return true // at the end it needs one part at least
			}
			star, resume = p, n
			p++
		case p < len(g.parts) && g.parts[p].match(names[n], g.bytes):
			p++
			n++
		case star >= 0:
			resume++
			p, n = star+1, resume
		default:
			return false
		}
	}
	return p == len(g.parts)
}

func (p part) match(name string, bytes bool) bool {
	if p.pattern == p.literal {
		return name == p.literal
	}
	return matchPart(p.pattern, name, bytes)
}

// matchPart matches one part of a path: * is any text, ? one character, [a-z]
// one of a class, and \ takes a special character as it is.
func matchPart(pattern, name string, bytes bool) bool {
	p, n := 0, 0
	star, resume := -1, 0 // behind the last *, and where its next try begins
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, resume = p, n
			continue
		}
		if used, size := one(pattern[p:], name[n:], bytes); used > 0 {
			p += used
			n += size
			continue
		}
		if star < 0 {
			return false
		}
		_, size := first(name[resume:], bytes)
		resume += size
		p, n = star, resume
	}
	return strings.Trim(pattern[p:], "*") == ""
}

func first(text string, bytes bool) (rune, int) {
	if bytes {
		return rune(text[0]), 1
	}
	return utf8.DecodeRuneInString(text)
}

// one matches the first element of a pattern, which is no *, with the first
// character of a name. used is 0 when they do not match.
func one(pattern, name string, bytes bool) (used, size int) {
	if pattern == "" {
		return 0, 0
	}
	char, size := first(name, bytes)
	switch pattern[0] {
	case '?':
		return 1, size
	case '[':
		if in, used := class(pattern, char, bytes); used > 0 {
			if !in {
				return 0, 0
			}
			return used, size
		}
		return 0, 0 // a class without an end matches nothing
	case '\\':
		if len(pattern) == 1 {
			return 0, 0
		}
		want, width := first(pattern[1:], bytes)
		if want != char {
			return 0, 0
		}
		return 1 + width, size
	}
	want, width := first(pattern, bytes)
	if want != char || (want == utf8.RuneError && pattern[0] != name[0]) {
		return 0, 0
	}
	return width, size
}

// classes are the named ones, such as [:digit:].
var classes = map[string]func(rune) bool{
	"alnum": func(r rune) bool { return letter(r) || digit(r) },
	"alpha": letter,
	"blank": func(r rune) bool { return r == ' ' || r == '\t' },
	"cntrl": func(r rune) bool { return r < ' ' || r == 0x7f },
	"digit": digit,
	"graph": func(r rune) bool { return r > ' ' && r < 0x7f },
	"lower": func(r rune) bool { return r >= 'a' && r <= 'z' },
	"print": func(r rune) bool { return r >= ' ' && r < 0x7f },
	"punct": func(r rune) bool { return r > ' ' && r < 0x7f && !letter(r) && !digit(r) },
	"space": func(r rune) bool { return r == ' ' || (r >= '\t' && r <= '\r') },
	"upper": func(r rune) bool { return r >= 'A' && r <= 'Z' },
	"xdigit": func(r rune) bool {
		return digit(r) || (r >= 'a' && r <= 'f') || (r >= 'A' && r <= 'F')
	},
}

func letter(r rune) bool { return (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') }
func digit(r rune) bool  { return r >= '0' && r <= '9' }

// class matches a character with the class that a pattern begins with. used is
// the length of the class; 0: it has no end, or a name that is not known.
func class(pattern string, char rune, bytes bool) (in bool, used int) {
	i := 1
	not := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if not {
		i++
	}
	for begun := false; ; begun = true {
		if i >= len(pattern) {
			return false, 0
		}
		if pattern[i] == ']' && begun {
			return in != not, i + 1
		}
		if strings.HasPrefix(pattern[i:], "[:") {
			if name, _, ended := strings.Cut(pattern[i+2:], ":]"); ended {
				is := classes[name]
				if is == nil {
					return false, 0
				}
				in = in || is(char)
				i += len("[:") + len(name) + len(":]")
				continue
			}
		}
		low, n := element(pattern[i:], bytes)
		if n == 0 {
			return false, 0
		}
		i += n
		high := low
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			if high, n = element(pattern[i+1:], bytes); n == 0 {
				return false, 0
			}
			i += 1 + n
		}
		in = in || (low <= char && char <= high)
	}
}

// element is one character of a class.
func element(pattern string, bytes bool) (rune, int) {
	skip := 0
	if pattern[0] == '\\' {
		skip = 1
	}
	if len(pattern) == skip {
		return 0, 0
	}
	r, n := first(pattern[skip:], bytes)
	return r, skip + n
}

// mostAlternatives bounds what braces can make of a pattern.
const mostAlternatives = 256

// expand writes a pattern with {a,b} out as several without.
func expand(pattern string) ([]string, error) {
	done := []string{}
	todo := []string{pattern}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		open, choices, end := braces(p)
		if open < 0 {
			done = append(done, p)
		}
		for _, c := range choices {
			todo = append(todo, p[:open]+c+p[end:])
		}
		if len(done)+len(todo) > mostAlternatives {
			return nil, fmt.Errorf("the braces of the pattern %q stand for more than %d patterns", pattern, mostAlternatives)
		}
	}
	return done, nil
}

// braces finds the first pair that has alternatives.
func braces(p string) (open int, choices []string, end int) {
	for open = 0; open < len(p); open++ {
		switch p[open] {
		case '\\':
			open++
		case '{':
			depth, from := 0, open+1
			for i := open; i < len(p); i++ {
				switch {
				case p[i] == '\\':
					i++
				case p[i] == '{':
					depth++
				case p[i] == ',' && depth == 1:
					choices = append(choices, p[from:i])
					from = i + 1
				case p[i] == '}':
					if depth--; depth == 0 && choices != nil {
						return open, append(choices, p[from:i]), i + 1
					}
				}
			}
			choices = nil
		}
	}
	return -1, nil, 0
}

// Filter chooses files by their paths.
type Filter struct{ globs []filterGlob }

type filterGlob struct {
	glob
	name bool // of the file alone, in whatever folder
}

// NewFilter reads a pattern: * and ? within a part of a path, [a-z], {a,b}, and
// ** for any number of folders. A pattern without a slash is for the name of a
// file in any folder, others are for the path.
func NewFilter(pattern string) (*Filter, error) {
	if pattern == "" {
		return nil, errors.New("the pattern is empty")
	}
	if len(pattern) > 4096 {
		return nil, fmt.Errorf("the pattern has %d bytes, at most 4096 are taken", len(pattern))
	}
	all, err := expand(pattern)
	if err != nil {
		return nil, err
	}
	f := &Filter{}
	for _, p := range all {
		name := !strings.Contains(p, "/")
		p = strings.TrimPrefix(p, "./")
		f.globs = append(f.globs, filterGlob{parseGlob(p, false), name})
	}
	return f, nil
}

// Match tells whether the path of a file, relative to the folder that the
// pattern is for, is chosen.
func (f *Filter) Match(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for _, g := range f.globs {
		of := path
		if g.name {
			of = name
		}
		if g.match(of) {
			return true
		}
	}
	return false
}

var utf8Mark = []byte("\xef\xbb\xbf")

// gitLines are the lines of a file of Git's, without their ends.
func gitLines(text []byte) []string {
	var lines []string
	for line := range bytes.Lines(bytes.TrimPrefix(text, utf8Mark)) {
		line, ended := bytes.CutSuffix(line, []byte{'\n'})
		if ended {
			line = bytes.TrimSuffix(line, []byte{'\r'})
		}
		lines = append(lines, string(line))
	}
	return lines
}
