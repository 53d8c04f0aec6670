package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/boughdev/bough/host/model"
)

// answer gets one whole answer, sending the request again while that may
// help. With an error comes what was last shown of the answer: an attempt that
// fails after it began is replaced by the next one as soon as that says
// something, and stays, as partial, if none does.
func (r *turnRun) answer(ctx context.Context, p model.Provider) (*answer, error) {
	req := r.request(ctx, p)
	shown := &answer{model: req.Model, provider: providerOf(req.Model)}
	var spent model.Usage
	var waited time.Duration
	defer func() { r.count(spent) }()
	for attempt := 1; ; attempt++ {
		if ctx.Err() != nil {
			return shown, context.Cause(ctx)
		}
		r.requests++
		a, err := r.stream(ctx, p, req, &shown)
		spent = add(spent, a.usage)
		if err == nil {
			return a, nil
		}
		var failed *model.Error
		if !errors.As(err, &failed) {
			return shown, err // stopped from outside
		}
		wait := backoff(failed, attempt, rand.Float64())
		if !failed.Class.Retryable() || attempt >= r.e.Limits.Attempts || waited+wait > r.e.Limits.RetryTime {
			return shown, r.givenUp(req.Model, failed, err, attempt, wait)
		}
		waited += wait
		r.e.Logger.WarnContext(ctx, "request failed, sent again", "session", r.id, "class", failed.Class.String(), "attempt", attempt, "wait", wait, "error", err)
		r.events.publish(Retrying{
			Class: failed.Class, Message: failed.Error(), Wait: wait,
			Attempt: attempt, Attempts: r.e.Limits.Attempts, Replaced: shown.bytes,
		})
		if err := r.pause(ctx, wait); err != nil {
			return shown, err
		}
	}
}

func (r *turnRun) pause(ctx context.Context, d time.Duration) error {
	over, stop := after(r.e.Clock, d)
	defer stop()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// count adds what an answer cost and tells of it.
func (r *turnRun) count(spent model.Usage) {
	r.spent = add(r.spent, spent)
	r.outcome.Usage = add(r.outcome.Usage, spent)
	if spent == (model.Usage{}) {
		return
	}
	r.events.publish(UsageCounted{Step: spent, Turn: r.outcome.Usage})
}

func (r *turnRun) givenUp(name string, failed *model.Error, err error, attempts int, wait time.Duration) error {
	switch {
	case failed.RetryAfter > r.e.Limits.RetryTime:
		return fmt.Errorf("%w; the provider asks to wait %s", err, failed.RetryAfter.Round(time.Second))
	case failed.Class.Retryable() && attempts < r.e.Limits.Attempts:
		return fmt.Errorf("%w; given up after %d attempts, since the next would have to wait %s", err, attempts, wait.Round(time.Second))
	case failed.Class.Retryable():
		return fmt.Errorf("%w; given up after %d attempts", err, attempts)
	}
	if help := advice(name, failed); help != "" {
		return fmt.Errorf("%w; %s", err, help)
	}
	return err
}

// backoff is how long to wait after so many failed attempts: twice as long
// each time, up to a minute, and spread, so that many programs do not come
// back at once. An overloaded provider gets more time. The provider's own word
// counts more than ours.
func backoff(e *model.Error, attempt int, spread float64) time.Duration {
	const shortest, longest = time.Second, time.Minute
	if e.RetryAfter > 0 {
		return e.RetryAfter + time.Duration(spread*float64(min(e.RetryAfter/10, 5*time.Second)))
	}
	d := shortest
	if e.Class == model.ClassOverloaded {
		d *= 4
	}
	d = min(d<<min(attempt-1, 10), longest)
	return d/2 + time.Duration(spread*float64(d/2))
}

func add(a, b model.Usage) model.Usage {
	return model.Usage{
		InputTokens: a.InputTokens + b.InputTokens, OutputTokens: a.OutputTokens + b.OutputTokens,
		CacheReadTokens: a.CacheReadTokens + b.CacheReadTokens, CacheWriteTokens: a.CacheWriteTokens + b.CacheWriteTokens,
		ReasoningTokens: a.ReasoningTokens + b.ReasoningTokens,
	}
}
