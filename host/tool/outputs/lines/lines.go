// Package lines reads texts of any size by line in bounded memory: a page of
// them, or the ones that match a pattern with what stands around them. And it
// writes bytes of unknown origin so that a model and a terminal can take them.
package lines

import (
	"bytes"
	"errors"
	"io"
)

// Line is one line of a text, without its end.
type Line struct {
	Number int64 // 1-based
	Start  int64 // byte where it begins
	Text   []byte
	Cut    int64 // bytes of the line that Text does not have
}

// Page is a run of lines, and what is known of the text around it.
type Page struct {
	Lines []Line
	Total int64 // lines of the whole text
	Size  int64 // bytes of the whole text
	// Full tells that the page ended because it holds as many bytes as it may
	// and not because it has as many lines as were asked for.
	Full bool
}

// Range says which lines are wanted.
type Range struct {
	Offset   int64 // number of the first one; less than 1: 1
	Limit    int   // how many
	MaxBytes int   // of all lines together; the first one is there in any case
	MaxLine  int   // bytes of one line; what is longer is cut
	End      byte  // what ends a line; 0: \n
}

// Read reads a text to its end and gives the lines of a range. The memory that
// it takes depends on the range alone.
func Read(r io.Reader, want Range) (Page, error) {
	if want.End == 0 {
		want.End = '\n'
	}
	p := pager{Range: want, number: 1}
	p.Offset = max(p.Offset, 1)
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		p.add(buf[:n])
		switch {
		case errors.Is(err, io.EOF):
			p.finish()
			return p.page, nil
		case err != nil:
			return p.page, err
		}
	}
}

// pager builds a page of pieces of a text.
type pager struct {
	Range
	page   Page
	number int64 // of the line that the next byte belongs to
	start  int64 // of that line
	held   int   // bytes of all lines of the page
	open   bool  // the last line of the page has not ended
	full   bool
}

// add takes the next piece.
func (p *pager) add(piece []byte) {
	for len(piece) > 0 {
		if p.number < p.Offset || p.full {
			piece = p.skip(piece)
			continue
		}
		text, rest, ended := bytes.Cut(piece, []byte{p.End})
		p.take(text)
		p.page.Size += int64(len(text))
		if ended {
			p.page.Size++
			p.endLine()
		}
		piece = rest
	}
}

// skip passes over lines that are not on the page; most of a long text is, so
// it counts and does not look.
func (p *pager) skip(piece []byte) (rest []byte) {
	if p.full {
		p.number += int64(bytes.Count(piece, []byte{p.End}))
		if i := bytes.LastIndexByte(piece, p.End); i >= 0 {
			p.start = p.page.Size + int64(i) + 1
		}
		p.page.Size += int64(len(piece))
		return nil
	}
	i := bytes.IndexByte(piece, p.End)
	if i < 0 {
		p.page.Size += int64(len(piece))
		return nil
	}
	p.page.Size += int64(i) + 1
	p.number++
	p.start = p.page.Size
	return piece[i+1:]
}

// take adds bytes to the line that is being read.
func (p *pager) take(text []byte) {
	if !p.open {
		p.page.Lines = append(p.page.Lines, Line{Number: p.number, Start: p.start})
		p.open = true
	}
	line := &p.page.Lines[len(p.page.Lines)-1]
	fits := min(len(text), max(p.MaxLine-len(line.Text), 0))
	if line.Cut > 0 {
		fits = 0
	}
	line.Text = append(line.Text, text[:fits]...)
	line.Cut += int64(len(text) - fits)
	p.held += fits
}

// endLine closes a line, and the page when it is full.
func (p *pager) endLine() {
	p.number++
	p.start = p.page.Size
	p.open = false
	if p.held > p.MaxBytes && len(p.page.Lines) > 1 {
		// One line too many: it begins the next page.
		p.page.Lines = p.page.Lines[:len(p.page.Lines)-1]
		p.page.Full, p.full = true, true
		return
	}
	if len(p.page.Lines) >= p.Limit {
		p.full = true
		return
	}
	p.held++ // for the end of the line
}

func (p *pager) finish() {
	if p.open && p.held > p.MaxBytes && len(p.page.Lines) > 1 {
		p.page.Lines = p.page.Lines[:len(p.page.Lines)-1]
		p.page.Full = true
	}
	p.page.Total = p.number - 1
	if p.page.Size > p.start { // the last line has no end
		p.page.Total++
	}
}

// Until is where the first n lines of a text end.
func Until(text []byte, n int) int {
	end := 0
	for range n {
		i := bytes.IndexByte(text[end:], '\n')
		if i < 0 {
			return len(text)
		}
		end += i + 1
	}
	return end
}
