package workspace_test

import (
	"fmt"
	"strings"
	"testing"

	contract "github.com/boughdev/bough/host/workspace"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs"
)

// kept stores a text as an output of a session.
func (b *bench) kept(session, text string) string {
	b.t.Helper()
	id, err := outputs.New(b.outputs).KeepAs(b.t.Context(), session, "shell", []byte(text))
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func TestToolOutput(t *testing.T) {
	b := newBench(t)
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	text.WriteString("\x1b[31m" + strings.Repeat("x", 100_000) + "needle\nend")
	id := b.kept("s-1", text.String())
	for _, c := range []struct {
		input in
		want  string
	}{
		{in{"offset": 3, "limit": 2}, "line 3\nline 4\n[lines 3 to 4 of 1002; go on with offset 5]\n"},
		{in{"offset": 1002}, "end\n[lines 1002 to 1002, the end]\n"},
		{in{"pattern": "^line 5.7$"}, "507:line 507\n517:line 517\n527:line 527\n537:line 537\n547:line 547\n557:line 557\n567:line 567\n577:line 577\n587:line 587\n597:line 597\n[10 matches]\n"},
		{in{"pattern": "^line 50$", "context_before": 1, "context_after": 2}, "49-line 49\n50:line 50\n51-line 51\n52-line 52\n[1 match]\n"},
		{in{"pattern": "line", "offset": 998}, "998:line 998\n999:line 999\n1000:line 1000\n[3 matches]\n"},
		{in{"pattern": "line", "limit": 2}, "1:line 1\n2:line 2\n[the first 2 matches; go on with offset 3]\n"},
		{in{"pattern": "nothing"}, "No line matches nothing.\n"},
		{in{"byte_offset": 7, "limit": 1}, "line 2\n[bytes 7 to 14 of 108908; go on with byte_offset 14]\n"},
		{in{"byte_offset": 108_905}, "end\n[bytes 108905 to 108908, the end]\n"},
	} {
		c.input["output_id"] = id
		if got := b.ok("tool_output", c.input); got != c.want {
			t.Errorf("%v: %q, want %q", c.input, got, c.want)
		}
	}
	if got := b.ok("tool_output", in{"output_id": id}); !strings.HasPrefix(got, "line 1\n") || !strings.HasSuffix(got, "line 200\n[lines 1 to 200 of 1002; go on with offset 201]\n") {
		t.Errorf("%q", got)
	}
	if got := b.ok("tool_output", in{"output_id": id, "pattern": "line"}); strings.Count(got, ":line") != 100 {
		t.Errorf("%d matches", strings.Count(got, ":line"))
	}
	if got := b.ok("tool_output", in{"output_id": id, "pattern": "line", "limit": 2000}); strings.Count(got, ":line") != 200 {
		t.Errorf("%d matches", strings.Count(got, ":line"))
	}
	if got := b.ok("tool_output", in{"output_id": id, "pattern": "needle"}); len(got) > 700 || !strings.Contains(got, "needle") {
		t.Errorf("%d bytes", len(got))
	}
	// A long line is cut, and its rest can be read.
	got := b.ok("tool_output", in{"output_id": id, "offset": 1001, "limit": 1})
	if !strings.HasPrefix(got, "␛[31mxxx") || !strings.Contains(got, "[… 98011 more bytes of line 1001, from byte_offset 10893]") {
		t.Errorf("%q", got[len(got)-200:])
	}
	if got = b.ok("tool_output", in{"output_id": id, "byte_offset": 10_893}); !strings.HasPrefix(got, "xxxx") || !strings.Contains(got, " of 108908; go on with byte_offset") {
		t.Errorf("%q", got[len(got)-200:])
	}
	for want, input := range map[string]in{
		"offset is 1003, but the output has 1002 lines": {"offset": 1003},
		"byte_offset is 108908, but the output has":     {"byte_offset": 108_908},
		"leave pattern and offset out":                  {"byte_offset": 5, "offset": 5},
		"RE2 syntax":                                    {"pattern": "("},
		"this session; it has output-shell":             {"output_id": "output-shel"},
		`there is no output "../s-1/output-shell"`:      {"output_id": "../s-1/output-shell"},
		"context_before is 9; it must be from 0 to 5":   {"pattern": "x", "context_before": 9},
	} {
		if input["output_id"] == nil {
			input["output_id"] = id
		}
		b.fails("tool_output", input, want)
	}
}

func TestOutputsBelongToTheirSession(t *testing.T) {
	b := newBench(t)
	id := b.kept("s-2", "secret")
	b.fails("tool_output", in{"output_id": id}, "no outputs")
	b.kept("s-1", "mine")
	if got := b.ok("tool_output", in{"output_id": id}); !strings.HasPrefix(got, "mine\n") {
		t.Errorf("%q", got)
	}
	// It works when the folder is gone.
	if err := b.w.Open(t.Context(), contract.Session{ID: "s-2", Folder: "/nowhere"}); err != nil {
		t.Fatal(err)
	}
	r, err := b.w.Call(t.Context(), tool.Call{Session: "s-2", Tool: "tool_output", Input: []byte(`{"output_id":"` + id + `"}`)}, nil)
	if err != nil || r.Error || r.Text != "secret\n[lines 1 to 1, the end]\n" {
		t.Errorf("%+v, %v", r, err)
	}
}
