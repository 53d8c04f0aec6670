package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/tool"
)

// callID is the id of a call: the model's own, unless it is no good or was
// used before in this history, which some servers do with each answer.
func (l *Live) callID(id string) string {
	const longest = 64
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
	}
	if id == "" || len(id) > longest || l.callIDs[id] || strings.ContainsFunc(id, func(r rune) bool { return !plain(r) }) {
		id = "call_" + rand.Text()[:12]
	}
	l.callIDs[id] = true
	return id
}

// job is one call of an answer.
type job struct {
	call   tool.Call
	begun  time.Time
	said   tail
	muted  atomic.Bool   // the turn does not wait for it any more
	done   chan struct{} // closed when result and took are set
	result tool.Result
	took   time.Duration
}

// perform carries out the calls of an answer. Each result is stored as soon as
// those of the calls before it are, so that what a person saw as done is
// durable, and the order on the path is that of the calls. When ctx ends, what
// is not stored yet is returned with the cause: the results of the calls that
// ended, what the running ones have said, and that the others were not run.
func (r *turnRun) perform(ctx context.Context, calls []tool.Call) (unstored []*sessionpb.Payload, err error) {
	r.awaitLate(ctx)
	r.ws.prepare(seenFiles(r.items))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs := make([]*job, len(calls))
	prints := make([]footprint, len(calls))
	for i, c := range calls {
		jobs[i] = &job{call: c, done: make(chan struct{})}
		prints[i] = footprintOf(c, r.e.Tools, r.folder)
	}
	sched := newSchedule(prints, r.e.Limits.ParallelCalls)
	finished := make(chan int, len(calls))
	for stored := 0; stored < len(jobs); {
		if ctx.Err() != nil {
			return r.stopJobs(jobs[stored:]), context.Cause(ctx)
		}
		for _, i := range sched.next() {
			jobs[i].begun = r.e.Clock.Now()
			go r.runJob(ctx, jobs[i], func() { finished <- i })
		}
		select {
		case i := <-finished:
			sched.finish(i)
		case <-ctx.Done():
			continue
		}
		for more := true; more; {
			select {
			case i := <-finished:
				sched.finish(i)
			default:
				more = false
			}
		}
		ready := leading(jobs[stored:], sched.over[stored:])
		if err := r.storeResults(ready); err != nil {
			cancel()
			return r.stopJobs(jobs[stored:]), err
		}
		stored += len(ready)
	}
	return nil, nil
}

// leading are the jobs before the first that is not over.
func leading(jobs []*job, over []bool) []*job {
	n := 0
	for n < len(jobs) && over[n] {
		n++
	}
	return jobs[:n]
}

func (r *turnRun) storeResults(jobs []*job) error {
	if len(jobs) == 0 {
		return nil
	}
	payloads := make([]*sessionpb.Payload, len(jobs))
	for i, j := range jobs {
		payloads[i] = resultPayload(j.call, j.result, j.took)
	}
	return r.append(payloads, session.AppendOptions{Durability: r.e.Durability})
}

func (l *Live) runJob(ctx context.Context, j *job, finished func()) {
	progress := func(p tool.Progress) {
		j.said.add(p)
		if !j.muted.Load() {
			l.events.publish(CallProgress{CallID: j.call.ID, Stream: p.Stream, Data: p.Data})
		}
	}
	result, took := l.admit(ctx, j.call, "", progress)
	if !j.muted.Load() {
		l.events.publish(CallFinished{CallID: j.call.ID, Name: j.call.Tool, Result: result, Duration: took})
	}
	j.result, j.took = result, took
	close(j.done)
	finished()
}

