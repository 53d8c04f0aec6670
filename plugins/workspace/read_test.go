package workspace_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFileRead(t *testing.T) {
	b := newBench(t)
	b.write("a.txt", "one\ntwo\nthree\n")
	b.write("no end.txt", "one\ntwo")
	b.write("crlf.txt", "one\r\ntwo\r\n")
	b.write("mixed.txt", "one\r\ntwo\nthree\r\n")
	b.write("mac.txt", "one\rtwo\r")
	b.write("bom.txt", "\xef\xbb\xbfone\n")
	b.write("empty.txt", "")
	b.write("odd.txt", "a\x1b[31mb\xff\x7f\u202ec\rd\n")
	b.write("long.txt", strings.Repeat("x", 5000)+"\nnext\n")
	b.write("d/e/f.txt", "f\n")
	for _, c := range []struct {
		path, want    string
		offset, limit int
	}{
		{"a.txt", "1\tone\n2\ttwo\n3\tthree\n", 0, 0},
		{"./d/../a.txt", "1\tone\n2\ttwo\n3\tthree\n", 0, 0},
		{b.dir + "/a.txt", "1\tone\n2\ttwo\n3\tthree\n", 0, 0},
		{"a.txt", "2\ttwo\n[lines 2 to 2 of 3; go on with offset 3]\n", 2, 1},
		{"a.txt", "3\tthree\n[lines 3 to 3 of 3, the last one]\n", 3, 0},
		{"no end.txt", "1\tone\n2\ttwo\n[no line end at the end]\n", 0, 0},
		{"crlf.txt", "1\tone\n2\ttwo\n[CRLF line ends]\n", 0, 0},
		{"mixed.txt", "1\tone\n2\ttwo\n3\tthree\n[mixed line ends (CRLF and LF)]\n", 0, 0},
		{"mac.txt", "1\tone\n2\ttwo\n[CR line ends]\n", 0, 0},
		{"bom.txt", "1\tone\n[UTF-8 byte order mark]\n", 0, 0},
		{"empty.txt", "[the file is empty]\n", 0, 0},
		{"odd.txt", "1\ta␛[31mb\\xff␡\\u202ec␍d\n", 0, 0},
		{"long.txt", "1\t" + strings.Repeat("x", 2000) + "[… the line has 3000 more bytes]\n2\tnext\n", 0, 0},
		{"d/e", "f.txt\t2 bytes\n", 0, 0},
	} {
		input := in{"filePath": c.path}
		if c.offset > 0 {
			input["offset"] = c.offset
		}
		if c.limit > 0 {
			input["limit"] = c.limit
		}
		if got := b.ok("file_read", input); got != c.want {
			t.Errorf("%v: %q, want %q", input, got, c.want)
		}
	}
	b.fails("file_read", in{"filePath": "a.txt", "offset": 4}, "offset is 4, but a.txt has 3 lines")
	b.fails("file_read", in{"filePath": "b.txt"}, "b.txt does not exist; did you mean a.txt")
	b.fails("file_read", in{"filePath": "d/e/g.txt"}, "did you mean d/e/f.txt?")
	b.fails("file_read", in{"filePath": "nothing/like/it"}, "does not exist")
}

func TestWhatAReadTellsOfTheFile(t *testing.T) {
	b := newBench(t)
	content := "one\ntwo\n" + strings.Repeat("x", 3000) + "\n"
	b.write("a.txt", content)
	for _, c := range []struct {
		input   in
		partial bool
	}{
		{in{"filePath": "a.txt", "limit": 1}, true},
		{in{"filePath": "a.txt", "offset": 2}, true},
		{in{"filePath": "a.txt"}, true}, // a line is cut
	} {
		r := b.call("file_read", c.input)
		sum := sha256.Sum256([]byte(content))
		if len(r.Files) != 1 || r.Files[0].Path != filepath.Join(b.dir, "a.txt") || !bytes.Equal(r.Files[0].SHA256, sum[:]) ||
			r.Files[0].Partial != c.partial || r.Files[0].Written {
			t.Errorf("%v: %+v", c.input, r.Files)
		}
	}
	b.write("a.txt", "short\n")
	if r := b.call("file_read", in{"filePath": "a.txt"}); len(r.Files) != 1 || r.Files[0].Partial {
		t.Errorf("%+v", r.Files)
	}
	if r := b.call("file_read", in{"filePath": "gone.txt"}); len(r.Files) != 1 || r.Files[0].SHA256 != nil || r.Files[0].Path != filepath.Join(b.dir, "gone.txt") {
		t.Errorf("%+v", r.Files)
	}
}

