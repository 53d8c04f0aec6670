package edit_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/boughdev/bough/plugins/workspace/edit"
)

func TestReplace(t *testing.T) {
	const bom = "\xef\xbb\xbf"
	for _, c := range []struct {
		name, raw, old, new string
		all                 bool
		want                string // with a ! in front: a part of the error
	}{
		{name: "one place", raw: "a\nb\nc\n", old: "b", new: "B", want: "a\nB\nc\n"},
		{name: "crlf, one line", raw: "a\r\nb\r\nc", old: "b", new: "B", want: "a\r\nB\r\nc"},
		{name: "crlf, new lines", raw: "a\r\nb\r\nc", old: "b", new: "x\ny", want: "a\r\nx\r\ny\r\nc"},
		{name: "crlf, over lines", raw: "a\r\nb\r\nc\r\n", old: "a\nb\n", new: "b\n", want: "b\r\nc\r\n"},
		{name: "crlf, written as crlf", raw: "a\r\nb\r\nc", old: "a\r\nb", new: "a\r\nx\r\nb", want: "a\r\nx\r\nb\r\nc"},
		{name: "crlf at the end of the text", raw: "a\r\nb\r\n", old: "b\n", new: "b\nc\n", want: "a\r\nb\r\nc\r\n"},
		{name: "crlf, no last end", raw: "a\r\nb", old: "b", new: "b\nc", want: "a\r\nb\r\nc"},
		{name: "only a cr in front", raw: "a\r\nb", old: "a", new: "a!", want: "a!\r\nb"},
		{name: "mixed", raw: "a\r\nb\nc\r\nd\n", old: "a\nb\nc\nd", new: "a\nB\nc\nD", want: "a\r\nB\nc\r\nD\n"},
		{name: "mixed, new line", raw: "a\r\nb\nc\r\n", old: "b\nc", new: "b\nx\nc", want: "a\r\nb\nx\nc\r\n"},
		{name: "mixed, deletion", raw: "a\r\nb\nc\r\n", old: "a\nb\n", new: "b\n", want: "b\nc\r\n"},
		{name: "mixed, twice", raw: "a\nb\r\na\r\nb\n", old: "a\nb", new: "x", want: "!2 times, at lines 1, 3"},
		{name: "cr only", raw: "a\rb\rc\r", old: "b\nc", new: "b\nx\nc", want: "a\rb\rx\rc\r"},
		{name: "lone cr among others", raw: "a\rb\nc\n", old: "a\rb", new: "A\rb", want: "A\rb\nc\n"},
		{name: "lone cr stays", raw: "x\rx\nb\r\n", old: "b", new: "c", want: "x\rx\nc\r\n"},
		{name: "bom stays", raw: bom + "a\nb\n", old: "a\n", new: "A\n", want: bom + "A\nb\n"},
		{name: "bom and crlf", raw: bom + "a\r\nb\r\n", old: "a\nb", new: "b\na", want: bom + "b\r\na\r\n"},
		{name: "lf file, crlf asked for", raw: "a\nb\n", old: "a\r\nb", new: "a\r\nc", want: "a\nc\n"},
		{name: "lf file, crlf wanted", raw: "a\nb\n", old: "a\n", new: "a\r\n", want: "a\r\nb\n"},
		{name: "no last end", raw: "a\nb", old: "b", new: "c", want: "a\nc"},
		{name: "to nothing", raw: "a\nb\n", old: "a\nb\n", new: "", want: ""},
		{name: "stray bytes", raw: "\xff\xfea\xe9\n", old: "a", new: "b", want: "\xff\xfeb\xe9\n"},
		{name: "nul", raw: "a\x00b", old: "b", new: "c", want: "a\x00c"},
		{name: "all", raw: "a b a\nb a\r\n", old: "a", new: "xx", all: true, want: "xx b xx\nb xx\r\n"},
		{name: "all over lines", raw: "a\r\nb\na\r\nb\n", old: "a\nb\n", new: "c\n", all: true, want: "c\r\nc\r\n"},
		{name: "overlaps", raw: "aaaa", old: "aa", new: "b", all: true, want: "bb"},
		{name: "twice", raw: "a\nb\na\n", old: "a", new: "x", want: "!at lines 1, 3: give more"},
		{name: "empty", raw: "a", old: "", new: "x", want: "!oldString is empty"},
		{name: "same", raw: "a", old: "a", new: "a", want: "!are the same"},
		{name: "same but for ends", raw: "a\r\nb", old: "a\nb", new: "a\r\nb", want: "!are the same"},
	} {
		t.Run(c.name, func(t *testing.T) {
			changes, _, err := edit.Parse([]byte(c.raw)).Replace(c.old, c.new, c.all)
			if wrong, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), wrong) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(edit.Apply([]byte(c.raw), changes)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestUntouchedBytesStay replaces random stretches of random texts, and says
// the same in another way: the view of the result is the view with the
// replacement, and the lines before and after have the bytes that they had.
func TestUntouchedBytesStay(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for round := range 20_000 {
		raw, view, lines := randomFile(r)
		start := r.IntN(len(view) + 1)
		end := start + r.IntN(len(view)-start+1)
		var text strings.Builder
		for range r.IntN(6) {
			text.WriteString([]string{"a", "b", "new", "\n", "\n"}[r.IntN(5)])
		}
		parsed := edit.Parse(raw)
		if parsed.View() != view {
			t.Fatalf("the view of %q is %q, want %q", raw, parsed.View(), view)
		}
		got := edit.Apply(raw, parsed.Change(start, end, text.String()))
		what := fmt.Sprintf("round %d: %q: %d to %d become %q: %q", round, raw, start, end, text.String(), got)
		// A \r that belongs to no line end may come to stand before one.
		if now := edit.Parse(got).View(); now != view[:start]+text.String()+view[end:] && parsed.Ends().CR == 0 {
			t.Fatalf("%s\nread as %q", what, now)
		}
		first := strings.Count(view[:start], "\n")
		before := bytes.Join(lines[:first], nil)
		if !bytes.HasPrefix(got, before) {
			t.Fatalf("%s\ndoes not begin with %q", what, before)
		}
		last := strings.Count(view[:end], "\n") + 1
		if last < len(lines) {
			if after := bytes.Join(lines[last:], nil); !bytes.HasSuffix(got, after) {
				t.Fatalf("%s\ndoes not end with %q", what, after)
			}
		}
	}
}

// randomFile makes a content, its view and its lines with their ends.
func randomFile(r *rand.Rand) (raw []byte, view string, lines [][]byte) {
	ends := [][]string{{"\n"}, {"\r\n"}, {"\n", "\r\n"}, {"\n", "\r\n", "\r\r\n"}}[r.IntN(4)]
	var seen strings.Builder
	mark := ""
	if r.IntN(4) == 0 {
		mark = "\xef\xbb\xbf"
	}
	n := r.IntN(8)
	for i := range n {
		body := []string{"", "a", "b", "aa", "\tx", "\xff"}[r.IntN(6)]
		end := ends[r.IntN(len(ends))]
		if i == n-1 && r.IntN(2) == 0 {
			end = ""
		}
		lines = append(lines, []byte(mark+body+end))
		mark = ""
		seen.WriteString(body + strings.Replace(end, "\r\n", "\n", 1))
	}
	return bytes.Join(lines, nil), seen.String(), lines
}

func TestHints(t *testing.T) {
	const text = "func main() {\n\tif x {\n\t\tprint(1)\n\t}\n}\n\nfunc other() {\n\tif x {\n\t\tprint(2)\n\t}\n}\n"
	for _, c := range []struct {
		name, old string
		want      []string
	}{
		{"spaces for tabs", "func main() {\n    if x {\n        print(1)", []string{"lines 1 to 3 differ", "white space only", "2\t\tif x {"}},
		{"wrong second line", "func main() {\n\tif y {", []string{"its first line is at line 1", "2\t\tif x {", "if y {"}},
		{"longest run", "\tif x {\n\t\tprint(2)\n\t}\n\n}", []string{"its first 3 lines are at line 8", "11\t}"}},
		{"line numbers", "1\tfunc main() {\n2\t\tif x {", []string{"line numbers"}},
		{"past the end", "func other() {\n\tif x {\n\t\tprint(2)\n\t}\n}\nmore", []string{"5 lines are at line 7", "the file ends there"}},
		{"within a line", "rint(1)\nx", []string{"line 3 has its first line within"}},
		{"later line", "nothing\n\t\tprint(2)", []string{"a later one is at line 9", "7\tfunc other"}},
		{"nothing", "no such line", []string{"none of its lines"}},
		{"white space", "  \n\t\t\t\t", []string{"white space only"}},
	} {
		_, _, err := edit.Parse([]byte(text)).Replace(c.old, "new", false)
		var missing *edit.NotFoundError
		if !errors.As(err, &missing) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(missing.Hint, want) {
				t.Errorf("%s: no %q in: %s", c.name, want, missing.Hint)
			}
		}
	}
	_, _, err := edit.Parse([]byte("a\x1b[2J\nb")).Replace("a\x1b[2J\nc", "x", false)
	if err == nil || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%q", err)
	}
}

func TestHintsAreCheap(t *testing.T) {
	text := bytes.Repeat([]byte("}\n"), 1<<20)
	old := strings.Repeat("}\n", 2000) + "x"
	if _, _, err := edit.Parse(text).Replace(old, "y", false); err == nil || len(err.Error()) > 10_000 {
		t.Error(err)
	}
}

// applyDiff applies a unified diff to a text of \n lines.
func applyDiff(t *testing.T, text, diff string) string {
	t.Helper()
	from := strings.SplitAfter(text, "\n")
	var out []string
	at := 0
	var left, added int
	lines := strings.SplitAfter(diff, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "\\") || line == "" {
			continue
		}
		body := line[1:]
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "\\") {
			body = strings.TrimSuffix(body, "\n")
		}
		switch line[0] {
		case '@':
			var a, n, b, m int
			if left != 0 || added != 0 {
				t.Fatalf("%d and %d lines missing before %s", left, added, line)
			}
			if _, err := fmt.Sscanf(line, "@@ -%d,%d +%d,%d @@", &a, &n, &b, &m); err != nil {
				t.Fatal(err)
			}
			out = append(out, from[at:a-1]...)
			at, left, added = a-1, n, m
			if len(out) != b-1 {
				t.Fatalf("%s comes at line %d", line, len(out)+1)
			}
		case ' ', '-':
			if from[at] != body {
				t.Fatalf("line %d is %q, not %q", at+1, from[at], body)
			}
			at++
			left--
			if line[0] == ' ' {
				out = append(out, body)
				added--
			}
		case '+':
			out = append(out, body)
			added--
		}
	}
	return strings.Join(append(out, from[at:]...), "")
}

