package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Registry finds the tools of all providers by name, checks what goes into
// them and bounds what comes out. Its methods may be called from any
// goroutine.
type Registry struct {
	limits Limits
	keep   Outputs

	mu    sync.RWMutex
	tools map[string]*entry
}

type entry struct {
	spec     Spec
	source   string
	provider Provider
	schema   schema
}

// NewRegistry is an empty registry that bounds every result to limits (zero
// fields: the defaults) and gives the whole of what it cuts to keep, which may
// be nil: then what is cut is gone.
func NewRegistry(limits Limits, keep Outputs) *Registry {
	return &Registry{limits: limits.orDefaults(), keep: keep, tools: map[string]*entry{}}
}

// The names that every model provider takes.
var nameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// Add makes the tools of a provider known. source names the provider in
// messages. A name that is there already is refused, naming both sources, and
// then none of the provider's tools are added.
func (r *Registry) Add(ctx context.Context, source string, p Provider) error {
	specs, err := p.Tools(ctx)
	if err != nil {
		return fmt.Errorf("ask %s for its tools: %w", source, err)
	}
	added := make(map[string]*entry, len(specs))
	for _, s := range specs {
		if !nameForm.MatchString(s.Name) {
			return fmt.Errorf("%s has a tool called %q: a name begins with a letter and has at most 64 letters, digits, _ and -", source, s.Name)
		}
		if added[s.Name] != nil {
			return fmt.Errorf("%s has two tools called %s", source, s.Name)
		}
		if len(s.InputSchema) == 0 {
			s.InputSchema = json.RawMessage(`{"type":"object"}`)
		}
		if s.Effect == EffectUnknown {
			s.Effect = EffectExecute
		}
		added[s.Name] = &entry{spec: s, source: source, provider: p, schema: schema{source: s.InputSchema}}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range added {
		if have := r.tools[name]; have != nil {
			return fmt.Errorf("both %s and %s have a tool called %s: switch one of them off", have.source, source, name)
		}
	}
	maps.Copy(r.tools, added)
	return nil
}

// Specs are the tools that keep lets through (nil: all), by name, so that a
// model's prompt begins with the same bytes each time.
func (r *Registry) Specs(keep func(Spec) bool) []Spec {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var specs []Spec
	for _, e := range r.tools {
		if keep == nil || keep(e.spec) {
			specs = append(specs, e.spec)
		}
	}
	slices.SortFunc(specs, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
	return specs
}

// Names are the names of all tools, sorted.
func (r *Registry) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.tools))
}

// Lookup is the description of a tool, or an UnknownError.
func (r *Registry) Lookup(name string) (Spec, error) {
	e, err := r.find(name)
	if err != nil {
		return Spec{}, err
	}
	return e.spec, nil
}

// Validate checks an input against the tool's schema. An InputError names the
// field and the rule; a tool that is not there gives an UnknownError.
func (r *Registry) Validate(name string, input json.RawMessage) error {
	e, err := r.find(name)
	if err != nil {
		return err
	}
	return e.schema.check(name, input)
}

// Call runs a tool, whoever provides it, and bounds its result. It does not
// validate. An error means what it means for Provider.Call.
func (r *Registry) Call(ctx context.Context, call Call, progress func(Progress)) (Result, error) {
	e, err := r.find(call.Tool)
	if err != nil {
		return Result{}, err
	}
	result, err := e.provider.Call(ctx, call, progress)
	if err != nil {
		return Result{}, fmt.Errorf("%s of %s: %w", call.Tool, e.source, err)
	}
	// The result is whole even when the caller has given up meanwhile.
	return r.bound(context.WithoutCancel(ctx), call.Session, result), nil
}

func (r *Registry) find(name string) (*entry, error) {
	r.mu.RLock()
	e := r.tools[name]
	r.mu.RUnlock()
	if e == nil {
		return nil, &UnknownError{Name: name, Near: Nearest(name, r.Names())}
	}
	return e, nil
}

// UnknownError is a tool that no provider has.
type UnknownError struct {
	Name string
	Near []string // names that look like it, or all when none does
}

// Error names what was probably meant.
func (e *UnknownError) Error() string {
	if len(e.Near) == 0 {
		return fmt.Sprintf("there is no tool %q, and no other", e.Name)
	}
	return fmt.Sprintf("there is no tool %q; there is %s", e.Name, strings.Join(e.Near, ", "))
}
