package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
)

var (
	// ErrBusy says that a turn is running.
	ErrBusy = errors.New("a turn is running in this session; wait for it or interrupt it")
	// ErrEnded says that the session is not live any more.
	ErrEnded = errors.New("the session is closed")
	// ErrNoPending says that there is no turn to resume.
	ErrNoPending = errors.New("there is no interrupted turn to resume")
)

// Live is a session that this process owns. Its methods may be called from any
// goroutine.
type Live struct {
	e      *Engine
	id     string
	folder string
	system string // the system prompt; the same for the whole life
	events *broadcast
	work   chan func()   // for the session's goroutine
	quit   chan struct{} // closed by Close
	done   chan struct{} // closed when the session's goroutine has ended
	ws     opener

	mu      sync.Mutex
	busy    bool
	turn    *Turn // that is running
	stop    context.CancelCauseFunc
	denials []Denial            // of the turn
	pending *sessionpb.OpenTurn // cut off by a crash
	closing bool
	endErr  error // why the session ended, when it was not by Close

	// What follows belongs to the session's goroutine.
	ctx      context.Context // of writes: they are not cut off by an interrupt
	cancel   context.CancelFunc
	sess     *session.Session
	partial  partialSaver
	fatal    error // the session is not ours any more
	loaded   bool
	items    []*session.Item // of the path, as far as requests need them
	anyImage bool
	callIDs  map[string]bool
	late     []<-chan struct{} // interrupted calls that have not returned yet
}

func newLive(e *Engine, sess *session.Session) *Live {
	rec := sess.Record()
	l := &Live{
		e: e, id: rec.ID(), folder: rec.Folder(), sess: sess,
		system: systemPrompt(rec.Folder(), e.Clock.Now(), e.Instructions),
		events: &broadcast{now: e.Clock.Now},
		work:   make(chan func()), quit: make(chan struct{}), done: make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.partial = partialSaver{clock: e.Clock, write: l.savePartial}
	l.ws = opener{workspace: e.Workspace}
	return l
}

// ID is the session's id.
func (l *Live) ID() string { return l.id }

// Folder is the folder that it works in.
func (l *Live) Folder() string { return l.folder }

// Subscribe is a stream of what happens from now on. At most buffer events are
// kept for a subscriber that is behind: consecutive pieces of text and output
// are joined before that, and beyond it events are replaced by a Resync.
func (l *Live) Subscribe(buffer int) *Subscription { return l.events.subscribe(buffer) }

// Done is closed when the session is not live any more; Err says why.
func (l *Live) Done() <-chan struct{} { return l.done }

// Err is why the session ended by itself: it was lost to another process. It
// is nil while it lives and after Close.
func (l *Live) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endErr
}

// Turn is a turn that was begun.
type Turn struct {
	prompt  session.Ref
	done    chan struct{}
	outcome Outcome
}

// Prompt is the item of the prompt.
func (t *Turn) Prompt() session.Ref { return t.prompt }

// Done is closed when the turn has ended.
func (t *Turn) Done() <-chan struct{} { return t.done }

// Wait is what the turn came to. The error is that of ctx; the turn goes on.
func (t *Turn) Wait(ctx context.Context) (Outcome, error) {
	select {
	case <-t.done:
		return t.outcome, nil
	case <-ctx.Done():
		return Outcome{}, context.Cause(ctx)
	}
}

// Running is the turn that is running; nil: none.
func (l *Live) Running() *Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.turn
}

// Pending tells of a turn that a crash has cut off and that waits for Resume
// or Dismiss; another prompt dismisses it too. starts counts how often it was
// begun.
func (l *Live) Pending() (prompt session.Ref, starts int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == nil {
		return session.Root, 0, false
	}
	p := l.pending.GetPrompt()
	return session.Ref{Segment: p.GetSegment(), Number: p.GetNumber()}, int(l.pending.GetStarts()), true
}

// Prompt begins a turn. It returns when the prompt is stored for good; the
// turn goes on by itself. ErrBusy: another one is running. When ctx ends
// before, the turn is interrupted.
func (l *Live) Prompt(ctx context.Context, p Prompt) (*Turn, error) {
	return l.begin(ctx, start{payload: promptPayload(p)})
}

// Resume goes on with the turn that Pending tells of. Nothing that it did
// before is done again.
func (l *Live) Resume(ctx context.Context) (*Turn, error) {
	return l.begin(ctx, start{payload: noticePayload("info", "turn", resumedText, true), resume: true})
}

// start is how a turn begins: with which item, and whether it was begun
// before.
type start struct {
	payload *sessionpb.Payload
	resume  bool
}

func (l *Live) begin(ctx context.Context, s start) (*Turn, error) {
	turn := &Turn{done: make(chan struct{})}
	turnCtx, stop := context.WithCancelCause(l.ctx)
	if err := l.occupy(turn, stop, s.resume); err != nil {
		stop(err)
		return nil, err
	}
	stored := make(chan error, 1)
	select {
	case l.work <- func() { l.runTurn(turnCtx, turn, s, stored) }:
	case <-l.done:
		l.free()
		return nil, l.gone()
	}
	select {
	case err := <-stored:
		if err != nil {
			return nil, err
		}
		return turn, nil
	case <-ctx.Done():
		l.cancelTurn(errInterrupted)
		return nil, context.Cause(ctx)
	}
}

