package outputs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/boughdev/bough/host/tool/outputs/lines"
)

// Bounds on one look into an output.
const (
	DefaultReadLines   = 200
	MaxReadLines       = 2000
	DefaultMatches     = 100
	MaxMatches         = 200
	MaxContext         = 5
	longestShownLine   = 2000 // bytes; tool_output by byte offset shows the rest
	longestMatchedLine = 500
)

// Lines reads lines of an output, from the one with number offset, 1-based.
// At most maxBytes of them are read, but one in any case; a line is cut at
// 2000 bytes.
func (s *Store) Lines(session, id string, offset int64, limit, maxBytes int) (lines.Page, error) {
	file, err := s.open(session, id)
	if err != nil {
		return lines.Page{}, err
	}
	defer file.Close()
	page, err := lines.Read(file, lines.Range{Offset: offset, Limit: limit, MaxBytes: maxBytes, MaxLine: longestShownLine})
	if err != nil {
		return lines.Page{}, fmt.Errorf("read output %s: %w", id, err)
	}
	return page, nil
}

// Bytes reads at most max bytes of an output from a byte offset, as they are
// stored, and tells how long the output is.
func (s *Store) Bytes(session, id string, offset int64, max int) (data []byte, size int64, err error) {
	file, err := s.open(session, id)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("read output %s: %w", id, err)
	}
	data = make([]byte, min(int64(max), info.Size()-min(offset, info.Size())))
	n, err := file.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, fmt.Errorf("read output %s: %w", id, err)
	}
	return data[:n], info.Size(), nil
}

// Query says what to look for in an output.
type Query struct {
	lines.Query
	From     int64 // number of the first line that counts
	Max      int   // matching lines
	MaxBytes int   // of text
}

// Matches are the hits of a search, ready to be shown.
type Matches struct {
	Text  string // 12:match and 11-context, visible form
	Count int    // matching lines
	Last  int64  // number of the last of them
	More  bool   // the search stopped: there may be more
}

// Search looks for a pattern in an output and stops after so many matches or
// bytes of text.
func (s *Store) Search(ctx context.Context, session, id string, q Query) (Matches, error) {
	file, err := s.open(session, id)
	if err != nil {
		return Matches{}, err
	}
	defer file.Close()
	var m Matches
	var text []byte
	err = lines.Search(ctx, file, q.Query, func(h lines.Hit) bool {
		if h.Number < q.From {
			return true
		}
		next := AppendHit(text, h, q.Query)
		if (h.Match && m.Count == q.Max) || (len(next) > q.MaxBytes && m.Count > 0) {
			m.More = true
			return false
		}
		if h.Match {
			m.Count++
			m.Last = h.Number
		}
		text = next
		return true
	})
	if err != nil {
		return Matches{}, fmt.Errorf("search output %s: %w", id, err)
	}
	m.Text = string(text)
	return m, nil
}

// AppendHit appends a hit as grep shows it, with -- where lines between hits
// with context were left out.
func AppendHit(to []byte, h lines.Hit, q lines.Query) []byte {
	if h.Gap && q.Before+q.After > 0 {
		to = append(to, "--\n"...)
	}
	sign := '-'
	if h.Match {
		sign = ':'
	}
	return fmt.Appendf(to, "%d%c%s\n", h.Number, sign, lines.Clip(h.Text, h.At, longestMatchedLine))
}
