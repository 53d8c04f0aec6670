package practice_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/model/practice"
	"github.com/boughdev/bough/host/tool"
)

// turn plays a whole turn: each call is answered by the folder. It returns the
// calls, and what was said last.
func turn(t *testing.T, f *folder, prompt string) (calls []string, last string) {
	t.Helper()
	f.messages = append(f.messages, model.Message{Role: model.User, Parts: []model.Part{{Text: prompt}}})
	return resume(t, f)
}

// resume plays the rest of a turn.
func resume(t *testing.T, f *folder) (calls []string, last string) {
	t.Helper()
	for range 50 {
		said, finish := ask(t, f.request())
		results := model.Message{Role: model.Tool}
		last = ""
		for _, p := range said.Parts {
			last += p.Text
			if c := p.ToolCall; c != nil {
				calls = append(calls, c.Name+" "+string(c.Input))
				res := f.call(c)
				res.CallID = c.ID
				results.Parts = append(results.Parts, model.Part{ToolResult: &res})
			}
		}
		f.messages = append(f.messages, said)
		f.said = append(f.said, last)
		if len(results.Parts) == 0 {
			if finish != model.FinishStop {
				t.Errorf("the last answer ends with %d", finish)
			}
			return calls, last
		}
		if finish != model.FinishToolCalls {
			t.Errorf("an answer with calls ends with %d", finish)
		}
		f.messages = append(f.messages, results)
	}
	t.Fatal("the turn does not end")
	return nil, ""
}

// ask sends one request and puts the answer together.
func ask(t *testing.T, r *model.Request) (model.Message, model.Finish) {
	t.Helper()
	m := model.Message{Role: model.Assistant}
	var text strings.Builder
	var calls []model.Part
	var finish model.Finish
	for ev, err := range practice.New().Stream(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(ev.Text)
		if ev.ToolCall != nil {
			calls = append(calls, model.Part{ToolCall: ev.ToolCall})
		}
		finish = max(finish, ev.Finish)
	}
	if text.Len() > 0 {
		m.Parts = append(m.Parts, model.Part{Text: text.String()})
	}
	m.Parts = append(m.Parts, calls...)
	return m, finish
}

func prompt(text string) *model.Request {
	return &model.Request{Model: practice.Name, Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Text: text}}}}}
}

func TestStreamingInPieces(t *testing.T) {
	var text, reasoning, deltas int
	var whole, done string
	var usage *model.Usage
	last := model.Event{}
	for ev, err := range practice.New().Stream(t.Context(), prompt("write a.txt: "+strings.Repeat("long ", 100))) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Text != "" {
			text++
		}
		if ev.Reasoning != "" {
			reasoning++
			whole += ev.Reasoning
		}
		if ev.ReasoningDone != nil {
			done = ev.ReasoningDone.Text
		}
		if ev.ToolCallDelta != nil {
			deltas++
		}
		if ev.Usage != nil {
			usage = ev.Usage
		}
		last = ev
	}
	if text < 2 || reasoning < 5 || deltas < 5 || whole != done || done != "Step 1 of 1: write a.txt." {
		t.Errorf("%d pieces of text, %d of reasoning (%q, %q), %d of the call", text, reasoning, whole, done, deltas)
	}
	if last.Finish != model.FinishToolCalls {
		t.Errorf("the last event is %+v", last)
	}
	if usage == nil || usage.InputTokens < 120 || usage.OutputTokens < 120 || usage.ReasoningTokens == 0 || usage.CacheReadTokens != 0 {
		t.Errorf("usage %+v", usage)
	}
}

func TestUsageOfALaterStepIsCached(t *testing.T) {
	f := newFolder()
	turn(t, f, "write a.txt: hello\nread a.txt")
	var usage model.Usage
	for ev := range practice.New().Stream(t.Context(), f.request()) {
		if ev.Usage != nil {
			usage = *ev.Usage
		}
	}
	if usage.CacheReadTokens <= usage.InputTokens {
		t.Errorf("usage %+v: most of the request was sent before", usage)
	}
}

func TestOtherTextIsAnsweredWithHelp(t *testing.T) {
	for _, text := range []string{"How are you?", "write me a poem", "Read the docs and tell me more.", "```\nrun ls\n```", "run", "edit a.txt", "batch: hello"} {
		calls, last := turn(t, newFolder(), text)
		if len(calls) != 0 || !strings.Contains(last, "write FILE: TEXT") {
			t.Errorf("%q: %v, %q", text, calls, last)
		}
	}
}

func TestAPictureIsMentioned(t *testing.T) {
	r := &model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Image: &model.Image{MediaType: "image/png"}}}}}}
	if m, _ := ask(t, r); !strings.HasPrefix(m.Parts[0].Text, "You sent a picture") {
		t.Errorf("said %q", m.Parts[0].Text)
	}
}

func TestAPauseEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got error
	for ev, err := range practice.New().Stream(ctx, prompt("pause 5m")) {
		if strings.Contains(ev.Text, "5m") {
			cancel()
		}
		got = err
	}
	if !errors.Is(got, context.Canceled) {
		t.Errorf("the pause ended with %v", got)
	}
	begun := time.Now()
	if m, _ := ask(t, prompt("pause 20ms")); !strings.Contains(m.Parts[0].Text, "The step is done") || time.Since(begun) < 20*time.Millisecond {
		t.Errorf("after %s: %q", time.Since(begun), m.Parts[0].Text)
	}
}

func TestToolsOfPluginsAreCalledIfThereAre(t *testing.T) {
	const text = "delegate in the background: count the files\nwait for tasks\ncall weather {\"city\": \"Bern\"}"
	f := newFolder()
	calls, last := turn(t, f, text)
	if len(calls) != 0 || strings.Count(last, "is not available here") != 3 || !strings.Contains(last, "0 of 3 steps are done, 3 failed.") {
		t.Errorf("without the tools: %v, %q", calls, last)
	}
	f.tools = []tool.Spec{{Name: "task"}, {Name: "task_control"}, {Name: "weather"}}
	calls, last = turn(t, f, text)
	want := []string{
		`task {"background":true,"description":"count the files","prompt":"count the files"}`,
		`task_control {"action":"list"}`, `weather {"city": "Bern"}`,
	}
	if fmt.Sprint(calls) != fmt.Sprint(want) || !strings.HasPrefix(last, "All 3 steps are done.") {
		t.Errorf("with the tools: %v, %q", calls, last)
	}
}

// The state is in the messages: whatever is done to the process in between,
// and whatever ids the host gives the calls, the answer is the same.
func TestAResumedSessionGoesOn(t *testing.T) {
	const text = "write a.txt: one\nread a.txt\nread nowhere.txt\nsay hello\nrun false\nread a.txt"
	f := newFolder()
	calls, last := turn(t, f, text)
	for _, m := range f.messages { // other ids, as after an import
		for i := range m.Parts {
			if c := m.Parts[i].ToolCall; c != nil {
				c.ID = "call_" + c.ID
			}
			if r := m.Parts[i].ToolResult; r != nil {
				r.CallID = "call_" + r.CallID
			}
		}
	}
	for cut := 1; cut < len(f.messages); cut++ {
		part := newFolder()
		if cut > 1 {
			part.files["a.txt"] = "one\n"
		}
		part.messages = append(part.messages, f.messages[:cut]...)
		if f.messages[cut-1].Role == model.Assistant {
			continue // cut between a call and its result: the host answers it first
		}
		part.messages = append(part.messages, // what a crash leaves of an answer, and what the host says about it
			model.Message{Role: model.Assistant, Parts: []model.Part{{Text: "I wri"}}},
			model.Message{Role: model.User, Parts: []model.Part{{Text: "<system-reminder>\nIt was restarted.\n</system-reminder>"}}})
		more, end := resume(t, part)
		if end != last || !strings.HasSuffix(strings.Join(calls, "\n"), strings.Join(more, "\n")) {
			t.Errorf("cut after %d messages: %v, %q", cut, more, end)
		}
	}
}

func TestGoOnAfterAnInterruption(t *testing.T) {
	f := newFolder()
	f.messages = []model.Message{
		{Role: model.User, Parts: []model.Part{{Text: "write a.txt: one\nwrite b.txt: two"}}},
		{Role: model.Assistant, Parts: []model.Part{{ToolCall: &model.ToolCall{ID: "1", Name: "file_write", Input: []byte(`{}`)}}}},
		{Role: model.Tool, Parts: []model.Part{{ToolResult: &model.ToolResult{CallID: "1", Text: "ok"}}}},
	}
	calls, last := turn(t, f, "Please go on.")
	if len(calls) != 1 || !strings.Contains(calls[0], "b.txt") || !strings.HasPrefix(last, "All 2 steps are done.") {
		t.Errorf("%v, %q", calls, last)
	}
}

func TestAnotherModelIsUnknown(t *testing.T) {
	for _, err := range practice.New().Stream(t.Context(), &model.Request{Model: "gpt"}) {
		var failure *model.Error
		if !errors.As(err, &failure) || failure.Class != model.ClassUnknownModel {
			t.Errorf("%v", err)
		}
	}
	list, err := practice.New().Models(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != practice.Name || list[0].Unusable != "" {
		t.Errorf("%+v, %v", list, err)
	}
}
