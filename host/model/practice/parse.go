package practice

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

const help = `I am the practice model: I need no key and follow plain directives, one a line:

    write FILE: TEXT            edit FILE: replace OLD with NEW
    read FILE                   run COMMAND
    find PATTERN                grep PATTERN
    todo: FIRST; SECOND

A text of several lines stands in a fenced block after "write FILE:". What else you say I leave alone.`

// step is one directive.
type step struct {
	tool  string
	input json.RawMessage
	says  string // what I do, after "I"
	reads bool   // it may run together with its neighbours
}

var numbering = regexp.MustCompile(`(?i)^\s*(?:(?:[-*]|\d+[.)])\s+|(?:then|and|now|please)[, ]+)*`)

// parse is the directives of a prompt.
func parse(prompt string) []step {
	var steps []step
	lines := strings.Split(prompt, "\n")
	for i := 0; i < len(lines); i++ {
		line := numbering.ReplaceAllString(lines[i], "")
		line = strings.TrimSpace(line)
		if file, ok := fenced(line); ok {
			if text, n := block(lines[i+1:]); n > 0 {
				steps = append(steps, write(file, text))
				i += n
				continue
			}
		}
		if s, ok := directive(line); ok {
			steps = append(steps, s)
		}
	}
	return steps
}

// fenced is the file of a "write FILE:" whose text stands below.
func fenced(line string) (string, bool) {
	rest, ok := word(line, "write")
	if !ok || !strings.HasSuffix(rest, ":") {
		return "", false
	}
	return unquote(strings.TrimSuffix(rest, ":")), true
}

// block is the text between two fences and the number of lines it takes.
func block(lines []string) (string, int) {
	if len(lines) == 0 || !strings.HasPrefix(strings.TrimSpace(lines[0]), "```") {
		return "", 0
	}
	fence := strings.TrimSpace(lines[0])
	fence = fence[:len(fence)-len(strings.TrimLeft(fence, "`"))]
	for i, l := range lines[1:] {
		if strings.TrimSpace(l) == fence {
			text := strings.Join(lines[1:i+1], "\n")
			if text != "" {
				text += "\n"
			}
			return text, i + 2
		}
	}
	return "", 0
}

// word is the rest of a line that begins with a word.
func word(line, w string) (string, bool) {
	if len(line) <= len(w) || !strings.EqualFold(line[:len(w)], w) || (line[len(w)] != ' ' && line[len(w)] != ':') {
		return "", false
	}
	return strings.TrimSpace(line[len(w):]), true
}

func directive(line string) (step, bool) {
	if rest, ok := word(line, "write"); ok {
		file, text, ok := strings.Cut(rest, ":")
		if !ok {
			return step{}, false
		}
		return write(unquote(file), strings.ReplaceAll(strings.TrimSpace(text), `\n`, "\n")+"\n"), true
	}
	if rest, ok := word(line, "edit"); ok {
		return edit(rest)
	}
	if rest, ok := word(line, "read"); ok {
		return step{"file_read", object("filePath", unquote(rest)), "read " + unquote(rest), true}, true
	}
	if rest, ok := word(line, "run"); ok {
		cmd := unquote(strings.TrimSpace(strings.TrimPrefix(rest, ":")))
		return step{tool: "shell", input: object("command", cmd), says: "run " + cmd}, true
	}
	if rest, ok := word(line, "find"); ok {
		return step{"file_glob", object("pattern", unquote(rest)), "look for files like " + unquote(rest), true}, true
	}
	if rest, ok := word(line, "grep"); ok {
		return step{"file_grep", object("pattern", unquote(rest)), "search for " + unquote(rest), true}, true
	}
	if rest, ok := word(line, "todo"); ok {
		return todo(strings.TrimPrefix(rest, ":")), true
	}
	return step{}, false
}

func write(file, text string) step {
	return step{tool: "file_write", input: object("filePath", file, "content", text), says: "write " + file}
}

func edit(rest string) (step, bool) {
	file, what, ok := strings.Cut(rest, ":")
	if !ok {
		return step{}, false
	}
	what, ok = word(strings.TrimSpace(what), "replace")
	if !ok {
		return step{}, false
	}
	before, after, ok := strings.Cut(what, " with ")
	if !ok {
		return step{}, false
	}
	file = unquote(file)
	return step{
		tool:  "file_edit",
		input: object("filePath", file, "oldString", unquote(before), "newString", unquote(after)),
		says:  "edit " + file,
	}, true
}

func todo(list string) step {
	type item struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	}
	var items []item
	for part := range strings.SplitSeq(list, ";") {
		if part = strings.TrimSpace(part); part != "" {
			items = append(items, item{part, "pending"})
		}
	}
	raw, err := json.Marshal(map[string]any{"todos": items})
	if err != nil { // strings always encode
		raw = json.RawMessage(`{"todos":[]}`)
	}
	return step{tool: "todo_write", input: raw, says: fmt.Sprintf("note %d things to do", len(items))}
}

// unquote takes one pair of quotes or backticks off.
func unquote(s string) string {
	s = strings.TrimSpace(s)
	for _, q := range []string{"`", `"`, "'"} {
		if len(s) >= 2 && strings.HasPrefix(s, q) && strings.HasSuffix(s, q) {
			return s[1 : len(s)-1]
		}
	}
	return s
}

// object is a JSON object of strings.
func object(pairs ...string) json.RawMessage {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	raw, err := json.Marshal(m)
	if err != nil { // strings always encode
		return json.RawMessage(`{}`)
	}
	return raw
}
