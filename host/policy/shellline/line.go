// Package shellline reads a line of bash as a policy has to: which commands it
// runs, and whether that can be told from its text at all. It runs nothing and
// looks at no file.
//
// The parser is mvdan.cc/sh. What it cannot see is kept in tables here: the
// programs that run other programs (wrappers.go). Whatever is in doubt makes a
// line opaque; an opaque line is never covered by a rule that allows.
package shellline

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// MaxBytes is the longest line that is read: the parser is recursive, and
// megabytes of nesting would overflow its stack.
const MaxBytes = 64 << 10

// Line is what a line does, as far as its text tells.
type Line struct {
	// Commands are the simple commands that run, in the order of the text.
	Commands []Command
	// Hidden are commands that may run within others, or that are found in
	// parts that are opaque: what forbids looks at them too.
	Hidden []Command
	// Opaque says, once for each cause, why not all that runs can be told;
	// empty: Commands is all of it.
	Opaque []string
	// Always says why no rule may ever cover the line; empty: one may.
	Always string
	// Reads and Writes are the files of redirections, as far as they are
	// literal. A line that has any is opaque.
	Reads, Writes []string
}

// Clear tells whether all that the line runs is in Commands.
func (l *Line) Clear() bool { return len(l.Opaque) == 0 && l.Always == "" }

// Command is one simple command.
type Command struct {
	Text  string   // as it stands in the line
	Words []string // with quotes taken off; globs stay as they are
	Globs bool     // some words are patterns: there may be other words, and more
}

// String is the command's words, quoted where need be.
func (c Command) String() string {
	var b strings.Builder
	for i, w := range c.Words {
		if i > 0 {
			b.WriteByte(' ')
		}
		quoted, err := syntax.Quote(w, syntax.LangBash)
		if err != nil {
			quoted = fmt.Sprintf("%q", w) // with bytes that no shell word can have
		}
		b.WriteString(quoted)
	}
	return b.String()
}

// Read reads a line, which may be several lines of text. A line that cannot be
// parsed is not an error: it is one that has to be asked for always.
func Read(text string) *Line {
	l := &Line{}
	if err := l.read(text, 0); err != nil {
		l.always("it " + err.Error())
	}
	return l
}

// deepest is how many command lines within command lines are looked into.
const deepest = 4

func (l *Line) read(text string, depth int) error {
	switch {
	case len(text) > MaxBytes:
		return fmt.Errorf("has %d bytes, and more than %d are not read", len(text), MaxBytes)
	case strings.ContainsRune(text, 0):
		return errors.New("has a zero byte")
	case strings.ContainsRune(text, '\r'):
		// A carriage return is part of a word for bash, and nothing is seen of
		// it where the line is shown.
		return errors.New("has a carriage return")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return fmt.Errorf("cannot be read as bash: %w", err)
	}
	r := &reader{line: l, text: text, depth: depth}
	for _, s := range file.Stmts {
		r.stmt(s)
	}
	return nil
}

func (l *Line) opaque(why string) {
	for _, known := range l.Opaque {
		if known == why {
			return
		}
	}
	l.Opaque = append(l.Opaque, why)
}

func (l *Line) always(why string) {
	if l.Always == "" {
		l.Always = why
	}
}

// reader walks the tree of one text.
type reader struct {
	line   *Line
	text   string
	depth  int
	hidden bool // what is found may run, or not, or otherwise
}

// within looks at a part whose commands may run in ways that are not followed.
func (r *reader) within(why string, part syntax.Node) {
	r.line.opaque(why)
	inner := &reader{line: r.line, text: r.text, depth: r.depth, hidden: true}
	inner.all(part)
}

// all finds every command below a node.
func (r *reader) all(part syntax.Node) {
	syntax.Walk(part, func(n syntax.Node) bool {
		if s, ok := n.(*syntax.Stmt); ok {
			r.stmt(s)
			return false
		}
		return true
	})
}

func (r *reader) stmt(s *syntax.Stmt) {
	for _, redirect := range s.Redirs {
		r.redirect(redirect)
	}
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		r.call(c)
	case *syntax.BinaryCmd:
		r.stmt(c.X)
		r.stmt(c.Y)
	case *syntax.Subshell:
		r.stmts(c.Stmts)
	case *syntax.Block:
		r.stmts(c.Stmts)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			r.stmt(c.Stmt)
		}
	case *syntax.FuncDecl:
		r.within("it defines a function", c)
	case *syntax.DeclClause, *syntax.LetClause:
		r.within("it sets variables", c)
	case *syntax.CoprocClause:
		r.within("it starts a coprocess", c)
	default: // if, while, for, case, [[ ]], (( )), and what may come
		r.within("it has loops or conditions", c)
	}
}

func (r *reader) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		r.stmt(s)
	}
}

// redirect lets through what touches no file: /dev/null, other descriptors,
// and text that is part of the line.
func (r *reader) redirect(d *syntax.Redirect) {
	if d.N != nil && strings.HasPrefix(d.N.Value, "{") {
		r.line.opaque("it keeps a file open under a variable")
	}
	if d.Hdoc != nil {
		r.data(d.Hdoc)
		return
	}
	switch d.Op {
	case syntax.WordHdoc:
		r.data(d.Word)
		return
	case syntax.DplIn, syntax.DplOut:
		if target := d.Word.Lit(); target == "-" || isNumber(strings.TrimSuffix(target, "-")) {
			return
		}
	}
	target, kind := r.word(d.Word)
	if target == "/dev/null" && kind == literal {
		return
	}
	r.line.opaque("it redirects from or to a file")
	if kind != literal {
		r.within("the name of a file is made while it runs", d.Word)
		return
	}
	switch d.Op {
	case syntax.RdrIn:
		r.line.Reads = append(r.line.Reads, target)
	case syntax.RdrInOut:
		r.line.Reads = append(r.line.Reads, target)
		r.line.Writes = append(r.line.Writes, target)
	default:
		r.line.Writes = append(r.line.Writes, target)
	}
}

// data is text that a command reads: it may hold substitutions.
func (r *reader) data(w *syntax.Word) {
	if _, kind := r.word(w); kind == built {
		r.within("a part of its input is made while it runs", w)
	}
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// call is a simple command.
func (r *reader) call(c *syntax.CallExpr) {
	if len(c.Assigns) > 0 {
		r.line.opaque("it sets variables")
		for _, a := range c.Assigns {
			r.all(a)
		}
	}
	if len(c.Args) == 0 {
		return
	}
	command := Command{Text: r.source(c.Args[0].Pos(), c.Args[len(c.Args)-1].End())}
	whole := true // words are what bash will see
	for i, arg := range c.Args {
		text, kind := r.word(arg)
		switch kind {
		case literal:
		case glob:
			command.Globs = true
			if i == 0 {
				r.line.opaque("the name of a command is a pattern")
				whole = false
			} else if !safeGlob(text) {
				r.line.opaque("a pattern may match what looks like an option")
			}
		case built:
			r.within("a word is made while it runs", arg)
			whole = false
		}
		command.Words = append(command.Words, text)
	}
	if r.hidden || !whole {
		r.line.Hidden = append(r.line.Hidden, command)
	} else {
		r.line.Commands = append(r.line.Commands, command)
	}
	r.wrapped(command)
}

func (r *reader) source(from, to syntax.Pos) string {
	if a, b := int(from.Offset()), int(to.Offset()); a <= b && b <= len(r.text) {
		return r.text[a:b]
	}
	return ""
}
