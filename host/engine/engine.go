// Package engine is live sessions. Each has one goroutine that owns its state
// and runs its turns: the prompt is stored, a request is made of the path, the
// answer streams, tool calls run, their results are stored, and so on until an
// answer has no call. Everything else sends it requests and gets numbered
// events. What survives a crash, and what happens at the next start, is in
// docs/decisions/0007-turns-and-recovery.md.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/boughdev/bough/host/engine/hosttools"
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/policy"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
)

// Config is what an engine works with. Sessions, Models, Tools and Policy must
// be set.
type Config struct {
	Sessions *session.Sessions
	// Models finds the provider of a model by the model's name.
	Models func(ctx context.Context, name string) (model.Provider, error)
	// Tools are all tools but the host's own, which the engine adds.
	Tools     *tool.Registry
	Workspace workspace.Workspace // told of sessions before their first call; may be nil
	Policy    *policy.Policy
	// Asker is asked what the policy leaves open. Nil: nobody can be asked, so
	// that is denied and counted.
	Asker  policy.Asker
	Logger *slog.Logger // default: none
	Clock  Clock        // default: the system's
	Limits Limits
	// Resume is what becomes of a turn that a crash cut off.
	Resume Resume
	// Instructions are added to the system prompt.
	Instructions string
	// Durability is that of what is stored within a turn (storage.sync). A
	// prompt and the end of a turn are always on the disk.
	Durability store.Durability
}

// Limits bound a turn. Zero values mean the defaults.
type Limits struct {
	MaxTurns      int           // answers of the model in one turn; default: no limit
	TurnTime      time.Duration // of one turn; default: no limit
	Attempts      int           // of one request; default 8
	RetryTime     time.Duration // that waits between attempts add up to; default 15 min
	StreamTimeout time.Duration // without a sign of the provider; default 300 s
	ParallelCalls int           // that run at the same time; default 8
	StopGrace     time.Duration // that interrupted calls get to say what they have; default 60 ms
	MaxStarts     int           // of one turn, resumes included; default 3
}

func (l Limits) orDefaults() Limits {
	l.Attempts = cmp.Or(l.Attempts, 8)
	l.RetryTime = cmp.Or(l.RetryTime, 15*time.Minute)
	l.StreamTimeout = cmp.Or(l.StreamTimeout, 300*time.Second)
	l.ParallelCalls = cmp.Or(l.ParallelCalls, 8)
	l.StopGrace = cmp.Or(l.StopGrace, 60*time.Millisecond)
	l.MaxStarts = cmp.Or(l.MaxStarts, 3)
	return l
}

// Resume is sessions.resume_interrupted.
type Resume int

const (
	// ResumeAsk leaves it to the person: Live.Pending tells that there is one.
	ResumeAsk Resume = iota
	// ResumeAuto resumes when the session is started.
	ResumeAuto
	// ResumeNever ends the turn with a notice.
	ResumeNever
)

// Engine starts live sessions. Its methods may be called from any goroutine.
type Engine struct {
	Config

	mu   sync.Mutex
	live map[string]*Live
}

// New makes an engine, and adds the host's tools to its registry.
func New(ctx context.Context, c Config) (*Engine, error) {
	if c.Sessions == nil || c.Models == nil || c.Tools == nil || c.Policy == nil {
		return nil, errors.New("an engine needs sessions, models, tools and a policy")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = systemClock{}
	}
	c.Limits = c.Limits.orDefaults()
	e := &Engine{Config: c, live: map[string]*Live{}}
	if err := c.Tools.Add(ctx, "bough", hosttools.New(e)); err != nil {
		return nil, err
	}
	return e, nil
}

// SessionOptions say which session to start.
type SessionOptions struct {
	// ID of the session to open. Empty: a new one.
	ID string
	// NewID is the id of a new session; empty: a random one.
	NewID string
	// Folder of a new session, absolute.
	Folder string
	// Model of a new session. For one that is opened it replaces the model,
	// if it is not empty.
	Model string
	// Mode of a new session.
	Mode string
	// Holder is who owns the session from now on.
	Holder store.Holder
	// Attach is called before anything happens, for a subscriber that must
	// miss nothing; it may be nil.
	Attach func(*Live)
}

// Start makes a session live. One that another process owns is refused with a
// store.HeldError before anything runs. What a crash has left is put in order,
// and its turn resumed if Config.Resume says so. ctx is for starting only.
func (e *Engine) Start(ctx context.Context, o SessionOptions) (*Live, error) {
	sess, err := e.own(ctx, o)
	if err != nil {
		return nil, err
	}
	l := newLive(e, sess)
	if o.Attach != nil {
		o.Attach(l)
	}
	if err := l.recover(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open session %s: %w", l.id, err), sess.Close(context.WithoutCancel(ctx)))
	}
	e.mu.Lock()
	e.live[l.id] = l
	e.mu.Unlock()
	l.run() //nolint:contextcheck // the session outlives its start
	if _, _, cut := l.Pending(); cut && e.Resume == ResumeAuto {
		if _, err := l.Resume(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("resume the turn of session %s: %w", l.id, err), l.Close(context.WithoutCancel(ctx)))
		}
	}
	return l, nil
}

func (e *Engine) own(ctx context.Context, o SessionOptions) (*session.Session, error) {
	if o.ID == "" {
		return e.Sessions.New(ctx, session.NewOptions{
			ID: o.NewID, Folder: o.Folder, Model: o.Model, Mode: o.Mode, Holder: o.Holder,
		})
	}
	sess, err := e.Sessions.Acquire(ctx, o.ID, o.Holder)
	if err != nil {
		return nil, err
	}
	if o.Model != "" && o.Model != sess.Record().Proto().GetModel() {
		if err := sess.SetModel(ctx, o.Model); err != nil {
			return nil, errors.Join(err, sess.Close(context.WithoutCancel(ctx)))
		}
	}
	return sess, nil
}

// find is the live session of that id; nil when there is none.
func (e *Engine) find(id string) *Live {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.live[id]
}

// RunBatch implements hosttools.Runner: the calls of a batch pass the same
// checks as if the model had made them by themselves.
func (e *Engine) RunBatch(ctx context.Context, parent tool.Call, calls []tool.Call, progress func(tool.Progress)) ([]tool.Result, error) {
	l := e.find(parent.Session)
	if l == nil {
		return nil, fmt.Errorf("session %s is not open here", parent.Session)
	}
	return l.runBatch(ctx, parent, calls, progress), nil
}
