package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func patched(body string) in { return in{"patchText": "*** Begin Patch\n" + body + "*** End Patch\n"} }

func TestFileApplyPatch(t *testing.T) {
	b := newBench(t)
	b.write("a.txt", "one\r\ntwo\r\n")
	b.write("b.txt", "bee\n")
	b.write("sub/c.txt", "sea\n")
	if err := os.Chmod(filepath.Join(b.dir, "sub/c.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := b.call("file_apply_patch", patched("*** Add File: new/d.txt\n+dee\n+\n*** Update File: a.txt\n@@\n one\n-two\n+2\n+3\n"+
		"*** Delete File: b.txt\n*** Update File: sub/c.txt\n*** Move to: moved/c.txt\n-sea\n+see\n"))
	want := "new/d.txt was made.\na.txt was changed: 2 lines added, 1 removed.\nb.txt was deleted.\nsub/c.txt was moved to moved/c.txt: 1 line added, 1 removed.\n"
	if r.Error || r.Text != want {
		t.Errorf("%q", r.Text)
	}
	b.has("new/d.txt", "dee\n\n")
	b.has("a.txt", "one\r\n2\r\n3\r\n")
	b.gone("b.txt")
	b.gone("sub/c.txt")
	b.has("moved/c.txt", "see\n")
	if info, err := os.Stat(filepath.Join(b.dir, "moved/c.txt")); err != nil || info.Mode().Perm() != 0o755 {
		t.Error(info.Mode(), err)
	}
	var states []string
	for _, f := range r.Files {
		state := "written "
		if f.SHA256 == nil {
			state = "gone "
		}
		if !f.Written {
			t.Errorf("%s is not marked as written", f.Path)
		}
		states = append(states, state+strings.TrimPrefix(f.Path, b.dir+"/"))
	}
	if got := strings.Join(states, ", "); got != "written new/d.txt, written a.txt, gone b.txt, written moved/c.txt, gone sub/c.txt" {
		t.Error(got)
	}
	// It knows what it made, and that the other is gone.
	b.ok("file_write", in{"filePath": "new/d.txt", "content": "x"})
	b.ok("file_write", in{"filePath": "b.txt", "content": "x"})
	if got := b.ok("file_apply_patch", patched("*** Update File: a.txt\n-2  \n+zwei\n")); !strings.Contains(got, "white space") {
		t.Errorf("%q", got)
	}
	if got := b.ok("file_apply_patch", patched("*** Update File: a.txt\n*** Move to: z.txt\n")); got != "a.txt was moved to z.txt.\n" {
		t.Errorf("%q", got)
	}
	b.has("z.txt", "one\r\nzwei\r\n3\r\n")
}

func TestAPatchIsAppliedWholeOrNotAtAll(t *testing.T) {
	b := newBench(t)
	good := "*** Add File: new/x/y.txt\n+new\n*** Update File: a.txt\n-one\n+1\n*** Delete File: b.txt\n"
	for name, c := range map[string]struct{ bad, want string }{
		"does not fit":        {"*** Update File: c.txt\n-nowhere\n+x\n", "c.txt: the change at line 9 of the patch fits nowhere"},
		"is not there":        {"*** Update File: d.txt\n-x\n+y\n", "d.txt does not exist"},
		"to delete":           {"*** Delete File: d.txt\n", "d.txt does not exist"},
		"is there already":    {"*** Add File: c.txt\n+x\n", "c.txt is there already"},
		"target there":        {"*** Update File: c.txt\n*** Move to: ro.txt\n", "c.txt cannot move to ro.txt"},
		"twice":               {"*** Update File: ./a.txt\n-two\n+2\n", "lines 4 and 8 of the patch are both about a.txt"},
		"twice through links": {"*** Delete File: link\n", "both about a.txt"},
		"twice by moving":     {"*** Update File: c.txt\n*** Move to: b.txt\n", "both about b.txt"},
		"read-only":           {"*** Update File: ro.txt\n-ro\n+rw\n", "read-only"},
		"no folder":           {"*** Add File: a.txt/x\n+x\n", "not a directory"},
		"a folder":            {"*** Delete File: sub\n", "sub is a folder"},
		"syntax":              {"*** Change File: a.txt\n", "line 8 of the patch"},
	} {
		t.Run(name, func(t *testing.T) {
			b.write("a.txt", "one\ntwo\n")
			b.write("b.txt", "bee\n")
			b.write("c.txt", "sea\n")
			os.Remove(filepath.Join(b.dir, "ro.txt"))
			b.write("ro.txt", "ro\n")
			if err := os.Chmod(filepath.Join(b.dir, "ro.txt"), 0o444); err != nil {
				t.Fatal(err)
			}
			b.write("sub/x", "")
			os.Symlink("a.txt", filepath.Join(b.dir, "link"))
			b.open(nil)
			b.fails("file_apply_patch", patched(good+c.bad), c.want)
			b.fails("file_apply_patch", patched(good+c.bad), "nothing was changed")
			b.has("a.txt", "one\ntwo\n")
			b.has("b.txt", "bee\n")
			b.has("c.txt", "sea\n")
			b.names("a.txt", "b.txt", "c.txt", "link", "ro.txt", "sub")
		})
	}
	b.fails("file_apply_patch", patched("*** Update File: a.txt\n-x\n+y\n*** Update File: b.txt\n-x\n+y\n"), "b.txt: the change at line 6")
	b.fails("file_apply_patch", patched("*** Update File: a.txt\n-x\n+y\n*** Update File: b.txt\n-x\n+y\n"), "a.txt: the change at line 3")
}
