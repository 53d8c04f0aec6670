package policy

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/boughdev/bough/host/policy/shellline"
)

// Rule is what somebody decided about commands of the shell.
type Rule struct {
	Effect  Outcome
	Pattern Pattern
	Origin  string // who made it, and where: for people
}

// Rules decide about lines of the shell. They do not change; their methods may
// be called from any goroutine.
type Rules struct {
	List []Rule
	// Closed denies what no rule allows, in place of asking.
	Closed bool
}

// Part is what became of one command of a line, or of something else in it.
type Part struct {
	Text    string // the command; empty: the line as a whole
	Outcome Outcome
	Reason  string
}

// Verdict is what is decided about a line, part by part.
type Verdict struct {
	Decision
	Parts []Part
	// Once: a person may let the line run this time, but no rule can be made
	// of it.
	Once bool
}

// Shell decides about a line that runs in that folder. Whatever forbids wins;
// then what asks, where it is as specific as what allows; and the line runs
// only if every command of it is allowed.
func (r *Rules) Shell(line *shellline.Line, folder string) Verdict {
	var v Verdict
	for _, c := range slices.Concat(line.Commands, line.Hidden) {
		if rule := r.forbids(c, folder); rule != nil {
			v.add(c.Text, Deny, "the rule `"+rule.Pattern.String()+"` of "+rule.Origin+" denies it")
		}
	}
	if line.Always != "" {
		v.add("", Ask, line.Always+", which has to be asked each time")
	}
	for _, why := range line.Opaque {
		v.add("", Ask, why+", so not all that it does can be told")
	}
	v.Once = !line.Clear()
	for _, c := range line.Commands {
		outcome, reason := r.command(c, folder)
		v.add(c.Text, outcome, reason)
	}
	for _, c := range line.Hidden {
		if rule := r.heaviest(c, folder, Ask); rule != nil {
			v.add(c.Text, Ask, "the rule `"+rule.Pattern.String()+"` of "+rule.Origin+" asks for it")
		}
	}
	v.sum()
	return v
}

func (v *Verdict) add(text string, o Outcome, reason string) {
	part := Part{text, o, reason}
	if !slices.Contains(v.Parts, part) {
		v.Parts = append(v.Parts, part)
	}
}

// sum makes one decision of the parts: the strictest.
func (v *Verdict) sum() {
	v.Decision = Decision{Allow, "runs nothing"}
	var reasons []string
	for i, p := range v.Parts {
		switch {
		case i == 0 || p.Outcome < v.Outcome:
			v.Outcome, reasons = p.Outcome, []string{p.said()}
		case p.Outcome == v.Outcome:
			reasons = append(reasons, p.said())
		}
	}
	if len(reasons) > 0 {
		v.Reason = strings.Join(reasons, "; ")
	}
}

func (p Part) said() string {
	if p.Text == "" {
		return p.Reason
	}
	return "`" + p.Text + "`: " + p.Reason
}

// command decides about a command that runs as it stands.
func (r *Rules) command(c shellline.Command, folder string) (Outcome, string) {
	ask, allow := r.heaviest(c, folder, Ask), r.heaviest(c, folder, Allow)
	switch {
	case ask != nil && (allow == nil || ask.Pattern.weight() >= allow.Pattern.weight()):
		return Ask, "the rule `" + ask.Pattern.String() + "` of " + ask.Origin + " asks for it"
	case allow != nil:
		return Allow, "the rule `" + allow.Pattern.String() + "` of " + allow.Origin + " allows it"
	}
	if why := risky(c); why != "" && !r.Closed {
		return Ask, why
	}
	if why := innocent(c); why != "" {
		return Allow, why
	}
	if r.Closed {
		return Deny, "no rule allows it, and what no rule allows is denied"
	}
	return Ask, "no rule allows it"
}

func (r *Rules) forbids(c shellline.Command, folder string) *Rule {
	return r.heaviest(c, folder, Deny)
}

// heaviest is the rule of that effect that says the most about a command; nil:
// there is none. What restricts also knows a program by its bare name and by
// what a link leads to; what allows only goes by what is written.
func (r *Rules) heaviest(c shellline.Command, folder string, effect Outcome) *Rule {
	var best *Rule
	var ways [][]string
	for i := range r.List {
		rule := &r.List[i]
		if rule.Effect != effect || best != nil && rule.Pattern.weight() <= best.Pattern.weight() {
			continue
		}
		if ways == nil {
			ways = [][]string{c.Words}
			if effect != Allow {
				ways = spellings(c, folder)
			}
		}
		if slices.ContainsFunc(ways, rule.Pattern.Matches) {
			best = rule
		}
	}
	return best
}

// spellings are the words of a command, with each name that its program has.
func spellings(c shellline.Command, folder string) [][]string {
	ways := [][]string{c.Words}
	add := func(name string) {
		for _, known := range ways {
			if known[0] == name {
				return
			}
		}
		ways = append(ways, append([]string{name}, c.Words[1:]...))
	}
	if name := c.Name(); name != "" {
		add(name)
		if real := program(c.Words[0], folder); real != "" {
			add(filepath.Base(real))
		}
	}
	return ways
}

// program is the file that a name of a command stands for; empty: none is
// known.
func program(name, folder string) string {
	path := name
	switch {
	case !strings.Contains(name, "/"):
		found, err := exec.LookPath(name)
		if err != nil {
			return ""
		}
		path = found
	case !filepath.IsAbs(name):
		path = filepath.Join(folder, name)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	return real
}
