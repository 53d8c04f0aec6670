package manager

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
)

func TestCancelledCallAnswersWithWhatThereIs(t *testing.T) {
	tools := newTools(t, "tools")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var progress []byte
	r, err := tools.Call(ctx, tool.Call{Session: "s", ID: "1", Tool: "waits"}, func(p tool.Progress) {
		progress = append(progress, p.Data...)
		cancel()
	})
	if err != nil || !r.Interrupted || r.Text != "half" || string(progress) != "waiting" {
		t.Errorf("got %+v, %v, progress %q", r, err, progress)
	}
}

func TestCancelledCallThatDoesNotAnswerIsCut(t *testing.T) {
	tools := newTools(t, "tools")
	if tools.grace != 5*time.Second {
		t.Errorf("a cancelled call has %s to answer", tools.grace)
	}
	tools.grace = 300 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	began := time.Now()
	r, err := tools.Call(ctx, tool.Call{Session: "s", ID: "1", Tool: "ignores"}, func(tool.Progress) { cancel() })
	took := time.Since(began)
	if err != nil || !r.Interrupted || !r.Error || !strings.Contains(r.Text, "is not known") {
		t.Errorf("got %+v, %v", r, err)
	}
	if took < tools.grace {
		t.Errorf("it was cut after %s, want %s", took, tools.grace)
	}
}

func TestCallWithAnEndedContextIsNotBegun(t *testing.T) {
	tools := newTools(t, "tools")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, err := tools.Call(ctx, tool.Call{Tool: "dies"}, nil)
	if err != nil || !r.Interrupted {
		t.Errorf("got %+v, %v", r, err)
	}
}

func newTestWorkspace(t *testing.T) *Workspace {
	mark := "mark-" + t.Name()
	leaveNothing(t, mark)
	w := NewWorkspace(command(t, "workspace", mark), nil)
	t.Cleanup(func() {
		if err := w.Stop(timeout(t, 10*time.Second)); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestWorkspaceIsToldOfItsSessionsAfterACrash(t *testing.T) {
	w := newTestWorkspace(t)
	ctx := timeout(t, 20*time.Second)
	one := workspace.Session{ID: "s", Folder: "/one", Seen: []tool.FileState{{Path: "/one/a", Partial: true}}}
	for _, s := range []workspace.Session{
		{ID: "s", Folder: "/zero"}, one, {ID: "gone", Folder: "/gone"}, {ID: "other", Folder: "/other"},
	} {
		if err := w.Open(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Open(ctx, workspace.Session{ID: "x", Folder: "/nowhere"}); err == nil || !strings.Contains(err.Error(), "there is no folder /nowhere") {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := w.Close(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, w, "read", `"/one/b"`); err != nil {
		t.Fatal(err)
	}
	kill(t, w.Status().PID, syscall.SIGKILL)

	r, err := call(t, w, "seen", "")
	for errors.As(err, new(*StoppedError)) { // the call that finds the process dead
		r, err = call(t, w, "seen", "")
	}
	if err != nil {
		t.Fatal(err)
	}
	var got workspace.Session
	if err := json.Unmarshal([]byte(r.Text), &got); err != nil {
		t.Fatal(r.Text, err)
	}
	if got.Folder != "/one" || len(got.Seen) != 2 || got.Seen[0].Path != "/one/a" || !got.Seen[0].Partial || got.Seen[1].Path != `"/one/b"` {
		t.Errorf("the new process was told %+v", got)
	}
	for session, known := range map[string]bool{"other": true, "gone": false} {
		r, err := w.Call(ctx, tool.Call{Session: session, ID: "2", Tool: "seen"}, nil)
		if err != nil || r.Error == known {
			t.Errorf("%s: got %+v, %v", session, r, err)
		}
	}
}

func TestCloseStartsNoProcess(t *testing.T) {
	w := newTestWorkspace(t)
	if err := w.Close(timeout(t, time.Second), "s"); err != nil || w.Status().State != Idle {
		t.Errorf("got %v, %s", err, w.Status().State)
	}
}

func newTestModels(t *testing.T) *Models {
	mark := "mark-" + t.Name()
	leaveNothing(t, mark)
	m := NewModels(command(t, "models", mark))
	t.Cleanup(func() {
		if err := m.Stop(timeout(t, 10*time.Second)); err != nil {
			t.Error(err)
		}
	})
	return m
}

func answer(t *testing.T, m model.Provider, r *model.Request) (events []model.Event, err error) {
	t.Helper()
	for event, err := range m.Stream(timeout(t, 20*time.Second), r) {
		if err != nil {
			return events, err
		}
		events = append(events, event)
	}
	return events, nil
}

func TestModelsInAPlugin(t *testing.T) {
	m := newTestModels(t)
	infos, err := m.Models(timeout(t, 10*time.Second))
	if err != nil || len(infos) != 2 || infos[1].Unusable != "no key" {
		t.Errorf("got %+v, %v", infos, err)
	}
	events, err := answer(t, m, &model.Request{Model: "test/echo", System: "hello"})
	if err != nil || len(events) != 3 || events[0].Text != "hello" || events[2].Finish != model.FinishStop {
		t.Errorf("got %+v, %v", events, err)
	}
	for _, test := range []struct {
		model string
		class model.Class
		text  string
	}{
		{"test/limited", model.ClassRateLimited, "slow down"},
		{"test/cut", model.ClassMalformed, "without saying why"},
		{"test/panics", model.ClassUnknown, "out of cheese"},
		{"test/dies", model.ClassNetwork, "exit status 3"},
	} {
		_, err := answer(t, m, &model.Request{Model: test.model})
		failed := (*model.Error)(nil)
		if !errors.As(err, &failed) || failed.Class != test.class || !strings.Contains(failed.Error(), test.text) {
			t.Errorf("%s: got %v", test.model, err)
		}
		if test.class == model.ClassRateLimited && failed.RetryAfter != 2*time.Second {
			t.Errorf("the hint became %s", failed.RetryAfter)
		}
	}
	if events, err := answer(t, m, &model.Request{Model: "test/echo"}); err != nil || len(events) == 0 {
		t.Errorf("after its death: %+v, %v", events, err)
	}
}

func TestLeavingAStreamCancelsTheRequest(t *testing.T) {
	m := newTestModels(t)
	for name, leave := range map[string]func(r *model.Request){
		"break": func(r *model.Request) {
			for _, err := range m.Stream(timeout(t, 20*time.Second), r) {
				if err != nil {
					t.Error(err)
				}
				break
			}
		},
		"cancel": func(r *model.Request) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var last error
			for _, err := range m.Stream(ctx, r) {
				cancel()
				last = err
			}
			if !errors.Is(last, context.Canceled) {
				t.Errorf("the sequence ended with %v", last)
			}
		},
	} {
		told := filepath.Join(t.TempDir(), "told")
		leave(&model.Request{Model: "test/endless", System: told})
		within(t, 5*time.Second, name+" reaches the plugin", func() bool {
			_, err := os.Stat(told)
			return err == nil
		})
	}
}

func TestModelsThatCannotStart(t *testing.T) {
	c := command(t, "exits")
	m := NewModels(c)
	defer m.Stop(context.Background())
	_, err := answer(t, m, &model.Request{Model: "test/echo"})
	failed, start := (*model.Error)(nil), (*StartError)(nil)
	if !errors.As(err, &failed) || failed.Class.Retryable() || !errors.As(err, &start) {
		t.Errorf("got %v", err)
	}
}
