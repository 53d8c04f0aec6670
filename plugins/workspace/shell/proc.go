package shell

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is a process as /proc shows it.
type process struct {
	pid, parent, group, session int
	state                       byte
	started                     uint64 // clock ticks since boot
	name                        string
}

// dead tells whether it is a zombie or about to be none any more.
func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' || p.state == 'x' }

// stopped tells whether it has to be continued to take notice of a signal.
func (p process) stopped() bool { return p.state == 'T' || p.state == 't' }

// look reads one process; false: it is gone.
func look(pid int) (process, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	// The name is in brackets and may hold anything, brackets too.
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return process{}, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	const startTime = 19 // field 22 of the file; the first here is field 3
	if len(fields) <= startTime {
		return process{}, false
	}
	p := process{pid: pid, state: fields[0][0], name: string(stat[open+1 : end])}
	for i, to := range []*int{&p.parent, &p.group, &p.session} {
		if *to, err = strconv.Atoi(fields[1+i]); err != nil {
			return process{}, false
		}
	}
	p.started, err = strconv.ParseUint(fields[startTime], 10, 64)
	return p, err == nil
}

// lookAtAll reads all processes.
func lookAtAll() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := look(pid); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// childrenFiles list the children of each thread. Not every kernel has them;
// the tests do without, too.
var childrenFiles = "/proc/self/task/*/children"

// children lists the children of this process. ok is false where the system
// does not tell, or a thread ended meanwhile.
func children() (pids []int, ok bool) {
	files, err := filepath.Glob(childrenFiles)
	if err != nil || len(files) == 0 {
		return nil, false
	}
	for _, file := range files {
		list, err := os.ReadFile(file)
		if err != nil {
			return nil, false
		}
		for field := range strings.FieldsSeq(string(list)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return nil, false
			}
			pids = append(pids, pid)
		}
	}
	return pids, true
}

// childless tells for certain that this process has no child at all.
func childless() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD)
}

// self is this process.
type self struct {
	process
	namespace string // of process ids
}

func identify() (self, error) {
	me, ok := look(os.Getpid())
	if !ok {
		return self{}, errors.New("/proc does not show this process")
	}
	return self{me, namespace(me.pid)}, nil
}

// namespace names the namespace that the ids of a process belong to; empty:
// that may not be known.
func namespace(pid int) string {
	name, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/pid")
	if err != nil {
		return ""
	}
	return name
}

// ticks is the time since boot as /proc counts it: in hundredths of a second
// on every Linux.
func ticks() uint64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0 // then everything counts as younger
	}
	return uint64(now.Nano() / int64(10*time.Millisecond))
}
