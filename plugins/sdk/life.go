package sdk

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// life is the serving time of a process: work that is done for a call ends with
// the call or with it, whichever is first.
type life struct {
	ctx    context.Context // ends when the process is to leave
	logger *slog.Logger

	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when running falls to zero; nil: nobody waits
}

// call is the context of one call's work; end must be called when it is done.
func (l *life) call(ctx context.Context) (_ context.Context, end func()) {
	l.mu.Lock()
	l.running++
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(l.ctx, cancel)
	return ctx, func() {
		forget()
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.running--
		if l.running == 0 && l.idle != nil {
			close(l.idle)
			l.idle = nil
		}
	}
}

// drain waits until no call is running, at most for so long.
func (l *life) drain(most time.Duration) (done bool) {
	l.mu.Lock()
	if l.running == 0 {
		l.mu.Unlock()
		return true
	}
	if l.idle == nil {
		l.idle = make(chan struct{})
	}
	idle := l.idle
	l.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-time.After(most):
		return false
	}
}

// rescue turns a panic of a plugin's code into the failure of the one call that
// it happened in. It must be deferred by the handler itself.
func (l *life) rescue(what string, err *error) {
	cause := recover()
	if cause == nil {
		return
	}
	l.logger.Error("panic", "in", what, "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
	*err = status.Errorf(codes.Internal, "%s panicked: %v; the plugin's log has the stack", what, cause)
}

// errLeaving answers calls that the end of the process cut short.
var errLeaving = status.Error(codes.Unavailable, "the plugin is stopping")
