package practice

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/boughdev/bough/host/model"
)

// agent works through the directives of a prompt. It holds nothing that is not
// in the conversation: it is made anew for each request and brought up to date
// by walking through what was said.
type agent struct {
	steps    []step
	offered  map[string]bool // tools
	next     int             // the first step that was not begun
	outcomes []outcome       // of the steps
	running  []int           // the steps whose calls were made last
	remarks  []string        // to begin the next answer with
	failed   []failure       // to be mended
	trying   *attempt        // to mend the first of failed
}

// outcome is how a step went.
type outcome struct {
	ok   bool
	note string
}

// failure is a step that failed, and how.
type failure struct {
	step int
	text string // of the result
}

// catchUp goes through what was answered since the prompt and says what comes
// next. Answers of another model, and those that were cut off, are passed over.
func (a *agent) catchUp(messages []model.Message) reply {
	r := a.act()
	for i := range messages {
		calls := callsOf(&messages[i])
		if !same(calls, r.calls) {
			continue
		}
		var results []model.Part
		if i+1 < len(messages) && messages[i+1].Role == model.Tool {
			results = messages[i+1].Parts
		}
		a.observe(calls, results)
		r = a.act()
	}
	return r
}

func callsOf(m *model.Message) []*model.ToolCall {
	var calls []*model.ToolCall
	for _, p := range m.Parts {
		if p.ToolCall != nil {
			calls = append(calls, p.ToolCall)
		}
	}
	return calls
}

func same(calls []*model.ToolCall, steps []step) bool {
	if len(calls) != len(steps) || len(calls) == 0 {
		return false
	}
	for i, c := range calls {
		if c.Name != steps[i].tool {
			return false
		}
	}
	return true
}

// act says what comes next.
func (a *agent) act() reply {
	var r reply
	if t := a.trying; t != nil {
		r.pieces = append(r.pieces, piece{reasoning: t.thinks})
		r.say("%s", t.says)
		r.calls = []step{t.call}
		return r
	}
	for _, text := range a.remarks {
		r.say("%s\n\n", text)
	}
	a.remarks = nil
	for a.next < len(a.steps) {
		s := &a.steps[a.next]
		if s.tool != "" && (!s.onlyOffered || a.offered[s.tool]) {
			a.begin(&r)
			return r
		}
		a.bySelf(s, &r)
		a.next++
	}
	r.say("%s", a.summary())
	return r
}

// bySelf does what needs no tool, or says that there is none for it.
func (a *agent) bySelf(s *step, r *reply) {
	a.outcomes[a.next] = outcome{ok: true}
	switch {
	case s.tool != "":
		r.say("I would %s, but the tool %s is not available here.\n\n", s.does, s.tool)
		a.outcomes[a.next] = outcome{note: "the tool " + s.tool + " is not available"}
	case s.say != "":
		r.say("%s\n\n", s.say)
	case s.think != "":
		r.pieces = append(r.pieces, piece{reasoning: s.think})
	case s.pause > 0:
		r.say("I %s.\n\n", s.does)
		r.pieces = append(r.pieces, piece{pause: s.pause})
	}
}

// begin makes the call of the next step, together with those after it as long
// as all of them only read.
func (a *agent) begin(r *reply) {
	first := a.next
	a.running = a.running[:0]
	var does []string
	for a.next < len(a.steps) && (a.next == first || a.steps[first].reads && a.steps[a.next].reads) {
		a.running = append(a.running, a.next)
		r.calls = append(r.calls, a.steps[a.next])
		does = append(does, a.steps[a.next].does)
		a.next++
	}
	step := fmt.Sprintf("Step %d of %d: ", first+1, len(a.steps))
	if len(does) > 1 {
		step = fmt.Sprintf("Steps %d to %d of %d, which do not depend on each other: ", first+1, a.next, len(a.steps))
	}
	r.pieces = append(r.pieces, piece{reasoning: step + strings.Join(does, "; ") + "."})
	r.say("I %s.", strings.Join(does, " and "))
}

// observe takes the results of the calls that act made.
func (a *agent) observe(calls []*model.ToolCall, parts []model.Part) {
	results := make([]*model.ToolResult, len(calls))
	for i, c := range calls {
		results[i] = &model.ToolResult{Text: "no result came", Error: true}
		for _, p := range parts {
			if p.ToolResult != nil && p.ToolResult.CallID == c.ID {
				results[i] = p.ToolResult
			}
		}
	}
	if t := a.trying; t != nil {
		again, out := t.then(results[0])
		if again == nil {
			a.settle(out)
		}
		a.trying = again
	} else {
		for i, step := range a.running {
			if !results[i].Error {
				a.outcomes[step] = outcome{ok: true}
				continue
			}
			a.failed = append(a.failed, failure{step, results[i].Text})
		}
	}
	for a.trying == nil && len(a.failed) > 0 {
		f := a.failed[0]
		if a.trying = mend(&a.steps[f.step], f.text); a.trying == nil {
			a.settle(outcome{note: reason(f.text)})
		}
	}
}

// settle notes how the first of the failed steps came out in the end.
func (a *agent) settle(out outcome) {
	step := a.failed[0].step
	a.failed = a.failed[1:]
	a.outcomes[step] = out
	if out.ok || a.next == len(a.steps) && len(a.failed) == 0 {
		return // the summary, which comes next, says it
	}
	does := a.steps[step].does
	a.remarks = append(a.remarks, fmt.Sprintf("I could not %s: %s. I go on.", does, out.note))
}

// summary says how each step went.
func (a *agent) summary() string {
	var b strings.Builder
	failed := 0
	for i, s := range a.steps {
		out := a.outcomes[i]
		state := "done"
		if !out.ok {
			state = "failed"
			failed++
		}
		if out.note != "" {
			state += ", " + out.note
		}
		fmt.Fprintf(&b, "\n- %s: %s", s.does, state)
	}
	return headline(len(a.steps), failed) + "\n" + b.String()
}

func headline(steps, failed int) string {
	switch {
	case steps == 1 && failed == 1:
		return "The step failed."
	case steps == 1:
		return "The step is done."
	case failed > 0:
		return fmt.Sprintf("%d of %d steps are done, %d failed.", steps-failed, steps, failed)
	}
	return fmt.Sprintf("All %d steps are done.", steps)
}

var exitCode = regexp.MustCompile(`exit (?:code|status) (\d+)`)

// reason is a few words about why a call failed.
func reason(text string) string {
	if m := exitCode.FindStringSubmatch(text); m != nil {
		return "exit code " + m[1]
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimRight(line, ".?!")
	const longest = 200
	if runes := []rune(line); len(runes) > longest {
		line = string(runes[:longest]) + "…"
	}
	if line == "" {
		return "without a word about why"
	}
	return line
}
