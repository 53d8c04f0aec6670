package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/policy"
	"github.com/boughdev/bough/host/session"
)

// runChat is bough on a terminal, line by line: prompts in, answers out. It
// writes no control sequences, so it works on any terminal and with readers
// of screens.
func runChat(ctx context.Context, env *environment, o *runOptions) (err error) {
	if !isTerminal(env.stdin) {
		return usagef("standard input is no terminal: use --print to answer one prompt")
	}
	folder, err := o.folder()
	if err != nil {
		return err
	}
	// Ctrl+C stops a turn here, not bough.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)

	a, err := env.openSessions(ctx, func(a *app) { a.warm(o.modelName()) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	lines := make(chan string)
	go readLines(env.stdin, lines)
	c := &chat{env: env, lines: lines, interrupts: interrupts}
	eng, err := a.engine(ctx, engineOptions{
		policy:   policy.Options{Yolo: o.yolo, Allowed: o.allowed, Disallowed: o.denied},
		asker:    c,
		maxTurns: o.maxTurns, time: o.timeout,
	})
	if err != nil {
		return err
	}
	id, err := o.sessionID(ctx, a, folder)
	if err != nil {
		return err
	}
	live, err := eng.Start(ctx, engine.SessionOptions{
		ID: id, Folder: folder, Model: o.modelName(), Holder: holder("bough"),
		Attach: func(l *engine.Live) { c.sub = l.Subscribe(1024) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, live.Close(ctx)) }()
	c.live = live
	return c.run(ctx, o.prompt)
}

type chat struct {
	env        *environment
	lines      <-chan string
	interrupts <-chan os.Signal
	live       *engine.Live
	sub        *engine.Subscription
	questions  chan question
}

type question struct {
	policy.Question
	answer chan policy.Answer
}

func readLines(r io.Reader, lines chan<- string) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		lines <- in.Text()
	}
	close(lines)
}

const chatHelp = `A line is a prompt. /exit ends, /help shows this, Ctrl+C stops a running turn.`

func (c *chat) run(ctx context.Context, first string) error {
	c.questions = make(chan question)
	rec, err := c.live.Record()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.env.stdout, "bough %s, session %s, model %s, in %s\n%s\n", version, c.live.ID(), rec.Proto().GetModel(), c.live.Folder(), chatHelp)
	if err := c.resume(ctx); err != nil {
		return err
	}
	next := first
	for {
		if next == "" {
			fmt.Fprint(c.env.stdout, "\n> ")
			var ok bool
			select {
			case next, ok = <-c.lines:
			case <-c.interrupts:
				ok = false
			}
			if !ok || strings.TrimSpace(next) == "/exit" {
				break
			}
		}
		text := strings.TrimSpace(next)
		next = ""
		switch text {
		case "":
		case "/help":
			fmt.Fprintln(c.env.stdout, chatHelp)
		default:
			t, err := c.live.Prompt(ctx, engine.Prompt{Text: text})
			if err != nil {
				return err
			}
			if err := c.follow(ctx, t); err != nil {
				return err
			}
		}
	}
	if rec, err := c.live.Record(); err == nil && rec.Head() != session.Root {
		fmt.Fprintf(c.env.stdout, "\nTo go on: bough -s %s\n", c.live.ID())
	}
	return nil
}

// resume offers a turn that a crash cut off.
func (c *chat) resume(ctx context.Context) error {
	if _, _, pending := c.live.Pending(); !pending {
		return nil
	}
	fmt.Fprint(c.env.stdout, "The last turn was cut off. Go on with it? [y/n] ")
	if line, ok := <-c.lines; !ok || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y") {
		return c.live.Dismiss()
	}
	t, err := c.live.Resume(ctx)
	if err != nil {
		return err
	}
	return c.follow(ctx, t)
}

// follow shows a turn until its end, asks what it needs, and stops it on
// Ctrl+C.
func (c *chat) follow(ctx context.Context, t *engine.Turn) error {
	for {
		select {
		case <-c.interrupts:
			c.live.Interrupt()
		case q := <-c.questions:
			q.answer <- c.ask(q.Question)
		case <-c.sub.Ready():
			ev, err := c.sub.Next(ctx)
			if errors.Is(err, io.EOF) {
				return c.live.Err()
			}
			if err != nil {
				return err
			}
			c.show(ev)
			if _, ended := ev.Body.(engine.TurnEnded); ended {
				<-t.Done()
				return nil
			}
		}
	}
}

func (c *chat) show(ev engine.Event) {
	switch body := ev.Body.(type) {
	case engine.TextDelta:
		fmt.Fprint(c.env.stdout, session.Printable(body.Text))
	case engine.CallStarted:
		fmt.Fprintf(c.env.stdout, "\n* %s\n", session.CallLine(body.Call.Tool, body.Call.Input))
	case engine.CallFinished:
		mark := "="
		if body.Result.Error {
			mark = "!"
		}
		line, _, _ := strings.Cut(session.Printable(body.Result.Text), "\n")
		fmt.Fprintf(c.env.stdout, "  %s %s\n", mark, line)
	case engine.Retrying:
		fmt.Fprintf(c.env.stdout, "\n- %s: %s; again in %s\n", body.Class, session.Printable(body.Message), body.Wait)
	case engine.Noticed:
		fmt.Fprintf(c.env.stdout, "\n- %s\n", session.Printable(body.Text))
	case engine.TurnEnded:
		fmt.Fprintln(c.env.stdout)
		if body.Outcome.Reason != engine.ReasonDone {
			fmt.Fprintf(c.env.stdout, "- %s\n", session.Printable(body.Outcome.Explain()))
		}
	}
}

// Ask implements policy.Asker: the question is put where the lines are read.
func (c *chat) Ask(ctx context.Context, q policy.Question) (policy.Answer, error) {
	asked := question{q, make(chan policy.Answer, 1)}
	select {
	case c.questions <- asked:
	case <-ctx.Done():
		return policy.Answer{}, ctx.Err()
	}
	select {
	case a := <-asked.answer:
		return a, nil
	case <-ctx.Done():
		return policy.Answer{}, ctx.Err()
	}
}

func (c *chat) ask(q policy.Question) policy.Answer {
	fmt.Fprintf(c.env.stdout, "\n? %s (%s)\n  y = yes, anything else = no, and is told to the model: ",
		session.CallLine(q.Call.Tool, q.Call.Input), session.Printable(q.Reason))
	select {
	case line, ok := <-c.lines:
		line = strings.TrimSpace(line)
		if ok && (strings.EqualFold(line, "y") || strings.EqualFold(line, "yes")) {
			return policy.Answer{Allow: true}
		}
		return policy.Answer{Guidance: line}
	case <-c.interrupts:
		c.live.Interrupt()
		return policy.Answer{}
	}
}
