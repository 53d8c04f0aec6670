package practice

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// step is what one directive asks for: a call of a tool, or, without one,
// something that the model does by itself.
type step struct {
	does        string // what I do, after "I"
	tool        string
	input       json.RawMessage
	reads       bool // it may run together with its neighbours
	onlyOffered bool // it is not called unless the request offers the tool

	path, old, new string // of a file tool, for mending it

	say, think string
	pause      time.Duration
}

// verbs begin directives. Each gets what stands after it, a colon included.
// They are set by init, since batch holds directives itself.
var verbs map[string]func(p *parser, rest string) []step

func init() {
	verbs = map[string]func(*parser, string) []step{
		"write": writeVerb, "create": writeVerb,
		"edit": editVerb, "replace": replaceVerb, "patch": patchVerb,
		"read": readVerb, "show": readVerb, "list": listVerb,
		"find": findVerb, "grep": grepVerb, "search": grepVerb,
		"run": runVerb, "todo": todoVerb, "batch": batchVerb, "call": callVerb,
		"delegate": delegateVerb, "wait": waitVerb,
		"say": sayVerb, "think": thinkVerb, "pause": pauseVerb,
	}
}

// object is the input of a call.
type object map[string]any

func (o object) json() json.RawMessage {
	raw, err := json.Marshal(o)
	if err != nil { // strings, numbers and JSON always encode
		return json.RawMessage(`{}`)
	}
	return raw
}

func write(file, content string) step {
	return step{does: "write " + file, tool: "file_write", input: object{"filePath": file, "content": content}.json(), path: file}
}

func read(file string, offset, limit int) step {
	in := object{"filePath": file}
	if offset > 0 {
		in["offset"] = offset
	}
	if limit > 0 {
		in["limit"] = limit
	}
	return step{does: "read " + file, tool: "file_read", input: in.json(), reads: true, path: file}
}

func edit(file, before, after string, all bool) step {
	in := object{"filePath": file, "oldString": before, "newString": after}
	if all {
		in["replaceAll"] = true
	}
	return step{does: "edit " + file, tool: "file_edit", input: in.json(), path: file, old: before, new: after}
}

// writeVerb reads: write FILE: TEXT, write FILE: and a block, write "TEXT" to
// FILE.
func writeVerb(p *parser, rest string) []step {
	file, content, ok := cut(rest, ":")
	if !ok {
		content, file, ok = cut(rest, " to ")
		if !ok || unquote(content) == content {
			return nil
		}
	}
	file, named := name(file)
	if !named {
		return nil
	}
	if content != "" {
		return []step{write(file, text(content)+"\n")}
	}
	if block, ok := p.block(); ok {
		return []step{write(file, block)}
	}
	return nil
}

// editVerb reads: edit FILE: replace [all] OLD with NEW, or edit FILE: and a
// block of the old text and one of the new.
func editVerb(p *parser, rest string) []step {
	file, what, ok := cut(rest, ":")
	if !ok {
		return nil
	}
	file, named := name(file)
	if !named {
		return nil
	}
	if what == "" {
		before, ok := p.block()
		if len(p.lines) > 0 && strings.EqualFold(strings.Trim(strings.TrimSpace(p.lines[0]), ":"), "with") {
			p.lines = p.lines[1:]
		}
		after, also := p.block()
		if !ok || !also || before == "" {
			return nil
		}
		return []step{edit(file, before, after, false)}
	}
	what, ok = after(what, "replace")
	if !ok {
		return nil
	}
	return replacing(file, what)
}

// replaceVerb reads: replace [all] OLD with NEW in FILE.
func replaceVerb(_ *parser, rest string) []step {
	i := strings.LastIndex(rest, " in ")
	if i < 0 {
		return nil
	}
	file, named := name(rest[i+len(" in "):])
	if !named {
		return nil
	}
	return replacing(file, rest[:i])
}

func replacing(file, what string) []step {
	what, all := after(what, "all")
	if !all {
		what, all = after(what, "each")
	}
	before, with, ok := cut(what, " with ")
	if !ok || text(before) == "" {
		return nil
	}
	return []step{edit(file, text(before), text(with), all)}
}

