package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/plugins/manager"
)

var (
	points = flag.Int("chaos.points", 12, "how many processes are killed")
	seed   = flag.Uint64("chaos.seed", 0, "of the choices; 0: another one each time")
)

var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "bough-chaos-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		build := exec.CommandContext(context.Background(), "go", "build", "-o", dir+string(filepath.Separator), "../../cmd/...")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build bough: %v\n%s", err, out)
			return 1
		}
		bin = filepath.Join(dir, "bough")
		return m.Run()
	}())
}

// TestKills kills the host, the storage and the workspace process at random
// points of scripted sessions of about 160 items. After each
//
//   - the next request holds exactly the items on the path, in order, and
//     begins with all that the last one held,
//   - no item that was reported as stored is missing,
//   - no command was run twice,
//
// and at the end of a session the store is sound and nothing is left running.
func TestKills(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("seed %d", *seed)
	rng := rand.New(rand.NewPCG(*seed, 1))
	kills := map[string]int{}
	for left, n := *points, 0; left > 0; n++ {
		most := min(left, 12)
		t.Run(fmt.Sprint("session", n), func(t *testing.T) {
			s := newSaga(t, rng)
			s.play(most)
			for victim, n := range s.kills {
				kills[victim] += n
				left -= n
			}
		})
		if t.Failed() {
			break
		}
	}
	t.Logf("killed: %v", kills)
}

const steps = 26 // of text, two calls and their results: with the prompts about 160 items

// saga is one session through many lives.
type saga struct {
	t        *testing.T
	rng      *rand.Rand
	dir      string // with all that there is
	url      string // of the model
	sessions *session.Sessions
	id       string

	mu     sync.Mutex
	before []string // what the last request held
	acked  map[string]bool
	kills  map[string]int

	host   *exec.Cmd
	victim string // whom to kill next
	after  int    // after so many points
}

func (s *saga) path(name string) string { return filepath.Join(s.dir, name) }

func newSaga(t *testing.T, rng *rand.Rand) *saga {
	s := &saga{t: t, rng: rng, dir: t.TempDir(), acked: map[string]bool{}, kills: map[string]int{}}
	for _, name := range []string{"work", "tmp"} {
		if err := os.Mkdir(s.path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(s.path("running"), 0o600); err != nil {
		t.Fatal(err)
	}
	running, err := os.OpenFile(s.path("running"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		for lines := bufio.NewScanner(running); lines.Scan(); {
			s.point("running")
		}
	}()
	m := &scripted{t: t, steps: steps, point: s.point, check: s.check, call: s.call}
	s.url = m.serve(t)
	storage, err := manager.AttachStorage(t.Context(), manager.StorageOptions{
		StateDir: s.path("state"), Command: []string{bin, "plugin", "serve", "storage", "--state-dir", s.path("state"), "--linger", "1s"},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.sessions, err = session.Open(t.Context(), storage, session.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := storage.Close(); err != nil {
			t.Error(err)
		}
		kill(t, processes(s.path("state"), "storage"), unix.SIGTERM)
		allGone(t, s.path("state"))
		s.noSocketStays()
		if err := running.Close(); err != nil {
			t.Error(err)
		}
		<-listening
	})
	return s
}

// noSocketStays lets the next host remove what a host and a plugin left that
// were killed at the same time: their folders are an hour old, as it sees them.
func (s *saga) noSocketStays() {
	var left []string
	for range 5 {
		if left = sockets(s.t, s.dir); len(left) == 0 {
			return
		}
		old := time.Now().Add(-2 * time.Hour)
		for _, path := range left {
			if err := os.Chtimes(filepath.Dir(path), old, old); err != nil {
				s.t.Error(err)
			}
		}
		cmd := s.command("-p", "--ephemeral", "--prompt", "write a.txt: a")
		cmd.Env = append(cmd.Env, "BOUGH_STATE_DIR=") // of its own
		if out, err := cmd.CombinedOutput(); err != nil {
			s.t.Errorf("%v: %s", err, out)
		}
	}
	s.t.Errorf("sockets are left: %q", left)
}

// call is the input of the shell call of a step. It says that it runs, twice.
func (s *saga) call(step int) string {
	command := fmt.Sprintf("echo %d >> ran.txt; echo %d > '%s'; printf 'made by %%s\\n' %d; echo %d > '%s'", step, step, s.path("running"), step, step, s.path("running"))
	raw, err := json.Marshal(map[string]any{"command": command})
	if err != nil {
		panic(err) // strings only
	}
	return string(raw)
}

// point is where a process may be killed.
func (s *saga) point(string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.victim == "" || s.host == nil {
		return
	}
	if s.after--; s.after > 0 {
		return
	}
	if s.rng.IntN(2) == 0 { // or a moment later
		time.Sleep(time.Duration(s.rng.IntN(3000)) * time.Microsecond)
	}
	pids := []int{s.host.Process.Pid}
	if s.victim != "host" {
		pids = processes(s.path("state"), "serve", s.victim)
	}
	if len(pids) > 0 {
		s.kills[s.victim]++
		kill(s.t, pids, unix.SIGKILL)
	}
	s.choose()
}

// choose says whom to kill next, and when.
func (s *saga) choose() {
	s.victim = []string{"host", "storage", "workspace"}[s.rng.IntN(3)]
	s.after = 1 + s.rng.IntN(60)
}

func (s *saga) killed() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kills {
		n += k
	}
	return n
}

// play runs the session to its end, with so many kills at most.
func (s *saga) play(most int) {
	if code := s.run(begin); code != 0 { // nobody is killed yet: it has no id
		s.t.Fatalf("the first run ended with %d", code)
	}
	for n := 0; ; n++ {
		if n > 10*most+20 || s.t.Failed() {
			s.t.Fatalf("after %d runs it is not done", n)
		}
		calm := s.killed() >= most
		s.mu.Lock()
		s.victim = ""
		if !calm {
			s.choose()
		}
		s.mu.Unlock()
		code := s.run(fmt.Sprintf("go on (%d)", n))
		s.look()
		if code == 0 && calm {
			break
		}
	}
	if n := len(s.items(s.id)); n < 5*steps {
		s.t.Errorf("the session has only %d items", n)
	}
	if done := s.look(); done < steps/6 { // a workspace that was killed twice is off for a minute
		s.t.Errorf("only %d commands of %d came to an end", done, steps)
	}
	for _, args := range [][]string{{"sessions", "verify"}, {"storage", "check"}} {
		cmd := s.command(args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			s.t.Errorf("bough %v: %v\n%s", args, err, out)
		}
	}
}

func (s *saga) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), bin, args...)
	cmd.Dir = s.path("work")
	cmd.Env = append(os.Environ(), "BOUGH_STATE_DIR="+s.path("state"), "TMPDIR="+s.path("tmp"), "HOME="+s.dir,
		"BOUGH_OPENAI_COMPATIBLE_BASE_URL="+s.url)
	return cmd
}

