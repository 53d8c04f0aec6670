package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/store/memstore"
	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
	"github.com/boughdev/bough/plugins/sdk"
	"github.com/boughdev/bough/plugins/wire/handshake"
)

// stderr is the process's own; go-plugin puts a pipe in place of os.Stderr.
var stderr = os.Stderr

// roles are the processes that the tests need. The first argument of each is a
// mark by which its test finds them all.
var roles map[string]func(args []string) error

func init() {
	roles = map[string]func(args []string) error{
		"tools": func(args []string) error {
			return sdk.Serve(context.Background(), sdk.Plugin{Name: "tools", Version: "1", Tools: testTools{}})
		},
		"workspace": func(args []string) error {
			w := &testWorkspace{}
			return sdk.Serve(context.Background(), sdk.Plugin{Name: "workspace", Workspace: w, Close: w.leave})
		},
		"models": func(args []string) error {
			return sdk.Serve(context.Background(), sdk.Plugin{Name: "models", Models: testModels{}})
		},
		"garbage": func([]string) error {
			fmt.Fprintln(os.Stderr, "garbage wonders")
			fmt.Println("Welcome to garbage 1.0!")
			waitForEOF()
			return nil
		},
		"panics": func([]string) error { panic("out of cheese") },
		"exits": func([]string) error {
			for i := range 30 {
				fmt.Fprintln(os.Stderr, "line", i)
			}
			os.Exit(7)
			return nil
		},
		"hangs": func([]string) error {
			fmt.Fprintln(os.Stderr, "thinking")
			signal.Ignore(syscall.SIGTERM)
			select {}
		},
		"deaf": func([]string) error { return serveWithoutStdin() },
		"tcp": func([]string) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			fmt.Printf("1|%d|tcp|%s|grpc\n", handshake.Version, l.Addr())
			waitForEOF()
			return nil
		},
		"own-storage": func([]string) error {
			return sdk.Serve(context.Background(), sdk.Plugin{Name: "own-storage", Store: memory{memstore.New()}})
		},
		"host":    hostRole,
		"storage": storageRole,
		"holder":  holderRole,
		"client":  clientRole,
	}
}

// serveWithoutStdin is a plugin that takes no notice of the end of its stdin,
// as one in another language might.
func serveWithoutStdin() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	os.Stdin = null
	return sdk.Serve(context.Background(), sdk.Plugin{Name: "deaf", Tools: testTools{}})
}

// hostRole is a host with a plugin of each role named; it prints their process
// ids and then does nothing.
func hostRole(args []string) error {
	for _, role := range args[1:] {
		path, err := os.Executable()
		if err != nil {
			return err
		}
		t := NewTools(Command{Name: role, Path: path, Args: []string{"as", role, args[0]}, Logger: slog.New(slog.DiscardHandler)})
		if _, err := t.Tools(context.Background()); err != nil {
			return err
		}
		fmt.Println(t.Status().PID)
		r, err := t.Call(context.Background(), tool.Call{Session: "s", ID: "1", Tool: "child"}, nil)
		if err != nil {
			return err
		}
		fmt.Println(r.Text)
	}
	select {}
}

// testTools are tools that behave and misbehave.
type testTools struct{}

func (testTools) Tools(context.Context) ([]tool.Spec, error) {
	return []tool.Spec{{
		Name: "echo", Description: "says it again", InputSchema: json.RawMessage(`{"type":"object"}`),
		Effect: tool.EffectRead, PathFields: []string{"path"},
	}}, nil
}

