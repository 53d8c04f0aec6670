package shell_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/boughdev/bough/plugins/workspace/shell"
)

// ran is what a line came to.
type ran struct {
	shell.Ending
	out string
}

func run(t *testing.T, r *shell.Runner, line string) ran {
	t.Helper()
	return runFor(t.Context(), t, r, line, time.Minute)
}

func runFor(ctx context.Context, t *testing.T, r *shell.Runner, line string, timeout time.Duration) ran {
	t.Helper()
	var out bytes.Buffer
	e, err := r.Run(ctx, shell.Command{Line: line, Dir: t.TempDir(), Timeout: timeout, Output: func(p []byte) { out.Write(p) }})
	if err != nil {
		t.Error(err)
	}
	return ran{e, out.String()}
}

// token is an argument that no other process has. Sleeps with it can be found.
var tokens atomic.Int64

func token() string { return fmt.Sprintf("%d.%06d", 9000+tokens.Add(1), os.Getpid()) }

// alive are the processes that have a token as an argument, zombies left out.
func alive(t *testing.T, token string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		if args, err := os.ReadFile(file); err == nil && slices.Contains(strings.Split(string(args), "\x00"), token) {
			found = append(found, file+" "+strings.ReplaceAll(string(args), "\x00", " "))
		}
	}
	return found
}

// zombies are the dead children of this process.
func zombies(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}

func TestEndings(t *testing.T) {
	r := shell.New(shell.Options{})
	for _, c := range []struct {
		line, out string
		exit      int
		signal    string
	}{
		{"echo hello", "hello\n", 0, ""},
		{"exit 3", "", 3, ""},
		{"no-such-program", "", 127, ""},
		{"kill -SEGV $$", "", -1, "SIGSEGV"},
		{"echo a; echo b >&2; echo c; echo d >&2", "a\nb\nc\nd\n", 0, ""},
		{"cat", "", 0, ""}, // there is nothing to read
		{"read x; echo $?", "1\n", 0, ""},
		{"printf 'a\\0\\377b'", "a\x00\xffb", 0, ""},
		{"echo $0 $-", "", 0, ""},
		{"yes | head -1; echo ${PIPESTATUS[0]}", "y\n141\n", 0, ""},
		{"ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo leader", "leader\n", 0, ""},
		{"tty", "not a tty\n", 1, ""},
		{"echo x > /dev/stderr; echo y > /dev/stdout", "x\ny\n", 0, ""},
	} {
		if strings.HasPrefix(c.line, "ps ") {
			if _, err := exec.LookPath("ps"); err != nil {
				continue
			}
		}
		got := run(t, r, c.line)
		if got.Exit != c.exit || got.Signal != c.signal || (c.out != "" && got.out != c.out) || len(got.Left)+len(got.Stuck) > 0 || got.TimedOut || got.Cancelled {
			t.Errorf("%s: %q, %+v", c.line, got.out, got.Ending)
		}
	}
}

// TestIgnoredSignalsAreNotHandedDown is what the plugin's main does before.
func TestIgnoredSignalsAreNotHandedDown(t *testing.T) {
	signal.Ignore(syscall.SIGPIPE)
	t.Cleanup(func() { signal.Reset(syscall.SIGPIPE) })
	if got := run(t, shell.New(shell.Options{}), "yes | head -1; echo ${PIPESTATUS[0]}"); got.out != "y\n141\n" {
		t.Errorf("%q", got.out)
	}
}

func TestTheEnvironmentIsAnAllowList(t *testing.T) {
	t.Setenv("SECRET_API_KEY", "secret")
	t.Setenv("BASH_ENV", "/nowhere")
	t.Setenv("https_proxy", "http://proxy")
	t.Setenv("LC_ALL", "C")
	t.Setenv("PATH", os.Getenv("PATH"))
	got := run(t, shell.New(shell.Options{}), "env")
	var names []string
	for line := range strings.Lines(got.out) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	for _, name := range names {
		if !slices.Contains([]string{
			"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TMP", "TEMP", "LANG", "LC_ALL", "TERM", "https_proxy", "http_proxy", "HTTPS_PROXY",
			"HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "all_proxy", "no_proxy", "NO_COLOR", "CLICOLOR", "PWD", "OLDPWD", "SHLVL", "_",
		}, name) {
			t.Errorf("a command sees %s", name)
		}
	}
	for _, want := range []string{"https_proxy=http://proxy\n", "LC_ALL=C\n", "NO_COLOR=1\n", "CLICOLOR=0\n"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("a command does not see %s", want)
		}
	}
}

