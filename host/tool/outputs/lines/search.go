package lines

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
)

// ErrBinary is the answer to a search in what is not text.
var ErrBinary = errors.New("not text: it has NUL bytes")

// Query says what to search for.
type Query struct {
	Pattern       *Pattern
	Before, After int  // lines of context
	TextOnly      bool // fail with ErrBinary when the text does not begin as text
}

// Hit is a line that matches, or one of the context of such a line.
type Hit struct {
	Line
	Match bool
	At    int  // byte of Text where the match begins
	Gap   bool // lines between the hit before and this one were left out
}

const (
	firstBuffer = 128 << 10
	// longestLine is how much of a line is looked at at once. A longer one is
	// searched piece by piece, each as if it were a line.
	longestLine = 1 << 20
	// binaryHead is how far a NUL byte makes a text binary; Git's figure.
	binaryHead = 8000
)

// Binary tells whether bytes that a file begins with are those of text.
func Binary(head []byte) bool {
	return bytes.IndexByte(head[:min(len(head), binaryHead)], 0) >= 0
}

var buffers = sync.Pool{New: func() any { b := make([]byte, firstBuffer); return &b }}

// Search calls found with each hit in order until it returns false. The text
// of a hit may be used until found returns.
func Search(ctx context.Context, r io.Reader, q Query, found func(Hit) bool) error {
	buf, ok := buffers.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	defer buffers.Put(buf)
	s := searcher{Query: q, found: found, buf: *buf, number: 1, last: -1}
	defer func() {
		if len(s.buf) == firstBuffer {
			*buf = s.buf
		}
	}()
	first := true
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(s.room())
		s.end += n
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return err
		}
		if first && q.TextOnly && Binary(s.buf[:s.end]) {
			return ErrBinary
		}
		first = first && n == 0
		if whole := s.wholeLines(ended); whole > s.done && !s.process(whole) {
			return nil
		}
		if ended {
			return nil
		}
	}
}

// searcher is a search on its way. buf[:end] has been read; of that, buf[:done]
// has been searched and is there for the context of what follows.
type searcher struct {
	Query
	found func(Hit) bool

	buf       []byte
	end, done int
	base      int64 // where buf begins in the text

	number  int64 // of the line that begins at done
	last    int64 // where the last hit ended in the text; less than 0: none yet
	pending int   // lines of context that the last match still wants after it
}

// room is where the next bytes are read to.
func (s *searcher) room() []byte {
	if s.end < len(s.buf) {
		return s.buf[s.end:]
	}
	keep := s.lookBack()
	if keep > 0 {
		copy(s.buf, s.buf[keep:s.end])
		s.base += int64(keep)
		s.end -= keep
		s.done -= keep
	}
	if s.end > len(s.buf)/2 {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	return s.buf[s.end:]
}

// lookBack is where the lines of context before done begin.
func (s *searcher) lookBack() int {
	at := s.done
	for range s.Before {
		if at == 0 || s.done-at > longestLine {
			break
		}
		at = bytes.LastIndexByte(s.buf[:at-1], '\n') + 1
	}
	return at
}

// wholeLines is how far the text can be searched now.
func (s *searcher) wholeLines(ended bool) int {
	if ended {
		return s.end
	}
	if i := bytes.LastIndexByte(s.buf[s.done:s.end], '\n'); i >= 0 {
		return s.done + i + 1
	}
	if s.end-s.done >= longestLine {
		return s.end
	}
	return s.done
}

// process searches buf[done:to]; false: the search is over.
func (s *searcher) process(to int) bool {
	for s.done < to {
		at := s.Pattern.in(s.buf[s.done:to])
		if at < 0 {
			if !s.after(to) {
				return false
			}
			s.pass(to)
			return true
		}
		at += s.done
		start := s.done + bytes.LastIndexByte(s.buf[s.done:at], '\n') + 1
		if !s.after(start) {
			return false
		}
		s.pass(start)
		if !s.before(start) || !s.emit(start, to, at-start, true) {
			return false
		}
		s.pending = s.After
	}
	return true
}

// after emits what the last match wants of the lines up to byte to.
func (s *searcher) after(to int) bool {
	for s.pending > 0 && s.done < to {
		s.pending--
		if !s.emit(s.done, to, 0, false) {
			return false
		}
	}
	return true
}

// before emits the context before a match that begins at byte start, which is
// done; without what was emitted already.
func (s *searcher) before(start int) bool {
	at, lines := start, int64(0)
	for range s.Before {
		if at == 0 || s.base+int64(at) <= s.last || s.buf[at-1] != '\n' {
			break
		}
		at = bytes.LastIndexByte(s.buf[:at-1], '\n') + 1
		lines++
	}
	number := s.number
	s.done, s.number = at, number-lines
	for s.done < start {
		if !s.emit(s.done, start, 0, false) {
			return false
		}
	}
	return true
}

// pass moves over lines that are no hits.
func (s *searcher) pass(to int) {
	if to > s.done {
		s.number += int64(bytes.Count(s.buf[s.done:to], []byte{'\n'}))
		s.done = to
	}
}

// emit hands the line at byte start on and moves behind it.
func (s *searcher) emit(start, to, at int, match bool) bool {
	text, next := s.buf[start:to], to
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		text, next = text[:i], start+i+1
	}
	ended := next > start+len(text)
	hit := Hit{
		Line:  Line{Number: s.number, Start: s.base + int64(start), Text: bytes.TrimSuffix(text, []byte{'\r'})},
		Match: match, At: at, Gap: s.last >= 0 && s.last != s.base+int64(start),
	}
	s.done = next
	s.last = s.base + int64(next)
	if ended {
		s.number++
	}
	return s.found(hit)
}
