package manager

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/boughdev/bough/plugins/wire/handshake"
)

const (
	startTries  = 3                      // of a process that dies while it starts
	startPause  = 100 * time.Millisecond // between them, growing
	longLogFile = 4 << 20                // bytes; a longer log is moved aside
)

// start starts the storage process and attaches to it. The start lock is held,
// and nobody owns the directory.
func (s *sharedStorage) start(ctx context.Context) (*link, error) {
	for try := 1; ; try++ {
		err := s.spawn(ctx)
		if err == nil {
			l, attached := s.attach(ctx)
			if attached == nil || !errors.Is(attached, errNobody) {
				return l, attached
			}
			err = &StartError{Plugin: "storage", Reason: "it was gone as soon as it was ready", Err: attached}
		} else if refused := (*refusedError)(nil); errors.As(err, &refused) || errors.Is(err, errOwned) || ctx.Err() != nil {
			return nil, err // another try would end the same way
		}
		if try == startTries {
			return nil, fmt.Errorf("%w\nits log is %s", err, s.LogFile)
		}
		s.Logger.Warn("the storage process could not be started, and is tried again", "try", try, "error", err)
		if err := pause(ctx, startPause<<(2*(try-1))); err != nil {
			return nil, err
		}
	}
}

// refusedError is the reason that a storage process gave before it ended.
type refusedError struct{ reason string }

// Error implements error.
func (e *refusedError) Error() string {
	return "the storage process could not start: " + printable(e.reason)
}

// launched is a storage process that this host started.
type launched struct {
	cmd   *exec.Cmd
	ready *os.File      // tells how far it is
	ended chan struct{} // closed when it has ended and is collected
	log   logFile
}

// spawn starts a process and waits until it serves. One that fails is gone when
// spawn returns.
func (s *sharedStorage) spawn(ctx context.Context) error {
	p, err := s.launch()
	if err != nil {
		return err
	}
	defer p.ready.Close() // ends report
	lines := make(chan string, 1)
	done := make(chan struct{})
	defer close(done)
	go p.report(lines, done)
	limit := time.NewTimer(s.StartTimeout)
	defer limit.Stop()
	waited := s.StartTimeout
	for {
		select {
		case line, ok := <-lines:
			switch reason, failed := strings.CutPrefix(line, handshake.ReadyFailed); {
			case !ok:
				<-p.ended
				return &StartError{Plugin: "storage", Reason: "it ended before it was ready", Exit: p.how(), Stderr: p.log.tail()}
			case failed:
				<-p.ended
				return &refusedError{reason}
			case line == handshake.ReadyOwned:
				<-p.ended
				return errOwned
			case line == handshake.ReadyOpening:
				limit.Reset(s.OpenTimeout)
				waited = s.OpenTimeout
			case line == handshake.ReadyServing:
				return nil
			}
		case <-limit.C:
			p.abandon()
			return &StartError{Plugin: "storage", Reason: fmt.Sprintf("it was not ready within %s", waited), Exit: "killed by the host", Stderr: p.log.tail()}
		case <-ctx.Done():
			p.abandon()
			return ctx.Err()
		}
	}
}

// report hands on what the process tells of its start, until it or spawn ends.
func (p *launched) report(lines chan<- string, done <-chan struct{}) {
	defer close(lines)
	for scan := bufio.NewScanner(p.ready); scan.Scan(); {
		select {
		case lines <- scan.Text():
		case <-done:
			return
		}
	}
}

// abandon ends a process that is our child, so the id is surely its own.
func (p *launched) abandon() {
	p.cmd.Process.Kill() //nolint:errcheck // it has ended already
	<-p.ended
}

// how tells how the process ended, and what a bus error means here: the disk
// filled up under a mapped file.
func (p *launched) how() string {
	how := p.cmd.ProcessState.String()
	if p.log.mentions("SIGBUS") {
		how += ": the disk is probably full"
	}
	return how
}

// launch starts the process in a session of its own: it outlives this host and
// its terminal. Its output goes to the log, and it has no input.
func (s *sharedStorage) launch() (*launched, error) {
	program, err := exec.LookPath(s.Command[0])
	if err == nil {
		program, err = filepath.Abs(program)
	}
	if err != nil {
		return nil, fmt.Errorf("start the storage process: %w", err)
	}
	s.moveLogAside()
	log, err := os.OpenFile(s.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of the storage process: %w", err)
	}
	defer log.Close()
	ready, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the storage process: %w", err)
	}
	defer theirs.Close()
	keepDescriptors()
	cmd := exec.Command(program, s.Command[1:]...) //nolint:noctx // it outlives its starter on purpose
	cmd.Dir = s.StateDir                           // not the person's folder, which could not be unmounted then
	cmd.Env = environment(os.Environ(), s.PassEnv, append([]string{logLevel(s.Logger), handshake.ReadyKey + "=3"}, s.Env...))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{theirs} // descriptor 3
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p := &launched{cmd: cmd, ready: ready, ended: make(chan struct{}), log: logFile{path: s.LogFile}}
	if info, err := log.Stat(); err == nil {
		p.log.from = info.Size()
	}
	if err := cmd.Start(); err != nil {
		ready.Close()
		return nil, fmt.Errorf("start the storage process: %w", err)
	}
	go func() { // as long as the process or this host lives
		defer close(p.ended)
		if err := cmd.Wait(); err != nil {
			s.Logger.Error("the storage process ended", "pid", cmd.Process.Pid, "how", p.how(), "log", s.LogFile)
		}
	}()
	return p, nil
}

// moveLogAside keeps the log of earlier processes in one file more. That it
// cannot be moved is no reason not to start.
func (s *sharedStorage) moveLogAside() {
	info, err := os.Stat(s.LogFile)
	if err != nil || info.Size() < longLogFile {
		return
	}
	if err := os.Rename(s.LogFile, s.LogFile+".1"); err != nil {
		s.Logger.Warn("the log of the storage process is long and cannot be moved aside", "error", err)
	}
}

// logFile is what one process wrote to a log that it shares with earlier ones.
type logFile struct {
	path string
	from int64 // where this process began
}

// end reads the last bytes, at most so many. What cannot be read is empty: the
// log explains a failure and must not become one.
func (f logFile) end(most int64) string {
	file, err := os.Open(f.path)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	from := max(f.from, info.Size()-most)
	data, err := io.ReadAll(io.NewSectionReader(file, from, info.Size()-from))
	if err != nil {
		return ""
	}
	return string(data)
}

// tail are the last lines.
func (f logFile) tail() []string {
	text := strings.TrimSpace(f.end(tailLines * tailWidth))
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		line = printable(line)
		lines[i] = line[:min(len(line), tailWidth)]
	}
	return lines
}

// mentions looks for a word where a crash of the runtime would put it.
func (f logFile) mentions(word string) bool {
	return strings.Contains(f.end(256<<10), word)
}
