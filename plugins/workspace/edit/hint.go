package edit

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/boughdev/bough/host/tool/outputs/lines"
)

// What a hint shows at most.
const (
	hintLines  = 12
	hintWidth  = 200
	longestRun = 200 // lines that are compared at one place
)

var numberedLine = regexp.MustCompile(`^\s*\d+\t`)

// hint tells what in the text comes nearest to one that does not occur in it:
// the same lines with other white space, or the longest run of its first lines
// and where it breaks off. It takes time linear in the text.
func (t *Text) hint(old string) string {
	want := strings.Split(strings.ReplaceAll(strings.TrimSuffix(old, LF), CRLF, LF), LF)
	have := strings.Split(strings.TrimSuffix(string(t.view), LF), LF)
	if numbered(want) {
		return "it begins with line numbers as file_read shows them; give the text without them"
	}
	trimmed := make([]string, len(have))
	for i, line := range have {
		trimmed[i] = strings.TrimSpace(line)
	}
	for i, line := range want {
		want[i] = strings.TrimSpace(line)
	}
	for want[0] == "" && len(want) > 1 {
		want = want[1:]
	}
	if want[0] == "" {
		return "it is white space only"
	}
	at, run := bestRun(trimmed, want)
	switch {
	case run == min(len(want), longestRun):
		return fmt.Sprintf("lines %d to %d differ from it in white space only; they are\n%s", at+1, at+run, quote(have, at, run))
	case run > 0:
		next := "the file ends there"
		if at+run < len(have) {
			next = "the file goes on with\n" + quote(have, at+run, 3)
		}
		return fmt.Sprintf("its first %s at line %d, but then %s\nwhere oldString has\n%s", plural(run, "line is", "lines are"), at+1, next, clip(want[run]))
	}
	if i := slices.IndexFunc(have, func(line string) bool { return strings.Contains(line, want[0]) }); i >= 0 {
		return fmt.Sprintf("line %d has its first line within another text:\n%s", i+1, quote(have, i, 1))
	}
	for _, line := range want[1:] {
		if i := slices.Index(trimmed, line); i >= 0 && line != "" {
			return fmt.Sprintf("its first line is nowhere; a later one is at line %d:\n%s", i+1, quote(have, max(i-2, 0), 5))
		}
	}
	return "none of its lines does; read the file again"
}

// numbered tells whether each line begins with a number and a tab.
func numbered(text []string) bool {
	for _, line := range text {
		if !numberedLine.MatchString(line) {
			return false
		}
	}
	return true
}

// bestRun finds where the most of the first lines of want follow each other.
func bestRun(have, want []string) (at, run int) {
	for i, line := range have {
		if line != want[0] {
			continue
		}
		n := 1
		for n < min(len(want), longestRun) && i+n < len(have) && have[i+n] == want[n] {
			n++
		}
		if n > run {
			at, run = i, n
		}
	}
	return at, run
}

// quote shows lines of the file with their numbers.
func quote(have []string, at, n int) string {
	var b strings.Builder
	end := min(at+n, len(have))
	for i := at; i < end; i++ {
		if i == at+hintLines {
			fmt.Fprintf(&b, "… %d more lines\n", end-i)
			break
		}
		fmt.Fprintf(&b, "%d\t%s\n", i+1, clip(have[i]))
	}
	return strings.TrimSuffix(b.String(), LF)
}

func clip(line string) string { return lines.Clip([]byte(line), 0, hintWidth) }

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf("%d %s", n, many)
}