func TestDiffsAreTrue(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 5000 {
		var text strings.Builder
		for range r.IntN(40) {
			text.WriteString([]string{"a", "b", "\n", "\n"}[r.IntN(4)])
		}
		raw := []byte(text.String())
		var changes []edit.Change
		for at := 0; at <= len(raw) && len(changes) < 4; at += r.IntN(12) {
			end := at + r.IntN(min(6, len(raw)-at+1))
			changes = append(changes, edit.Change{Start: at, End: end, New: []byte([]string{"", "x", "y\n", "x\nz", "\n"}[r.IntN(5)])})
			at = end + 1
		}
		s := edit.Summarize(raw, changes)
		want := string(edit.Apply(raw, changes))
		if got := applyDiff(t, string(raw), s.Diff); got != want {
			t.Fatalf("%q with %+v is %q, the diff gives %q:\n%s", raw, changes, want, got, s.Diff)
		}
		if s.Added != strings.Count(s.Diff, "\n+") || s.Removed != strings.Count(s.Diff, "\n-") {
			t.Fatalf("%d and %d in\n%s", s.Added, s.Removed, s.Diff)
		}
	}
	if s := edit.Created([]byte("a\nb\n")); s.Diff != "@@ -1,0 +1,2 @@\n+a\n+b\n" || s.Added != 2 {
		t.Errorf("%+v", s)
	}
	if s := edit.Created(bytes.Repeat([]byte("a\n"), 10_000)); len(s.Diff) > 1000 || s.Added != 10_000 {
		t.Errorf("%d bytes, %d added", len(s.Diff), s.Added)
	}
}

func TestEndsAreCountedPieceByPiece(t *testing.T) {
	text := []byte("a\r\nb\nc\rd\r\r\n")
	want := edit.Ends{LF: 1, CRLF: 2, CR: 2}
	for size := 1; size <= len(text); size++ {
		var e edit.Ends
		before := byte(0)
		for at := 0; at < len(text); at += size {
			piece := text[at:min(at+size, len(text))]
			e.Count(piece, before)
			before = piece[len(piece)-1]
		}
		if e != want {
			t.Errorf("pieces of %d: %+v", size, e)
		}
	}
}
