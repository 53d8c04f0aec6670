package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/boughdev/bough/plugins/workspace/edit"
	"github.com/boughdev/bough/plugins/workspace/patch"
)

func wrap(body string) string { return "*** Begin Patch\n" + body + "*** End Patch" }

func TestParse(t *testing.T) {
	p, err := patch.Parse("\n*** Begin Patch\n*** Add File: new.txt\n+one\n+\n+*** two\n\n*** Update File: dir/a b.txt  \n*** Move to: c.txt\n" +
		"@@ class A\n@@ def f\n context\n-old\n+new\n\n@@\n-x\n*** End of File\n*** Delete File: gone\n*** End Patch\n\n")
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%+v", p.Files)
	want := "[{Op:1 Path:new.txt MoveTo: Content:one\n\n*** two\n Chunks:[] Line:2} " +
		"{Op:2 Path:dir/a b.txt MoveTo:c.txt Content: Chunks:[" +
		"{Line:9 Headers:[class A def f] Lines:[{Kind:32 Text:context bare:false} {Kind:45 Text:old bare:false} {Kind:43 Text:new bare:false} {Kind:32 Text: bare:true}] AtEnd:false} " +
		"{Line:15 Headers:[] Lines:[{Kind:45 Text:x bare:false}] AtEnd:true}] Line:7} " +
		"{Op:3 Path:gone MoveTo: Content: Chunks:[] Line:18}]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	crlf, err := patch.Parse(strings.ReplaceAll(wrap("*** Add File: a\n+x\n"), "\n", "\r\n"))
	if err != nil || crlf.Files[0].Path != "a" || crlf.Files[0].Content != "x\n" {
		t.Errorf("%+v, %v", crlf, err)
	}
}

func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":           {"", "line 1 of the patch: a patch begins with"},
		"a unified diff":    {"--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n", "a patch begins with"},
		"a heredoc":         {"apply_patch <<'EOF'\n" + wrap("") + "\nEOF", "a patch begins with"},
		"cut off":           {"*** Begin Patch\n*** Add File: a\n+x", "cut off"},
		"cut off in the @@": {"*** Begin Patch\n*** Update File: a\n@@\n-x\n+", "cut off"},
		"no file":           {wrap(""), "names no file"},
		"unknown verb":      {wrap("*** Rename File: a\n"), `line 2 of the patch: "*** Rename File: a" is none of`},
		"no path":           {wrap("*** Delete File: \n"), "line 2 of the patch: the path is missing"},
		"no target":         {wrap("*** Update File: a\n*** Move to:  \n"), "line 3 of the patch: the path is missing"},
		"no plus":           {wrap("*** Add File: a\n+x\ny\n"), `line 4 of the patch: every line of the new file a begins with +, this one is "y"`},
		"no sign":           {wrap("*** Update File: a\n@@\n-x\ny\n"), `line 5 of the patch: a line of an update begins with a space, + or -, this one is "y"`},
		"no change":         {wrap("*** Update File: a\n"), "changes nothing"},
		"no lines":          {wrap("*** Update File: a\n@@ x\n"), "no lines after @@"},
		"no lines at end":   {wrap("*** Update File: a\n@@ x\n*** End of File\n"), "no lines before"},
		"text after":        {wrap("*** Delete File: a\n") + "\nmore", `"more" comes after the end`},
		"text before":       {wrap("hello\n"), `line 2 of the patch: "hello" is none of`},
	} {
		if p, err := patch.Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

const file = "package a\n\nfunc one() {\n\treturn 1\n}\n\nfunc two() {\n\treturn 1\n}\n"

func TestApply(t *testing.T) {
	for _, c := range []struct {
		name, text, body string
		want             string // with a ! in front: a part of the error
		loose            bool
	}{
		{name: "one line", text: file, body: "@@\n-package a\n+package b\n", want: strings.Replace(file, "package a", "package b", 1)},
		{name: "no @@", text: file, body: "-package a\n+package b\n", want: strings.Replace(file, "package a", "package b", 1)},
		{name: "context", text: file, body: "@@\n func two() {\n-\treturn 1\n+\treturn 2\n }\n", want: strings.Replace(file, "two() {\n\treturn 1", "two() {\n\treturn 2", 1)},
		{name: "header", text: file, body: "@@ func two() {\n-\treturn 1\n+\treturn 2\n", want: strings.Replace(file, "two() {\n\treturn 1", "two() {\n\treturn 2", 1)},
		{name: "header repeated", text: file, body: "@@ func two() {\n func two() {\n-\treturn 1\n+\treturn 2\n", want: strings.Replace(file, "two() {\n\treturn 1", "two() {\n\treturn 2", 1)},
		{name: "line numbers", text: file, body: "@@ -7,3 +7,3 @@ func two\n func two() {\n-\treturn 1\n+\treturn 2\n", want: strings.Replace(file, "two() {\n\treturn 1", "two() {\n\treturn 2", 1)},
		{name: "two chunks", text: file, body: "@@ func one() {\n-\treturn 1\n+\treturn 10\n@@ func two() {\n-\treturn 1\n+\treturn 2\n",
			want: "package a\n\nfunc one() {\n\treturn 10\n}\n\nfunc two() {\n\treturn 2\n}\n"},
		{name: "insertion after header", text: file, body: "@@ func one() {\n+\t// hi\n", want: strings.Replace(file, "one() {\n", "one() {\n\t// hi\n", 1)},
		{name: "insertion at the end", text: "a\n", body: "@@\n+b\n", want: "a\nb\n"},
		{name: "insertion at an end without \\n", text: "a", body: "@@\n+b\n+c\n", want: "a\nb\nc"},
		{name: "insertion into nothing", text: "", body: "@@\n+b\n", want: "b\n"},
		{name: "after an end without \\n", text: "a\nb", body: "@@\n b\n+c\n", want: "a\nb\nc"},
		{name: "change of an end without \\n", text: "a\nb", body: "@@\n-b\n+c\n+d\n", want: "a\nc\nd"},
		{name: "deletion of all", text: "a\nb\n", body: "@@\n-a\n-b\n", want: ""},
		{name: "end of file", text: "x\na\nx\n", body: "@@\n-x\n+y\n*** End of File\n", want: "x\na\ny\n"},
		{name: "not at the end", text: "x\na\n", body: "@@\n-x\n+y\n*** End of File\n", want: "!is to be at the end of the file, but its lines are at line 1"},
		{name: "twice", text: file, body: "@@\n-\treturn 1\n+\treturn 2\n", want: "!line 3 of the patch fits at lines 4, 8: give more"},
		{name: "nowhere", text: file, body: "@@\n-nothing\n+x\n", want: "!no line of the file after line 0 is \"nothing\""},
		{name: "nearly", text: file, body: "@@\n func two() {\n-\treturn 3\n+x\n", want: "!begins like line 7, but line 8 is \"\\treturn 1\" where the patch has \"\\treturn 3\""},
		{name: "wrong order", text: "a\nb\nc\n", body: "@@\n-c\n+C\n@@\n-a\n+A\n", want: "!fits at line 1 only, which comes before"},
		{name: "no header", text: file, body: "@@ func three() {\n-\treturn 1\n", want: "!has the header \"func three() {\""},
		{name: "white space at ends", text: "a  \nb\n", body: "@@\n a\n-b\n+c\n", want: "a  \nc\n", loose: true},
		{name: "indentation", text: "\t\ta\n\t\tb\n", body: "@@\n     a\n-    b\n+\t\tc\n", want: "\t\ta\n\t\tc\n", loose: true},
		{name: "crlf", text: "a\r\nb\r\nc\r\n", body: "@@\n a\n-b\n+x\n+y\n c\n", want: "a\r\nx\r\ny\r\nc\r\n"},
		{name: "mixed", text: "a\r\nb\nc\r\n", body: "@@\n a\n-b\n+x\n c\n", want: "a\r\nx\nc\r\n"},
		{name: "bom", text: "\xef\xbb\xbfa\n", body: "@@\n-a\n+b\n", want: "\xef\xbb\xbfb\n"},
		{name: "blank lines for the eye", text: "a\nb\n", body: "@@\n-a\n+A\n\n@@\n-b\n+B\n\n", want: "A\nB\n"},
		{name: "blank line as context", text: "a\n\nb\n", body: "@@\n-a\n+A\n\n b\n", want: "A\n\nb\n"},
		{name: "stray bytes", text: "\xffa\nb\xfe", body: "@@\n-b�\n+c\n", want: "!fits nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := patch.Parse(wrap("*** Update File: f\n" + c.body))
			if err != nil {
				t.Fatal(err)
			}
			changes, loose, err := p.Files[0].Changes(edit.Parse([]byte(c.text)))
			if wrong, fails := strings.CutPrefix(c.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), wrong) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(edit.Apply([]byte(c.text), changes)); got != c.want || loose != c.loose {
				t.Errorf("%q, loose %v\nwant %q", got, loose, c.want)
			}
		})
	}
}

