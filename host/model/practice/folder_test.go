package practice_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/tool"
)

// folder answers calls as the workspace does, from memory, and keeps the
// conversation.
type folder struct {
	files    map[string]string
	seen     map[string]bool // files that were read or written
	tools    []tool.Spec
	messages []model.Message
	said     []string
	fail     map[string]string // result of the next call of a tool
}

func newFolder() *folder {
	return &folder{files: map[string]string{}, seen: map[string]bool{}, fail: map[string]string{}}
}

func (f *folder) request() *model.Request {
	return &model.Request{Model: "practice", Messages: f.messages, Tools: f.tools}
}

func (f *folder) call(c *model.ToolCall) model.ToolResult {
	var in struct {
		FilePath, Content, OldString, NewString, Command string
		ReplaceAll                                       bool
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return model.ToolResult{Text: err.Error(), Error: true}
	}
	if text, ok := f.fail[c.Name]; ok {
		delete(f.fail, c.Name)
		return model.ToolResult{Text: text, Error: true}
	}
	switch c.Name {
	case "file_read":
		return f.read(in.FilePath)
	case "file_write":
		if _, there := f.files[in.FilePath]; there && !f.seen[in.FilePath] {
			return model.ToolResult{Text: in.FilePath + " is there and was not read in this session", Error: true}
		}
		f.files[in.FilePath], f.seen[in.FilePath] = in.Content, true
		return model.ToolResult{Text: in.FilePath + " was made: 1 line."}
	case "file_edit":
		return f.edit(in.FilePath, in.OldString, in.NewString, in.ReplaceAll)
	case "shell":
		if in.Command == "false" {
			return model.ToolResult{Text: "[exit code 1]\n", Error: true}
		}
		return model.ToolResult{Text: "[exit code 0]\n"}
	}
	return model.ToolResult{Text: "ok"}
}

func (f *folder) read(name string) model.ToolResult {
	if name == "." {
		var names []string
		for n := range f.files {
			names = append(names, fmt.Sprintf("%s\t%d bytes\n", n, len(f.files[n])))
		}
		slices.Sort(names)
		return model.ToolResult{Text: "sub/\n" + strings.Join(names, "") + "[the end]\n"}
	}
	text, ok := f.files[name]
	if !ok {
		return model.ToolResult{Text: name + " is not there", Error: true}
	}
	f.seen[name] = true
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		fmt.Fprintf(&b, "%d\t%s\n", i+1, line)
	}
	return model.ToolResult{Text: b.String()}
}

func (f *folder) edit(name, before, after string, all bool) model.ToolResult {
	n := strings.Count(f.files[name], before)
	switch {
	case n == 0:
		return model.ToolResult{Text: name + ": oldString is not in the file", Error: true}
	case n > 1 && !all:
		return model.ToolResult{Text: fmt.Sprintf("%s: oldString is there %d times", name, n), Error: true}
	}
	f.files[name] = strings.ReplaceAll(f.files[name], before, after)
	return model.ToolResult{Text: name + " was edited at line 1."}
}
