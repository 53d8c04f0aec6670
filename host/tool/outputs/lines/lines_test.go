package lines_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/boughdev/bough/host/tool/outputs/lines"
)

func TestPagesOfAText(t *testing.T) {
	const text = "one\ntwo\nthree\nfour\nfive"
	for _, c := range []struct {
		name  string
		want  lines.Range
		lines string // number:text:cut, joined by |
		full  bool
	}{
		{"all", lines.Range{Limit: 10, MaxBytes: 100, MaxLine: 100}, "1:one:0|2:two:0|3:three:0|4:four:0|5:five:0", false},
		{"middle", lines.Range{Offset: 2, Limit: 2, MaxBytes: 100, MaxLine: 100}, "2:two:0|3:three:0", false},
		{"last", lines.Range{Offset: 5, Limit: 2, MaxBytes: 100, MaxLine: 100}, "5:five:0", false},
		{"past the end", lines.Range{Offset: 6, Limit: 2, MaxBytes: 100, MaxLine: 100}, "", false},
		{"few bytes", lines.Range{Limit: 10, MaxBytes: 8, MaxLine: 100}, "1:one:0|2:two:0", true},
		{"too few bytes", lines.Range{Offset: 3, Limit: 10, MaxBytes: 2, MaxLine: 100}, "3:three:0", true},
		{"cut lines", lines.Range{Limit: 10, MaxBytes: 100, MaxLine: 3}, "1:one:0|2:two:0|3:thr:2|4:fou:1|5:fiv:1", false},
		{"other ends", lines.Range{Limit: 2, MaxBytes: 100, MaxLine: 100, End: 'o'}, "1::0|2:ne\ntw:0", false},
	} {
		for _, r := range []struct {
			name string
			read func() (lines.Page, error)
		}{
			{"at once", func() (lines.Page, error) { return lines.Read(strings.NewReader(text), c.want) }},
			{"byte by byte", func() (lines.Page, error) {
				return lines.Read(iotest.OneByteReader(strings.NewReader(text)), c.want)
			}},
		} {
			t.Run(c.name+"/"+r.name, func(t *testing.T) {
				page, err := r.read()
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, l := range page.Lines {
					got = append(got, fmt.Sprintf("%d:%s:%d", l.Number, l.Text, l.Cut))
				}
				if strings.Join(got, "|") != c.lines || page.Full != c.full || page.Size != int64(len(text)) {
					t.Errorf("%s, full %v, %d bytes", strings.Join(got, "|"), page.Full, page.Size)
				}
				if want := int64(5); c.want.End == 0 && page.Total != want {
					t.Errorf("%d lines, want %d", page.Total, want)
				}
			})
		}
	}
}

// TestPagesJoinToTheText reads random texts page by page and puts them together
// again.
func TestPagesJoinToTheText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		text := randomText(r, 400)
		want := lines.Range{Limit: 1 + r.IntN(5), MaxBytes: 1 + r.IntN(60), MaxLine: 1000}
		var got []byte
		for offset := int64(1); ; {
			want.Offset = offset
			page, err := lines.Read(bytes.NewReader(text), want)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range page.Lines {
				if l.Number != offset || l.Start != int64(len(got)) {
					t.Fatalf("line %d at %d, want %d at %d", l.Number, l.Start, offset, len(got))
				}
				got = append(append(got, l.Text...), '\n')
				offset++
			}
			if offset > page.Total {
				break
			}
			if len(page.Lines) == 0 {
				t.Fatalf("no line %d of %d", offset, page.Total)
			}
		}
		if !bytes.Equal(got, text) && !bytes.Equal(got, append(bytes.Clone(text), '\n')) {
			t.Fatalf("%q became %q", text, got)
		}
	}
}

func randomText(r *rand.Rand, most int) []byte {
	text := make([]byte, r.IntN(most))
	for i := range text {
		text[i] = "ab\n\nc"[r.IntN(5)]
	}
	return text
}

func TestReadingNeedsLittleMemory(t *testing.T) {
	const line = "a line of a long text\n"
	big := &repeat{text: line}
	allocated := testing.AllocsPerRun(1, func() {
		big.left = 16 << 20
		page, err := lines.Read(big, lines.Range{Offset: 700_000, Limit: 10, MaxBytes: 1000, MaxLine: 100})
		if err != nil || len(page.Lines) != 10 || string(page.Lines[0].Text) != strings.TrimSpace(line) {
			t.Errorf("%+v, %v", page, err)
		}
	})
	if allocated > 100 {
		t.Errorf("%v allocations", allocated)
	}
}

// repeat is a text of any length.
type repeat struct {
	text string
	at   int
	left int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && r.left > 0 {
		k := copy(p[n:min(len(p), n+r.left)], r.text[r.at:])
		n, r.left, r.at = n+k, r.left-k, (r.at+k)%len(r.text)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