// stopJobs gives running calls a moment to say what they have, and makes the
// results of all.
func (r *turnRun) stopJobs(jobs []*job) []*sessionpb.Payload {
	over, stop := after(r.e.Clock, r.e.Limits.StopGrace)
	defer stop()
	payloads := make([]*sessionpb.Payload, len(jobs))
	for i, j := range jobs {
		switch {
		case j.begun.IsZero():
			payloads[i] = resultPayload(j.call, notRun(), 0)
		case waitFor(j.done, over):
			payloads[i] = resultPayload(j.call, j.result, j.took)
		default:
			j.muted.Store(true)
			r.late = append(r.late, j.done)
			took := r.e.Clock.Now().Sub(j.begun)
			res := j.said.interrupted()
			r.events.publish(CallFinished{CallID: j.call.ID, Name: j.call.Tool, Result: res, Duration: took})
			payloads[i] = resultPayload(j.call, res, took)
		}
	}
	return payloads
}

// waitFor tells whether done comes before over; if both are there, it does.
func waitFor(done, over <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
	}
	select {
	case <-done:
		return true
	case <-over:
		return false
	}
}

// awaitLate waits for interrupted calls that are still on their way out, so
// that they do not get in the way of new ones.
func (r *turnRun) awaitLate(ctx context.Context) {
	const patience = 10 * time.Second
	over, stop := after(r.e.Clock, patience)
	defer stop()
	for _, done := range r.late {
		select {
		case <-done:
		case <-ctx.Done():
			return
		case <-over:
			r.notice("warning", "tools", "a call that was interrupted has still not ended; it is not waited for any longer")
			r.late = nil
			return
		}
	}
	r.late = nil
}

// runBatch carries out the calls of a batch, all at the same time but for
// those that name the same files: the model said that they do not depend on
// each other.
func (l *Live) runBatch(ctx context.Context, parent tool.Call, calls []tool.Call, progress func(tool.Progress)) []tool.Result {
	results := make([]tool.Result, len(calls))
	prints := make([]footprint, len(calls))
	for i, c := range calls {
		prints[i] = footprintOf(c, l.e.Tools, l.folder)
		prints[i].alone = false
		results[i] = notRun()
	}
	sched := newSchedule(prints, l.e.Limits.ParallelCalls)
	finished := make(chan int, len(calls))
	var speaking sync.Mutex // progress is called from one goroutine at a time
	for over := 0; over < len(calls); over++ {
		if ctx.Err() == nil {
			for _, i := range sched.next() {
				go func() {
					defer func() { finished <- i }()
					var took time.Duration
					results[i], took = l.admit(ctx, calls[i], parent.ID, func(p tool.Progress) {
						speaking.Lock()
						defer speaking.Unlock()
						progress(p)
					})
					l.events.publish(CallFinished{CallID: calls[i].ID, Parent: parent.ID, Name: calls[i].Tool, Result: results[i], Duration: took})
				}()
			}
		}
		if sched.running == 0 {
			break // stopped, and the rest was not begun
		}
		sched.finish(<-finished)
	}
	return results
}

// tail keeps the last bytes of what a call said, for the model when the call
// is interrupted.
type tail struct {
	mu   sync.Mutex
	data []byte
	cut  int
}

func (t *tail) add(p tool.Progress) {
	const most = 16 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p.Data...)
	if over := len(t.data) - most; over > 0 {
		t.cut += over
		t.data = append(t.data[:0], t.data[over:]...)
	}
}

// interrupted is the result of a call that did not end in time.
func (t *tail) interrupted() tool.Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	if t.cut > 0 {
		fmt.Fprintf(&b, "[… %d bytes left out …]\n", t.cut)
	}
	b.Write(t.data)
	return tool.Result{Text: interruptedNote(b.String()), Error: true, Interrupted: true}
}

// notRun is the result of a call that was never begun.
func notRun() tool.Result {
	return tool.Result{Text: "[not run: the turn was stopped before]", Error: true, Interrupted: true}
}

// interruptedNote adds to what a call said that it did not end.
func interruptedNote(said string) string {
	const note = "[interrupted: what it did up to then is not known]"
	said = strings.TrimRight(said, "\n")
	switch {
	case said == "":
		return note
	case strings.HasSuffix(said, note):
		return said // a call of a batch has said so already
	}
	return said + "\n" + note
}
