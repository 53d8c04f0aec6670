package practice

import (
	"context"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/model"
)

// play runs a whole turn; each call is answered by respond.
func play(t *testing.T, prompt string, respond func(c *model.ToolCall) *model.ToolResult) (calls []string, last string) {
	t.Helper()
	req := &model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Text: prompt}}}}}
	for range 20 {
		var text strings.Builder
		var step []*model.ToolCall
		finished := model.Finish(0)
		for ev, err := range New().Stream(context.Background(), req) {
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString(ev.Text)
			if ev.ToolCall != nil {
				step = append(step, ev.ToolCall)
			}
			finished = max(finished, ev.Finish)
		}
		said := model.Message{Role: model.Assistant, Parts: []model.Part{{Text: text.String()}}}
		results := model.Message{Role: model.Tool}
		for _, c := range step {
			calls = append(calls, c.Name+" "+string(c.Input))
			said.Parts = append(said.Parts, model.Part{ToolCall: c})
			res := respond(c)
			res.CallID = c.ID
			results.Parts = append(results.Parts, model.Part{ToolResult: res})
		}
		req.Messages = append(req.Messages, said, results)
		if len(step) == 0 {
			if finished != model.FinishStop {
				t.Errorf("the last answer ends with %d", finished)
			}
			return calls, text.String()
		}
		if finished != model.FinishToolCalls {
			t.Errorf("an answer with calls ends with %d", finished)
		}
	}
	t.Fatal("the turn does not end")
	return nil, ""
}

func TestDirectives(t *testing.T) {
	calls, last := play(t, "Please do this:\n1. write a.txt: hello\\nworld\n2. edit `a.txt`: replace \"hello\" with goodbye\n- read a.txt\nthen read b.txt\nrun ls -l | wc\nwrite b.go:\n```go\npackage b\n\nfunc B() {}\n```\ntodo: one; two",
		func(*model.ToolCall) *model.ToolResult { return &model.ToolResult{Text: "ok"} })
	want := []string{
		`file_write {"content":"hello\nworld\n","filePath":"a.txt"}`,
		`file_edit {"filePath":"a.txt","newString":"goodbye","oldString":"hello"}`,
		`file_read {"filePath":"a.txt"}`,
		`file_read {"filePath":"b.txt"}`,
		`shell {"command":"ls -l | wc"}`,
		`file_write {"content":"package b\n\nfunc B() {}\n","filePath":"b.go"}`,
		`todo_write {"todos":[{"content":"one","status":"pending"},{"content":"two","status":"pending"}]}`,
	}
	if strings.Join(calls, "\n") != strings.Join(want, "\n") {
		t.Errorf("calls:\n%s\nwant:\n%s", strings.Join(calls, "\n"), strings.Join(want, "\n"))
	}
	if !strings.HasPrefix(last, "All 7 steps are done.") {
		t.Errorf("summary %q", last)
	}
}

func TestItRecoversFromFailures(t *testing.T) {
	calls, last := play(t, "read missing.txt\nedit a.txt: replace x with y\nrun false", func(c *model.ToolCall) *model.ToolResult {
		return &model.ToolResult{Text: "no such file", Error: strings.HasPrefix(c.ID, "step-")}
	})
	var names []string
	for _, c := range calls {
		names = append(names, strings.Fields(c)[0])
	}
	if got := strings.Join(names, " "); got != "file_read file_glob file_edit file_read shell" {
		t.Errorf("calls %s", got)
	}
	if !strings.HasPrefix(last, "0 of 3 steps are done, 3 failed.") {
		t.Errorf("summary %q", last)
	}
}

func TestOtherTextIsAnsweredWithHelp(t *testing.T) {
	calls, last := play(t, "How are you?", nil)
	if len(calls) != 0 || !strings.Contains(last, "write FILE: TEXT") {
		t.Errorf("%v, %q", calls, last)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1. write a: b\nedit a: replace b with c\nrun x")
	f.Add("write x:\n```\nunclosed")
	f.Fuzz(func(t *testing.T, prompt string) {
		for _, s := range parse(prompt) {
			if s.tool == "" || len(s.input) == 0 || s.says == "" {
				t.Errorf("a step without tool, input or words: %+v", s)
			}
		}
	})
}
