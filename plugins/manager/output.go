package manager

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	tailLines    = 20   // of stderr are kept for messages
	tailWidth    = 500  // bytes of a kept line
	longestLine  = 8192 // bytes of a logged line; the rest is left out
	burstLines   = 500  // that a plugin may log at once
	linesASecond = 100  // that it may log for long
)

// output takes what a plugin writes to stderr into the host's log, keeps the
// last lines, and lets no flood through. It always reads on, so a plugin never
// waits for its log.
type output struct {
	logger *slog.Logger
	plain  slog.Level // of lines that do not say

	mu      sync.Mutex
	tail    []string
	tokens  float64
	last    time.Time
	dropped int
}

func newOutput(logger *slog.Logger, plain slog.Level) *output {
	return &output{logger: logger, plain: plain, tokens: burstLines}
}

// read takes lines until the stream ends.
func (o *output) read(stream io.Reader) {
	lines := bufio.NewReaderSize(stream, longestLine)
	for {
		line, more, err := lines.ReadLine()
		if len(line) > 0 {
			o.take(string(line))
		}
		for more && err == nil {
			_, more, err = lines.ReadLine()
		}
		if err != nil {
			break
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tellDropped()
}

func (o *output) take(line string) {
	line = printable(line)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tail = append(o.tail, line[:min(len(line), tailWidth)]); len(o.tail) > tailLines {
		o.tail = o.tail[1:]
	}
	if !o.allowed(time.Now()) {
		o.dropped++
		return
	}
	o.tellDropped()
	o.log(line)
}

// allowed spends a token, of which some come back every second.
func (o *output) allowed(now time.Time) bool {
	if !o.last.IsZero() {
		o.tokens = min(burstLines, o.tokens+now.Sub(o.last).Seconds()*linesASecond)
	}
	o.last = now
	if o.tokens < 1 {
		return false
	}
	o.tokens--
	return true
}

func (o *output) tellDropped() {
	if o.dropped > 0 {
		o.logger.Warn("the plugin logs too fast: lines were left out", "lines", o.dropped)
		o.dropped = 0
	}
}

// log hands a line of the SDK's logger on with its level and attributes, and
// any other as it is.
func (o *output) log(line string) {
	level := o.plain
	message := line
	var attrs []any
	var fields map[string]any
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &fields) == nil {
		if text, ok := fields[slog.MessageKey].(string); ok {
			message = text
			if name, ok := fields[slog.LevelKey].(string); !ok || level.UnmarshalText([]byte(name)) != nil {
				level = o.plain
			}
			for k, v := range fields {
				if k != slog.MessageKey && k != slog.LevelKey && k != slog.TimeKey {
					attrs = append(attrs, slog.Any(k, v))
				}
			}
		}
	}
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
		level = slog.LevelError
	}
	o.logger.Log(context.Background(), level, message, attrs...)
}

// printed takes what a plugin prints after its handshake, which go-plugin brings
// in pieces, into the log.
type printed struct {
	output *output
	rest   []byte // of a line whose end has not come
}

func newPrinted(c Command) *printed {
	return &printed{output: newOutput(c.Logger.With("plugin", c.Name), slog.LevelInfo)}
}

// Write implements io.Writer.
func (p *printed) Write(data []byte) (int, error) {
	p.rest = append(p.rest, data...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte{'\n'})
		if !whole && len(p.rest) < longestLine {
			return len(data), nil
		}
		if len(line) > 0 {
			p.output.take(string(line[:min(len(line), longestLine)]))
		}
		p.rest = append(p.rest[:0], rest...)
	}
}

// lines are the last ones.
func (o *output) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.tail...)
}

// printable leaves out what a terminal would act on.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, line)
}

// readHandshake hands the first line of a plugin's stdout to go-plugin, which
// waits for it, and everything after it to the log.
func readHandshake(stdout io.Reader, first *io.PipeWriter, rest *output) {
	lines := bufio.NewReaderSize(stdout, longestLine)
	line, _, err := lines.ReadLine()
	if err == nil {
		_, err = first.Write(append(append([]byte(nil), line...), '\n'))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		first.CloseWithError(err) // it always returns nil
	} else {
		first.Close() //nolint:errcheck // it always returns nil
	}
	rest.read(lines)
}
