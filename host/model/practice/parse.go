package practice

import (
	"regexp"
	"slices"
	"sort"
	"strings"
)

const help = "I am the practice model: I need no key and follow plain directives, one a line.\n" + `
    write FILE: TEXT                  edit FILE: replace OLD with NEW
    read FILE [lines 10-20]           list [FOLDER]
    find PATTERN [in FOLDER]          grep PATTERN [in PATH]
    run COMMAND                       todo: FIRST; SECOND
    batch: DIRECTIVE; DIRECTIVE       call TOOL {JSON}
    delegate: TASK                    wait for tasks
    say TEXT    think TEXT            pause 3s

A text of several lines stands in a fenced block below "write FILE:". What is no directive I leave alone.`

// parser reads the directives of a prompt.
type parser struct {
	lines []string        // that were not read yet
	open  map[string]bool // fences that nothing closes from here on
}

// parse is the directives of a prompt, in order.
func parse(prompt string) []step {
	p := &parser{lines: strings.Split(strings.ReplaceAll(prompt, "\r\n", "\n"), "\n")}
	var steps []step
	for len(p.lines) > 0 {
		if _, ok := p.block(); ok {
			continue // a block that belongs to no directive is no directive
		}
		line := p.lines[0]
		p.lines = p.lines[1:]
		for _, clause := range clauses(line) {
			steps = append(steps, p.directive(clause)...)
		}
	}
	return steps
}

var (
	// before is what may stand before a directive.
	before = regexp.MustCompile(`(?i)^\s*(?:(?:[-*•]|\d+[.)]|\([a-z0-9]\)|[a-z]\))\s+|(?:then|and|now|please|also|first|next|finally|afterwards)\b[, ]*|(?:can|could|would) you\s+)*`)
	then   = regexp.MustCompile(`(?i)[,.]\s+(?:and\s+)?then,?\s+(?:please\s+)?([a-z]+)\b|\s+and\s+then\s+([a-z]+)\b`)
)

// clauses are the parts of a line that ", then" separates, where a directive
// follows it outside quotes.
func clauses(line string) []string {
	inQuotes := quoted(line)
	var parts []string
	start := 0
	for _, m := range then.FindAllStringSubmatchIndex(line, -1) {
		word := m[2:4]
		if word[0] < 0 {
			word = m[4:6]
		}
		if verbs[strings.ToLower(line[word[0]:word[1]])] == nil || inQuotes(m[0]) {
			continue
		}
		parts = append(parts, line[start:m[0]])
		start = word[0]
	}
	return append(parts, line[start:])
}

// directive is the steps that a line asks for; none if it asks for nothing.
func (p *parser) directive(line string) []step {
	line = strings.TrimSpace(line[len(before.FindString(line)):])
	end := strings.IndexAny(line, " \t:")
	if end < 0 {
		end = len(line)
	}
	verb := verbs[strings.ToLower(line[:end])]
	if verb == nil {
		return nil
	}
	return verb(p, strings.TrimSpace(line[end:]))
}

var fence = regexp.MustCompile("^\\s*(```+|~~~+)")

// block reads a fenced block, if one comes next.
func (p *parser) block() (text string, ok bool) {
	if len(p.lines) == 0 {
		return "", false
	}
	m := fence.FindStringSubmatch(p.lines[0])
	if m == nil || p.open[m[1]] {
		return "", false
	}
	for i, l := range p.lines[1:] {
		if strings.TrimSpace(l) == m[1] {
			body := p.lines[1 : i+1]
			p.lines = p.lines[i+2:]
			if len(body) == 0 {
				return "", true
			}
			return strings.Join(body, "\n") + "\n", true
		}
	}
	if p.open == nil {
		p.open = map[string]bool{}
	}
	p.open[m[1]] = true
	return "", false
}

const quotes = "`\"'"

// quoted tells of each place in a line whether it is within quotes. A quote
// opens at the beginning of a word and closes at the end of one, so that an
// apostrophe is none.
func quoted(line string) func(int) bool {
	var spans [][2]int
	unclosed := map[byte]bool{}
	for i := 0; i < len(line); i++ {
		q := line[i]
		if !strings.ContainsRune(quotes, rune(q)) || unclosed[q] || i > 0 && !strings.ContainsRune(" \t:(", rune(line[i-1])) {
			continue
		}
		end := closing(line, i)
		if end == 0 {
			unclosed[q] = true
			continue
		}
		spans = append(spans, [2]int{i, end})
		i = end
	}
	return func(at int) bool {
		n := sort.Search(len(spans), func(i int) bool { return spans[i][1] > at })
		return n < len(spans) && spans[n][0] < at
	}
}

// closing is where the quote that opens at i is closed; 0: nowhere.
func closing(line string, i int) int {
	for j := i + 1; j < len(line); j++ {
		if line[j] == line[i] && (j+1 == len(line) || strings.ContainsRune(" \t,.;:)", rune(line[j+1]))) {
			return j
		}
	}
	return 0
}

// split is the parts of a line between seps that are not within quotes, up to
// n of them.
func split(line, sep string, n int) []string {
	inQuotes := quoted(line)
	var parts []string
	start := 0
	for from := 0; len(parts) < n-1; {
		i := strings.Index(line[from:], sep)
		if i < 0 {
			break
		}
		i += from
		if from = i + len(sep); !inQuotes(i) {
			parts = append(parts, strings.TrimSpace(line[start:i]))
			start = from
		}
	}
	return append(parts, strings.TrimSpace(line[start:]))
}

// cut splits a line in two.
func cut(line, sep string) (head, tail string, ok bool) {
	parts := split(line, sep, 2)
	if len(parts) < 2 {
		return line, "", false
	}
	return parts[0], parts[1], true
}

// list is the parts of a line that are not empty.
func list(line, sep string) []string {
	return slices.DeleteFunc(split(line, sep, len(line)+2), func(part string) bool { return part == "" })
}

// unquote takes one pair of quotes off.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && strings.ContainsRune(quotes, rune(s[0])) && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// name is a file, folder or pattern: one word, or anything in quotes. The
// punctuation of the sentence is no part of it.
func name(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if s == "." || s == ".." {
		return s, true
	}
	s = strings.TrimRight(s, ",;!?")
	if strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "/.") && !strings.HasSuffix(s, "..") {
		s = s[:len(s)-1]
	}
	if u := unquote(s); u != s {
		return u, u != ""
	}
	return s, s != "" && !strings.ContainsAny(s, " \t")
}

var escapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t")

// text is what stands for a text on one line: quotes around it are taken off,
// \n and \t are what they are in programs.
func text(s string) string { return escapes.Replace(unquote(s)) }
