package rendezvous

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
)

// Process names a process beyond doubt: its id alone is given to another one
// after its end.
type Process struct {
	PID     int    `json:"pid"`
	Started string `json:"started"` // in clock ticks after the boot
	Boot    string `json:"boot"`
}

// Self is this process.
func Self() Process {
	return Process{PID: os.Getpid(), Started: startOf(os.Getpid()), Boot: bootID()}
}

// Alive tells whether that very process is there. One whose identity cannot be
// read is taken for dead.
func (p Process) Alive() bool {
	return p.PID > 0 && p.Started != "" && p.Boot == bootID() && startOf(p.PID) == p.Started
}

// startOf is the start time of a process; empty when there is none.
func startOf(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field is the program's name in brackets, which may hold
	// anything; the start time is the 20th after it.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 20 || string(fields[0]) == "Z" {
		return "" // a zombie has ended
	}
	return string(fields[19])
}

var bootID = sync.OnceValue(func() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
})