// FuzzPatch reads anything, and applies what it can read: to a file that
// has just the lines that a change names the change must fit, and leave just the
// lines that it says.
func FuzzPatch(f *testing.F) {
	f.Add(wrap("*** Add File: a\n+x\n*** Delete File: b\n"))
	f.Add(wrap("*** Update File: a\n*** Move to: b\n@@ h\n x\n-y\n+z\n\n*** End of File\n"))
	f.Add(wrap("*** Update File: a\n@@ -1,2 +1,2 @@\n-x\n+y\n@@\n+z\n"))
	f.Add("*** Begin Patch\r\n*** Update File: a\r\n-\r\n+\r\n*** End Patch\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := patch.Parse(text)
		if err != nil {
			return
		}
		for _, file := range p.Files {
			if file.Path == "" || (file.Op == patch.Update && len(file.Chunks) == 0 && file.MoveTo == "") {
				t.Fatalf("%q is read as %+v", text, file)
			}
			file.Changes(edit.Parse([]byte(text)))
			for _, c := range file.Chunks {
				fits(t, c)
			}
		}
	})
}

func fits(t *testing.T, c patch.Chunk) {
	t.Helper()
	var before, after strings.Builder
	for _, l := range c.Lines {
		if l.Kind != '+' {
			before.WriteString(l.Text + "\n")
		}
		if l.Kind != '-' {
			after.WriteString(l.Text + "\n")
		}
	}
	if before.Len() == 0 || strings.Contains(before.String(), "\r") || strings.Contains(after.String(), "\r") || strings.HasPrefix(before.String(), "\xef\xbb\xbf") {
		return
	}
	c.Headers = nil
	one := patch.File{Op: patch.Update, Path: "f", Chunks: []patch.Chunk{c}}
	changes, loose, err := one.Changes(edit.Parse([]byte(before.String())))
	if err != nil || loose {
		t.Fatalf("%q does not fit its own lines: %v", before.String(), err)
	}
	if got := string(edit.Apply([]byte(before.String()), changes)); got != after.String() {
		t.Fatalf("%q became %q, want %q", before.String(), got, after.String())
	}
}
