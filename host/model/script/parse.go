// Package script is a model that replays a file of turns: for tests,
// demonstrations and dry runs. docs/script-files.md has the format.
package script

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/boughdev/bough/host/model"
)

// Script is a parsed file.
type Script struct {
	name  string
	turns []turn
}

// turn is one answer of the model, repeated some times in a row.
type turn struct {
	line     int
	repeat   int
	variants []variant
}

// variant is what a turn does when its condition holds.
type variant struct {
	when    *condition // nil: always
	expect  []condition
	actions []action
}

// condition is a test of the request.
type condition struct {
	line   int
	on     string // "result", "prompt" or "request"
	not    bool
	test   string // "contains" or "is"
	value  string
	source string
}

type action struct {
	text, reasoning string
	call            *model.ToolCall
	fail            *failure
	delay           time.Duration
	usage           *model.Usage
	finish          model.Finish
}

// failure is a scripted error; it happens times times, then the turn goes on.
type failure struct {
	err   model.Error
	times int
}

const (
	maxScript = 16 << 20
	maxRepeat = 1_000_000
)

// Parse reads a script; name is for messages.
func Parse(name string, r io.Reader) (*Script, error) {
	p := &parser{s: &Script{name: name}, in: bufio.NewScanner(io.LimitReader(r, maxScript+1))}
	p.in.Buffer(nil, maxScript+1)
	for p.next() {
		if err := p.statement(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, p.line, err)
		}
	}
	if err := p.in.Err(); err != nil {
		return nil, fmt.Errorf("%s: read the script: %w", name, err)
	}
	if len(p.s.turns) == 0 {
		return nil, fmt.Errorf("%s: the script has no turn: a turn begins with a line `turn`", name)
	}
	return p.s, nil
}

type parser struct {
	s    *Script
	in   *bufio.Scanner
	line int
	word string // first of the line
	rest string
}

