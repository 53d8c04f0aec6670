package tool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/boughdev/bough/host/tool"
)

// kept is an Outputs that remembers the last text.
type kept struct {
	session, text string
	err           error
}

func (k *kept) Keep(_ context.Context, session, text string) (string, error) {
	k.session, k.text = session, text
	return "out-1", k.err
}

func call(t *testing.T, limits tool.Limits, keep tool.Outputs, result tool.Result) tool.Result {
	t.Helper()
	r := tool.NewRegistry(limits, keep)
	if err := r.Add(t.Context(), "test", fake{specs: []tool.Spec{{Name: "x"}}, result: result}); err != nil {
		t.Fatal(err)
	}
	got, err := r.Call(t.Context(), tool.Call{Session: "s-1", Tool: "x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestLongResultsAreCutAndKeptWhole(t *testing.T) {
	long := numbered(100_000)
	k := &kept{}
	got := call(t, tool.Limits{}, k, tool.Result{Text: long})
	if k.text != long || k.session != "s-1" || got.OutputID != "out-1" {
		t.Fatalf("kept %d of %d bytes for %q, id %q", len(k.text), len(long), k.session, got.OutputID)
	}
	if len(got.Text) > 51200 || strings.Count(got.Text, "\n") >= 2000 {
		t.Fatalf("shown: %d bytes, %d lines", len(got.Text), strings.Count(got.Text, "\n"))
	}
	if !strings.HasPrefix(got.Text, "line 0\nline 1\n") || !strings.HasSuffix(got.Text, "line 99999\n") || !strings.Contains(got.Text, "out-1") {
		t.Fatalf("shown: %.60q … %q", got.Text, got.Text[len(got.Text)-60:])
	}
	var bytes, lines int
	head, rest, _ := strings.Cut(got.Text, "\n[… ")
	if _, err := fmt.Sscanf(rest, "%d bytes, %d lines left out", &bytes, &lines); err != nil {
		t.Fatal(err)
	}
	_, tail, _ := strings.Cut(rest, "]\n")
	if whole := len(head) + 1 + bytes + len(tail); whole != len(long) {
		t.Errorf("head, left out and tail are %d bytes, the whole has %d", whole, len(long))
	}
	if n := strings.Count(head, "\n") + 1 + lines + strings.Count(tail, "\n"); n != 100_000 {
		t.Errorf("head, left out and tail are %d lines", n)
	}
}

func TestShortResultsPassUnchanged(t *testing.T) {
	k := &kept{}
	for _, text := range []string{"", "a", numbered(1999), strings.Repeat("x", 51200)} {
		if got := call(t, tool.Limits{}, k, tool.Result{Text: text}); got.Text != text || got.OutputID != "" || k.text != "" {
			t.Errorf("%d bytes were changed", len(text))
		}
	}
}

func TestAProvidersOwnOutputIDStays(t *testing.T) {
	k := &kept{}
	got := call(t, tool.Limits{Bytes: 1024}, k, tool.Result{Text: numbered(1000), OutputID: "theirs"})
	if got.OutputID != "theirs" || !strings.Contains(got.Text, "theirs") || k.text != "" || len(got.Text) > 1024 {
		t.Fatalf("id %q, %d bytes", got.OutputID, len(got.Text))
	}
}

func TestWhatCannotBeKeptIsSaid(t *testing.T) {
	got := call(t, tool.Limits{}, &kept{err: errors.New("disk on fire")}, tool.Result{Text: numbered(100_000)})
	if got.OutputID != "" || !strings.Contains(got.Text, "disk on fire") || !strings.Contains(got.Text, "not kept") {
		t.Fatalf("id %q, text ends %q", got.OutputID, got.Text[len(got.Text)-100:])
	}
}

func TestHostileResultsAreMadeHarmless(t *testing.T) {
	got := call(t, tool.Limits{}, nil, tool.Result{
		Text: "a\xffb", Details: []byte(`{"x":`), Images: []tool.Image{{Data: make([]byte, 17<<20)}}, Files: make([]tool.FileState, 20000),
	})
	if !utf8.ValidString(got.Text) || got.Details != nil || got.Images != nil || len(got.Files) > 10000 || !strings.Contains(got.Text, "1 images") {
		t.Fatalf("%q, details %s, %d images, %d files", got.Text, got.Details, len(got.Images), len(got.Files))
	}
}

func FuzzCut(f *testing.F) {
	f.Add("a\nb\nc\n", uint16(300), uint16(2))
	f.Add(strings.Repeat("é", 4000), uint16(1024), uint16(10))
	f.Add(strings.Repeat("\n", 5000), uint16(1024), uint16(10))
	f.Add("x"+strings.Repeat("y", 3000)+"\n", uint16(1024), uint16(10))
	f.Fuzz(func(t *testing.T, text string, bytes, lines uint16) {
		l := tool.Limits{Bytes: 256 + int(bytes), Lines: 6 + int(lines)}
		text = strings.ToValidUTF8(text, "?")
		if l.Fits(text) {
			return
		}
		cut := l.Cut(text, "out-1")
		if !l.Fits(cut) || !utf8.ValidString(cut) {
			t.Fatalf("%+v: %d bytes, %d lines, valid %v", l, len(cut), strings.Count(cut, "\n"), utf8.ValidString(cut))
		}
	})
}
