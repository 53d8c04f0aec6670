package engine

import (
	"path/filepath"
	"strings"

	"github.com/boughdev/bough/host/engine/hosttools"
	"github.com/boughdev/bough/host/policy"
	"github.com/boughdev/bough/host/tool"
)

// footprint is what a call may disturb, or be disturbed by.
type footprint struct {
	alone bool // runs a program: with everything that touches files
	write bool
	paths []string // resolved; none and not alone: nothing
}

// footprintOf tells the footprint of a call. One that will be refused has
// none.
func footprintOf(call tool.Call, tools *tool.Registry, folder string) footprint {
	spec, err := tools.Lookup(call.Tool)
	switch {
	case err != nil:
		return footprint{}
	case spec.Name == hosttools.Batch:
		return footprint{alone: true} // its calls can be anything
	case spec.Effect == tool.EffectNone:
		return footprint{}
	case spec.Effect != tool.EffectRead && spec.Effect != tool.EffectWrite:
		return footprint{alone: true}
	}
	paths, known := policy.Paths(call, spec, folder)
	if !known {
		return footprint{alone: true}
	}
	f := footprint{write: spec.Effect == tool.EffectWrite}
	for _, p := range paths {
		real, err := policy.Resolve(p)
		if err != nil {
			real = filepath.Clean(p)
		}
		f.paths = append(f.paths, real)
	}
	return f
}

// disturbs tells whether two calls must not run at the same time.
func (f footprint) disturbs(g footprint) bool {
	nothing := func(f footprint) bool { return !f.alone && len(f.paths) == 0 }
	switch {
	case nothing(f), nothing(g):
		return false
	case f.alone, g.alone:
		return true
	case !f.write && !g.write:
		return false
	}
	for _, a := range f.paths {
		for _, b := range g.paths {
			if a == b || below(a, b) || below(b, a) {
				return true
			}
		}
	}
	return false
}

func below(path, dir string) bool {
	sep := string(filepath.Separator)
	return strings.HasPrefix(path, strings.TrimSuffix(dir, sep)+sep)
}

// schedule starts calls in their order, each as soon as no earlier call that
// it could disturb is unfinished, and not more than limit at a time.
type schedule struct {
	prints []footprint
	limit  int

	begun, over []bool
	running     int
}

func newSchedule(prints []footprint, limit int) *schedule {
	return &schedule{prints: prints, limit: limit, begun: make([]bool, len(prints)), over: make([]bool, len(prints))}
}

// next are the calls to start now.
func (s *schedule) next() []int {
	var start []int
	for i := range s.prints {
		if s.running >= s.limit {
			break
		}
		if !s.begun[i] && s.clear(i) {
			s.begun[i] = true
			s.running++
			start = append(start, i)
		}
	}
	return start
}

func (s *schedule) clear(i int) bool {
	for j := range i {
		if !s.over[j] && s.prints[j].disturbs(s.prints[i]) {
			return false
		}
	}
	return true
}

func (s *schedule) finish(i int) {
	s.over[i] = true
	s.running--
}