// run is one life of the host; its exit code, -1 when it was killed.
func (s *saga) run(prompt string) int {
	args := []string{"-p", "-m", "openai-compatible/chaos", "--yolo", "--verbose", "--output-format", "stream-json", "--prompt", prompt}
	if s.id != "" {
		args = append(args, "-s", s.id)
	}
	cmd := s.command(args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.host = cmd
	s.mu.Unlock()
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil { // what is left is the piece of a line
			if err != io.EOF {
				s.t.Error(err)
			}
			break
		}
		var said struct {
			Item      string `json:"item"`
			SessionID string `json:"session_id"`
		}
		if err := json.Unmarshal(line, &said); err != nil {
			s.t.Errorf("%q: %v", line, err)
		}
		s.mu.Lock()
		s.id = said.SessionID
		if said.Item != "" {
			s.acked[said.Item] = true
		}
		s.mu.Unlock()
		s.point("line")
	}
	_ = cmd.Wait() // the exit code says it
	s.mu.Lock()
	s.host = nil
	s.mu.Unlock()
	code := cmd.ProcessState.ExitCode()
	if code > 0 {
		s.t.Logf("exit code %d: %s", code, stderr.String())
	}
	return code
}

// check compares a request with the path in the store, and with the request
// before it.
func (s *saga) check(told []string) {
	s.mu.Lock()
	id, before := s.id, s.before
	s.mu.Unlock()
	if id == "" {
		return // the first run has not said its id
	}
	var stored []string
	for _, it := range s.items(id) {
		p := it.Payload
		add := ""
		switch it.Kind() {
		case session.KindPrompt:
			add = "user " + p.GetPrompt().GetText()
		case session.KindText:
			add = "say " + p.GetText().GetText()
		case session.KindToolCall:
			add = "call " + p.GetToolCall().GetId() + " " + p.GetToolCall().GetName()
		case session.KindToolResult:
			add = "result " + p.GetToolResult().GetCallId() + " " + p.GetToolResult().GetText()
		case session.KindNotice:
			if p.GetHidden() {
				add = "user <system-reminder>\n" + p.GetNotice().GetText() + "\n</system-reminder>"
			}
		}
		if add != "" {
			stored = append(stored, add)
		}
	}
	if !slices.Equal(told, stored) {
		s.t.Errorf("the model is told\n  %s\nthe path is\n  %s", differ(told, stored), differ(stored, told))
	}
	if len(told) < len(before) || !slices.Equal(told[:len(before)], before) {
		s.t.Errorf("the request before held\n  %s\nnow it is\n  %s", differ(before, told), differ(told, before))
	}
	s.mu.Lock()
	s.before = told
	s.mu.Unlock()
}

// differ is what one list has from where it is not like another.
func differ(a, b []string) string {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return fmt.Sprintf("(%d alike) ", i) + fmt.Sprintf("%.3000s", strings.Join(a[i:], "\n  "))
}

func (s *saga) items(id string) []*session.Item {
	rec, err := s.sessions.Get(s.t.Context(), id)
	if err != nil {
		s.t.Errorf("read the session: %v", err)
		return nil
	}
	path, err := s.sessions.Path(s.t.Context(), rec.Head())
	if err != nil {
		s.t.Error(err)
		return nil
	}
	var items []*session.Item
	for it, err := range path.Items(s.t.Context(), 0, path.Len()) {
		if err != nil {
			s.t.Error(err)
			return nil
		}
		items = append(items, it)
	}
	return items
}

// look finds what was reported in the store, and each command run once at
// most. It counts those that came to an end.
func (s *saga) look() int {
	there := map[string]bool{}
	done := map[string]bool{}
	for _, it := range s.items(s.id) {
		there[it.Ref.String()] = true
		if r := it.Payload.GetToolResult(); strings.Contains(r.GetText(), "made by") {
			done[strings.TrimPrefix(r.GetCallId(), "shell-")] = true
		}
	}
	for item := range s.acked {
		if !there[item] {
			s.t.Errorf("item %s was reported, and is not there", item)
		}
	}
	ran, err := os.ReadFile(filepath.Join(s.path("work"), "ran.txt"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Error(err)
	}
	count := map[string]int{}
	for _, step := range strings.Fields(string(ran)) {
		if count[step]++; count[step] > 1 {
			s.t.Errorf("step %s was run %d times", step, count[step])
		}
	}
	for step := range done {
		if count[step] != 1 {
			s.t.Errorf("step %s has a result, and was run %d times", step, count[step])
		}
	}
	return len(done)
}