func TestTheShell(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "bash")
	copyShell := func() {
		t.Helper()
		program, err := os.ReadFile("/bin/bash")
		if err != nil {
			t.Skip("there is no bash")
		}
		if err := os.WriteFile(other, program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	copyShell()
	t.Setenv(shell.BashVariable, other)
	r := shell.New(shell.Options{})
	if got := run(t, r, "echo $BASH"); got.out != other+"\n" {
		t.Errorf("%q", got.out)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	wrong := func(r *shell.Runner, want string) {
		t.Helper()
		if _, err := r.Run(t.Context(), shell.Command{Line: "echo", Dir: dir, Timeout: time.Minute}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	wrong(r, "is gone")
	copyShell()
	wrong(r, "has changed")
	for value, want := range map[string]string{"bash": "not absolute", dir: "not an executable", filepath.Join(dir, "none"): "no such file"} {
		wrong(shell.New(shell.Options{Bash: value}), want)
	}
	sh := run(t, shell.New(shell.Options{Bash: "/bin/sh"}), "echo $0")
	if sh.out != "/bin/sh\n" {
		t.Errorf("%q", sh.out)
	}
}

func TestLinesThatCannotRun(t *testing.T) {
	r := shell.New(shell.Options{})
	dir := t.TempDir()
	for _, c := range []struct{ line, dir, want string }{
		{"echo", filepath.Join(dir, "none"), "no such file"},
		{"echo", os.Args[0], "not a folder"},
		{"echo\x00", dir, "NUL"},
		{strings.Repeat("x", 200_000), dir, "200000 bytes"},
	} {
		if _, err := r.Run(t.Context(), shell.Command{Line: c.line, Dir: c.dir, Timeout: time.Minute}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q in %s: %v", c.line, c.dir, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e, err := r.Run(ctx, shell.Command{Line: "touch made", Dir: dir, Timeout: time.Minute}); err != nil || !e.Cancelled {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("it ran")
	}
}

// escapes are ways in which programs get away from those who started them.
var escapes = map[string]string{
	"background":       "sleep %s & ",
	"holding nothing":  "sleep %s >/dev/null 2>&1 & ",
	"disowned":         "sleep %s & disown; ",
	"nohup":            "nohup sleep %s & ",
	"setsid":           "setsid sleep %s & ",
	"double fork":      "(setsid sh -c 'sleep %s & ' & ); ",
	"no environment":   "env -i setsid sh -c 'sleep %s & ' & ",
	"ignores TERM":     "(trap '' TERM; setsid sh -c 'sleep %s; :' & ); ",
	"stopped":          "setsid sh -c 'kill -STOP $$; sleep %s' & ",
	"daemon in daemon": "setsid sh -c 'setsid sh -c \"setsid sleep %s & sleep 0.01\" & ' & ",
	"loop":             "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep %s & sleep 0.02; done' & ",
	"exec":             "(exec setsid bash -c 'exec -a odd sleep %s' &); ",
	"coproc":           "coproc setsid sleep %s; ",
}

func TestNothingIsLeftRunning(t *testing.T) {
	nothingIsLeft(t)
}

func TestNothingIsLeftOnOtherKernels(t *testing.T) {
	shell.WithoutChildrenFiles(t)
	nothingIsLeft(t)
}

func nothingIsLeft(t *testing.T) {
	t.Helper()
	r := shell.New(shell.Options{})
	var all sync.WaitGroup
	for name, escape := range escapes {
		all.Go(func() {
			for _, c := range []struct {
				how     string
				line    string
				timeout time.Duration
			}{
				{"left", "echo done", time.Minute},
				{"timed out", "echo done; sleep 1234", 300 * time.Millisecond},
			} {
				token := token()
				got := runFor(t.Context(), t, r, fmt.Sprintf(escape, token)+c.line, c.timeout)
				if left := alive(t, token); len(left) > 0 {
					t.Errorf("%s, %s: %q is running", name, c.how, left)
				}
				if !strings.HasSuffix(got.out, "done\n") || len(got.Stuck) > 0 {
					t.Errorf("%s, %s: %q, %+v", name, c.how, got.out, got.Ending)
				}
				if got.TimedOut != (c.how == "timed out") || (c.how == "left" && (got.Exit != 0 || len(got.Left) == 0)) {
					t.Errorf("%s, %s: %+v", name, c.how, got.Ending)
				}
			}
		})
	}
	all.Wait()
}

func TestCancellingEndsEverything(t *testing.T) {
	r := shell.Patient(shell.New(shell.Options{}), 30*time.Second)
	token := token()
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	e, err := r.Run(ctx, shell.Command{
		Line: "trap 'echo bye; exit 7' TERM; setsid sleep " + token + " & sleep " + token + " & echo ready; wait",
		Dir:  t.TempDir(), Timeout: time.Minute,
		Output: func(p []byte) {
			out.Write(p)
			if strings.Contains(out.String(), "ready") {
				cancel()
			}
		},
	})
	if err != nil || !e.Cancelled || e.TimedOut || e.Exit != 7 || out.String() != "ready\nbye\n" {
		t.Errorf("%q, %+v, %v", out.String(), e, err)
	}
	if left := alive(t, token); len(left) > 0 {
		t.Errorf("%q is running", left)
	}
}

// TestForkBombsEnd lets lines go wild, at most so far that the machine of the
// tests stays usable.
func TestForkBombsEnd(t *testing.T) {
	r := shell.New(shell.Options{})
	for name, bomb := range map[string]string{
		"in the group":        "f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & }; exec sleep %s; }; f 7",
		"each in its session": "cat > b.sh <<'EOF'\n[ $1 -gt 0 ] && { setsid sh b.sh $(($1-1)) $2 & setsid sh b.sh $(($1-1)) $2 & }\ntrap '' TERM\nwhile :; do sleep $2; done\nEOF\nsh b.sh 6 %s",
	} {
		t.Run(name, func(t *testing.T) {
			token := token()
			got := runFor(t.Context(), t, r, fmt.Sprintf(bomb, token), time.Second)
			if left := alive(t, token); len(left) > 0 || !got.TimedOut || len(got.Stuck) > 0 {
				t.Errorf("%d are running, %+v", len(left), got.Ending)
			}
		})
	}
}

// TestParallelLinesLeaveEachOtherAlone runs lines with background jobs, some of
// them without a mark, beside each other.
func TestParallelLinesLeaveEachOtherAlone(t *testing.T) {
	r := shell.New(shell.Options{})
	var long sync.WaitGroup
	for i := range 3 {
		long.Go(func() {
			// The job runs until the line says so, in a session of its own.
			line := "env -i PATH=$PATH setsid sh -c 'while [ ! -e go ]; do sleep 0.02; done; echo job %d >> out' & sleep 1; touch go; while [ ! -s out ]; do sleep 0.02; done; cat out"
			if got := run(t, r, fmt.Sprintf(line, i)); got.out != fmt.Sprintf("job %d\n", i) || got.Exit != 0 {
				t.Errorf("%q, %+v", got.out, got.Ending)
			}
		})
	}
	stop := make(chan struct{})
	go func() { long.Wait(); close(stop) }()
	for n := 0; ; n++ {
		select {
		case <-stop:
			if n == 0 {
				t.Error("no short line ran beside the long ones")
			}
			return
		default:
		}
		token := token()
		if got := run(t, r, "setsid sleep "+token+" & echo short"); got.out != "short\n" || len(got.Left) != 1 {
			t.Errorf("%q, %+v", got.out, got.Ending)
		}
		if left := alive(t, token); len(left) > 0 {
			t.Errorf("%q is running", left)
		}
	}
}

func TestOutputAfterTheShellHasEnded(t *testing.T) {
	r := shell.Patient(shell.New(shell.Options{}), 30*time.Second)
	for line, want := range map[string]string{
		"(sleep 0.1; echo late) & echo soon":                    "soon\nlate\n",
		"echo a > >(sleep 0.1; cat > f; echo written); echo b":  "b\nwritten\n",
		"head -c 3000000 /dev/zero | tr '\\0' x; printf end":    strings.Repeat("x", 3_000_000) + "end",
		"(head -c 300000 /dev/zero | tr '\\0' x; printf end) &": strings.Repeat("x", 300_000) + "end",
	} {
		if got := run(t, r, line); got.out != want || got.TimedOut || len(got.Left) > 0 {
			t.Errorf("%s: %d bytes, %.80q, %+v", line, len(got.out), got.out, got.Ending)
		}
	}
	got := run(t, shell.New(shell.Options{}), "(sleep 3000; echo too late) & echo soon")
	if got.out != "soon\n" || got.TimedOut || len(got.Left) == 0 {
		t.Errorf("what goes on for long after its shell: %q, %+v", got.out, got.Ending)
	}
}

func TestShortLinesLeaveNoZombies(t *testing.T) {
	r := shell.New(shell.Options{})
	var wg sync.WaitGroup
	const workers, each = 4, 250
	for range workers {
		wg.Go(func() {
			for i := range each {
				line := "true"
				if i%10 == 0 {
					line = "(setsid true &); (true &); true & exit 0"
				}
				if e, err := r.Run(t.Context(), shell.Command{Line: line, Dir: "/", Timeout: time.Minute}); err != nil || e.Exit != 0 {
					t.Errorf("%+v, %v", e, err)
				}
			}
		})
	}
	wg.Wait()
	if n := zombies(t); n > 0 {
		t.Errorf("%d zombies", n)
	}
}

func TestTheDeadOfALongLineAreCollected(t *testing.T) {
	r := shell.New(shell.Options{})
	seen := make(chan int, 100)
	stop := make(chan struct{})
	go func() {
		defer close(seen)
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				seen <- zombies(t)
			}
		}
	}()
	got := run(t, r, "for i in $(seq 50); do (setsid true & ); done; sleep 2.5; echo end")
	close(stop)
	least := 1 << 20
	for n := range seen {
		least = min(least, n)
	}
	if least > 0 || got.out != "end\n" {
		t.Errorf("never less than %d zombies, %q", least, got.out)
	}
}

func TestFloodsTakeLittleMemory(t *testing.T) {
	r := shell.New(shell.Options{})
	var most, n int64
	var m runtime.MemStats
	e, err := r.Run(t.Context(), shell.Command{
		Line: "head -c 1000000000 /dev/zero", Dir: "/", Timeout: time.Minute,
		Output: func(p []byte) {
			n += int64(len(p))
			if n%(64<<20) < int64(len(p)) {
				runtime.ReadMemStats(&m)
				most = max(most, int64(m.HeapInuse))
			}
		},
	})
	if err != nil || e.Exit != 0 || n != 1_000_000_000 || most > 50<<20 {
		t.Errorf("%d bytes, %d MB, %+v, %v", n, most>>20, e, err)
	}
}

// TestWhatAKilledProcessLeft starts this test as another process that is killed
// while a line runs.
func TestWhatAKilledProcessLeft(t *testing.T) {
	if token := os.Getenv("SHELL_TEST_TOKEN"); token != "" {
		shell.New(shell.Options{}).Run(context.Background(), shell.Command{
			Line: "setsid sleep " + token + " & wait", Dir: "/", Timeout: time.Minute,
		})
		return
	}
	token := token()
	other := exec.Command(os.Args[0], "-test.run=TestWhatAKilledProcessLeft")
	other.Env = append(os.Environ(), "SHELL_TEST_TOKEN="+token)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command runs", func() bool { return len(alive(t, token)) > 0 })
	<-shell.Swept(shell.New(shell.Options{}))
	if len(alive(t, token)) == 0 {
		t.Fatal("a living process lost its command")
	}
	other.Process.Kill()
	other.Wait()
	<-shell.Swept(shell.New(shell.Options{}))
	eventually(t, "the command is ended", func() bool { return len(alive(t, token)) == 0 })
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// BenchmarkOverhead compares a line with what the shell alone takes; ms/over is
// the difference.
func BenchmarkOverhead(b *testing.B) {
	r := shell.New(shell.Options{})
	var with, without []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := r.Run(b.Context(), shell.Command{Line: "true", Dir: "/", Timeout: time.Minute, Output: func([]byte) {}}); err != nil {
			b.Fatal(err)
		}
		with = append(with, time.Since(began))
		began = time.Now()
		cmd := exec.Command("/bin/bash", "--noprofile", "--norc", "-c", "true")
		cmd.Env = []string{"PATH=/usr/bin:/bin"}
		if _, err := cmd.CombinedOutput(); err != nil {
			b.Fatal(err)
		}
		without = append(without, time.Since(began))
	}
	slices.Sort(with)
	slices.Sort(without)
	b.ReportMetric(float64(with[len(with)/2]-without[len(without)/2])/1e6, "ms/over")
	b.ReportMetric(float64(with[len(with)/2])/1e6, "ms/median")
}
