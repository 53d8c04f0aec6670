package workspace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boughdev/bough/host/tool"
	contract "github.com/boughdev/bough/host/workspace"
	"github.com/boughdev/bough/plugins/workspace"
)

// bench is a workspace with one open session and its folder.
type bench struct {
	t       *testing.T
	w       *workspace.Workspace
	dir     string
	outputs string
	calls   int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchWith(t, workspace.Options{})
}

func newBenchWith(t *testing.T, o workspace.Options) *bench {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o.OutputsDir = filepath.Join(top, "outputs")
	b := &bench{t: t, w: workspace.New(o), dir: filepath.Join(top, "folder"), outputs: o.OutputsDir}
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b.open(nil)
	t.Cleanup(func() {
		if err := b.w.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

// open opens the session anew.
func (b *bench) open(seen []tool.FileState) {
	b.t.Helper()
	if err := b.w.Open(b.t.Context(), contract.Session{ID: "s-1", Folder: b.dir, Seen: seen}); err != nil {
		b.t.Fatal(err)
	}
}

// in is the input of a call.
type in map[string]any

func (b *bench) call(name string, input in) tool.Result {
	b.t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.raw(name, string(raw))
}

func (b *bench) raw(name, input string) tool.Result {
	b.t.Helper()
	b.calls++
	r, err := b.w.Call(b.t.Context(), tool.Call{Session: "s-1", ID: fmt.Sprint(b.calls), Tool: name, Input: json.RawMessage(input)}, nil)
	if err != nil {
		b.t.Fatalf("%s: %v", name, err)
	}
	if len(r.Details) > 0 && !json.Valid(r.Details) {
		b.t.Errorf("%s: details %s", name, r.Details)
	}
	if !(tool.Limits{Bytes: 51200, Lines: 2000}).Fits(r.Text) {
		b.t.Errorf("%s: %d bytes, %d lines", name, len(r.Text), strings.Count(r.Text, "\n"))
	}
	return r
}

// ok is the text of a call that must not fail.
func (b *bench) ok(name string, input in) string {
	b.t.Helper()
	r := b.call(name, input)
	if r.Error || r.Interrupted {
		b.t.Errorf("%s failed: %s", name, r.Text)
	}
	return r.Text
}

// fails checks that a call fails, and what it says.
func (b *bench) fails(name string, input in, want string) {
	b.t.Helper()
	if r := b.call(name, input); !r.Error || !strings.Contains(r.Text, want) {
		b.t.Errorf("%s %v: failed %v, %q, want %q", name, input, r.Error, r.Text, want)
	}
}

func (b *bench) write(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// has checks the content of a file.
func (b *bench) has(name, want string) {
	b.t.Helper()
	if data, err := os.ReadFile(filepath.Join(b.dir, name)); err != nil || string(data) != want {
		b.t.Errorf("%s has %q, %v; want %q", name, data, err, want)
	}
}

// gone checks that a file is not there.
func (b *bench) gone(name string) {
	b.t.Helper()
	if _, err := os.Lstat(filepath.Join(b.dir, name)); !os.IsNotExist(err) {
		b.t.Errorf("%s is there: %v", name, err)
	}
}

// names checks what is in the folder: nothing temporary stays.
func (b *bench) names(want ...string) {
	b.t.Helper()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("the folder has %q, want %q", got, want)
	}
}

func TestToolsAreDescribed(t *testing.T) {
	docs, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	specs, err := newBench(t).w.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]tool.Effect{
		"file_read": tool.EffectRead, "file_write": tool.EffectWrite, "file_edit": tool.EffectWrite, "file_apply_patch": tool.EffectWrite,
		"file_glob": tool.EffectRead, "file_grep": tool.EffectRead, "shell": tool.EffectExecute, "tool_output": tool.EffectNone,
	}
	for _, s := range specs {
		if effect, known := want[s.Name]; !known || s.Effect != effect {
			t.Errorf("%s has effect %v", s.Name, s.Effect)
		}
		delete(want, s.Name)
		if len(s.Description) < 50 || len(s.Description) > 1500 {
			t.Errorf("the description of %s has %d bytes", s.Name, len(s.Description))
		}
		var schema struct {
			Type                 string
			Properties           map[string]struct{ Description string }
			AdditionalProperties *bool
		}
		if err := json.Unmarshal(s.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		if schema.Type != "object" || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
			t.Errorf("the schema of %s is %s", s.Name, s.InputSchema)
		}
		if !bytes.Contains(docs, []byte("## `"+s.Name+"`")) {
			t.Errorf("docs/tools.md has no section on %s", s.Name)
		}
		for name, property := range schema.Properties {
			if property.Description == "" {
				t.Errorf("%s of %s is not described", name, s.Name)
			}
			if !bytes.Contains(docs, []byte("`"+name+"`")) {
				t.Errorf("docs/tools.md does not name %s of %s", name, s.Name)
			}
		}
		for _, field := range s.PathFields {
			if _, there := schema.Properties[field]; !there {
				t.Errorf("%s has no field %s", s.Name, field)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}

// TestSchemasAgreeWithTheTools gives each tool inputs that its schema and the
// tool itself must both take, or both refuse.
func TestSchemasAgreeWithTheTools(t *testing.T) {
	b := newBench(t)
	b.write("a.txt", "a\n")
	registry := tool.NewRegistry(tool.Limits{}, nil)
	if err := registry.Add(t.Context(), "workspace", b.w); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool, input string
		wrong       bool
	}{
		{"file_read", `{"filePath":"a.txt","offset":1.0,"limit":5}`, false},
		{"file_read", `{"filePath":"a.txt","offset":0}`, true},
		{"file_read", `{"filePath":"a.txt","offset":1.5}`, true},
		{"file_read", `{"filePath":"a.txt","offset":"1"}`, true},
		{"file_read", `{"filePath":""}`, true},
		{"file_read", `{}`, true},
		{"file_read", `[]`, true},
		{"file_read", `{"filePath":"a.txt","lines":5}`, true},
		{"file_write", `{"filePath":"b.txt"}`, true},
		{"file_write", `{"filePath":"b.txt","content":""}`, false},
		{"file_write", `{"filePath":"b.txt","content":null}`, true},
		{"file_edit", `{"filePath":"a.txt","oldString":"a","newString":"a b"}`, false},
		{"file_edit", `{"filePath":"a.txt","oldString":"","newString":"b"}`, true},
		{"file_edit", `{"filePath":"a.txt","oldString":"a","newString":"b","replaceAll":"yes"}`, true},
		{"file_apply_patch", `{"patchText":""}`, true},
		{"file_glob", `{"pattern":"*"}`, false},
		{"file_glob", `{"pattern":""}`, true},
		{"file_grep", `{"pattern":"a","-A":1,"-B":1,"-C":1,"head_limit":2000}`, false},
		{"file_grep", `{"pattern":"a","-A":51}`, true},
		{"file_grep", `{"pattern":"a","-B":-1}`, true},
		{"file_grep", `{"pattern":"a","head_limit":0}`, true},
		{"file_grep", `{"pattern":""}`, true},
		{"shell", `{"command":"true","timeoutSec":21600}`, false},
		{"shell", `{"command":"true","timeoutSec":21601}`, true},
		{"shell", `{"command":"true","timeoutSec":0}`, true},
		{"shell", `{"command":""}`, true},
		{"tool_output", `{"output_id":""}`, true},
		{"tool_output", `{"output_id":"x","limit":2001}`, true},
		{"tool_output", `{"output_id":"x","pattern":"a","context_after":6}`, true},
	} {
		if err := registry.Validate(c.tool, json.RawMessage(c.input)); (err != nil) != c.wrong {
			t.Errorf("the schema of %s says of %s: %v", c.tool, c.input, err)
		}
		if r := b.raw(c.tool, c.input); r.Error != c.wrong {
			t.Errorf("%s says of %s: %q", c.tool, c.input, r.Text)
		}
	}
}

func TestCallsThatCannotBe(t *testing.T) {
	b := newBench(t)
	var unknown *tool.UnknownError
	if _, err := b.w.Call(t.Context(), tool.Call{Session: "s-1", Tool: "file_reed"}, nil); !errors.As(err, &unknown) || !slices.Contains(unknown.Near, "file_read") {
		t.Error(err)
	}
	if _, err := b.w.Call(t.Context(), tool.Call{Session: "s-2", Tool: "file_read", Input: json.RawMessage(`{"filePath":"a"}`)}, nil); err == nil || !strings.Contains(err.Error(), "s-2 is not open") {
		t.Error(err)
	}
	for _, s := range []contract.Session{{Folder: b.dir}, {ID: "s-3", Folder: "relative"}} {
		if err := b.w.Open(t.Context(), s); err == nil {
			t.Errorf("%+v was opened", s)
		}
	}
	if err := b.w.Close(t.Context(), "s-2"); err != nil {
		t.Error(err)
	}
}

func TestAVanishedFolderIsSaidAndNotMade(t *testing.T) {
	b := newBench(t)
	if err := os.RemoveAll(b.dir); err != nil {
		t.Fatal(err)
	}
	b.fails("file_write", in{"filePath": "a", "content": "x"}, "is gone")
	b.fails("file_read", in{"filePath": "a"}, "is gone")
	b.fails("shell", in{"command": "pwd"}, "is gone")
	if _, err := os.Stat(b.dir); err == nil {
		t.Error("the folder was made again")
	}
}

func TestNothingOutsideIsTouched(t *testing.T) {
	b := newBench(t)
	outside := filepath.Join(filepath.Dir(b.dir), "outside")
	if err := os.WriteFile(outside, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": outside, "relative": "../outside", "up": ".."} {
		if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{outside, "link", "relative", "../outside", "up/outside"} {
		for name, input := range map[string]in{
			"file_read":        {"filePath": path},
			"file_write":       {"filePath": path, "content": "x"},
			"file_edit":        {"filePath": path, "oldString": "secret", "newString": "x"},
			"file_grep":        {"pattern": "secret", "path": path},
			"file_glob":        {"pattern": "*", "path": path},
			"file_apply_patch": {"patchText": "*** Begin Patch\n*** Delete File: " + path + "\n*** End Patch"},
		} {
			b.fails(name, input, "outside the session's folder")
		}
		b.fails("file_apply_patch", in{"patchText": "*** Begin Patch\n*** Add File: new\n+x\n*** Update File: " + path + "\n-secret\n+x\n*** End Patch"}, "outside")
	}
	b.gone("new")
	b.fails("file_glob", in{"pattern": "../*"}, "leads upwards")
	if got := b.ok("file_grep", in{"pattern": "secret"}); strings.Contains(got, "outside") {
		t.Error(got)
	}
	if data, err := os.ReadFile(outside); string(data) != "secret\n" {
		t.Errorf("%q, %v", data, err)
	}

	free := newBenchWith(t, workspace.Options{AllowOutside: true})
	if got := free.ok("file_read", in{"filePath": outside}); got != "1\tsecret\n" {
		t.Errorf("%q", got)
	}
	if got := free.ok("file_edit", in{"filePath": outside, "oldString": "secret", "newString": "known"}); !strings.Contains(got, outside) {
		t.Errorf("%q", got)
	}
	free.ok("file_write", in{"filePath": "inside", "content": "x"})
	free.has("inside", "x")
}

// TestClosingEndsWhatRuns closes one of two sessions that run commands.
func TestClosingEndsWhatRuns(t *testing.T) {
	b := newBench(t)
	if err := b.w.Open(t.Context(), contract.Session{ID: "s-2", Folder: b.dir}); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	started, results := make(chan string, 2), map[string]tool.Result{}
	var mu sync.Mutex
	for _, session := range []string{"s-1", "s-2"} {
		running.Go(func() {
			var once sync.Once
			r, err := b.w.Call(t.Context(), tool.Call{Session: session, ID: "c", Tool: "shell", Input: json.RawMessage(
				`{"command":"echo here; (setsid sh -c 'while [ ! -e stop ]; do sleep 0.05; done; touch ` + session + `' &) ; while [ ! -e stop ]; do sleep 0.05; done"}`,
			)}, func(tool.Progress) { once.Do(func() { started <- session }) })
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			results[session] = r
		})
	}
	<-started
	<-started
	if err := b.w.Close(t.Context(), "s-1"); err != nil {
		t.Error(err)
	}
	mu.Lock()
	r, ended := results["s-1"]
	mu.Unlock()
	if ended && (!r.Interrupted || !strings.Contains(r.Text, "here\n[interrupted")) {
		t.Errorf("%+v", r)
	}
	if _, err := b.w.Call(t.Context(), tool.Call{Session: "s-1", Tool: "file_read", Input: json.RawMessage(`{"filePath":"."}`)}, nil); err == nil {
		t.Error("a closed session answers")
	}
	b.write("stop", "")
	running.Wait()
	b.gone("s-1") // its background job was ended before it could see the file
	if r := results["s-2"]; r.Interrupted || r.Error {
		t.Errorf("the other session's command: %+v", r)
	}
	if err := b.w.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := b.w.Open(t.Context(), contract.Session{ID: "s-4", Folder: b.dir}); err == nil {
		t.Error("a stopped workspace opens sessions")
	}
}

func TestClosingDoesNotWaitForEver(t *testing.T) {
	b := newBench(t)
	entered, release := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		var once sync.Once
		b.w.Call(t.Context(), tool.Call{Session: "s-1", ID: "c", Tool: "shell", Input: json.RawMessage(`{"command":"echo x"}`)}, func(tool.Progress) {
			once.Do(func() { close(entered) })
			<-release // whoever watches hangs
		})
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.w.Close(ctx, "s-1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	close(release)
	<-done
}
