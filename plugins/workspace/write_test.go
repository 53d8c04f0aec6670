package workspace_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/boughdev/bough/host/tool"
)

func TestFileWrite(t *testing.T) {
	b := newBench(t)
	r := b.call("file_write", in{"filePath": "x/y/a.txt", "content": "one\r\ntwo"})
	sum := sha256.Sum256([]byte("one\r\ntwo"))
	if r.Error || r.Text != "x/y/a.txt was made: 2 lines, 8 bytes.\n" || len(r.Files) != 1 || r.Files[0].Path != filepath.Join(b.dir, "x/y/a.txt") ||
		!bytes.Equal(r.Files[0].SHA256, sum[:]) || !r.Files[0].Written || r.Files[0].Partial {
		t.Errorf("%+v", r)
	}
	b.has("x/y/a.txt", "one\r\ntwo")
	if !strings.Contains(string(r.Details), `"diff":"@@ -1,0 +1,2 @@\n+one\n+two\n`) {
		t.Errorf("%s", r.Details)
	}
	// What it wrote itself it may replace.
	if got := b.ok("file_write", in{"filePath": "x/y/a.txt", "content": "three\n"}); got != "x/y/a.txt was replaced: 1 line, 6 bytes.\n[its lines ended with \"\\r\\n\" before and end with \"\\n\" now]\n" {
		t.Errorf("%q", got)
	}
	if got := b.ok("file_write", in{"filePath": "x/y/a.txt", "content": "three\n"}); !strings.Contains(got, "nothing was written") {
		t.Errorf("%q", got)
	}
	b.fails("file_write", in{"filePath": "x/y", "content": "x"}, "x/y is a folder")
	b.fails("file_write", in{"filePath": "x/y/a.txt/z", "content": "x"}, "not a directory")
	b.fails("file_write", in{"filePath": "x\x00", "content": "x"}, "NUL")
	b.write("ro.txt", "")
	if err := os.Chmod(filepath.Join(b.dir, "ro.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	b.fails("file_write", in{"filePath": "ro.txt", "content": "x"}, "read-only")
	for _, name := range []string{"日本 語.txt", "a\nb", "-rf", "'\"$(x)", "\u202eevil"} {
		if got := b.ok("file_write", in{"filePath": name, "content": "x"}); strings.Contains(got, "\u202e") || strings.Count(got, "\n") != 1 {
			t.Errorf("%q", got)
		}
		b.has(name, "x")
	}
}

// TestWhatMustBeReadFirst writes to files that the model knows in different
// ways.
func TestWhatMustBeReadFirst(t *testing.T) {
	b := newBench(t)
	write := in{"filePath": "a.txt", "content": "new\n"}
	edit := in{"filePath": "a.txt", "oldString": "two", "newString": "2"}
	b.write("a.txt", "one\ntwo\n")
	b.fails("file_write", write, "is there already and you have not read it")
	b.ok("file_read", in{"filePath": "a.txt", "limit": 1})
	b.fails("file_write", write, "read only a part of it")
	b.ok("file_edit", edit) // a part will do: what is replaced is matched
	b.fails("file_write", write, "read only a part of it")
	b.ok("file_read", in{"filePath": "a.txt"})
	b.ok("file_read", in{"filePath": "a.txt", "limit": 1}) // takes nothing away
	b.ok("file_write", write)
	b.has("a.txt", "new\n")

	b.write("b.txt", "b\n")
	b.ok("file_edit", in{"filePath": "b.txt", "oldString": "b", "newString": "c"}) // never read
	b.has("b.txt", "c\n")
	b.fails("file_write", in{"filePath": "b.txt", "content": "x"}, "read only a part of it")
	b.write("empty.txt", "")
	b.ok("file_write", in{"filePath": "empty.txt", "content": "x"}) // nothing to lose
}

func TestAFileThatChangedIsNotOverwritten(t *testing.T) {
	for name, change := range map[string]func(*bench){
		"was changed": func(b *bench) { b.write("a.txt", "mine\n") },
		"was deleted": func(b *bench) { os.Remove(filepath.Join(b.dir, "a.txt")) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write("a.txt", "one\n")
			info, err := os.Stat(filepath.Join(b.dir, "a.txt"))
			if err != nil {
				t.Fatal(err)
			}
			b.ok("file_read", in{"filePath": "a.txt"})
			change(b)
			os.Chtimes(filepath.Join(b.dir, "a.txt"), info.ModTime(), info.ModTime()) // times tell nothing
			before, _ := os.ReadFile(filepath.Join(b.dir, "a.txt"))
			b.fails("file_write", in{"filePath": "a.txt", "content": "x"}, name+" since you last saw it")
			for _, patch := range []string{"*** Update File: a.txt\n-mine\n+x", "*** Delete File: a.txt", "*** Update File: a.txt\n*** Move to: b.txt"} {
				b.fails("file_apply_patch", in{"patchText": "*** Begin Patch\n" + patch + "\n*** End Patch"}, name+" since you last saw it")
			}
			if name == "was changed" {
				b.fails("file_edit", in{"filePath": "a.txt", "oldString": "mine", "newString": "x"}, name+" since you last saw it")
			}
			if after, _ := os.ReadFile(filepath.Join(b.dir, "a.txt")); !bytes.Equal(before, after) {
				t.Errorf("%q became %q", before, after)
			}
			b.call("file_read", in{"filePath": "a.txt"}) // now it knows
			b.ok("file_write", in{"filePath": "a.txt", "content": "x"})
			b.has("a.txt", "x")
		})
	}
	b := newBench(t)
	b.call("file_read", in{"filePath": "later.txt"})
	b.write("later.txt", "mine")
	b.fails("file_write", in{"filePath": "later.txt", "content": "x"}, "was not there when you last looked")
}

// TestWhatWasSeenComesFromTheHost opens the session again, as after a restart
// or when the head moved.
func TestWhatWasSeenComesFromTheHost(t *testing.T) {
	b := newBench(t)
	b.write("a.txt", "one\n")
	r := b.call("file_read", in{"filePath": "a.txt"})
	older := sha256.Sum256([]byte("older"))
	path := filepath.Join(b.dir, "a.txt")
	write := in{"filePath": "a.txt", "content": "two\n"}

	b.open(nil) // on another path it never read the file
	b.fails("file_write", write, "you have not read it")
	b.open([]tool.FileState{{Path: path, SHA256: older[:]}})
	b.fails("file_write", write, "was changed")
	b.open([]tool.FileState{r.Files[0], {Path: path, SHA256: older[:]}}) // the newest counts
	b.fails("file_write", write, "was changed")
	partial := r.Files[0]
	partial.Partial = true
	b.open([]tool.FileState{partial})
	b.fails("file_write", write, "only a part")
	b.open([]tool.FileState{{Path: path, SHA256: older[:]}, r.Files[0], partial})
	b.ok("file_write", write)
}

func TestFileEdit(t *testing.T) {
	b := newBench(t)
	b.write("a.txt", "one\ntwo\none\n")
	r := b.call("file_edit", in{"filePath": "a.txt", "oldString": "two", "newString": "2\n3"})
	if r.Error || r.Text != "a.txt was edited at line 2.\n" || len(r.Files) != 1 || !r.Files[0].Written ||
		!strings.Contains(string(r.Details), `"added":2,"removed":1,"diff":"@@ -1,3 +1,4 @@\n one\n-two\n+2\n+3\n one\n"`) {
		t.Errorf("%+v %s", r, r.Details)
	}
	b.has("a.txt", "one\n2\n3\none\n")
	b.fails("file_edit", in{"filePath": "a.txt", "oldString": "one", "newString": "1"}, "a.txt: oldString occurs 2 times, at lines 1, 4")
	if got := b.ok("file_edit", in{"filePath": "a.txt", "oldString": "one", "newString": "1", "replaceAll": true}); got != "a.txt was edited at 2 places, the first at line 1.\n" {
		t.Errorf("%q", got)
	}
	b.has("a.txt", "1\n2\n3\n1\n")
	b.fails("file_edit", in{"filePath": "a.txt", "oldString": "1\n 2\n", "newString": "x"}, "lines 1 to 2 differ from it in white space only")
	b.fails("file_edit", in{"filePath": "b.txt", "oldString": "x", "newString": "y"}, "b.txt does not exist; did you mean a.txt?")
	b.fails("file_edit", in{"filePath": ".", "oldString": "x", "newString": "y"}, "is a folder")
	b.names("a.txt")
}

func TestLinksAndModesStay(t *testing.T) {
	b := newBench(t)
	b.write("real/a.txt", "one\n")
	path := filepath.Join(b.dir, "real/a.txt")
	if err := os.Chmod(path, 0o751); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real/a.txt", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, filepath.Join(b.dir, "hard")); err != nil {
		t.Fatal(err)
	}
	got := b.ok("file_edit", in{"filePath": "link", "oldString": "one", "newString": "two"})
	if got != "real/a.txt was edited at line 1.\n[the file has 1 other name (hard links), which keep the old content]\n" {
		t.Errorf("%q", got)
	}
	if target, err := os.Readlink(filepath.Join(b.dir, "link")); target != "real/a.txt" {
		t.Error(target, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o751 {
		t.Error(info.Mode(), err)
	}
	b.has("real/a.txt", "two\n")
	b.has("hard", "one\n")
	if err := os.Symlink("real/new.txt", filepath.Join(b.dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	b.ok("file_write", in{"filePath": "dangling", "content": "x"})
	b.has("real/new.txt", "x")
	b.names("dangling", "hard", "link", "real")
}

// TestEditsTouchNothingElse edits files of random bytes and line ends and
// compares the bytes.
func TestEditsTouchNothingElse(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(9, 10))
	for i := range 300 {
		var before, after strings.Builder
		for range r.IntN(20) {
			before.WriteString([]string{"a", "é", "\xff", "\x00", "\t", " ", "\n", "\r\n", "\r\r\n"}[r.IntN(9)])
			after.WriteString([]string{"b", "\xfe", "\n", "\r\n", "  "}[r.IntN(5)])
		}
		if r.IntN(3) == 0 && before.Len() > 0 {
			s := before.String()
			before.Reset()
			before.WriteString("\xef\xbb\xbf" + s)
		}
		name := fmt.Sprintf("f%d", i)
		b.write(name, before.String()+"MARK"+after.String())
		b.ok("file_edit", in{"filePath": name, "oldString": "MARK", "newString": "something else"})
		b.has(name, before.String()+"something else"+after.String())
	}
}

// TestParallelEdits edits one file from many calls: each change is there, or its
// call says that it is not.
func TestParallelEdits(t *testing.T) {
	b := newBench(t)
	const n = 40
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "line %02d.\n", i)
	}
	b.write("a.txt", text.String())
	b.ok("file_read", in{"filePath": "a.txt"})
	done := make([]bool, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			input := fmt.Sprintf(`{"filePath":"a.txt","oldString":"line %02d.","newString":"edited %02d."}`, i, i)
			r, err := b.w.Call(context.Background(), tool.Call{Session: "s-1", ID: fmt.Sprint(i), Tool: "file_edit", Input: json.RawMessage(input)}, nil)
			if err != nil {
				t.Error(err)
			}
			done[i] = !r.Error
		})
	}
	wg.Wait()
	data, err := os.ReadFile(filepath.Join(b.dir, "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	edited := 0
	for i := range n {
		if is := strings.Contains(string(data), fmt.Sprintf("edited %02d.", i)); is != done[i] {
			t.Errorf("edit %d: said %v, is %v", i, done[i], is)
		} else if is {
			edited++
		}
	}
	if edited != n {
		t.Errorf("%d of %d edits", edited, n)
	}
	b.names("a.txt")
}

// TestRacesWithAnotherProgram lets another program replace the file all the
// time: whatever it wrote last is never lost without a word.
func TestRacesWithAnotherProgram(t *testing.T) {
	b := newBench(t)
	b.write("a.txt", "agent 0\n")
	b.ok("file_read", in{"filePath": "a.txt"})
	refused := 0
	for i := range 100 {
		saved := make(chan struct{})
		go func() {
			defer close(saved)
			if i%2 == 0 {
				b.write("a.txt", fmt.Sprintf("user %d\n", i))
			}
		}()
		r := b.call("file_write", in{"filePath": "a.txt", "content": fmt.Sprintf("agent %d\n", i+1)})
		<-saved
		data, err := os.ReadFile(filepath.Join(b.dir, "a.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(data); r.Error {
			refused++
			if got == fmt.Sprintf("agent %d\n", i+1) && i%2 == 1 {
				t.Fatalf("round %d: refused, but it has %q", i, got)
			}
		} else if i%2 == 1 && got != fmt.Sprintf("agent %d\n", i+1) {
			t.Fatalf("round %d: written, but it has %q", i, got)
		}
		b.ok("file_read", in{"filePath": "a.txt"})
	}
	if refused == 100 {
		t.Error("nothing was ever written")
	}
}