// after is the rest of a line that begins with a word.
func after(line, word string) (string, bool) {
	if len(line) > len(word) && strings.EqualFold(line[:len(word)], word) && (line[len(word)] == ' ' || line[len(word)] == ':') {
		return strings.TrimSpace(line[len(word)+1:]), true
	}
	return line, false
}

func patchVerb(p *parser, rest string) []step {
	patch, ok := p.block()
	if !ok || strings.Trim(rest, ": ") != "" {
		return nil
	}
	return []step{{does: "apply the patch", tool: "file_apply_patch", input: object{"patchText": patch}.json()}}
}

var lineRange = regexp.MustCompile(`(?i)^(.*?),?\s+(?:from )?lines? (\d{1,9})(?:\s*(?:-|to)\s*(\d{1,9}))?$`)

// readVerb reads: read FILE [lines 10-20] [and FILE ...].
func readVerb(_ *parser, rest string) []step {
	offset, limit := 0, 0
	if m := lineRange.FindStringSubmatch(rest); m != nil {
		rest = m[1]
		offset, _ = strconv.Atoi(m[2]) // digits
		if last, err := strconv.Atoi(m[3]); err == nil {
			limit = max(1, last-offset+1)
		}
	}
	var steps []step
	for _, part := range list(rest, ",") {
		for _, file := range list(" "+part, " and ") {
			file, ok := name(file)
			if !ok {
				return nil
			}
			steps = append(steps, read(file, offset, limit))
		}
	}
	return steps
}

func listVerb(_ *parser, rest string) []step {
	folder := "."
	switch strings.ToLower(strings.TrimRight(rest, ".!")) {
	case "", "files", "all files", "the files", "the folder":
	default:
		var ok bool
		if folder, ok = name(rest); !ok {
			return nil
		}
	}
	s := read(folder, 0, 0)
	s.does = "list " + folder
	return []step{s}
}

// place takes "in PATH" off the end of a line.
func place(rest string) (what, path string) {
	if i := strings.LastIndex(rest, " in "); i >= 0 {
		if p, ok := name(rest[i+len(" in "):]); ok {
			return strings.TrimSpace(rest[:i]), p
		}
	}
	return rest, ""
}

func findVerb(_ *parser, rest string) []step {
	what, path := place(rest)
	pattern, ok := name(what)
	if !ok {
		return nil
	}
	return []step{search("file_glob", "look for files like ", pattern, path)}
}

func grepVerb(_ *parser, rest string) []step {
	what, path := place(rest)
	what, _ = after(what, "for")
	if what = unquote(what); what == "" {
		return nil
	}
	return []step{search("file_grep", "search for ", what, path)}
}

func search(tool, does, pattern, path string) step {
	in := object{"pattern": pattern}
	does += pattern
	if path != "" {
		in["path"] = path
		does += " in " + path
	}
	return step{does: does, tool: tool, input: in.json(), reads: true}
}

var (
	runFor = regexp.MustCompile(`(?i)^for (?:at most )?(\d{1,6}) ?s(?:ec(?:ond)?s?)?\s*:\s*`)
	runIn  = regexp.MustCompile(`(?i)^in (\S+?)\s*:\s+`)
)

// runVerb reads: run [for 5s:] [in FOLDER:] COMMAND, or run: and a block.
func runVerb(p *parser, rest string) []step {
	in := object{}
	if m := runFor.FindStringSubmatch(rest); m != nil {
		rest = rest[len(m[0]):]
		in["timeoutSec"] = json.Number(m[1])
	}
	if m := runIn.FindStringSubmatch(rest); m != nil {
		rest = rest[len(m[0]):]
		in["workdir"] = unquote(m[1])
	}
	command := unquote(strings.TrimPrefix(rest, ":"))
	if command == "" {
		block, _ := p.block()
		command = strings.TrimSuffix(block, "\n")
	}
	if command == "" {
		return nil
	}
	in["command"] = command
	first, _, more := strings.Cut(command, "\n")
	if more {
		first += " …"
	}
	return []step{{does: "run " + first, tool: "shell", input: in.json()}}
}

var (
	mark     = regexp.MustCompile(`^\[([ xX>-])\]\s+`)
	statuses = map[string]string{"x": "completed", "X": "completed", ">": "in_progress", "-": "cancelled", " ": "pending"}
)

