package lines_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/boughdev/bough/host/tool/outputs/lines"
)

// search gives the hits in the form of grep: 3:match, 4-context, -- for a gap.
func search(t *testing.T, text []byte, small bool, pattern string, before, after int) string {
	t.Helper()
	p, err := lines.Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var reader = iotest.DataErrReader(bytes.NewReader(text))
	if small {
		reader = iotest.OneByteReader(bytes.NewReader(text))
	}
	err = lines.Search(t.Context(), reader, lines.Query{Pattern: p, Before: before, After: after}, func(h lines.Hit) bool {
		if !bytes.HasPrefix(text[h.Start:], h.Text) {
			t.Errorf("line %d is not at byte %d", h.Number, h.Start)
		}
		if h.Gap {
			out.WriteString("--\n")
		}
		sign := '-'
		if h.Match {
			sign = ':'
		}
		fmt.Fprintf(&out, "%d%c%s\n", h.Number, sign, h.Text)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// grep is search, written as simply as can be.
func grep(text []byte, re *regexp.Regexp, before, after int) string {
	all := strings.Split(string(text), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	var out strings.Builder
	last := -1
	for i, line := range all {
		near := false
		for j := max(0, i-after); j <= min(len(all)-1, i+before); j++ {
			near = near || re.MatchString(all[j])
		}
		if !near {
			continue
		}
		if last >= 0 && last != i-1 {
			out.WriteString("--\n")
		}
		last = i
		sign := '-'
		if re.MatchString(line) {
			sign = ':'
		}
		fmt.Fprintf(&out, "%d%c%s\n", i+1, sign, line)
	}
	return out.String()
}

func TestSearchFindsWhatGrepFinds(t *testing.T) {
	patterns := []string{"a", "^a", "c$", "^$", "ab", "a.c", "b*", "[^a]", "a|cc", "^(a|b)+$", `\bab\b`, "(?i)A", "ca*b", `\Aa`, `b\z`, "(?s)a.b", `\s`}
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		text := randomText(r, 200)
		pattern := patterns[r.IntN(len(patterns))]
		before, after := r.IntN(4), r.IntN(4)
		want := grep(text, regexp.MustCompile(pattern), before, after)
		for _, small := range []bool{false, true} {
			if got := search(t, text, small, pattern, before, after); got != want {
				t.Fatalf("%q in %q, %d before, %d after:\n%s\nwant\n%s", pattern, text, before, after, got, want)
			}
		}
	}
}

func TestSearchInLongTexts(t *testing.T) {
	var text bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintf(&text, "line %d of the text\n", i+1)
	}
	got := search(t, text.Bytes(), false, "line (1|150000|200000) ", 2, 1)
	want := "1:line 1 of the text\n2-line 2 of the text\n" +
		"--\n149998-line 149998 of the text\n149999-line 149999 of the text\n150000:line 150000 of the text\n150001-line 150001 of the text\n" +
		"--\n199998-line 199998 of the text\n199999-line 199999 of the text\n200000:line 200000 of the text\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestSearchInALineOfAnyLength(t *testing.T) {
	text := "first\n" + strings.Repeat("x", 5<<20) + "needle" + strings.Repeat("y", 3<<20) + "\nlast needle\n"
	p, err := lines.Compile("needle")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	err = lines.Search(t.Context(), strings.NewReader(text), lines.Query{Pattern: p, Before: 1}, func(h lines.Hit) bool {
		if h.Match {
			got = append(got, fmt.Sprintf("%d %s", h.Number, h.Text[h.At:h.At+6]))
			if len(h.Text) > 4<<20 {
				t.Errorf("%d bytes at once", len(h.Text))
			}
		}
		return true
	})
	if err != nil || strings.Join(got, ", ") != "2 needle, 3 needle" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestCarriageReturnsBelongToLineEnds(t *testing.T) {
	if got := search(t, []byte("ab\r\nabc\r\nb"), false, "b$", 0, 0); got != "1:ab\n--\n3:b\n" {
		t.Errorf("%q", got)
	}
}

func TestSearchStops(t *testing.T) {
	p, err := lines.Compile("a")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	count := func(lines.Hit) bool { n++; return n < 2 }
	if err := lines.Search(t.Context(), strings.NewReader("a\na\na\n"), lines.Query{Pattern: p}, count); err != nil || n != 2 {
		t.Errorf("%d hits, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lines.Search(ctx, strings.NewReader("a\n"), lines.Query{Pattern: p}, count); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := lines.Search(t.Context(), strings.NewReader("a\x00\n"), lines.Query{Pattern: p, TextOnly: true}, count); !errors.Is(err, lines.ErrBinary) {
		t.Error(err)
	}
	broken := errors.New("disk on fire")
	if err := lines.Search(t.Context(), iotest.ErrReader(broken), lines.Query{Pattern: p}, count); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestPatternsThatAreRefused(t *testing.T) {
	for pattern, why := range map[string]string{
		"(":                         "missing closing",
		`(a)\1`:                     "invalid escape",
		"a{1001}":                   "repeat count",
		strings.Repeat("a", 10_000): "at most",
	} {
		if _, err := lines.Compile(pattern); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.20q: %v", pattern, err)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	text := bytes.Repeat([]byte("some words of a line that does not have it\n"), 100_000)
	for _, pattern := range []string{"needle", "[a-z]+ needle$", "(?i)needle"} {
		p, err := lines.Compile(pattern)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(pattern, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := lines.Search(b.Context(), bytes.NewReader(text), lines.Query{Pattern: p}, func(lines.Hit) bool { return true }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