// occupy marks the session busy.
func (l *Live) occupy(turn *Turn, stop context.CancelCauseFunc, resume bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closing || l.endErr != nil:
		return l.goneLocked()
	case l.busy:
		return ErrBusy
	case resume && l.pending == nil:
		return ErrNoPending
	}
	l.busy, l.turn, l.stop, l.denials = true, turn, stop, nil
	return nil
}

func (l *Live) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		l.stop(nil)
	}
	l.busy, l.turn, l.stop = false, nil, nil
}

func (l *Live) gone() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.goneLocked()
}

func (l *Live) goneLocked() error {
	if l.endErr != nil {
		return fmt.Errorf("%w: %w", ErrEnded, l.endErr)
	}
	return ErrEnded
}

// Interrupt stops the turn that is running, wherever it is. It does not wait;
// TurnEnded follows when the history is in order. Without a turn it does
// nothing.
func (l *Live) Interrupt() { l.cancelTurn(errInterrupted) }

func (l *Live) cancelTurn(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		l.stop(cause)
	}
}

// MoveHead makes the session stand on another item of its history, with the
// cause for the log. It is refused with ErrBusy while a turn runs.
func (l *Live) MoveHead(ctx context.Context, to session.Ref, cause string) error {
	return l.idle(func() error {
		if err := l.sess.MoveHead(ctx, to, cause); err != nil {
			return l.check(err)
		}
		l.loaded, l.items = false, nil
		l.setPending(nil)
		return nil
	})
}

// SetModel changes the model of the turns to come.
func (l *Live) SetModel(ctx context.Context, name string) error {
	return l.idle(func() error { return l.check(l.sess.SetModel(ctx, name)) })
}

// Record is the session as it is stored; ErrBusy while a turn runs.
func (l *Live) Record() (session.Record, error) {
	var rec session.Record
	err := l.idle(func() error { rec = l.sess.Record(); return nil })
	return rec, err
}

// Dismiss ends the turn that Pending tells of without going on with it.
func (l *Live) Dismiss() error {
	return l.idle(func() error {
		if _, _, ok := l.Pending(); !ok {
			return ErrNoPending
		}
		err := l.append([]*sessionpb.Payload{noticePayload("info", "turn", dismissedText, true)}, session.AppendOptions{Turn: session.TurnEnd})
		if err == nil {
			l.setPending(nil)
		}
		return err
	})
}

func (l *Live) setPending(p *sessionpb.OpenTurn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = p
}

// idle runs f on the session's goroutine while no turn runs.
func (l *Live) idle(f func() error) error {
	if err := l.occupy(nil, nil, false); err != nil {
		return err
	}
	defer l.free()
	result := make(chan error, 1)
	select {
	case l.work <- func() { result <- f() }:
		return <-result
	case <-l.done:
		return l.gone()
	}
}

// Close interrupts what runs, ends what the workspace still does for the
// session, and gives the session back.
func (l *Live) Close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closing {
		l.closing = true
		close(l.quit)
	}
	l.mu.Unlock()
	l.cancelTurn(errClosed)
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close session %s: %w", l.id, context.Cause(ctx))
	}
}

// run starts the session's goroutine.
func (l *Live) run() {
	lost := l.sess.Lost()
	go func() {
		select {
		case <-lost:
			l.cancelTurn(session.ErrLost)
		case <-l.done:
		}
	}()
	go func() {
		defer close(l.done)
		for {
			select {
			case job := <-l.work:
				job()
			case <-lost:
				l.fatal = l.lostError(nil)
			case <-l.quit:
				l.end(nil)
				return
			}
			if l.fatal != nil {
				l.end(l.fatal)
				return
			}
		}
	}()
}

// lostError says that another process may own the session now.
func (l *Live) lostError(cause error) error {
	if cause == nil {
		cause = session.ErrLost
	}
	return fmt.Errorf("session %s ended here: %w; nothing more is written, and what was stored before is safe", l.id, cause)
}

// end gives everything back. It runs on the session's goroutine, as its last
// act.
func (l *Live) end(err error) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l.mu.Lock()
	l.endErr = err
	l.mu.Unlock()
	if err != nil {
		l.cancel() // what is being written is of no use any more
	}
	l.partial.settle()
	if closeErr := l.ws.close(ctx, l.id); closeErr != nil {
		l.e.Logger.ErrorContext(ctx, "close the session's workspace", "session", l.id, "error", closeErr)
	}
	if closeErr := l.sess.Close(ctx); closeErr != nil {
		l.e.Logger.ErrorContext(ctx, "give the session back", "session", l.id, "error", closeErr)
	}
	l.cancel()
	l.e.mu.Lock()
	delete(l.e.live, l.id)
	l.e.mu.Unlock()
	l.events.publish(Ended{err})
}

func (l *Live) notice(level, source, text string) {
	l.events.publish(Noticed{Level: level, Source: source, Text: text})
}
