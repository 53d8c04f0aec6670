package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/tool/outputs/lines"
	"github.com/boughdev/bough/plugins/workspace/search"
)

const (
	usualMatches = 100
	mostMatches  = 2000
	mostContext  = 50
)

type fileGrepInput struct {
	Pattern   string  `json:"pattern"`
	Path      string  `json:"path"`
	Include   string  `json:"include"`
	Glob      string  `json:"glob"`
	After     *number `json:"-A"`
	Before    *number `json:"-B"`
	Around    *number `json:"-C"`
	HeadLimit *number `json:"head_limit"`
}

// query reads the input.
func (in *fileGrepInput) query() (search.Query, error) {
	var q search.Query
	around, err := between("-C", in.Around, 0, 0, mostContext)
	if err != nil {
		return q, err
	}
	before, err := between("-B", in.Before, around, 0, mostContext)
	if err != nil {
		return q, err
	}
	after, err := between("-A", in.After, around, 0, mostContext)
	if err != nil {
		return q, err
	}
	limit, err := between("head_limit", in.HeadLimit, usualMatches, 1, mostMatches)
	if err != nil {
		return q, err
	}
	if in.Pattern == "" {
		return q, errors.New("the pattern is empty")
	}
	q.Before, q.After, q.Max = int(before), int(after), int(limit)
	if q.Pattern, err = lines.Compile(in.Pattern); err != nil {
		return q, err
	}
	filter := in.Include
	if filter == "" {
		filter = in.Glob
	} else if in.Glob != "" && in.Glob != filter {
		return q, errors.New("include and glob are the same thing: give one of them")
	}
	if filter != "" {
		q.Filter, err = search.NewFilter(filter)
	}
	return q, err
}

func fileGrep(ctx context.Context, c *call) (tool.Result, error) {
	var in fileGrepInput
	if err := c.decode(&in); err != nil {
		return tool.Result{}, err
	}
	q, err := in.query()
	if err != nil {
		return tool.Result{}, err
	}
	start, err := c.start(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	limited, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	m, err := search.Grep(limited, c.folder, start, q)
	switch {
	case err == nil || limited.Err() != nil:
	case errors.Is(err, lines.ErrBinary):
		return tool.Result{}, fmt.Errorf("%s is binary and cannot be searched this way: the shell can (strings, grep -a)", shown(start.Name))
	default:
		return tool.Result{}, err
	}
	var text strings.Builder
	for i, file := range m.Files {
		if i > 0 {
			text.WriteByte('\n')
		}
		fmt.Fprintf(&text, "%s\n%s", shown(file.Name), file.Text)
	}
	switch {
	case m.Lines == 0:
		fmt.Fprintf(&text, "No line matches %s.\n", shown(in.Pattern))
	case m.More:
		fmt.Fprintf(&text, "[the first %s, in %s; there are more: narrow the search, or raise head_limit]\n",
			count(m.Lines, "match", "matches"), count(len(m.Files), "file", "files"))
	default:
		fmt.Fprintf(&text, "[%s in %s]\n", count(m.Lines, "match", "matches"), count(len(m.Files), "file", "files"))
	}
	text.WriteString(partial(ctx, m.Partial))
	return tool.Result{Text: text.String(), Details: details(map[string]any{"matches": m.Lines, "files": len(m.Files), "more": m.More})}, nil
}
