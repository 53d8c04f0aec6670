// Package patch reads patches of the "*** Begin Patch" form and works out what
// they make of files. It reads strictly: what it does not understand it refuses
// with the number of the line, and what fits in several places is not guessed.
package patch

import (
	"fmt"
	"regexp"
	"strings"
)

// Op is what a patch does to a file.
type Op int

// The three that there are.
const (
	Add Op = iota + 1
	Update
	Delete
)

// Patch is what one patch does, file by file.
type Patch struct{ Files []File }

// File is what a patch does to one file.
type File struct {
	Op      Op
	Path    string
	MoveTo  string // of an update; empty: it stays where it is
	Content string // of an added file
	Chunks  []Chunk
	Line    int // of the patch
}

// Chunk is one place of a file that changes.
type Chunk struct {
	Line    int      // of the patch
	Headers []string // lines that come before the place, each after the last
	Lines   []Line
	AtEnd   bool // the place is the end of the file
}

// Line is a line of a chunk: ' ' stays, '-' goes, '+' comes.
type Line struct {
	Kind byte
	Text string
	bare bool // an empty line that stays, written without its space
}

// SyntaxError is a patch that is not understood.
type SyntaxError struct {
	Line int
	What string
}

// Error names the line.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d of the patch: %s", e.Line, e.What)
}

// The lines that give a patch its form.
const (
	begin     = "*** Begin Patch"
	end       = "*** End Patch"
	addFile   = "*** Add File: "
	update    = "*** Update File: "
	deletion  = "*** Delete File: "
	moveTo    = "*** Move to: "
	endOfFile = "*** End of File"
)

// ranges is what unified diffs write behind @@; it says nothing here.
var ranges = regexp.MustCompile(`^-\d+(,\d+)? \+\d+(,\d+)? @@`)

// Parse reads a patch.
func Parse(text string) (*Patch, error) {
	text = strings.Trim(text, "\r\n")
	if n := strings.Count(text, "\n"); n > 0 && n == strings.Count(text, "\r\n") {
		text = strings.ReplaceAll(text, "\r\n", "\n")
	}
	p := parser{lines: strings.Split(text, "\n")}
	if strings.TrimSpace(p.lines[0]) != begin {
		return nil, p.fail("a patch begins with %q", begin)
	}
	p.at++
	return p.files()
}

type parser struct {
	lines []string
	at    int
}

func (p *parser) fail(format string, args ...any) error {
	return &SyntaxError{p.at + 1, fmt.Sprintf(format, args...)}
}

// files reads up to the end of the patch.
func (p *parser) files() (*Patch, error) {
	patch := &Patch{}
	for ; p.at < len(p.lines); p.at++ {
		line := p.lines[p.at]
		var err error
		file := File{Line: p.at + 1}
		switch {
		case strings.TrimSpace(line) == end:
			return patch, p.finish(patch)
		case strings.HasPrefix(line, addFile):
			file.Op, file.Path = Add, line[len(addFile):]
			err = p.added(&file)
		case strings.HasPrefix(line, update):
			file.Op, file.Path = Update, line[len(update):]
			err = p.updated(&file)
		case strings.HasPrefix(line, deletion):
			file.Op, file.Path = Delete, line[len(deletion):]
		case strings.TrimSpace(line) == "":
			continue
		default:
			err = p.fail("%q is none of %q, %q, %q and %q", short(line), addFile, update, deletion, end)
		}
		if err != nil {
			return nil, err
		}
		file.Path, file.MoveTo = strings.TrimSpace(file.Path), strings.TrimSpace(file.MoveTo)
		if file.Path == "" {
			return nil, &SyntaxError{file.Line, "the path is missing"}
		}
		patch.Files = append(patch.Files, file)
	}
	p.at--
	return nil, p.fail("the patch does not end with %q: it may have been cut off, so nothing was done", end)
}

// finish checks what follows the end of the patch.
func (p *parser) finish(patch *Patch) error {
	for p.at++; p.at < len(p.lines); p.at++ {
		if strings.TrimSpace(p.lines[p.at]) != "" {
			return p.fail("%q comes after the end of the patch", short(p.lines[p.at]))
		}
	}
	if len(patch.Files) == 0 {
		return &SyntaxError{1, "the patch names no file"}
	}
	return nil
}

// peek is the next line; false: it begins another file, or there is none.
func (p *parser) peek() (string, bool) {
	if p.at+1 == len(p.lines) {
		return "", false
	}
	line := p.lines[p.at+1]
	return line, !strings.HasPrefix(line, "***") || strings.TrimSpace(line) == endOfFile
}

// added reads the content of a new file.
func (p *parser) added(file *File) error {
	var content strings.Builder
	for line, more := p.peek(); more; line, more = p.peek() {
		text, plus := strings.CutPrefix(line, "+")
		if !plus {
			if p.onlyBlank() {
				return nil
			}
			p.at++
			return p.fail("every line of the new file %s begins with +, this one is %q", strings.TrimSpace(file.Path), short(line))
		}
		p.at++
		content.WriteString(text + "\n")
		file.Content = content.String()
	}
	return nil
}

// onlyBlank tells whether blank lines are all that comes before the next file.
func (p *parser) onlyBlank() bool {
	for _, line := range p.lines[p.at+1:] {
		if strings.HasPrefix(line, "***") {
			return true
		}
		if line != "" {
			return false
		}
	}
	return true
}

// updated reads the changes of a file.
func (p *parser) updated(file *File) error {
	if p.at+1 < len(p.lines) {
		if to, moves := strings.CutPrefix(p.lines[p.at+1], moveTo); moves {
			p.at++
			if file.MoveTo = strings.TrimSpace(to); file.MoveTo == "" {
				return p.fail("the path is missing")
			}
		}
	}
	for _, more := p.peek(); more && !p.onlyBlank(); _, more = p.peek() {
		chunk, err := p.chunk()
		if err != nil {
			return err
		}
		file.Chunks = append(file.Chunks, chunk)
	}
	if len(file.Chunks) == 0 && file.MoveTo == "" {
		return p.fail("the update of %s changes nothing", strings.TrimSpace(file.Path))
	}
	return nil
}

// chunk reads one place of an update.
func (p *parser) chunk() (Chunk, error) {
	c := Chunk{Line: p.at + 2}
	for line, more := p.peek(); more; line, more = p.peek() {
		header, isHeader := strings.CutPrefix(line, "@@")
		switch {
		case isHeader && len(c.Lines) > 0:
			return c, nil
		case isHeader:
			header = strings.TrimPrefix(header, " ")
			if strings.TrimSpace(header) != "" && !ranges.MatchString(header) {
				c.Headers = append(c.Headers, header)
			}
		case strings.HasPrefix(line, "***"): // the end of the file
			p.at++
			if len(c.Lines) == 0 {
				return c, p.fail("there are no lines before %q", endOfFile)
			}
			c.AtEnd = true
			return c, nil
		case line == "":
			c.Lines = append(c.Lines, Line{Kind: ' ', bare: true})
		case line[0] == ' ' || line[0] == '+' || line[0] == '-':
			c.Lines = append(c.Lines, Line{Kind: line[0], Text: line[1:]})
		default:
			p.at++
			return c, p.fail("a line of an update begins with a space, + or -, this one is %q", short(line))
		}
		p.at++
	}
	if len(c.Lines) == 0 {
		return c, p.fail("there are no lines after @@")
	}
	return c, nil
}

func short(line string) string {
	const most = 80
	if len(line) <= most {
		return line
	}
	return strings.ToValidUTF8(line[:most], "") + "…"
}
