package shell

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// gone tells whether no process of a line is running any more: every one of
// them is a child of this process or has an ancestor that is.
func (r *Runner) gone(l *line) bool {
	if childless() {
		return true
	}
	// A child that ended while the list was read may have left its own children
	// to us, and they are not on the list. So it counts only when nobody ended,
	// and when a second one says the same: a list can skip one if another ends.
	const most = 50 // then the caller waits and asks again
	agreed := 0
	for range most {
		none, settled := r.noneOf(l)
		switch {
		case !none:
			return false
		case !settled:
			agreed = 0
		case agreed == 1:
			return true
		default:
			agreed++
		}
	}
	return false
}

// noneOf tells whether no living child of this process belongs to a line, and
// whether no child ended meanwhile. Dead orphans are collected on the way,
// whosever they were.
func (r *Runner) noneOf(l *line) (none, settled bool) {
	pids, ok := children()
	if !ok {
		all, err := lookAtAll()
		if err != nil {
			r.logger.Error("what a command left running cannot be found", "error", err)
			return true, true
		}
		for _, p := range all {
			if p.parent == r.self.pid {
				pids = append(pids, p.pid)
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	none, settled = true, true
	for _, pid := range pids {
		p, there := look(pid)
		switch {
		case !there:
			settled = false
		case pid == l.pid:
			none = none && p.dead()
			settled = settled && !p.dead()
		case !r.orphan(p):
		case p.dead():
			reap(pid)
			settled = false
		default:
			none = none && !r.owns(l, p)
		}
	}
	return none, settled
}

// members are the living processes of a line, as far as one look shows them.
func (r *Runner) members(l *line) []process {
	all, err := lookAtAll()
	if err != nil {
		r.logger.Error("what a command left running cannot be found", "error", err)
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	family := map[int]bool{}
	byParent := map[int][]process{}
	for _, p := range all {
		byParent[p.parent] = append(byParent[p.parent], p)
		if p.session == l.pid || p.group == l.pid || (r.orphan(p) && r.owns(l, p)) {
			family[p.pid] = true
		}
	}
	// The children of a member are members. A process that is not ours can be
	// no member, even if it took over the number of one.
	for changed := true; changed; {
		changed = false
		for pid := range family {
			for _, child := range byParent[pid] {
				if !family[child.pid] {
					family[child.pid], changed = true, true
				}
			}
		}
	}
	var living []process
	for _, p := range all {
		if family[p.pid] && !p.dead() && p.pid != r.self.pid {
			living = append(living, p)
		}
	}
	return living
}

// orphan tells whether a process came to this one when it lost its parent. What
// this process itself started is a line's shell or in our session.
func (r *Runner) orphan(p process) bool {
	return p.parent == r.self.pid && r.self.pid != 0 && p.session != r.self.session && r.running[p.pid] == nil
}

// owns tells whether an orphan belongs to a line.
func (r *Runner) owns(l *line, p process) bool {
	m := markOf(p.pid)
	if m == l.mark {
		return true
	}
	// It has none, or that of another bough that it ran: then it is this
	// line's if it can be no other's that runs.
	for _, other := range r.running {
		if other != l && (m == other.mark || other.started <= p.started) {
			return false
		}
	}
	return p.started >= l.started
}

// reap collects a dead child.
func reap(pid int) {
	for {
		_, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if !errors.Is(err, unix.EINTR) {
			return // whoever else collected it is welcome
		}
	}
}

// tooMany is a number of processes that a line has only when it goes wild.
const tooMany = 200

// end ends all processes of a line: asks them to, and kills what is left after
// the grace. left are those that were running, stuck those that could not be
// ended.
func (r *Runner) end(l *line, grace time.Duration) (left, stuck []process) {
	began := time.Now()
	pause := time.Millisecond
	seen := map[int]bool{}
	for !r.gone(l) {
		family := r.members(l)
		for _, p := range family {
			if !seen[p.pid] {
				seen[p.pid] = true
				left = append(left, p)
				r.ask(p)
			}
		}
		waited := time.Since(began)
		if waited > grace+giveUp {
			return left, family
		}
		if waited > grace || len(family) > tooMany {
			r.kill(family)
		}
		time.Sleep(pause)
		pause = min(2*pause, 20*time.Millisecond)
	}
	return left, nil
}

// ask asks a process to end.
func (r *Runner) ask(p process) {
	r.signal(p, unix.SIGTERM)
	if p.stopped() {
		r.signal(p, unix.SIGCONT)
	}
}

// kill kills processes, by their groups first: a group dies at once, however
// quickly its members make others.
func (r *Runner) kill(family []process) {
	groups := map[int]bool{r.self.group: true}
	for _, p := range family {
		if !groups[p.group] && p.group > 1 {
			groups[p.group] = true
			unix.Kill(-p.group, unix.SIGKILL) //nolint:errcheck // gone already, or members tells
		}
	}
	for _, p := range family {
		r.signal(p, unix.SIGKILL)
	}
}

// signal sends a signal to a process if it is still the one that was seen.
func (r *Runner) signal(p process, s unix.Signal) {
	if now, there := look(p.pid); there && now.started == p.started {
		unix.Kill(p.pid, s) //nolint:errcheck // gone already, or members tells
	}
}

// endAbandoned ends what the lines of processes left running that were killed
// before they could do it.
func (r *Runner) endAbandoned() {
	if r.self.pid == 0 {
		return
	}
	all, err := lookAtAll()
	if err != nil {
		r.logger.Error("what killed processes left running cannot be found", "error", err)
		return
	}
	parents := map[int]int{}
	for _, p := range all {
		parents[p.pid] = p.parent
	}
	ours := map[int]bool{} // what this process runs under: it can be such a line itself
	for pid := r.self.pid; pid != 0 && !ours[pid]; pid = parents[pid] {
		ours[pid] = true
	}
	for _, p := range all {
		m := markOf(p.pid)
		if m == 0 || ours[p.pid] || !m.abandoned() {
			continue
		}
		// Of another namespace, a container's say, the ids mean nothing here.
		if namespace(p.pid) == r.self.namespace {
			r.logger.Info("ended a process that a killed bough left running", "pid", p.pid, "name", p.name)
			r.signal(p, unix.SIGKILL)
		}
	}
}

// named are the names of processes, with how many have each.
func named(processes []process) []string {
	count := map[string]int{}
	for _, p := range processes {
		count[p.name]++
	}
	names := slices.Sorted(maps.Keys(count))
	for i, name := range names {
		if n := count[name]; n > 1 {
			names[i] = fmt.Sprintf("%s (%d)", name, n)
		}
	}
	return names
}
