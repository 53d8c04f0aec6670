// Package practice is a model that needs no key and no network: it follows
// plain directives in the prompt by fixed rules, so that everything around a
// model can be tried. What it answers depends on the request alone, so a
// session that is resumed goes on where it was. See docs/practice.md.
package practice

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"strings"

	"github.com/boughdev/bough/host/model"
)

// Name is what the model is called.
const Name = "practice"

const contextTokens = 200_000

// New is the provider of the practice model.
func New() model.Provider { return provider{} }

type provider struct{}

// Models implements model.Provider.
func (provider) Models(context.Context) ([]model.Info, error) {
	return []model.Info{{Name: Name, ContextTokens: contextTokens, Images: true, Reasoning: true}}, nil
}

// Stream implements model.Provider.
func (provider) Stream(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		if r.Model != "" && r.Model != Name {
			yield(model.Event{}, &model.Error{Class: model.ClassUnknownModel, Provider: Name,
				Message: fmt.Sprintf("there is no model %q here, only %q", r.Model, Name)})
			return
		}
		answer(r).stream(ctx, r, yield)
	}
}

// answer is what the model says and does next.
func answer(r *model.Request) reply {
	c := current(r)
	steps := parse(c.prompt)
	if len(steps) == 0 {
		return reply{pieces: []piece{{text: c.about() + help}}}
	}
	offered := map[string]bool{}
	for _, t := range r.Tools {
		offered[t.Name] = true
	}
	a := &agent{steps: steps, offered: offered, outcomes: make([]outcome, len(steps))}
	return a.catchUp(c.messages)
}

// conversation is what was said since the prompt that is being worked on.
type conversation struct {
	prompt   string
	images   int
	messages []model.Message // after the prompt
}

var goOn = regexp.MustCompile(`(?i)^\s*(?:please\s+)?(?:go on|continue|proceed|resume)(?:,? please)?\s*[.!]?\s*$`)

// current finds the last prompt. "Go on" stands for the prompt before it.
func current(r *model.Request) conversation {
	var c conversation
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role != model.User {
			continue
		}
		text, images := said(m)
		if text == "" && images == 0 || goOn.MatchString(text) && c.prompt != "" {
			continue
		}
		c = conversation{prompt: text, images: images, messages: r.Messages[i+1:]}
	}
	return c
}

// said is what the person wrote in a message: reminders are the host's.
func said(m *model.Message) (text string, images int) {
	var texts []string
	for _, p := range m.Parts {
		switch {
		case p.Image != nil:
			images++
		case p.Text != "" && !strings.HasPrefix(p.Text, "<system-reminder>"):
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n"), images
}

// about says what cannot be answered otherwise.
func (c *conversation) about() string {
	switch {
	case c.images == 1:
		return "You sent a picture, which I cannot look at.\n\n"
	case c.images > 1:
		return fmt.Sprintf("You sent %d pictures, which I cannot look at.\n\n", c.images)
	}
	return ""
}
