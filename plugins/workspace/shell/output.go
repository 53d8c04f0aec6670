package shell

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// output is the pipe that a line writes to.
type output struct {
	pipe  *os.File
	to    func([]byte)
	read  atomic.Int64  // bytes that came
	ended chan struct{} // closed when no more will come
}

func newOutput(pipe *os.File, to func([]byte)) *output {
	o := &output{pipe: pipe, to: to, ended: make(chan struct{})}
	go o.copy()
	return o
}

var chunks = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// copy hands on what comes, until nobody can write any more, or the deadline
// of the pipe has passed because a process that fled still could.
func (o *output) copy() {
	defer close(o.ended)
	buf, ok := chunks.Get().(*[]byte)
	if !ok {
		return
	}
	defer chunks.Put(buf)
	for {
		n, err := o.pipe.Read(*buf)
		if n > 0 && o.to != nil {
			o.to((*buf)[:n])
		}
		if err != nil {
			return
		}
		o.read.Add(int64(n))
	}
}

// finish waits for what is still in the pipe, as long as more comes.
func (o *output) finish() {
	defer o.pipe.Close()
	limit := time.Now().Add(giveUp)
	for before := int64(-1); before != o.read.Load() && time.Now().Before(limit); {
		before = o.read.Load()
		select {
		case <-o.ended:
			return
		case <-time.After(drain):
		}
	}
	o.pipe.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // a pipe has deadlines
	<-o.ended
}
