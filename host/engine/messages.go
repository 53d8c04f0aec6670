package engine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
)

// noResult stands in a request for the result of a call that has none in the
// history: it was cut off by a crash, or the history was forked just after it.
const noResult = "[No result was recorded: the call was interrupted, or not run. What it did is not known.]"

// conversation makes the messages of a request from the items of a path. It is
// a pure function of them, so that the request after a restart is the one
// that would have been sent without it, and it never fails: whatever a path
// holds, each call of the request is followed at once by exactly one result.
type conversation struct {
	provider string // whose opaque reasoning may go back
	images   bool   // whether the model takes them

	out     []model.Message
	answers map[int]*sessionpb.ToolResult // by the index of the call's item
	ids     map[string]int                // of calls: times they were used
	step    model.Message                 // the assistant message in the making
	results []model.Part                  // answers to its calls
}

func (c *conversation) messages(items []*session.Item) []model.Message {
	first, summary := afterSummary(items)
	c.out = make([]model.Message, 0, len(items)/2+1)
	c.ids = map[string]int{}
	answered := c.pair(items)
	if summary != nil {
		c.reminder("What was said before this point was summarised:\n\n" + summary.GetText())
	}
	for i := first; i < len(items); i++ {
		p := items[i].Payload
		switch items[i].Kind() {
		case session.KindPrompt:
			c.prompt(p)
		case session.KindNotice:
			if p.GetHidden() {
				c.flush()
				c.reminder(p.GetNotice().GetText())
			}
		case session.KindText:
			c.say(model.Part{Text: p.GetText().GetText()})
		case session.KindReasoning:
			c.reason(p.GetReasoning())
		case session.KindToolCall:
			c.call(p.GetToolCall(), c.answers[i])
		case session.KindToolResult:
			if answered[i] {
				c.flush() // what follows was said with the result known
			}
		}
	}
	c.flush()
	return c.out
}

// afterSummary is the index of the first item that the last summary does not
// stand for, and that summary. A summary counts only on its own path.
func afterSummary(items []*session.Item) (int, *sessionpb.Summary) {
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Kind() != session.KindSummary {
			continue
		}
		s := items[i].Payload.GetSummary()
		to := session.Ref{Segment: s.GetReplacesTo().GetSegment(), Number: s.GetReplacesTo().GetNumber()}
		for j := i - 1; j >= 0 && !to.IsRoot(); j-- {
			if items[j].Ref == to {
				return j + 1, s
			}
		}
		if !to.IsRoot() && items[0].Parent == to {
			return 0, s // only what it does not stand for was loaded
		}
		return i, s
	}
	return 0, nil
}

// pair finds the result of each call: the first one of its id before the next
// call of that id. It says which results belong to a call; the others are
// orphans and are left out.
func (c *conversation) pair(items []*session.Item) (answered map[int]bool) {
	c.answers, answered = map[int]*sessionpb.ToolResult{}, map[int]bool{}
	open := map[string]int{}
	for i, it := range items {
		switch it.Kind() {
		case session.KindToolCall:
			open[it.Payload.GetToolCall().GetId()] = i
		case session.KindToolResult:
			r := it.Payload.GetToolResult()
			if call, ok := open[r.GetCallId()]; ok {
				c.answers[call], answered[i] = r, true
				delete(open, r.GetCallId())
			}
		}
	}
	return answered
}

func (c *conversation) prompt(p *sessionpb.Payload) {
	c.flush()
	if p.GetHidden() {
		c.reminder(p.GetPrompt().GetText())
		return
	}
	m := model.Message{Role: model.User}
	if text := p.GetPrompt().GetText(); text != "" {
		m.Parts = append(m.Parts, model.Part{Text: text})
	}
	for _, img := range p.GetPrompt().GetImages() {
		if !c.images {
			m.Parts = append(m.Parts, model.Part{Text: imageNote(img.GetName())})
			continue
		}
		m.Parts = append(m.Parts, model.Part{Image: &model.Image{MediaType: img.GetMediaType(), Data: img.GetData()}})
	}
	if len(m.Parts) == 0 {
		m.Parts = []model.Part{{Text: "(empty)"}}
	}
	c.out = append(c.out, m)
}

func imageNote(name string) string {
	if name == "" {
		return "[An image was left out: this model takes none.]"
	}
	return fmt.Sprintf("[The image %s was left out: this model takes none.]", name)
}

// reminder tells the model something in the host's name.
func (c *conversation) reminder(text string) {
	const end = "</system-reminder>"
	text = "<system-reminder>\n" + strings.ReplaceAll(text, end, "") + "\n" + end
	c.out = append(c.out, model.Message{Role: model.User, Parts: []model.Part{{Text: text}}})
}

// say adds a part to the assistant's message. What is said after a call
// begins a new message, since results follow their calls at once.
func (c *conversation) say(p model.Part) {
	if len(c.results) > 0 {
		c.flush()
	}
	if p.Text == "" && p.Reasoning == nil {
		return
	}
	c.step.Parts = append(c.step.Parts, p)
}

// reason adds reasoning. Opaque data goes back only to the provider that made
// it; others get the text alone, and their adapters decide what to make of it.
func (c *conversation) reason(r *sessionpb.Reasoning) {
	part := &model.Reasoning{Text: r.GetText()}
	if r.GetProvider() == c.provider {
		part.Opaque, part.Provider = r.GetOpaque(), r.GetProvider()
	}
	if part.Text != "" || len(part.Opaque) > 0 {
		c.say(model.Part{Reasoning: part})
	}
}

func (c *conversation) call(call *sessionpb.ToolCall, answer *sessionpb.ToolResult) {
	id := c.uniqueID(call.GetId())
	input := json.RawMessage(call.GetInput())
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	c.step.Parts = append(c.step.Parts, model.Part{ToolCall: &model.ToolCall{ID: id, Name: call.GetName(), Input: input}})
	result := &model.ToolResult{CallID: id, Text: noResult, Error: true}
	if answer != nil {
		result.Text, result.Error = answer.GetText(), answer.GetError()
		for _, img := range answer.GetImages() {
			if !c.images {
				result.Text += "\n" + imageNote(img.GetName())
				continue
			}
			result.Images = append(result.Images, model.Image{MediaType: img.GetMediaType(), Data: img.GetData()})
		}
	}
	c.results = append(c.results, model.Part{ToolResult: result})
}

// uniqueID is id, or one that no earlier call of the request has: histories
// that were imported may use one twice.
func (c *conversation) uniqueID(id string) string {
	if id == "" {
		id = "call"
	}
	for {
		c.ids[id]++
		if c.ids[id] == 1 {
			return id
		}
		id += "_" + strconv.Itoa(c.ids[id])
	}
}

// flush ends the assistant's message and puts the results of its calls after
// it.
func (c *conversation) flush() {
	if len(c.step.Parts) > 0 {
		c.step.Role = model.Assistant
		if !speaks(c.step.Parts) {
			c.step.Parts = append(c.step.Parts, model.Part{Text: "(empty)"})
		}
		c.out = append(c.out, c.step)
	}
	if len(c.results) > 0 {
		c.out = append(c.out, model.Message{Role: model.Tool, Parts: c.results})
	}
	c.step, c.results = model.Message{}, nil
}

func speaks(parts []model.Part) bool {
	for _, p := range parts {
		if p.Text != "" || p.ToolCall != nil {
			return true
		}
	}
	return false
}
