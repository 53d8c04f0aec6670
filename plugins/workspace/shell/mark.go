package shell

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Every process of a line carries a mark: its soft limit of RLIMIT_RTTIME, the
// time that a real-time process may run without a pause, is a number that only
// this line has. The number is so large that it limits nothing. Unlike a
// variable in the environment, which programs clear and overwrite, it is handed
// down whatever a program does to get away, and can be read of every process.
//
// From the top: bit 62, 22 bits of the id of the process that runs the line,
// 20 of the time when that was started, 20 of a serial number.
const (
	markLimit   = unix.RLIMIT_RTTIME
	markBit     = 1 << 62
	markPID     = 40
	markStarted = 20
	markMask    = 1<<20 - 1
)

// mark is the number of a line; 0: none.
type mark uint64

func (s self) mark(serial int) mark {
	return mark(markBit | uint64(s.pid)<<markPID | (s.started&markMask)<<markStarted | uint64(serial)&markMask)
}

// marked runs f, which starts a process, so that the process has the mark. The
// limit is that of this whole process meanwhile: what another goroutine starts
// at that time gets the mark too, but is in our session and no line's.
func marked(m mark, f func()) error {
	var old unix.Rlimit
	err := unix.Prlimit(0, markLimit, nil, &old)
	if err == nil && old.Max < uint64(m) {
		err = fmt.Errorf("the hard limit is %d", old.Max)
	}
	if err == nil {
		err = unix.Prlimit(0, markLimit, &unix.Rlimit{Cur: uint64(m), Max: old.Max}, nil)
	}
	f()
	if err != nil {
		return fmt.Errorf("mark a process by its limit of real time: %w", err)
	}
	if err := unix.Prlimit(0, markLimit, &old, nil); err != nil {
		return fmt.Errorf("restore the limit of real time: %w", err)
	}
	return nil
}

// markOf reads the mark of a process.
func markOf(pid int) mark {
	limits, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	if err != nil {
		return 0 // it is gone
	}
	_, line, _ := bytes.Cut(limits, []byte("Max realtime timeout"))
	fields := bytes.Fields(line)
	if len(fields) == 0 {
		return 0
	}
	number, err := strconv.ParseUint(string(fields[0]), 10, 64)
	if err != nil || number&markBit == 0 || number>>63 != 0 {
		return 0 // unlimited, or another limit
	}
	return mark(number)
}

// abandoned tells whether the process that gave a mark is gone.
func (m mark) abandoned() bool {
	p, there := look(int(uint64(m) >> markPID & (1<<22 - 1)))
	return !there || p.dead() || p.started&markMask != uint64(m)>>markStarted&markMask
}
