package workspace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs"
)

func TestShell(t *testing.T) {
	b := newBench(t)
	b.write("sub/x", "")
	for _, c := range []struct {
		input in
		want  string
		wrong bool
	}{
		{in{"command": "echo out; echo err >&2; echo out"}, "out\nerr\nout\n[exit code 0]\n", false},
		{in{"command": "printf 'no end'"}, "no end\n[exit code 0]\n", false},
		{in{"command": "true"}, "[exit code 0]\n", false},
		{in{"command": "exit 3"}, "[exit code 3]\n", true},
		{in{"command": "kill -KILL $$"}, "[ended by SIGKILL]\n", true},
		{in{"command": "pwd"}, b.dir + "\n[exit code 0]\n", false},
		{in{"command": "pwd", "workdir": "sub"}, b.dir + "/sub\n[exit code 0]\n", false},
		{in{"command": "pwd", "workdir": "/"}, "/\n[exit code 0]\n", false},
		{in{"command": "printf '\\033[31mred\\r\\n\\377'"}, "␛[31mred\n\\xff\n[exit code 0]\n", false},
		{in{"command": "sleep 60 & echo started"}, "started\n[exit code 0]\n[it left processes running, which were ended: sleep]\n", false},
		{in{"command": "echo begun; sleep 60", "timeoutSec": 1}, "begun\n[timed out after 1 s: it was ended with all that it had started; timeoutSec gives it longer]\n", true},
	} {
		if r := b.call("shell", c.input); r.Text != c.want || r.Error != c.wrong || r.OutputID != "" {
			t.Errorf("%v: failed %v, %q, want %q", c.input, r.Error, r.Text, c.want)
		}
	}
	b.fails("shell", in{"command": " \n"}, "the command is empty")
	b.fails("shell", in{"command": "pwd", "workdir": "nowhere"}, "nowhere: no such file")
}

func TestShellDetails(t *testing.T) {
	b := newBench(t)
	for command, want := range map[string]string{
		"echo a; exit 3":     `{"exit_code":3,"timed_out":false,"duration_ms":0,"output_bytes":2,"output_lines":1}`,
		"kill -TERM $$":      `{"signal":"SIGTERM","timed_out":false,"duration_ms":0,"output_bytes":0,"output_lines":0}`,
		"setsid sleep 100 &": `{"exit_code":0,"timed_out":false,"duration_ms":0,"output_bytes":0,"output_lines":0,"ended":["sleep"]}`,
	} {
		var got map[string]any
		if err := json.Unmarshal(b.call("shell", in{"command": command}).Details, &got); err != nil {
			t.Fatal(err)
		}
		if ms, ok := got["duration_ms"].(float64); !ok || ms < 0 || ms > 10_000 {
			t.Errorf("%s took %v", command, got["duration_ms"])
		}
		got["duration_ms"] = 0
		var wanted map[string]any
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(wanted) {
			t.Errorf("%s: %v, want %v", command, got, wanted)
		}
	}
}

func TestLongOutputIsKept(t *testing.T) {
	b := newBench(t)
	r := b.call("shell", in{"command": "seq 1 100000"})
	if r.OutputID != "output-shell" || !strings.HasPrefix(r.Text, "1\n2\n") || !strings.HasSuffix(r.Text, "\n99999\n100000\n[exit code 0]\n") ||
		!strings.Contains(r.Text, "output_id output-shell ") {
		t.Fatalf("%s: %q", r.OutputID, r.Text[len(r.Text)-200:])
	}
	if got := b.ok("tool_output", in{"output_id": r.OutputID, "offset": 50_000, "limit": 1}); got != "50000\n[lines 50000 to 50000 of 100000; go on with offset 50001]\n" {
		t.Errorf("%q", got)
	}
	data, err := os.ReadFile(filepath.Join(b.outputs, "s-1", r.OutputID))
	if err != nil || len(data) != 588_895 || strings.Count(string(data), "\n") != 100_000 {
		t.Errorf("%d bytes are kept, %v", len(data), err)
	}
	// From 8 KiB on it is kept although it is shown, and below if it is not.
	for command, id := range map[string]string{
		"head -c 8192 /dev/zero | tr '\\0' x":     "",
		"head -c 8193 /dev/zero | tr '\\0' x":     "output-shell-2",
		"head -c 2500 /dev/zero | tr '\\0' '\\n'": "output-shell-3",
	} {
		if id == "" {
			if r := b.call("shell", in{"command": command}); r.OutputID != "" {
				t.Errorf("%s: %q", command, r.OutputID)
			}
			continue
		}
		if r := b.call("shell", in{"command": command}); r.OutputID == "" || strings.Contains(r.Text, "left out") != strings.Contains(command, "n'") {
			t.Errorf("%s: %q, %d bytes", command, r.OutputID, len(r.Text))
		}
	}
	if r := b.call("shell", in{"command": "find /proc/self /usr/bin"}); r.OutputID != "output-find" {
		t.Errorf("%q", r.OutputID)
	}
}

