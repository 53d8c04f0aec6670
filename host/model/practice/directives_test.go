package practice_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/model/practice"
)

func TestDirectives(t *testing.T) {
	for _, tt := range []struct{ prompt, calls string }{
		{`write a.txt: hello\n\tworld`, `file_write {"content":"hello\n\tworld\n","filePath":"a.txt"}`},
		{"write `my file.txt`: \"hello\"", `file_write {"content":"hello\n","filePath":"my file.txt"}`},
		{`write "a: b" to a.txt.`, `file_write {"content":"a: b\n","filePath":"a.txt"}`},
		{"write b.go:\n```go\npackage b\n\n\tfunc B() {}\n```", `file_write {"content":"package b\n\n\tfunc B() {}\n","filePath":"b.go"}`},
		{"write a.md:\n````\n```\nx\n```\n````", `file_write {"content":"` + "```" + `\nx\n` + "```" + `\n","filePath":"a.md"}`},
		{"write a.txt:\r\n```\r\na\r\n```\r\n", `file_write {"content":"a\n","filePath":"a.txt"}`},
		{"write e.txt:\n```\n```", `file_write {"content":"","filePath":"e.txt"}`},
		{`edit a.txt: replace "it is" with 'it was'`, `file_edit {"filePath":"a.txt","newString":"it was","oldString":"it is"}`},
		{`edit a.txt: replace all don't with do not`, `file_edit {"filePath":"a.txt","newString":"do not","oldString":"don't","replaceAll":true}`},
		{`replace "sit with me" with go in a.txt`, `file_edit {"filePath":"a.txt","newString":"go","oldString":"sit with me"}`},
		{"edit a.go:\n```\nold\n```\nwith\n```\nnew\n```", `file_edit {"filePath":"a.go","newString":"new\n","oldString":"old\n"}`},
		{`read a.txt`, `file_read {"filePath":"a.txt"}`},
		{`Please read ./a.txt, b.txt and "c d.txt".`, `file_read {"filePath":"./a.txt"} + file_read {"filePath":"b.txt"} + file_read {"filePath":"c d.txt"}`},
		{`read a.txt lines 10-20`, `file_read {"filePath":"a.txt","limit":11,"offset":10}`},
		{`show a.txt from line 3`, `file_read {"filePath":"a.txt","offset":3}`},
		{`list`, `file_read {"filePath":"."}`},
		{`list src.`, `file_read {"filePath":"src"}`},
		{`find *.go in src`, `file_glob {"path":"src","pattern":"*.go"}`},
		{`grep func main in main.go`, `file_grep {"path":"main.go","pattern":"func main"}`},
		{"search for `in x` in y", `file_grep {"path":"y","pattern":"in x"}`},
		{`run ls -l | wc`, `shell {"command":"ls -l | wc"}`},
		{`run for 5s: sleep 60`, `shell {"command":"sleep 60","timeoutSec":5}`},
		{`run in src: make`, `shell {"command":"make","workdir":"src"}`},
		{`run if true; then read x; fi`, `shell {"command":"if true; then read x; fi"}`},
		{"run:\n```sh\na\nb\n```", `shell {"command":"a\nb"}`},
		{`todo: one; [x] two; [>] three`, `todo_write {"todos":[{"content":"one","status":"pending"},{"content":"two","status":"completed"},{"content":"three","status":"in_progress"}]}`},
		{`batch: read a.txt; run ls`, `batch {"tool_calls":[{"tool":"file_read","parameters":{"filePath":"a.txt"}},{"tool":"shell","parameters":{"command":"ls"}}]}`},
		{"patch:\n```\n*** Begin Patch\n*** End Patch\n```", `file_apply_patch {"patchText":"*** Begin Patch\n*** End Patch\n"}`},
		{"1. write a.txt: x\n2) run ls", `file_write {"content":"x\n","filePath":"a.txt"} | shell {"command":"ls"}`},
		{"- read a\n- find b\n* grep c\nthen run d", `file_read {"filePath":"a"} + file_glob {"pattern":"b"} + file_grep {"pattern":"c"} | shell {"command":"d"}`},
		{"write a.txt: x, then run ls. Then read a.txt and then run wc", `file_write {"content":"x\n","filePath":"a.txt"} | shell {"command":"ls"} | file_read {"filePath":"a.txt"} | shell {"command":"wc"}`},
		{"write a.txt: \"x, then run ls\"", `file_write {"content":"x, then run ls\n","filePath":"a.txt"}`},
		{"write a.txt: first this, then that", `file_write {"content":"first this, then that\n","filePath":"a.txt"}`},
		{"Look at this:\n```\nread secret\n```\nread a.txt", `file_read {"filePath":"a.txt"}`},
		{"say hi\nread a.txt", `file_read {"filePath":"a.txt"}`},
	} {
		var calls []string
		f := newFolder()
		for _, n := range []string{"a.txt", "./a.txt", "b.txt", "c d.txt", "a", "src"} {
			f.files[n] = "it is don't sit with me old\n"
		}
		f.files["a.go"] = "old\n"
		f.seen["a.txt"] = true
		turn(t, f, tt.prompt)
		for _, m := range f.messages {
			var step []string
			for _, p := range m.Parts {
				if p.ToolCall != nil {
					step = append(step, p.ToolCall.Name+" "+string(p.ToolCall.Input))
				}
			}
			if len(step) > 0 {
				calls = append(calls, strings.Join(step, " + "))
			}
		}
		if got := strings.Join(calls, " | "); got != tt.calls {
			t.Errorf("%q\n got  %s\n want %s", tt.prompt, got, tt.calls)
		}
	}
}

