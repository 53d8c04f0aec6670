package practice_test

import (
	"strings"
	"testing"
)

func TestItRecoversFromFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		prompt string
		files  map[string]string
		fail   map[string]string
		calls  string // names of the tools
		last   string // in the summary
		file   string // a.txt in the end
	}{
		"a file that is not there": {
			prompt: "read gone.txt", files: map[string]string{"a.txt": "x\n"},
			calls: "file_read file_read", last: "- read gone.txt: failed, gone.txt is not there", file: "x\n",
		},
		"a name that is nearly right": {
			prompt: "read greeting.sh\nread greet.sh", files: map[string]string{"greet.sh": "x\n", "other.sh": ""},
			calls: "file_read file_read file_read file_read", last: "- read greeting.sh: done, as greet.sh",
		},
		"an edit of what is not there": {
			prompt: "edit a.txt: replace quite different with x", files: map[string]string{"a.txt": "hello world\n"},
			calls: "file_edit file_read", last: "failed, a.txt: oldString is not in the file", file: "hello world\n",
		},
		"an edit with a typo": {
			prompt: "edit a.txt: replace Helo with Good morning", files: map[string]string{"a.txt": "#!/bin/sh\necho \"Hello, $1\"\n"},
			calls: "file_edit file_read file_edit", last: `- edit a.txt: done, for "Hello"`, file: "#!/bin/sh\necho \"Good morning, $1\"\n",
		},
		"an edit that fits several places": {
			prompt: "edit a.txt: replace x with y", files: map[string]string{"a.txt": "x\nx\n"},
			calls: "file_edit file_read file_edit", last: "done, in 2 places", file: "y\ny\n",
		},
		"an edit of a file that changed": {
			prompt: "edit a.txt: replace x with y", files: map[string]string{"a.txt": "x\n"}, fail: map[string]string{"file_edit": "a.txt has changed"},
			calls: "file_edit file_read file_edit", last: "The step is done.", file: "y\n",
		},
		"an edit of a file that is not there": {
			prompt: "edit b.txt: replace x with y", files: map[string]string{"a.txt": "x\n"},
			calls: "file_edit file_read", last: "The step failed.", file: "x\n",
		},
		"a file that must be read before": {
			prompt: "write a.txt: new", files: map[string]string{"a.txt": "old\n"},
			calls: "file_write file_read file_write", last: "The step is done.", file: "new\n",
		},
		"a command that fails": {
			prompt: "run false\nwrite a.txt: x", calls: "shell file_write", last: "- run false: failed, exit code 1", file: "x\n",
		},
		"what is denied": {
			prompt: "read a.txt\nrun ls", files: map[string]string{"a.txt": "x\n"}, fail: map[string]string{"file_read": "Denied: no."},
			calls: "file_read shell", last: "- read a.txt: failed, Denied: no", file: "x\n",
		},
		"reading that was interrupted": {
			prompt: "read a.txt", files: map[string]string{"a.txt": "x\n"}, fail: map[string]string{"file_read": "interrupted by process restart"},
			calls: "file_read file_read", last: "The step is done.", file: "x\n",
		},
		"two that fail together": {
			prompt: "read a.tx\nread b.tx", files: map[string]string{"a.txt": "x\n", "bb.txt": "y\n"},
			calls: "file_read file_read file_read file_read file_read file_read", last: "- read a.tx: done, as a.txt\n- read b.tx: done, as bb.txt", file: "x\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder()
			for n, text := range tt.files {
				f.files[n] = text
			}
			if tt.fail != nil {
				f.fail = tt.fail
			}
			calls, last := turn(t, f, tt.prompt)
			var names []string
			for _, c := range calls {
				tool, _, _ := strings.Cut(c, " ")
				names = append(names, tool)
			}
			if got := strings.Join(names, " "); got != tt.calls {
				t.Errorf("calls %s, want %s; it said\n%s", got, tt.calls, strings.Join(f.said, "\n--\n"))
			}
			if !strings.Contains(last, tt.last) {
				t.Errorf("summary\n%s\nwithout %q", last, tt.last)
			}
			if f.files["a.txt"] != tt.file {
				t.Errorf("a.txt is %q, want %q", f.files["a.txt"], tt.file)
			}
			if tt.last == "- run false: failed, exit code 1" && !strings.Contains(f.said[1], "I could not run false: exit code 1. I go on.") {
				t.Errorf("it said %q", f.said)
			}
		})
	}
}
