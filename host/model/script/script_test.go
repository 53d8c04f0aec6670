package script

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/model"
)

func request(t *testing.T, script string, messages ...model.Message) *model.Request {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.script")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return &model.Request{Model: Prefix + path, Session: "s", Messages: messages}
}

func play(p model.Provider, r *model.Request) (string, error) {
	var out strings.Builder
	for ev, err := range p.Stream(context.Background(), r) {
		if err != nil {
			return out.String(), err
		}
		out.WriteString(ev.Text)
		if ev.ReasoningDone != nil {
			out.WriteString("(" + ev.ReasoningDone.Text + ")")
		}
		if ev.ToolCall != nil {
			out.WriteString("[" + ev.ToolCall.ID + " " + ev.ToolCall.Name + " " + string(ev.ToolCall.Input) + "]")
		}
		if ev.Finish != 0 {
			out.WriteString(map[model.Finish]string{1: ".", 2: "!", 3: "…", 4: "x"}[ev.Finish])
		}
	}
	return out.String(), nil
}

func user(s string) model.Message {
	return model.Message{Role: model.User, Parts: []model.Part{{Text: s}}}
}
func said(s string) model.Message {
	return model.Message{Role: model.Assistant, Parts: []model.Part{{Text: s}}}
}
func got(s string, failed bool) model.Message {
	return model.Message{Role: model.Tool, Parts: []model.Part{{ToolResult: &model.ToolResult{Text: s, Error: failed}}}}
}

const sample = `
# two answers, then a choice
turn
  think Let me see.
  say I will read it.
  call file_read {"filePath": "a.txt"}
turn repeat 2
  call shell <<END
  {"command": "echo {{n}} {{i}}"}
  END
turn
  when result is error
    say It failed.
  when result contains ok
    say Good.
  else
    say Unclear.
turn
  expect prompt contains please
  say Over.
  finish length
`

func TestTheTurnFollowsFromTheConversation(t *testing.T) {
	p := New()
	history := []model.Message{user("go")}
	for i, tt := range []struct {
		reply model.Message
		want  string
	}{
		{got("text", false), `(Let me see.)I will read it.[call-1-1 file_read {"filePath": "a.txt"}]!`},
		{got("1", false), `[call-2-1 shell   {"command": "echo 2 1"}]!`},
		{got("ok", false), `[call-3-1 shell   {"command": "echo 3 2"}]!`},
		{user("please"), "Good.."},
		{user("x"), "Over.…"},
	} {
		out, err := play(p, request(t, sample, history...))
		if err != nil || out != tt.want {
			t.Errorf("answer %d = %q, %v; want %q", i+1, out, err, tt.want)
		}
		history = append(history, said("…"), tt.reply)
	}
	var failure *model.Error
	if _, err := play(p, request(t, sample, history...)); !errors.As(err, &failure) || !strings.Contains(failure.Message, "is over") {
		t.Errorf("after the end: %v", err)
	}
	if _, err := play(p, request(t, sample, append(history[:7:7], user("hm"))...)); err != nil {
		t.Errorf("the else of a turn: %v", err)
	}
	bad := append(history[:8:8], user("no"))
	if _, err := play(p, request(t, sample, append(bad, said("x"), user("nope"))...)); err == nil {
		t.Error("an expectation that does not hold is no error")
	}
}

func TestErrorsHappenTheirTimes(t *testing.T) {
	p := New()
	r := request(t, "turn\n  error rate_limited times=2 retry_after=3s status=429 slow down\n  say fine", user("x"))
	for range 2 {
		var failure *model.Error
		if _, err := play(p, r); !errors.As(err, &failure) || failure.Class != model.ClassRateLimited ||
			failure.RetryAfter != 3*time.Second || failure.Status != 429 || failure.Message != "slow down" {
			t.Fatalf("error = %+v", failure)
		}
	}
	if out, err := play(p, r); err != nil || out != "fine." {
		t.Errorf("the third time: %q, %v", out, err)
	}
}

func TestADelayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	for ev, err := range New().Stream(ctx, request(t, "turn\n say a\n delay 1h\n say b", user("x"))) {
		if ev.Text == "a" {
			cancel()
			continue
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", ev, err)
		}
	}
	cancel()
}

func TestMistakesAreNamed(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{"", "no turn"},
		{"say x", "x.script:1: \"say\" stands before the first `turn`"},
		{"turn\n  shout x", "x.script:2: \"shout\" is no statement"},
		{"turn\n  call", "x.script:2: `call` takes"},
		{"turn\n  call a {", "no valid JSON"},
		{"turn\n  say <<END\n hello", "does not end"},
		{"turn repeat 0", "repeat N"},
		{"turn\n  error sad", "takes a class"},
		{"turn\n  delay soon", "duration"},
		{"turn\n  usage tokens=3", "usage"},
		{"turn\n  finish never", "finish"},
		{"turn\n  when moon is full", "result"},
		{"turn\n  else", "without a `when`"},
		{"turn\n  say x\n  when result is error", "beginning"},
	} {
		_, err := Parse("x.script", strings.NewReader(tt.script))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.script, err, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Add("turn\n  error rate_limited times=2 retry_after=3s x\n  usage input=1\n finish length")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse("f", strings.NewReader(text))
		if err == nil && len(s.turns) == 0 {
			t.Error("a script without turns was taken")
		}
	})
}
