package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits bound what a model is shown of one result. Zero fields mean the
// defaults.
type Limits struct {
	Bytes int // agent.max_output_bytes, default 51200
	Lines int // agent.max_output_lines, default 2000
}

// Bounds on the parts of a result that are not text. A provider that passes
// them loses the part, and the text says so.
const (
	maxDetails = 1 << 20
	maxImages  = 16 << 20 // bytes of all images together
	maxFiles   = 10000
)

func (l Limits) orDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 51200
	}
	if l.Lines <= 0 {
		l.Lines = 2000
	}
	return l
}

// Outputs keeps whole texts that are too long for the model, so that it can
// read the rest by an id; see host/tool/outputs.
type Outputs interface {
	// Keep stores a text of a session and returns its id.
	Keep(ctx context.Context, session, text string) (id string, err error)
}

// Fits tells whether a text is within the limits.
func (l Limits) Fits(text string) bool {
	return len(text) <= l.Bytes && strings.Count(text, "\n") < l.Lines
}

// Cut is the beginning and the end of a text that does not fit, with a line
// between them that says how much is left out and, by the id of the whole, how
// to read it. The end gets more room: that is where programs say how they
// fared.
func (l Limits) Cut(text, id string) string {
	const note = 200 // room for the line between
	room, lines := max(l.Bytes-note, 2), max(l.Lines-2, 2)
	head := firstLines(text, room*2/5, lines*2/5)
	rest := text[len(head):]
	tail := lastLines(rest, room-len(head), lines-strings.Count(head, "\n"))
	left := rest[:len(rest)-len(tail)]
	how := "the rest was not kept"
	if id != "" {
		how = fmt.Sprintf("tool_output reads all of it, output_id %s", id)
	}
	return fmt.Sprintf("%s\n[… %d bytes, %d lines left out; %s …]\n%s",
		strings.TrimSuffix(head, "\n"), len(left), strings.Count(left, "\n"), how, tail)
}

// firstLines is the beginning of text within both bounds: whole lines, or a
// piece of the first one.
func firstLines(text string, bytes, lines int) string {
	end := 0
	for range lines {
		i := strings.IndexByte(text[end:min(bytes, len(text))], '\n')
		if i < 0 {
			break
		}
		end += i + 1
	}
	if end == 0 {
		for end = min(bytes, len(text)); end > 0 && end < len(text) && !utf8.RuneStart(text[end]); end-- {
		}
	}
	return text[:end]
}

// lastLines is the end of text within both bounds: whole lines, or a piece of
// the last one.
func lastLines(text string, bytes, lines int) string {
	least := max(len(text)-bytes, 0)
	start := len(text)
	for range lines {
		i := strings.LastIndexByte(text[:max(start-1, 0)], '\n') + 1
		if i < least || i == start {
			break
		}
		start = i
	}
	if start == len(text) {
		for start = least; start < len(text) && !utf8.RuneStart(text[start]); start++ {
		}
	}
	return text[start:]
}

// bound makes a result fit: for the model, for the store, and as text.
func (r *Registry) bound(ctx context.Context, session string, res Result) Result {
	res.Text = strings.ToValidUTF8(res.Text, "\uFFFD")
	res = dropExcess(res)
	if r.limits.Fits(res.Text) {
		return res
	}
	if res.OutputID == "" && r.keep != nil {
		id, err := r.keep.Keep(ctx, session, res.Text)
		if err != nil {
			res.Text = r.limits.Cut(res.Text, "") + fmt.Sprintf("\n[the whole output could not be kept: %v]", err)
			return res
		}
		res.OutputID = id
	}
	res.Text = r.limits.Cut(res.Text, res.OutputID)
	return res
}

// dropExcess takes away what no provider may send: it would not fit into an
// item, or could not be shown.
func dropExcess(res Result) Result {
	if len(res.Details) > maxDetails || (len(res.Details) > 0 && !json.Valid(res.Details)) {
		res.Details = nil
	}
	total := 0
	for _, img := range res.Images {
		total += len(img.Data)
	}
	if total > maxImages {
		res.Text += fmt.Sprintf("\n[%d images of %d MB together were left out: at most %d MB]", len(res.Images), total>>20, maxImages>>20)
		res.Images = nil
	}
	if len(res.Files) > maxFiles {
		res.Files = res.Files[:maxFiles]
	}
	return res
}
