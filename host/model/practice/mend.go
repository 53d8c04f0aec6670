package practice

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/boughdev/bough/host/model"
)

// attempt is one call that may mend a step that failed. With its result, then
// says what to try next, or, with nothing left to try, how the step came out.
type attempt struct {
	thinks, says string
	call         step
	then         func(*model.ToolResult) (*attempt, outcome)
}

// mend is what to do about a step that failed; nil: nothing.
func mend(s *step, failed string) *attempt {
	denied := strings.HasPrefix(failed, "Denied")
	switch {
	case denied:
		return nil
	case s.reads && strings.Contains(failed, "interrupted"):
		return once("It was interrupted. Reading again does no harm.", fmt.Sprintf("I %s again.", s.does), *s)
	case s.tool == "file_read":
		return lookAround(s, failed)
	case s.tool == "file_edit":
		return editAgain(s, failed)
	case s.tool == "file_write" && (strings.Contains(failed, "read") || strings.Contains(failed, "changed")):
		return writeAgain(s, failed)
	}
	return nil
}

// once is an attempt with nothing after it.
func once(thinks, says string, call step, note ...string) *attempt {
	return &attempt{thinks, says, call, func(res *model.ToolResult) (*attempt, outcome) {
		if res.Error {
			return nil, outcome{note: reason(res.Text)}
		}
		return nil, outcome{ok: true, note: strings.Join(note, " ")}
	}}
}

// lookAround lists the folder of a file that cannot be read, and reads the
// file that was probably meant.
func lookAround(s *step, failed string) *attempt {
	dir := path.Dir(s.path)
	return &attempt{
		"The file cannot be read. What is in its folder may tell why.",
		fmt.Sprintf("Reading %s failed: %s. I look what is there.", s.path, reason(failed)),
		read(dir, 0, 0),
		func(res *model.ToolResult) (*attempt, outcome) {
			meant := ""
			if !res.Error {
				meant = nearest(path.Base(s.path), names(res.Text))
			}
			if meant == "" {
				return nil, outcome{note: reason(failed)}
			}
			meant = path.Join(dir, meant)
			return once(
				fmt.Sprintf("Of what is there, %s comes nearest to what was asked for.", meant),
				fmt.Sprintf("There is %s: I read that instead.", meant),
				read(meant, 0, 0), "as "+meant), outcome{}
		},
	}
}

// names are those of the files in a listing of a folder: one a line, what
// follows a tab or an arrow is about the file.
func names(listing string) []string {
	var list []string
	for line := range strings.SplitSeq(listing, "\n") {
		line, _, _ = strings.Cut(line, "\t")
		line, _, _ = strings.Cut(line, " -> ")
		if line != "" && !strings.HasSuffix(line, "/") && !strings.HasPrefix(line, "[") {
			list = append(list, line)
		}
	}
	return list
}

// writeAgain reads a file that must be known before it is replaced.
func writeAgain(s *step, failed string) *attempt {
	return &attempt{
		"The file has to be read before it is replaced.",
		fmt.Sprintf("Writing %s failed: %s. I read it first.", s.path, reason(failed)),
		read(s.path, 0, 0),
		func(res *model.ToolResult) (*attempt, outcome) {
			if res.Error {
				return nil, outcome{note: reason(failed)}
			}
			return once("Now it can be replaced.", fmt.Sprintf("I %s again.", s.does), *s), outcome{}
		},
	}
}

// editAgain reads a file that an edit did not fit, and edits what is there.
func editAgain(s *step, failed string) *attempt {
	return &attempt{
		"The edit does not fit the file as it is. Reading it shows what is there.",
		fmt.Sprintf("The edit of %s failed: %s. I read the file again.", s.path, reason(failed)),
		read(s.path, 0, 0),
		func(res *model.ToolResult) (*attempt, outcome) {
			if res.Error {
				return nil, outcome{note: reason(failed)}
			}
			return fit(s, content(res.Text), failed)
		},
	}
}

var numbered = regexp.MustCompile(`^ *\d+\t`)

// content is a file's text as it is shown: each line after its number and a
// tab.
func content(shown string) string {
	var lines []string
	for line := range strings.SplitSeq(shown, "\n") {
		if n := numbered.FindString(line); n != "" {
			lines = append(lines, line[len(n):])
		}
	}
	return strings.Join(lines, "\n")
}

// fit makes an edit that fits the text: the same one if it does by now, all
// places if there are several, else what looks most like the text to replace.
func fit(s *step, text, failed string) (*attempt, outcome) {
	switch n := strings.Count(text, s.old); {
	case n == 1:
		return once("What is to be replaced is there, once.", fmt.Sprintf("I %s again.", s.does), *s), outcome{}
	case n > 1:
		return once(
			fmt.Sprintf("What is to be replaced is there %d times.", n),
			fmt.Sprintf("It fits %d places: I change each.", n),
			edit(s.path, s.old, s.new, true), fmt.Sprintf("in %d places", n)), outcome{}
	}
	line, span := closest(s.old, text)
	if line == "" {
		return nil, outcome{note: reason(failed)}
	}
	return once(
		fmt.Sprintf("The text is not there, but this comes near: %q.", span),
		fmt.Sprintf("%s has %q instead: I change that.", s.path, span),
		edit(s.path, line, strings.Replace(line, span, s.new, 1), false), fmt.Sprintf("for %q", span)), outcome{}
}
