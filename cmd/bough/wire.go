package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/model/practice"
	"github.com/boughdev/bough/host/model/script"
	"github.com/boughdev/bough/host/policy"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs"
	"github.com/boughdev/bough/plugins/manager"
	"github.com/boughdev/bough/plugins/workspace"
)

// app is the parts of one bough process, put together. It is the only place
// that knows them all.
type app struct {
	self     string // the program, which plugins are started with
	layout   layout
	log      *slog.Logger
	storage  *manager.Storage
	sessions *session.Sessions
	models   *manager.Models
	closers  []func() error // called last to first
}

// open attaches to the storage of the state directory. What else is started
// meanwhile starts beside it; all else that is slow comes after.
func (env *environment) open(ctx context.Context, beside ...func(*app)) (a *app, err error) {
	a = &app{}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
			a = nil
		}
	}()
	if err := a.place(env); err != nil {
		return a, err
	}
	if err := a.openLog(); err != nil {
		return a, err
	}
	if a.self, err = os.Executable(); err != nil {
		return a, fmt.Errorf("find the program to start plugins with: %w", err)
	}
	a.models = manager.NewModels(manager.Command{
		Name: "models", Path: filepath.Join(filepath.Dir(a.self), "bough-models"), Logger: a.log,
		PassEnv: []string{"BOUGH_OPENAI_COMPATIBLE_*", "OPENAI_API_KEY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"},
	})
	a.closers = append(a.closers, func() error { return a.models.Stop(context.Background()) })
	for _, begin := range beside {
		begin(a)
	}
	command := []string{a.self, "plugin", "serve", "storage", "--state-dir", a.layout.root}
	if env.ephemeral {
		command = append(command, "--linger", "50ms")
	}
	a.storage, err = manager.AttachStorage(ctx, manager.StorageOptions{StateDir: a.layout.root, Command: command, Logger: a.log})
	if err != nil {
		return a, err
	}
	if env.ephemeral {
		a.closers = append(a.closers, func() error { return closeAndWait(context.WithoutCancel(ctx), a.storage) })
	} else {
		a.closers = append(a.closers, a.storage.Close)
	}
	return a, nil
}

// closeAndWait also waits until the storage process has left, so that its
// folder can be removed.
func closeAndWait(ctx context.Context, s *manager.Storage) error {
	info, err := s.Info(ctx)
	err = errors.Join(err, s.Close())
	if info.PID == 0 {
		return err
	}
	for deadline := time.Now().Add(10 * time.Second); unix.Kill(info.PID, 0) == nil; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			return errors.Join(err, fmt.Errorf("the storage process %d of the ephemeral run does not end", info.PID))
		}
	}
	return err
}

// warm starts the model plugin, if that has the model, in the background.
func (a *app) warm(modelName string) {
	if strings.HasPrefix(modelName, compatible) {
		a.models.Warm()
	}
}

// openSessions also reads what kind of store it is.
func (env *environment) openSessions(ctx context.Context, beside ...func(*app)) (*app, error) {
	ceiling, err := numberFrom("BOUGH_MAX_EAGER_LOAD_MB", 64)
	if err != nil {
		return nil, err
	}
	a, err := env.open(ctx, beside...)
	if err != nil {
		return nil, err
	}
	a.sessions, err = session.Open(ctx, a.storage, session.Options{MaxEagerLoadMB: ceiling})
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// place decides which state directory it is.
func (a *app) place(env *environment) error {
	if env.ephemeral {
		l, remove, err := makeEphemeral()
		if err != nil {
			return err
		}
		a.layout = l
		a.closers = append(a.closers, remove)
		return nil
	}
	root, err := stateDir()
	if err != nil {
		return err
	}
	a.layout, err = makeStateDir(root)
	return err
}

func (a *app) openLog() error {
	f, err := os.OpenFile(filepath.Join(a.layout.logs(), "bough.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	a.closers = append(a.closers, f.Close)
	a.log = slog.New(slog.NewJSONHandler(f, nil)).With("pid", os.Getpid())
	return nil
}

func (a *app) close() error {
	var err error
	for i := len(a.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, a.closers[i]())
	}
	a.closers = nil
	return err
}

// engineOptions are what the flags say about an engine.
type engineOptions struct {
	policy   policy.Options
	asker    policy.Asker
	resume   engine.Resume
	maxTurns int
	time     time.Duration
}

// engine puts the engine together. Plugins start with their first use; the
// workspace, which most turns need, a little earlier.
func (a *app) engine(ctx context.Context, o engineOptions) (*engine.Engine, error) {
	specs, err := workspace.Specs()
	if err != nil {
		return nil, err
	}
	ws := manager.NewWorkspace(manager.Command{
		Name: "workspace", Path: a.self,
		Args: []string{"plugin", "serve", "workspace", "--outputs", a.layout.outputs()},
		// What a shell command of the model may see of our environment is
		// decided there; these are what it needs to decide.
		PassEnv: []string{"BOUGH_BASH", "TMPDIR", "TMP", "TEMP", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
			"http_proxy", "https_proxy", "all_proxy", "no_proxy"},
		Logger: a.log,
	}, specs)
	soon := time.AfterFunc(workspaceDelay, ws.Warm)
	a.closers = append(a.closers, func() error {
		soon.Stop()
		return ws.Stop(context.Background())
	})
	tools := tool.NewRegistry(tool.Limits{}, outputs.New(a.layout.outputs()))
	if err := tools.Add(ctx, "workspace", ws); err != nil {
		return nil, err
	}
	rules, err := policy.New(o.policy, append(tools.Names(), "batch", "todo_write"))
	if err != nil {
		return nil, usagef("%w", err)
	}
	return engine.New(ctx, engine.Config{
		Sessions: a.sessions, Models: a.provider(), Tools: tools, Workspace: ws,
		Policy: rules, Asker: o.asker, Logger: a.log, Resume: o.resume,
		Limits: engine.Limits{MaxTurns: o.maxTurns, TurnTime: o.time},
	})
}

// workspaceDelay is when the workspace is started though no tool was called:
// while the model thinks. An answer that comes sooner does not wait for the
// processor that it takes.
const workspaceDelay = 150 * time.Millisecond

// compatible begins the names of the models of the model plugin.
const compatible = "openai-compatible/"

// provider finds providers by the names of their models.
func (a *app) provider() func(context.Context, string) (model.Provider, error) {
	scripts, rules := script.New(), practice.New()
	return func(_ context.Context, name string) (model.Provider, error) {
		switch {
		case name == practice.Name:
			return rules, nil
		case strings.HasPrefix(name, script.Prefix):
			return scripts, nil
		case strings.HasPrefix(name, compatible):
			return a.models, nil
		}
		return nil, fmt.Errorf("there is no model %q: `practice` needs no key, `%sNAME` is any Chat Completions server, and `%sFILE` replays a file", name, compatible, script.Prefix)
	}
}

// holder is who we are, for those who find a session taken.
func holder(program string) store.Holder {
	h := store.Holder{PID: os.Getpid(), Program: program, Since: time.Now(), Terminal: terminalName()}
	if name, err := os.Hostname(); err == nil {
		h.Host = name
	}
	return h
}

// terminalName is the terminal we are on; empty: none.
func terminalName() string {
	for fd := range 3 {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil {
				return strings.TrimPrefix(name, "/dev/")
			}
		}
	}
	return ""
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