// What the guide shows is what works.
func TestTheGuideIsTrue(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/practice.md")
	if err != nil {
		t.Fatal(err)
	}
	prompts := regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(string(guide), -1)
	if len(prompts) < 15 {
		t.Fatalf("%d directives found in the guide", len(prompts))
	}
	for _, p := range prompts {
		directive := p[1]
		if strings.HasSuffix(directive, ":") {
			directive += "\n```\nx\n```\n```\ny\n```"
		}
		begin := ""
		for ev, err := range practice.New().Stream(t.Context(), prompt(directive)) {
			if err != nil {
				t.Fatal(err)
			}
			if begin += ev.Text; len(begin) >= len("I am the") {
				break // a pause takes its time
			}
		}
		if strings.HasPrefix(begin, "I am the") {
			t.Errorf("%q is no directive", p[1])
		}
	}
}

// longPrompts are what somebody may paste, such as a log, times n.
func longPrompts(n int) []string {
	return []string{
		"read " + strings.Repeat("a, ", 30*n), "say " + strings.Repeat(`"a `, 30*n),
		strings.Repeat("```go\n", 20*n), "todo: " + strings.Repeat("x, then run; ", 10*n),
		strings.Repeat("run ls\n", 2*n),
	}
}

// What is read in a time that grows with the square of its length would not
// end here; BenchmarkLongPrompt measures it.
func TestALongPromptIsRead(t *testing.T) {
	for _, text := range longPrompts(1000) {
		read := false
		for _, err := range practice.New().Stream(t.Context(), prompt(text)) {
			read = err == nil
			break
		}
		if !read {
			t.Errorf("%q… has no answer", text[:20])
		}
	}
}

func BenchmarkLongPrompt(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			texts := longPrompts(n)
			for b.Loop() {
				for _, text := range texts {
					for range practice.New().Stream(b.Context(), prompt(text)) {
						break
					}
				}
			}
		})
	}
}

func FuzzPrompt(f *testing.F) {
	f.Add("1. write a.txt: hello, then read a.txt and b.txt\nbatch: read a; find b")
	f.Add("edit a:\n```\nx\n```\nwith\n```\ny\n```\nrun for 5s: x")
	f.Add("todo: [x] a;;\nread 'a lines 3-1\npause 0.0s\nwrite \"a: b\" to c")
	f.Fuzz(func(t *testing.T, text string) {
		calls, finished := 0, false
		r := prompt(text)
		if strings.Contains(text, "pause") || strings.Contains(text, "wait") {
			t.Skip("it takes its time")
		}
		for ev, err := range practice.New().Stream(t.Context(), r) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.ToolCall != nil {
				calls++
			}
			finished = finished || ev.Finish != 0
			if ev.Finish == model.FinishToolCalls && calls == 0 {
				t.Error("calls were announced, and there are none")
			}
		}
		if !finished {
			t.Error("the answer has no end")
		}
	})
}
