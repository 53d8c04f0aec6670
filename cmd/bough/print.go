package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/model/practice"
	"github.com/boughdev/bough/host/policy"
)

// runOptions are the flags of bough itself.
type runOptions struct {
	print           bool
	prompt          string
	format          string
	verbose         bool
	model           string
	cont            bool
	session         string
	cwd             string
	yolo            bool
	allowed, denied []string
	maxTurns        int
	timeout         time.Duration
}

func (o *runOptions) addFlags(f *pflag.FlagSet) {
	f.BoolVarP(&o.print, "print", "p", false, "answer one prompt and end")
	f.StringVar(&o.prompt, "prompt", "", "the prompt; what stands on standard input is added to it")
	f.StringVar(&o.format, "output-format", "text", "of --print: text, json or stream-json")
	f.BoolVar(&o.verbose, "verbose", false, "also show reasoning, calls and results")
	f.StringVarP(&o.model, "model", "m", "", "practice, script:FILE or openai-compatible/NAME (default: BOUGH_MODEL, then practice)")
	f.BoolVarP(&o.cont, "continue", "c", false, "go on with the last session of this folder")
	f.StringVarP(&o.session, "session", "s", "", "go on with the session of this id or title")
	f.StringVar(&o.cwd, "cwd", "", "work in this folder")
	f.BoolVar(&o.yolo, "yolo", false, "allow whatever would ask; what is denied stays denied")
	f.StringSliceVar(&o.allowed, "allowed-tools", nil, "tools that never ask, as FileWrite or file_write")
	f.StringSliceVar(&o.denied, "disallowed-tools", nil, "tools that the model does not get")
	f.IntVar(&o.maxTurns, "max-turns", 0, "at most so many answers of the model (default: no limit)")
	f.DurationVar(&o.timeout, "timeout", 0, "at most so long, such as 10m (default: no limit)")
}

func (o *runOptions) check() error {
	switch o.format {
	case "text", "json", "stream-json":
	default:
		return usagef("--output-format is %q: it takes text, json or stream-json", o.format)
	}
	switch {
	case o.cont && o.session != "":
		return usagef("--continue and --session exclude each other")
	case o.maxTurns < 0:
		return usagef("--max-turns is %d: it takes a number from 1", o.maxTurns)
	case o.timeout < 0:
		return usagef("--timeout is %s: it takes a duration such as 10m", o.timeout)
	}
	return nil
}

func (o *runOptions) folder() (string, error) {
	dir := o.cwd
	if dir == "" {
		dir = "."
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the folder to work in: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", usagef("--cwd: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", usagef("--cwd: %w", err)
	}
	if !info.IsDir() {
		return "", usagef("--cwd: %s is not a folder", dir)
	}
	return dir, nil
}

// modelName is the model of a new session; an opened one keeps its own unless
// a flag names another.
func (o *runOptions) modelName() string {
	if o.model != "" || o.session != "" || o.cont {
		return o.model
	}
	if name := os.Getenv("BOUGH_MODEL"); name != "" {
		return name
	}
	return practice.Name
}

func runRoot(ctx context.Context, env *environment, o *runOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if env.ephemeral && (o.session != "" || o.cont) {
		return usagef("--ephemeral keeps no sessions, so there is none to go on with: leave --session and --continue out")
	}
	if o.print {
		return runPrint(ctx, env, o)
	}
	return runChat(ctx, env, o)
}

// readPrompt joins the flag and standard input.
func readPrompt(env *environment, flag string) (string, error) {
	text := flag
	if !isTerminal(env.stdin) {
		piped, err := io.ReadAll(io.LimitReader(env.stdin, maxPrompt+1))
		if err != nil {
			return "", fmt.Errorf("read the prompt from standard input: %w", err)
		}
		if len(piped) > maxPrompt {
			return "", usagef("the prompt on standard input is longer than %d MB", maxPrompt>>20)
		}
		text = strings.TrimSpace(text + "\n\n" + strings.TrimRight(string(piped), "\n"))
	}
	if strings.TrimSpace(text) == "" {
		return "", usagef("there is no prompt: give one with --prompt TEXT or on standard input")
	}
	return text, nil
}

const maxPrompt = 16 << 20

func runPrint(ctx context.Context, env *environment, o *runOptions) (err error) {
	started := time.Now()
	prompt, err := readPrompt(env, o.prompt)
	if err != nil {
		return err
	}
	folder, err := o.folder()
	if err != nil {
		return err
	}
	a, err := env.openSessions(ctx, func(a *app) { a.warm(o.modelName()) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	eng, err := a.engine(ctx, engineOptions{
		policy:   policy.Options{Yolo: o.yolo, Allowed: o.allowed, Disallowed: o.denied},
		resume:   engine.ResumeAuto,
		maxTurns: o.maxTurns, time: o.timeout,
	})
	if err != nil {
		return err
	}
	id, err := o.sessionID(ctx, a, folder)
	if err != nil {
		return err
	}
	out := newPrinter(env, o)
	var sub *engine.Subscription
	live, err := eng.Start(ctx, engine.SessionOptions{
		ID: id, Folder: folder, Model: o.modelName(), Holder: holder("bough -p"),
		Attach: func(l *engine.Live) { sub = l.Subscribe(1024) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Close(context.WithoutCancel(ctx))) }()
	out.begin(live)
	outcome, err := drive(ctx, live, sub, prompt, out)
	if err != nil {
		return err
	}
	if err := out.end(outcome, time.Since(started)); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if code := outcome.ExitCode(); code != exitDone {
		return &codedError{code: code}
	}
	return nil
}

// sessionID is the session to go on with; empty: a new one.
func (o *runOptions) sessionID(ctx context.Context, a *app, folder string) (string, error) {
	switch {
	case o.session != "":
		rec, err := a.sessions.Find(ctx, o.session)
		a.warm(rec.Proto().GetModel())
		return rec.ID(), err
	case o.cont:
		rec, err := a.sessions.Latest(ctx, folder)
		a.warm(rec.Proto().GetModel())
		return rec.ID(), err
	}
	return "", nil
}

// drive runs one turn, after what a crash may have left of the one before, and
// shows what happens.
func drive(ctx context.Context, live *engine.Live, sub *engine.Subscription, prompt string, out *printer) (engine.Outcome, error) {
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		for ev := range sub.Events(context.WithoutCancel(ctx)) {
			out.show(ev)
			if _, ended := ev.Body.(engine.TurnEnded); ended && out.last() {
				return
			}
		}
	}()
	if t := live.Running(); t != nil {
		if _, err := waitTurn(ctx, live, t); err != nil {
			return engine.Outcome{}, err
		}
	}
	out.expectLast()
	turn, err := live.Prompt(ctx, engine.Prompt{Text: prompt})
	if err != nil {
		sub.Close()
		<-shown
		return engine.Outcome{}, err
	}
	outcome, err := waitTurn(ctx, live, turn)
	if err != nil {
		sub.Close()
	}
	<-shown
	return outcome, err
}

// waitTurn waits for a turn; when ctx ends the turn is interrupted, and still
// waited for.
func waitTurn(ctx context.Context, live *engine.Live, t *engine.Turn) (engine.Outcome, error) {
	select {
	case <-t.Done():
	case <-ctx.Done():
		live.Interrupt()
	case <-live.Done():
	}
	return t.Wait(context.WithoutCancel(ctx))
}
