package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheTourOfTheReadmeIsTrue runs the commands of the README's tour, one
// after another, and compares what they print. "..." in the README stands for
// any lines; ids and times are matched by their form, and an id that the README
// repeats is the same one here.
func TestTheTourOfTheReadmeIsTrue(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, tour, _ := strings.Cut(string(readme), "## In 60 seconds")
	_, tour, _ = strings.Cut(tour, "```\n$ ")
	tour, _, _ = strings.Cut(tour, "\n```")
	steps := strings.Split(tour, "\n$ ")
	if len(steps) < 5 {
		t.Fatalf("the tour has %d commands", len(steps))
	}
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	t.Cleanup(func() { endStorage(t, state) })
	try := filepath.Join(dir, "try")
	if err := os.Mkdir(try, 0o700); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, step := range steps[1:] { // the first is about the checkout
		command, want, _ := strings.Cut(step, "\n")
		for readmes, ours := range ids {
			command = strings.ReplaceAll(command, readmes, ours)
		}
		run := exec.CommandContext(t.Context(), "bash", "-c", command)
		run.Dir = try
		run.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "BOUGH_STATE_DIR="+state, "HOME="+dir)
		got, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, got)
		}
		if err := matchTour(want, string(got), ids); err != nil {
			t.Errorf("$ %s\n%v\nprinted\n%s", command, err, got)
		}
	}
}

var variable = regexp.MustCompile(`s-[0-9A-Z]{8}|\b[0-9a-f]{15}\b|/tmp/try`)

// matchTour compares what was printed with what the README shows of it, and
// notes which id here stands for which one there.
func matchTour(want, got string, ids map[string]string) error {
	var pattern strings.Builder
	var names []string
	pattern.WriteString(`(?s)^`)
	want = strings.Join(strings.Fields(want), " ") + " " // the README wraps long lines
	for _, part := range strings.SplitAfter(want, " ") {
		if part == "... " {
			pattern.WriteString(`.*?`)
			continue
		}
		at := 0
		for _, m := range variable.FindAllStringIndex(part, -1) {
			pattern.WriteString(regexp.QuoteMeta(part[at:m[0]]) + `(\S+?)`)
			names = append(names, part[m[0]:m[1]])
			at = m[1]
		}
		pattern.WriteString(regexp.QuoteMeta(part[at:]))
	}
	pattern.WriteString(`$`)
	expr := regexp.MustCompile(dateTime.ReplaceAllString(pattern.String(), `\d{4}-\d\d-\d\d \d\d:\d\d`))
	found := expr.FindStringSubmatch(strings.Join(strings.Fields(got), " ") + " ")
	if found == nil {
		return fmt.Errorf("does not match\n%s", want)
	}
	for i, name := range names {
		if known, ok := ids[name]; ok && known != found[i+1] {
			return fmt.Errorf("%s was %s before and is %s", name, known, found[i+1])
		}
		ids[name] = found[i+1]
	}
	return nil
}

// dateTime is the README's date and time in the pattern: its space split it.
var dateTime = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d`)
