package lines_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/boughdev/bough/host/tool/outputs/lines"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n":           "plain\ttext\n",
		"grün 日本 👩‍👩‍👧":           "grün 日本 👩‍👩‍👧",
		"\x1b[31mred\x1b[0m":      "␛[31mred␛[0m",
		"a\r\nb\r\n":              "a\nb\n",
		"10%\r20%\r":              "10%␍20%␍",
		"\x00\x07\x7f":            "␀␇␡",
		"\u009b31m":               `\u009b31m`,
		"a\u202eb\u2066c":         `a\u202eb\u2066c`,
		"tag\U000e0041":           `tag\U000e0041`,
		"caf\xe9 \xff\xfe":        `caf\xe9 \xff\xfe`,
		"cut \xe2\x82":            `cut \xe2\x82`,
		"\x1b]0;title\x07rest":    "␛]0;title␇rest",
		"real \ufffd stays":       "real \ufffd stays",
		strings.Repeat("é", 3000): strings.Repeat("é", 3000),
	} {
		if got := lines.Visible([]byte(text)); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	long := strings.Repeat("a", 1000) + "needle" + strings.Repeat("b", 1000)
	for _, c := range []struct {
		at   int
		want []string
	}{
		{0, []string{"aaaa", "[… 1906 bytes]"}},
		{1000, []string{"[975 bytes …]aaa", "needle", "[… 931 bytes]"}},
	} {
		got := lines.Clip([]byte(long), c.at, 100)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("at %d: %q has no %q", c.at, got, want)
			}
		}
	}
	if got := lines.Clip([]byte("short"), 3, 100); got != "short" {
		t.Error(got)
	}
}

func FuzzVisible(f *testing.F) {
	f.Add([]byte("a\x1b[0m\r\n\xff\u202e"), 10)
	f.Add([]byte("日本\r\r\n"), 3)
	f.Add([]byte("\xf0\x9f\x91\xa9\xe2\x80"), 8)
	f.Fuzz(func(t *testing.T, text []byte, most int) {
		all := lines.Visible(text)
		if !utf8.ValidString(all) {
			t.Fatalf("%q is not UTF-8", all)
		}
		for _, r := range all {
			if r != '\n' && r != '\t' && unicode.IsControl(r) || r >= 0x202a && r <= 0x202e {
				t.Fatalf("%q holds %U", all, r)
			}
		}
		most %= len(text) + 10
		head, used := lines.VisibleHead(text, max(most, 0))
		if len(head) > max(most, 0) || !strings.HasPrefix(all, string(head)) {
			t.Fatalf("head %q of %q", head, all)
		}
		// The rest may begin with a line end whose carriage return went before.
		if rest := lines.Visible(text[used:]); string(head)+rest != all {
			t.Fatalf("%q and %q are not %q", head, rest, all)
		}
		tail, used := lines.VisibleTail(text, max(most, 0))
		if len(tail) > max(most, 0) || !strings.HasSuffix(all, string(tail)) || string(tail) != lines.Visible(text[len(text)-used:]) {
			t.Fatalf("tail %q of %q", tail, all)
		}
	})
}