// next goes to the next line that says something.
func (p *parser) next() bool {
	for p.in.Scan() {
		p.line++
		text := strings.TrimSpace(p.in.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		p.word, p.rest, _ = strings.Cut(text, " ")
		p.rest = strings.TrimSpace(p.rest)
		return true
	}
	return false
}

// text is the rest of the line, or the lines up to an end mark: `say <<END`.
func (p *parser) text() (string, error) {
	mark, here := strings.CutPrefix(p.rest, "<<")
	if !here {
		return p.rest, nil
	}
	mark = strings.TrimSpace(mark)
	if mark == "" {
		return "", fmt.Errorf("`%s <<` needs an end mark, as in `%s <<END`", p.word, p.word)
	}
	begun := p.line
	var lines []string
	for p.in.Scan() {
		p.line++
		if strings.TrimSpace(p.in.Text()) == mark {
			return strings.Join(lines, "\n"), nil
		}
		lines = append(lines, p.in.Text())
	}
	return "", fmt.Errorf("the text begun in line %d does not end: there is no line %q", begun, mark)
}

func (p *parser) statement() error {
	if p.word == "turn" {
		t := turn{line: p.line, repeat: 1, variants: []variant{{}}}
		if p.rest != "" {
			n, err := strconv.Atoi(strings.TrimPrefix(p.rest, "repeat "))
			if err != nil || n < 1 || n > maxRepeat {
				return fmt.Errorf("after `turn` stands nothing or `repeat N`, N from 1 to %d", maxRepeat)
			}
			t.repeat = n
		}
		p.s.turns = append(p.s.turns, t)
		return nil
	}
	if len(p.s.turns) == 0 {
		return fmt.Errorf("%q stands before the first `turn`", p.word)
	}
	t := &p.s.turns[len(p.s.turns)-1]
	v := &t.variants[len(t.variants)-1]
	switch p.word {
	case "when", "else":
		return p.variant(t, v)
	case "expect":
		c, err := p.condition()
		v.expect = append(v.expect, c)
		return err
	}
	a, err := p.action()
	v.actions = append(v.actions, a)
	return err
}

func (p *parser) variant(t *turn, v *variant) error {
	if v.when == nil && len(t.variants) > 1 {
		return fmt.Errorf("`%s` stands after `else`, which is the last", p.word)
	}
	var c *condition
	if p.word == "when" {
		parsed, err := p.condition()
		if err != nil {
			return err
		}
		c = &parsed
	} else if v.when == nil {
		return fmt.Errorf("`else` stands without a `when` before it")
	}
	if v.when == nil && len(v.actions) == 0 && len(v.expect) == 0 {
		v.when = c
		return nil
	}
	if v.when == nil {
		return fmt.Errorf("`when` stands at the beginning of its turn")
	}
	t.variants = append(t.variants, variant{when: c})
	return nil
}

// condition reads: result|prompt|request [not] contains TEXT, or
// result [not] is error.
func (p *parser) condition() (condition, error) {
	c := condition{line: p.line, source: p.rest}
	on, rest, _ := strings.Cut(p.rest, " ")
	if on != "result" && on != "prompt" && on != "request" {
		return c, fmt.Errorf("a condition is about `result`, `prompt` or `request`, not %q", on)
	}
	c.on = on
	if after, ok := strings.CutPrefix(rest, "not "); ok {
		c.not, rest = true, after
	}
	c.test, c.value, _ = strings.Cut(rest, " ")
	switch {
	case c.test == "contains" && c.value != "":
	case c.test == "is" && c.value == "error" && on == "result":
	default:
		return c, fmt.Errorf("a condition is `%s contains TEXT`, or `result is error`; `not` may stand before the verb", on)
	}
	return c, nil
}

func (p *parser) action() (action, error) {
	switch p.word {
	case "say":
		text, err := p.text()
		return action{text: text}, err
	case "think":
		text, err := p.text()
		return action{reasoning: text}, err
	case "call":
		return p.call()
	case "error":
		return p.failure()
	case "delay":
		d, err := time.ParseDuration(p.rest)
		if err != nil || d < 0 {
			return action{}, fmt.Errorf("`delay` takes a duration such as 200ms")
		}
		return action{delay: d}, nil
	case "usage":
		return p.usage()
	case "finish":
		finishes := map[string]model.Finish{"stop": model.FinishStop, "length": model.FinishLength, "refused": model.FinishRefused}
		f, ok := finishes[p.rest]
		if !ok {
			return action{}, fmt.Errorf("`finish` takes stop, length or refused")
		}
		return action{finish: f}, nil
	}
	return action{}, fmt.Errorf("%q is no statement: there are turn, when, else, expect, say, think, call, error, delay, usage and finish", p.word)
}

// call reads: call TOOL {JSON}, the JSON also as a text of several lines.
func (p *parser) call() (action, error) {
	tool, rest, _ := strings.Cut(p.rest, " ")
	if tool == "" {
		return action{}, fmt.Errorf("`call` takes a tool and its input, as in `call file_read {\"filePath\": \"a.txt\"}`")
	}
	p.rest = strings.TrimSpace(rest)
	input, err := p.text()
	if err != nil {
		return action{}, err
	}
	if input == "" {
		input = "{}"
	}
	if raw, ok := strings.CutPrefix(input, "raw "); ok { // for tests of what models get wrong
		return action{call: &model.ToolCall{Name: tool, Input: json.RawMessage(raw)}}, nil
	}
	if !json.Valid([]byte(fillIn(input, 1, 1))) {
		return action{}, fmt.Errorf("the input of the call of %s is no valid JSON", tool)
	}
	return action{call: &model.ToolCall{Name: tool, Input: json.RawMessage(input)}}, nil
}

// failure reads: error CLASS [times=N] [retry_after=D] [status=N] MESSAGE.
func (p *parser) failure() (action, error) {
	fields := strings.Fields(p.rest)
	f := &failure{times: 1}
	for c := model.ClassUnknown; c <= model.ClassUnknownModel; c++ {
		if len(fields) > 0 && c.String() == fields[0] {
			f.err.Class = c
		}
	}
	if len(fields) == 0 || f.err.Class.String() != fields[0] {
		return action{}, fmt.Errorf("`error` takes a class: rate_limited, overloaded, server, network, context_too_long, auth, billing, refused, bad_request, malformed, unknown_model or unknown")
	}
	i := 1
	for ; i < len(fields); i++ {
		key, value, ok := strings.Cut(fields[i], "=")
		var err error
		switch {
		case ok && key == "times":
			f.times, err = strconv.Atoi(value)
		case ok && key == "status":
			f.err.Status, err = strconv.Atoi(value)
		case ok && key == "retry_after":
			f.err.RetryAfter, err = time.ParseDuration(value)
		default:
			ok = false
		}
		if !ok {
			break
		}
		if err != nil || f.times < 1 {
			return action{}, fmt.Errorf("%s of `error` cannot be %q", key, value)
		}
	}
	f.err.Message, f.err.Provider = strings.Join(fields[i:], " "), "script"
	if f.err.Message == "" {
		f.err.Message = "scripted failure"
	}
	return action{fail: f}, nil
}

func (p *parser) usage() (action, error) {
	u := &model.Usage{}
	for _, field := range strings.Fields(p.rest) {
		key, value, _ := strings.Cut(field, "=")
		n, err := strconv.Atoi(value)
		to, known := map[string]*int{
			"input": &u.InputTokens, "output": &u.OutputTokens, "cache_read": &u.CacheReadTokens,
			"cache_write": &u.CacheWriteTokens, "reasoning": &u.ReasoningTokens,
		}[key]
		if err != nil || n < 0 || !known {
			return action{}, fmt.Errorf("`usage` takes input=N output=N cache_read=N cache_write=N reasoning=N, not %q", field)
		}
		*to = n
	}
	return action{usage: u}, nil
}

// fillIn replaces {{n}}, the number of the answer, and {{i}}, that of the
// repetition, both from 1.
func fillIn(s string, n, i int) string {
	if !strings.Contains(s, "{{") {
		return s
	}
	return strings.NewReplacer("{{n}}", strconv.Itoa(n), "{{i}}", strconv.Itoa(i)).Replace(s)
}