func TestOutputThatCannotBeKept(t *testing.T) {
	b := newBench(t)
	if err := os.WriteFile(b.outputs, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := b.call("shell", in{"command": "seq 1 100000"})
	if r.Error || r.OutputID != "" || !strings.Contains(r.Text, "the rest was not kept") || !strings.Contains(r.Text, "[the whole output could not be kept: ") || !strings.Contains(r.Text, "[exit code 0]") {
		t.Errorf("%q", r.Text[len(r.Text)-300:])
	}
}

// stream runs a command and gives what was told while it ran.
func (b *bench) stream(ctx context.Context, command string, each func(tool.Progress)) tool.Result {
	b.t.Helper()
	input, err := json.Marshal(in{"command": command})
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := b.w.Call(ctx, tool.Call{Session: "s-1", ID: command, Tool: "shell", Input: input}, each)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func TestOutputIsSeenAsItComes(t *testing.T) {
	b := newBench(t)
	var seen strings.Builder
	r := b.stream(t.Context(), "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two >&2; echo three", func(p tool.Progress) {
		seen.Write(p.Data)
		if seen.String() == "one\n" {
			b.write("go", "")
		}
	})
	if seen.String() != "one\ntwo\nthree\n" || r.Error {
		t.Errorf("%q, %+v", seen.String(), r)
	}
}

// TestAFloodIsSeenInPart floods, and whoever watches is slow.
func TestAFloodIsSeenInPart(t *testing.T) {
	b := newBench(t)
	size, calls, notes := 0, 0, ""
	began := time.Now()
	r := b.stream(t.Context(), "head -c 300000000 /dev/zero | tr '\\0' x; echo; echo end", func(p tool.Progress) {
		calls++
		if p.Stream == tool.Note {
			notes += string(p.Data)
			return
		}
		size += len(p.Data)
		time.Sleep(20 * time.Millisecond)
	})
	took := time.Since(began)
	if most := int(took/(50*time.Millisecond))*2 + 4; calls > most || size > calls*40<<10 || !strings.Contains(notes, "too fast") {
		t.Errorf("%d calls with %d bytes in %v: %q", calls, size, took, notes)
	}
	if !strings.HasSuffix(r.Text, "end\n[exit code 0]\n") && !strings.Contains(r.Text, "end\n[exit code 0 after") {
		t.Errorf("%q", r.Text[len(r.Text)-100:])
	}
}

// TestFiveGigabytes writes as much as BOUGH_TEST_FLOOD_MB says, 500 MB if it
// says nothing.
func TestFiveGigabytes(t *testing.T) {
	megabytes := 500
	if s := os.Getenv("BOUGH_TEST_FLOOD_MB"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		megabytes = n
	}
	b := newBench(t)
	runtime.GC()
	before, most := resident(t), 0
	done := make(chan struct{})
	var r tool.Result
	go func() {
		defer close(done)
		r = b.stream(context.Background(), fmt.Sprintf("head -c %d /dev/zero | tr '\\0' 'x'; echo end", megabytes*1_000_000), func(tool.Progress) {})
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(10 * time.Millisecond):
			most = max(most, resident(t)-before)
		}
	}
	info, err := os.Stat(filepath.Join(b.outputs, "s-1", "output-shell"))
	if err != nil || info.Size() > outputs.MaxSize || info.Size() < outputs.MaxSize-1000 {
		t.Errorf("%v, %v", info, err)
	}
	if most > 50<<20 {
		t.Errorf("%d MB of memory more", most>>20)
	}
	if r.OutputID != "output-shell" || !strings.Contains(r.Text, "xend\n[exit code 0") {
		t.Errorf("%s: %q", r.OutputID, r.Text[len(r.Text)-100:])
	}
	t.Logf("%d MB of output: %d MB of memory, %d MB on the disk", megabytes, most>>20, info.Size()>>20)
	got := b.ok("tool_output", in{"output_id": r.OutputID, "pattern": "dropped here"})
	if !strings.Contains(got, fmt.Sprintf("[… %d bytes were dropped here", int64(megabytes)*1_000_000+4-info.Size()+int64(len(markLine(got))))) {
		t.Errorf("%q", got)
	}
}

// markLine is the line about what was dropped, as it is in the file.
func markLine(hit string) string {
	_, mark, _ := strings.Cut(hit, ":")
	mark, _, _ = strings.Cut(mark, "\n")
	return "\n" + mark + "\n"
}

// resident is the memory of this process.
func resident(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

func TestACancelledCommandSaysWhatItHad(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	r := b.stream(ctx, "echo begun; sleep 100", func(tool.Progress) { cancel() })
	if !r.Interrupted || r.Error || r.Text != "begun\n[interrupted: it was ended with all that it had started]\n" {
		t.Errorf("%+v", r)
	}
}

func TestParallelCommands(t *testing.T) {
	b := newBench(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			want := fmt.Sprintf("%d\n", i)
			var seen strings.Builder
			r := b.stream(t.Context(), fmt.Sprintf("(setsid sleep 100 &); for x in 1 2 3; do echo %d; sleep 0.0%d; done; exit %d", i, i%10, i), func(p tool.Progress) { seen.Write(p.Data) })
			if seen.String() != strings.Repeat(want, 3) || !strings.HasPrefix(r.Text, strings.Repeat(want, 3)+fmt.Sprintf("[exit code %d", i)) {
				t.Errorf("%d: %q, %q", i, seen.String(), r.Text)
			}
		})
	}
	wg.Wait()
}