// todoVerb reads: todo: FIRST; [x] SECOND.
func todoVerb(_ *parser, rest string) []step {
	type item struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	}
	var items []item
	for _, part := range list(strings.TrimPrefix(rest, ":"), ";") {
		status := "pending"
		if m := mark.FindStringSubmatch(part); m != nil {
			part, status = part[len(m[0]):], statuses[m[1]]
		}
		items = append(items, item{part, status})
	}
	if len(items) == 0 {
		return nil
	}
	does := fmt.Sprintf("note %d things to do", len(items))
	if len(items) == 1 {
		does = "note a thing to do"
	}
	return []step{{does: does, tool: "todo_write", input: object{"todos": items}.json()}}
}

// batchVerb reads: batch: DIRECTIVE; DIRECTIVE.
func batchVerb(_ *parser, rest string) []step {
	type call struct {
		Tool       string          `json:"tool"`
		Parameters json.RawMessage `json:"parameters"`
	}
	var calls []call
	for _, part := range list(strings.TrimPrefix(rest, ":"), ";") {
		for _, s := range (&parser{}).directive(part) {
			if s.tool != "" {
				calls = append(calls, call{s.tool, s.input})
			}
		}
	}
	if len(calls) == 0 {
		return nil
	}
	return []step{{does: fmt.Sprintf("make %d calls at once", len(calls)), tool: "batch", input: object{"tool_calls": calls}.json()}}
}

// callVerb reads: call TOOL {JSON}, for the tools of plugins.
func callVerb(_ *parser, rest string) []step {
	tool, input, _ := strings.Cut(rest, " ")
	if input = strings.TrimSpace(input); input == "" {
		input = "{}"
	}
	if tool == "" || !json.Valid([]byte(input)) || input[0] != '{' {
		return nil
	}
	return []step{{does: "call " + tool, tool: tool, input: json.RawMessage(input), onlyOffered: true}}
}

// delegateVerb reads: delegate [in the background]: TASK.
func delegateVerb(_ *parser, rest string) []step {
	rest, background := after(rest, "in the background")
	task := unquote(strings.TrimPrefix(rest, ":"))
	if task == "" {
		return nil
	}
	in := object{"description": strings.Join(first(strings.Fields(task), 5), " "), "prompt": task}
	if background {
		in["background"] = true
	}
	return []step{{does: "delegate a task", tool: "task", input: in.json(), onlyOffered: true}}
}

func first(words []string, n int) []string { return words[:min(n, len(words))] }

// waitVerb reads: wait [for tasks], wait 3s.
func waitVerb(p *parser, rest string) []step {
	switch strings.ToLower(strings.TrimRight(rest, ".!")) {
	case "", "for tasks", "for the tasks", "for all tasks", "for the task":
		return []step{{does: "see how the tasks are", tool: "task_control", input: object{"action": "list"}.json(), onlyOffered: true}}
	}
	return pauseVerb(p, rest)
}

var seconds = regexp.MustCompile(`(?i)^(?:for )?(\d{1,5}(?:\.\d{1,3})?) ?(ms|s|m|min)?[a-z]*[.!]?$`)

// pauseVerb reads: pause 3s. At most ten minutes.
func pauseVerb(_ *parser, rest string) []step {
	m := seconds.FindStringSubmatch(rest)
	if m == nil {
		return nil
	}
	units := map[string]time.Duration{"ms": time.Millisecond, "": time.Second, "s": time.Second, "m": time.Minute, "min": time.Minute}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil || n == 0 {
		return nil
	}
	d := min(time.Duration(n*float64(units[strings.ToLower(m[2])])), 10*time.Minute)
	return []step{{does: "pause for " + d.String(), pause: d}}
}

func sayVerb(_ *parser, rest string) []step {
	if rest = text(strings.TrimPrefix(rest, ":")); rest == "" {
		return nil
	}
	return []step{{does: "say something", say: rest}}
}

func thinkVerb(_ *parser, rest string) []step {
	if rest = text(strings.TrimPrefix(rest, ":")); rest == "" {
		return nil
	}
	return []step{{does: "think about it", think: rest}}
}
