package outputs_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs"
	"github.com/boughdev/bough/host/tool/outputs/lines"
)

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestShortOutputsAreShownWhole(t *testing.T) {
	for _, text := range []string{"", "a", "a\n", numbered(1999), strings.Repeat("x", outputs.DefaultBytes)} {
		if got := outputs.Bound([]byte(text), tool.Limits{}, "output"); got != text {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
	}
	if got := outputs.Bound([]byte("\x1b[31mred\xff"), tool.Limits{}, ""); got != `␛[31mred\xff` {
		t.Error(got)
	}
}

func TestLongOutputsShowTheirEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		text   string
		limits tool.Limits
	}{
		{"many lines", numbered(100_000), tool.Limits{}},
		{"few lines more", numbered(2001), tool.Limits{}},
		{"one line", strings.Repeat("0123456789", 20_000), tool.Limits{}},
		{"a long last line", numbered(100) + strings.Repeat("x", 100_000), tool.Limits{}},
		{"no end of line", numbered(100_000) + "end", tool.Limits{}},
		{"controls", strings.Repeat("\x1b", 30_000), tool.Limits{}},
		{"strays", strings.Repeat("\xff", 51_200), tool.Limits{}},
		{"small", numbered(500), tool.Limits{Bytes: 1024, Lines: 10}},
		{"empty lines", strings.Repeat("\n", 5000), tool.Limits{}},
		{"crlf", strings.ReplaceAll(numbered(30_000), "\n", "\r\n"), tool.Limits{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := outputs.Bound([]byte(c.text), c.limits, "output-x-2")
			checkExcerpt(t, c.text, got, c.limits)
			if !strings.Contains(got, "output_id output-x-2 ") {
				t.Errorf("no id in %.200q", got)
			}
		})
	}
	if got := outputs.Bound([]byte(numbered(3000)), tool.Limits{}, ""); !strings.Contains(got, "not kept") {
		t.Error(got)
	}
}

// checkExcerpt accounts for every byte and line of a text that was too long.
func checkExcerpt(t *testing.T, text, got string, limits tool.Limits) {
	t.Helper()
	if limits.Bytes == 0 {
		limits = tool.Limits{Bytes: outputs.DefaultBytes, Lines: outputs.DefaultLines}
	}
	if !limits.Fits(got) || !utf8.ValidString(got) {
		t.Fatalf("%d bytes, %d lines", len(got), strings.Count(got, "\n"))
	}
	head, rest, ok := strings.Cut(got, "\n[… ")
	var bytes, ends int
	if _, err := fmt.Sscanf(rest, "%d bytes, %d lines left out", &bytes, &ends); !ok || err != nil {
		t.Fatalf("no note in %.300q", got)
	}
	_, tail, _ := strings.Cut(rest, "]\n")
	whole := lines.Visible([]byte(text))
	if !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) {
		t.Fatalf("%.60q … %.60q are not the ends", head, tail)
	}
	shown := strings.Count(head, "\n") + strings.Count(tail, "\n")
	if strings.HasPrefix(whole, head+"\n") {
		shown++ // the note begins with it
		if ends+shown == strings.Count(whole, "\n")+1 {
			shown--
		}
	}
	if ends+shown != strings.Count(whole, "\n") {
		t.Errorf("%d line ends left out and %d shown are not %d", ends, shown, strings.Count(whole, "\n"))
	}
	if whole == text && !strings.Contains(text, "\r") { // each byte is shown as itself
		if n := len(head) + bytes + len(tail); n != len(text) && n+1 != len(text) {
			t.Errorf("%d + %d + %d bytes are not %d", len(head), bytes, len(tail), len(text))
		}
	}
	if bytes <= 0 || bytes > len(text) {
		t.Errorf("%d of %d bytes left out", bytes, len(text))
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add("a\nb\nc\n", uint16(300), uint16(2), uint8(3))
	f.Add(strings.Repeat("é\xff\n", 400), uint16(700), uint16(10), uint8(100))
	f.Add(strings.Repeat("\n", 5000), uint16(1024), uint16(10), uint8(7))
	f.Add(strings.Repeat("a\r\n", 500)+"\r", uint16(0), uint16(0), uint8(1))
	f.Fuzz(func(t *testing.T, text string, bytes, ends uint16, piece uint8) {
		limits := tool.Limits{Bytes: 512 + int(bytes), Lines: 10 + int(ends)}
		e := outputs.NewExcerpt(limits)
		for rest := text; rest != ""; {
			n := min(len(rest), int(piece)+1)
			e.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		got := e.Text("output")
		if whole := lines.Visible([]byte(text)); limits.Fits(whole) && len(text) <= limits.Bytes {
			if got != whole {
				t.Fatalf("%q became %q", whole, got)
			}
			return
		}
		if strings.Contains(text, "[… ") || strings.Contains(text, "]\n") {
			return // not to be told from the note
		}
		if got == lines.Visible([]byte(text)) {
			return
		}
		checkExcerpt(t, text, got, limits)
	})
}

func TestExcerptsOfFloodsTakeLittleMemory(t *testing.T) {
	e := outputs.NewExcerpt(tool.Limits{})
	chunk := []byte(numbered(8000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 20_000_000 / len(chunk) * 10 {
		e.Write(chunk)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d bytes", grown)
	}
	size, n := e.Size()
	if size%int64(len(chunk)) != 0 || n != size/int64(len(chunk))*8000 {
		t.Errorf("%d bytes, %d lines", size, n)
	}
}
