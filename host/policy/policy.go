// Package policy decides what a tool call may do. It knows the call, the
// tool's description and the session's folder; it asks nobody itself: what it
// cannot decide is a question, which an Asker puts to the person, or which is
// denied where there is nobody to ask.
package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/boughdev/bough/host/tool"
)

// Outcome is what a decision comes to.
type Outcome int

const (
	// Deny refuses the call; nothing but another configuration changes that.
	Deny Outcome = iota
	// Ask needs a person.
	Ask
	// Allow lets the call run.
	Allow
)

// String is the name used in logs and in JSON.
func (o Outcome) String() string {
	return [...]string{"deny", "ask", "allow"}[o]
}

// Decision is an outcome with its reason, one clause for people and models.
type Decision struct {
	Outcome Outcome
	Reason  string
}

// Options are a policy's settings.
type Options struct {
	// Yolo allows whatever would ask. What is denied stays denied.
	Yolo bool
	// Allowed are tools that never ask, as the person wrote them: FileRead
	// and file_read are the same.
	Allowed []string
	// Disallowed are tools that the model is not offered and may not call.
	Disallowed []string
}

// Policy is a set of rules. It does not change; its methods may be called from
// any goroutine.
type Policy struct {
	yolo       bool
	allowed    map[string]bool
	disallowed map[string]bool
}

// New makes the policy of the options. A tool that is not among names is an
// error that lists them.
func New(o Options, names []string) (*Policy, error) {
	allowed, err := toolSet("--allowed-tools", o.Allowed, names)
	if err != nil {
		return nil, err
	}
	disallowed, err := toolSet("--disallowed-tools", o.Disallowed, names)
	if err != nil {
		return nil, err
	}
	return &Policy{yolo: o.Yolo, allowed: allowed, disallowed: disallowed}, nil
}

func toolSet(flag string, given, names []string) (map[string]bool, error) {
	set := map[string]bool{}
	for _, g := range given {
		name := strings.TrimSpace(g)
		if !slices.Contains(names, name) {
			name = tool.Snake(name)
		}
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%s: there is no tool %q; the tools are %s", flag, g, strings.Join(names, ", "))
		}
		set[name] = true
	}
	return set, nil
}

// Offers tells whether the model gets to know of a tool.
func (p *Policy) Offers(s tool.Spec) bool { return !p.disallowed[s.Name] }

// Decide says what may become of a call in a session of that folder, which is
// absolute. The files are looked at for symbolic links, so it is to be asked
// just before the call runs.
func (p *Policy) Decide(call tool.Call, spec tool.Spec, folder string) Decision {
	if p.disallowed[spec.Name] {
		return Decision{Deny, spec.Name + " is switched off by --disallowed-tools"}
	}
	d := byEffect(call, spec, folder)
	if d.Outcome != Ask {
		return d
	}
	switch {
	case p.allowed[spec.Name]:
		return Decision{Allow, "--allowed-tools names " + spec.Name}
	case p.yolo:
		return Decision{Allow, "--yolo"}
	}
	return d
}

func byEffect(call tool.Call, spec tool.Spec, folder string) Decision {
	switch spec.Effect {
	case tool.EffectNone:
		return Decision{Allow, "touches nothing"}
	case tool.EffectRead, tool.EffectWrite:
	default:
		return Decision{Ask, spec.Name + " runs a program, which can do anything"}
	}
	paths, known := Paths(call, spec, folder)
	if !known {
		return Decision{Ask, "it cannot be told which files " + spec.Name + " touches"}
	}
	for _, path := range paths {
		if reason := concern(path, folder); reason != "" {
			return Decision{Ask, reason}
		}
	}
	return Decision{Allow, "stays within the session's folder"}
}

// Asker puts a question to a person.
type Asker interface {
	// Ask returns when the person has answered, or with an error when ctx
	// ends. It may be called from several goroutines at once.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Question is a call that needs a person.
type Question struct {
	Call   tool.Call
	Spec   tool.Spec
	Folder string
	Reason string // why it is asked
}

// Answer is what the person said.
type Answer struct {
	Allow    bool
	Guidance string // for the model, when the answer is no; may be empty
}

// HeadlessRefusal tells the model and the reader of a log why a question was
// denied in a run that has nobody to ask, and what would allow it.
func HeadlessRefusal(call tool.Call, reason string) string {
	return fmt.Sprintf("%s needs a permission that nobody can give here: %s; `--allowed-tools %s` or `--yolo` allows it",
		call.Tool, reason, call.Tool)
}
