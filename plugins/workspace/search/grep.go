package search

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/boughdev/bough/host/tool/outputs"
	"github.com/boughdev/bough/host/tool/outputs/lines"
	"github.com/boughdev/bough/plugins/workspace/folder"
)

// Query says what to look for in files.
type Query struct {
	lines.Query
	Filter *Filter // of the files; nil: all
	Max    int     // matching lines
}

// Match is what was found in one file.
type Match struct {
	Name  string
	Text  string // the hits as grep shows them, visible form
	Lines int    // that match
}

// Matches are what was found in all files, by name.
type Matches struct {
	Files []Match
	Lines int  // that match
	More  bool // the search stopped after Max lines
	Partial
}

// mostText bounds what is shown of one file.
const mostText = 256 << 10

// Grep looks for a pattern in the files below a folder, or in one file. Files
// that are not text are passed over.
func Grep(ctx context.Context, f *folder.Folder, start folder.Place, q Query) (Matches, error) {
	q.TextOnly = true
	info, err := start.Lstat()
	if err != nil {
		return Matches{}, err
	}
	if info.IsDir() {
		return grepBelow(ctx, f, start, q)
	}
	file, _, err := start.Open()
	if err != nil {
		return Matches{}, err
	}
	defer file.Close()
	one := grepFile(ctx, file, start.Name, q)
	m := Matches{More: one.more, Lines: one.Lines}
	if one.Lines > 0 {
		m.Files = []Match{one.Match}
	}
	return m, one.err
}

// searched is a file that was searched.
type searched struct {
	Match
	more bool
	err  error
}

// batch is some files of one folder that follow each other.
type batch struct {
	dir   folder.Place
	names []string
	done  chan []searched
}

// largestBatch is how many files are searched at a stretch: their folder is
// opened once for all of them.
const largestBatch = 32

// grepBelow searches files on all cores and gathers the results in the order
// of the files, so that the same search gives the same answer.
func grepBelow(ctx context.Context, f *folder.Folder, start folder.Place, q Query) (Matches, error) {
	searching, stop := context.WithCancel(ctx)
	defer stop()
	const ahead = 32 // batches that may be done before the one that is waited for
	jobs, order := make(chan *batch), make(chan *batch, ahead)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for b := range jobs {
				b.done <- b.search(searching, q)
			}
		}()
	}
	type walked struct {
		Partial
		err error
	}
	walk := make(chan walked, 1)
	go func() {
		defer close(order)
		defer close(jobs)
		partial, err := deal(searching, f, start, q, func(b *batch) bool {
			select {
			case order <- b:
			case <-searching.Done():
				return false
			}
			jobs <- b
			return true
		})
		walk <- walked{partial, err}
	}()
	m := gather(order, q, stop)
	w := <-walk
	m.OutOfTime = errors.Is(ctx.Err(), context.DeadlineExceeded)
	m.Unreadable += w.Unreadable
	if w.err != nil {
		return m, w.err
	}
	return m, ctx.Err()
}

// deal deals the files below a folder out in batches.
func deal(ctx context.Context, f *folder.Folder, start folder.Place, q Query, out func(*batch) bool) (Partial, error) {
	prefix := relativeTo(start)
	var b *batch
	send := func() bool {
		full := b
		b = nil
		return full == nil || out(full)
	}
	partial, err := below(ctx, f, start, func(p folder.Place, e fs.DirEntry) bool {
		if !e.Type().IsRegular() || (q.Filter != nil && !q.Filter.Match(strings.TrimPrefix(p.Name, prefix))) {
			return true
		}
		if b != nil && (len(b.names) == largestBatch || !b.dir.Holds(p)) && !send() {
			return false
		}
		if b == nil {
			b = &batch{dir: p.Parent(), done: make(chan []searched, 1)}
		}
		b.names = append(b.names, e.Name())
		return true
	})
	send()
	return partial, err
}

// search searches the files of a batch.
func (b *batch) search(ctx context.Context, q Query) []searched {
	results := make([]searched, len(b.names))
	dir, err := b.dir.OpenDir()
	if err != nil {
		for i := range results {
			results[i].err = err
		}
		return results
	}
	defer dir.Close()
	for i, name := range b.names {
		file, err := dir.Open(name)
		if err != nil {
			results[i].err = err
			continue
		}
		results[i] = grepFile(ctx, file, b.dir.Sub(name).Name, q)
		file.Close()
	}
	return results
}

// gather takes the results in order and stops the search when there are enough.
func gather(order <-chan *batch, q Query, stop func()) Matches {
	var m Matches
	for b := range order {
		for _, s := range <-b.done {
			m.add(s, q)
		}
		if m.More {
			stop()
		}
	}
	return m
}

// add adds what was found in one file.
func (m *Matches) add(s searched, q Query) {
	switch {
	case m.More || errors.Is(s.err, context.Canceled) || errors.Is(s.err, context.DeadlineExceeded):
		return
	case s.err != nil && !errors.Is(s.err, lines.ErrBinary) && !errors.Is(s.err, fs.ErrNotExist):
		m.Unreadable++
		return
	case s.Lines == 0:
		return
	}
	m.Files = append(m.Files, s.Match)
	m.Lines += s.Lines
	if m.More = m.Lines > q.Max || s.more; m.More {
		m.trim(q)
	}
}

// trim cuts the last file so that all of them have no more lines than wanted.
func (m *Matches) trim(q Query) {
	last := &m.Files[len(m.Files)-1]
	keep := last.Lines - (m.Lines - q.Max)
	if keep >= last.Lines {
		return
	}
	m.Lines = q.Max
	if keep == 0 {
		m.Files = m.Files[:len(m.Files)-1]
		return
	}
	last.Lines = keep
	at := 0
	for line := range strings.Lines(last.Text) {
		// A matching line has a colon behind its number.
		if strings.HasPrefix(strings.TrimLeft(line, "0123456789"), ":") {
			if keep == 0 {
				break
			}
			keep--
		}
		at += len(line)
	}
	last.Text = strings.TrimSuffix(last.Text[:at], "--\n")
}

// grepFile searches one file.
func grepFile(ctx context.Context, file *os.File, name string, q Query) searched {
	s := searched{Match: Match{Name: name}}
	var text []byte
	s.err = lines.Search(ctx, file, q.Query, func(h lines.Hit) bool {
		if (h.Match && s.Lines == q.Max) || len(text) > mostText {
			s.more = true
			return false
		}
		if h.Match {
			s.Lines++
		}
		text = outputs.AppendHit(text, h, q.Query)
		return true
	})
	s.Text = string(text)
	return s
}
