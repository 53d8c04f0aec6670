// Package practice is a model that needs no key and no network: it follows
// plain directives in the prompt by fixed rules, so that everything around a
// model can be tried. See docs/practice.md.
package practice

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/boughdev/bough/host/model"
)

// Name is what the model is called.
const Name = "practice"

// New is the provider of the practice model.
func New() model.Provider { return provider{} }

type provider struct{}

// Models implements model.Provider.
func (provider) Models(context.Context) ([]model.Info, error) {
	return []model.Info{{Name: Name, ContextTokens: 200_000, Reasoning: true}}, nil
}

// Stream implements model.Provider. The answer depends on the request only.
func (provider) Stream(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		a := answer(r)
		for ev := range a.events(r) {
			if err := ctx.Err(); err != nil {
				yield(model.Event{}, err)
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
	}
}

// reply is one answer: some text, and calls.
type reply struct {
	reasoning string
	text      string
	calls     []model.ToolCall
}

// events cuts the answer into small pieces, as a real model does.
func (a reply) events(r *model.Request) iter.Seq[model.Event] {
	return func(yield func(model.Event) bool) {
		words := func(s string, wrap func(string) model.Event) bool {
			for _, w := range strings.SplitAfter(s, " ") {
				if w != "" && !yield(wrap(w)) {
					return false
				}
			}
			return true
		}
		if a.reasoning != "" {
			if !words(a.reasoning, func(s string) model.Event { return model.Event{Reasoning: s} }) ||
				!yield(model.Event{ReasoningDone: &model.Reasoning{Text: a.reasoning, Provider: Name}}) {
				return
			}
		}
		if !words(a.text, func(s string) model.Event { return model.Event{Text: s} }) {
			return
		}
		out := len(a.reasoning) + len(a.text)
		for i := range a.calls {
			out += len(a.calls[i].Input)
			if !yield(model.Event{ToolCall: &a.calls[i]}) {
				return
			}
		}
		if !yield(model.Event{Usage: &model.Usage{InputTokens: size(r) / 4, OutputTokens: out/4 + 1, ReasoningTokens: len(a.reasoning) / 4}}) {
			return
		}
		finish := model.FinishStop
		if len(a.calls) > 0 {
			finish = model.FinishToolCalls
		}
		yield(model.Event{Finish: finish})
	}
}

func size(r *model.Request) int {
	n := len(r.System)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			n += len(p.Text)
			if p.ToolCall != nil {
				n += len(p.ToolCall.Input)
			}
			if p.ToolResult != nil {
				n += len(p.ToolResult.Text)
			}
		}
	}
	return n
}

// turn is what the conversation says since the person's last message.
type turn struct {
	prompt  string
	calls   []model.ToolCall
	results map[string]*model.ToolResult
	number  int // of messages before the prompt, to make call ids unique
}

func lastTurn(r *model.Request) turn {
	t := turn{results: map[string]*model.ToolResult{}}
	for i, m := range r.Messages {
		if m.Role == model.User {
			var text []string
			for _, p := range m.Parts {
				if p.Text != "" && !strings.HasPrefix(p.Text, "<system-reminder>") {
					text = append(text, p.Text)
				}
			}
			if len(text) > 0 {
				t = turn{prompt: strings.Join(text, "\n"), results: map[string]*model.ToolResult{}, number: i}
			}
			continue
		}
		for _, p := range m.Parts {
			if p.ToolCall != nil {
				t.calls = append(t.calls, *p.ToolCall)
			}
			if p.ToolResult != nil {
				t.results[p.ToolResult.CallID] = p.ToolResult
			}
		}
	}
	return t
}

// answer decides what to do next: the first directives that were not acted on
// yet, or what an error asks for, or the summary.
func answer(r *model.Request) reply {
	t := lastTurn(r)
	steps := parse(t.prompt)
	if len(steps) == 0 {
		return reply{text: help}
	}
	if n := len(t.calls); n > 0 {
		if a, ok := recoverFrom(t, t.calls[n-1]); ok {
			return a
		}
	}
	done := 0
	for _, c := range t.calls {
		if strings.HasPrefix(c.ID, "step-") {
			done++
		}
	}
	if done >= len(steps) {
		return reply{text: summary(t, steps)}
	}
	next := steps[done : done+1]
	for done+len(next) < len(steps) && next[0].reads && steps[done+len(next)].reads {
		next = steps[done : done+len(next)+1]
	}
	var a reply
	var say []string
	for i, s := range next {
		a.calls = append(a.calls, model.ToolCall{
			ID: fmt.Sprintf("step-%d-%d", t.number, done+i+1), Name: s.tool, Input: s.input,
		})
		say = append(say, s.says)
	}
	a.text = "I " + strings.Join(say, " and ") + "."
	a.reasoning = fmt.Sprintf("Step %d of %d: %s.", done+1, len(steps), say[0])
	return a
}

// recoverFrom answers a failed call once: a file that is not there is looked
// for, an edit that did not fit reads the file again.
func recoverFrom(t turn, c model.ToolCall) (reply, bool) {
	res := t.results[c.ID]
	if res == nil || !res.Error || strings.HasPrefix(c.ID, "fix-") {
		return reply{}, false
	}
	id := strings.Replace(c.ID, "step-", "fix-", 1)
	var in struct {
		FilePath string `json:"filePath"`
	}
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return reply{}, false
	}
	switch c.Name {
	case "file_read":
		return reply{
			reasoning: "The file could not be read. What is there may tell why.",
			text:      fmt.Sprintf("Reading %s failed: %s. I look which files there are.", in.FilePath, firstLine(res.Text)),
			calls:     []model.ToolCall{{ID: id, Name: "file_glob", Input: object("pattern", "**/*")}},
		}, true
	case "file_edit":
		return reply{
			reasoning: "The edit does not fit the file as it is. I read it again before I say more.",
			text:      fmt.Sprintf("The edit of %s failed: %s. I read the file again.", in.FilePath, firstLine(res.Text)),
			calls:     []model.ToolCall{{ID: id, Name: "file_read", Input: object("filePath", in.FilePath)}},
		}, true
	}
	return reply{}, false
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSuffix(line, ".")
}

// summary says how each directive went.
func summary(t turn, steps []step) string {
	var b strings.Builder
	failed := 0
	i := 0
	for _, c := range t.calls {
		if !strings.HasPrefix(c.ID, "step-") || i >= len(steps) {
			continue
		}
		mark := "done"
		if res := t.results[c.ID]; res == nil || res.Error {
			mark = "failed"
			failed++
		}
		fmt.Fprintf(&b, "\n- %s: %s", steps[i].says, mark)
		i++
	}
	head := fmt.Sprintf("All %d steps are done.", len(steps))
	if failed > 0 {
		head = fmt.Sprintf("%d of %d steps are done, %d failed.", len(steps)-failed, len(steps), failed)
	}
	return head + "\n" + b.String()
}