func (testTools) Call(ctx context.Context, call tool.Call, progress func(tool.Progress)) (tool.Result, error) {
	switch call.Tool {
	case "echo":
		return tool.Result{Text: string(call.Input), Details: json.RawMessage(`{"n":1}`)}, nil
	case "fails":
		return tool.Result{}, errors.New("no such wind")
	case "panics":
		panic("out of cheese")
	case "dies":
		fmt.Fprintln(stderr, "I die")
		os.Exit(3)
	case "big":
		n, err := strconv.Atoi(string(call.Input))
		return tool.Result{Text: strings.Repeat("x", n)}, err
	case "waits": // until it is cancelled
		progress(tool.Progress{Stream: tool.Stdout, Data: []byte("waiting")})
		<-ctx.Done()
		return tool.Result{Text: "half", Interrupted: true}, nil
	case "ignores": // that it is cancelled
		progress(tool.Progress{Stream: tool.Note, Data: []byte("ignoring")})
		select {}
	case "environment":
		return tool.Result{Text: strings.Join(os.Environ(), "\n")}, nil
	case "floods":
		for i := range 20000 {
			fmt.Fprintln(stderr, "flood", i, strings.Repeat("~", 100))
		}
		return tool.Result{Text: "flooded"}, nil
	case "prints": // where the handshake was
		for i := range 5000 {
			fmt.Println("print", i, strings.Repeat("~", 100))
		}
		return tool.Result{Text: "printed"}, nil
	case "progress":
		n, err := strconv.Atoi(string(call.Input))
		for range n {
			progress(tool.Progress{Stream: tool.Stdout, Data: make([]byte, 256<<10)})
		}
		return tool.Result{}, err
	case "child": // that ignores everything but SIGKILL, in the plugin's group
		cmd := exec.Command("sh", "-c", "trap '' TERM HUP INT; while :; do sleep 1; done")
		if err := cmd.Start(); err != nil {
			return tool.Result{}, err
		}
		return tool.Result{Text: strconv.Itoa(cmd.Process.Pid)}, nil
	}
	return tool.Result{}, fmt.Errorf("there is no tool %q", call.Tool)
}

// testWorkspace answers with what it was told of a session.
type testWorkspace struct {
	testTools
	mu       sync.Mutex
	sessions map[string]workspace.Session
}

func (w *testWorkspace) Open(_ context.Context, s workspace.Session) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Folder == "/nowhere" {
		return errors.New("there is no folder /nowhere")
	}
	if w.sessions == nil {
		w.sessions = map[string]workspace.Session{}
	}
	w.sessions[s.ID] = s
	return nil
}

func (w *testWorkspace) Close(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sessions, id)
	return nil
}

func (w *testWorkspace) leave(context.Context) error {
	if path := os.Getenv("TEST_LEAVE_FILE"); path != "" {
		return os.WriteFile(path, []byte("left"), 0o600)
	}
	return nil
}

func (w *testWorkspace) Call(ctx context.Context, call tool.Call, progress func(tool.Progress)) (tool.Result, error) {
	if call.Tool != "seen" && call.Tool != "read" {
		return w.testTools.Call(ctx, call, progress)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.sessions[call.Session]
	if !ok {
		return tool.Result{Error: true, Text: "unknown session " + call.Session}, nil
	}
	if call.Tool == "read" {
		return tool.Result{Text: "read", Files: []tool.FileState{{Path: string(call.Input), SHA256: []byte("sum")}}}, nil
	}
	text, err := json.Marshal(s)
	return tool.Result{Text: string(text)}, err
}

// testModels answers by the name of the model.
type testModels struct{}

func (testModels) Models(context.Context) ([]model.Info, error) {
	return []model.Info{{Name: "test/echo", ContextTokens: 1000}, {Name: "test/none", Unusable: "no key"}}, nil
}

func (testModels) Stream(ctx context.Context, r *model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		switch r.Model {
		case "test/echo":
			_ = yield(model.Event{Text: r.System}, nil) &&
				yield(model.Event{Usage: &model.Usage{InputTokens: 3}}, nil) &&
				yield(model.Event{Finish: model.FinishStop}, nil)
		case "test/limited":
			yield(model.Event{}, &model.Error{Class: model.ClassRateLimited, Message: "slow down", RetryAfter: 2 * time.Second, Status: 429})
		case "test/cut":
			yield(model.Event{Text: "half"}, nil)
		case "test/panics":
			panic("out of cheese")
		case "test/dies":
			if yield(model.Event{Text: "half"}, nil) {
				os.Exit(3)
			}
		case "test/endless": // tells a file when it is cancelled
			for ctx.Err() == nil && yield(model.Event{Text: "."}, nil) {
				continue
			}
			if err := os.WriteFile(r.System, []byte("cancelled"), 0o600); err != nil {
				panic(err)
			}
		}
	}
}