func TestLongFilesAreReadInPages(t *testing.T) {
	b := newBench(t)
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "this is line %d of a file that is too long to be shown at once\n", i+1)
	}
	b.write("long.txt", text.String())
	var got strings.Builder
	for offset, pages := 1, 0; offset <= 20_000; pages++ {
		page, note, _ := strings.Cut(b.ok("file_read", in{"filePath": "long.txt", "offset": offset}), "[lines")
		for line := range strings.Lines(page) {
			number, rest, _ := strings.Cut(line, "\t")
			if number != fmt.Sprint(offset) {
				t.Fatalf("line %s, want %d", number, offset)
			}
			got.WriteString(rest)
			offset++
		}
		if offset <= 20_000 && !strings.HasSuffix(note, fmt.Sprintf("go on with offset %d]\n", offset)) {
			t.Fatalf("%q before line %d", note, offset)
		}
		if pages > 100 {
			t.Fatal("too many pages")
		}
	}
	if got.String() != text.String() {
		t.Error("the pages are not the file")
	}
}

func TestAHundredMegabytes(t *testing.T) {
	b := newBench(t)
	b.write("big.txt", strings.Repeat("0123456789abcde\n", 100<<20/16))
	if got := b.ok("file_read", in{"filePath": "big.txt", "offset": 6_000_000, "limit": 1}); got != "6000000\t0123456789abcde\n[lines 6000000 to 6000000 of 6553600; go on with offset 6000001]\n" {
		t.Errorf("%q", got)
	}
	b.fails("file_edit", in{"filePath": "big.txt", "oldString": "0123", "newString": "x"}, "6553600 times")
	if err := os.Truncate(filepath.Join(b.dir, "big.txt"), 2<<30); err != nil {
		t.Fatal(err)
	}
	b.fails("file_read", in{"filePath": "big.txt"}, "2048 MB")
	b.fails("file_edit", in{"filePath": "big.txt", "oldString": "a", "newString": "b"}, "at most 128 MB")
}

func TestFilesThatAreNotText(t *testing.T) {
	b := newBench(t)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	b.write("p.png", picture.String())
	if got := b.ok("file_read", in{"filePath": "p.png"}); got != fmt.Sprintf("p.png is a PNG image of 30 × 20 pixels, %d bytes; it cannot be shown as text.\n", picture.Len()) {
		t.Errorf("%q", got)
	}
	for head, kind := range map[string]string{"\xff\xd8\xff\xe0": "JPEG", "GIF89a": "GIF", "RIFF1234WEBPVP8 ": "WebP"} {
		b.write("p", head)
		if got := b.ok("file_read", in{"filePath": "p"}); !strings.Contains(got, "is a "+kind+" image, ") {
			t.Errorf("%s: %q", kind, got)
		}
	}
	b.write("bin", "\x7fELF\x00\x01")
	b.fails("file_read", in{"filePath": "bin"}, "bin is binary, 6 bytes")
	b.write("utf16", "\xff\xfea\x00b\x00")
	b.fails("file_read", in{"filePath": "utf16"}, "iconv -f UTF-16LE")
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, input := range map[string]in{
		"file_read": {"filePath": "pipe"}, "file_write": {"filePath": "pipe", "content": "x"}, "file_edit": {"filePath": "pipe", "oldString": "a", "newString": "b"},
		"file_grep": {"pattern": "x", "path": "pipe"},
	} {
		b.fails(name, input, "pipe is a named pipe")
	}
}

func TestFoldersAreListed(t *testing.T) {
	b := newBench(t)
	if got := b.ok("file_read", in{"filePath": "."}); got != "[the folder is empty]\n" {
		t.Errorf("%q", got)
	}
	b.write("sub/x", "")
	b.write(".hidden", "1")
	b.write("b\nc\x1b", "22")
	b.write("ünïcode", "333")
	if err := os.WriteFile(filepath.Join(b.dir, "\xff"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := ".hidden\t1 byte\n\"b\\nc\\x1b\"\t2 bytes\nlink -> /etc/passwd\npipe (a named pipe)\nsub/\nünïcode\t3 bytes\n\"\\xff\"\t0 bytes\n"
	if got := b.ok("file_read", in{"filePath": b.dir}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := b.ok("file_read", in{"filePath": ".", "offset": 2, "limit": 1}); got != "\"b\\nc\\x1b\"\t2 bytes\n[entries 2 to 2 of 7; go on with offset 3]\n" {
		t.Errorf("%q", got)
	}
	b.fails("file_read", in{"filePath": ".", "offset": 8}, "has 7 entries")
	for i := range 3000 {
		b.write(fmt.Sprintf("many/%04d", i), "")
	}
	if got := b.ok("file_read", in{"filePath": "many"}); !strings.Contains(got, " of 3000; go on with offset") {
		t.Errorf("%q", got[len(got)-100:])
	}
}
