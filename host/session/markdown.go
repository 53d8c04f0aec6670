package session

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/boughdev/bough/host/session/sessionpb"
)

// MarkdownOptions choose what an export for readers holds.
type MarkdownOptions struct {
	// Full adds reasoning and the output of calls.
	Full bool
}

// Markdown writes the path of a session for readers: prompts, answers, and one
// line a call. Control characters are shown, not sent.
func (s *Sessions) Markdown(ctx context.Context, id string, w io.Writer, o MarkdownOptions) error {
	rec, err := s.Get(ctx, id)
	if err != nil {
		return err
	}
	path, err := s.Path(ctx, rec.Head())
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(w, 64<<10)
	title := rec.Title()
	if title == "" {
		title = id
	}
	fmt.Fprintf(buf, "# %s\n\nSession %s in `%s`, %s\n", Printable(title), id, Printable(rec.Folder()), rec.Created().Format("2006-01-02 15:04"))
	for it, err := range path.Items(ctx, 0, path.Len()) {
		if it == nil {
			return err
		}
		if err != nil {
			fmt.Fprintf(buf, "\n> %s\n", Printable(err.Error()))
			continue
		}
		markdownItem(buf, it, o)
	}
	if err := buf.Flush(); err != nil {
		return fmt.Errorf("export session %s: %w", id, err)
	}
	return nil
}

func markdownItem(w io.Writer, it *Item, o MarkdownOptions) {
	switch body := it.Payload.GetBody().(type) {
	case *sessionpb.Payload_Prompt:
		fmt.Fprintf(w, "\n## Prompt\n\n%s\n", Printable(body.Prompt.GetText()))
		for _, img := range body.Prompt.GetImages() {
			fmt.Fprintf(w, "\n(image: %s, %d bytes)\n", img.GetMediaType(), len(img.GetData()))
		}
	case *sessionpb.Payload_Text:
		fmt.Fprintf(w, "\n%s\n", Printable(body.Text.GetText()))
		if it.Payload.GetPartial() {
			fmt.Fprint(w, "\n(cut off here)\n")
		}
	case *sessionpb.Payload_Reasoning:
		if o.Full && body.Reasoning.GetText() != "" {
			fmt.Fprintf(w, "\n<details><summary>Reasoning</summary>\n\n%s\n\n</details>\n", Printable(body.Reasoning.GetText()))
		}
	case *sessionpb.Payload_ToolCall:
		fmt.Fprintf(w, "\n- %s\n", CallLine(body.ToolCall.GetName(), body.ToolCall.GetInput()))
	case *sessionpb.Payload_ToolResult:
		if o.Full {
			fence := fenceFor(body.ToolResult.GetText())
			fmt.Fprintf(w, "\n%s\n%s\n%s\n", fence, Printable(body.ToolResult.GetText()), fence)
		} else if body.ToolResult.GetError() {
			fmt.Fprint(w, "  (failed)\n")
		}
	case *sessionpb.Payload_Notice:
		fmt.Fprintf(w, "\n> %s\n", strings.ReplaceAll(Printable(body.Notice.GetText()), "\n", "\n> "))
	case *sessionpb.Payload_Summary:
		fmt.Fprintf(w, "\n> Summary of what was before:\n>\n> %s\n", strings.ReplaceAll(Printable(body.Summary.GetText()), "\n", "\n> "))
	}
}

// CallLine is a call in one line: the tool and the most telling field of its
// input.
func CallLine(name string, input []byte) string {
	var fields map[string]any
	if err := json.Unmarshal(input, &fields); err != nil {
		return "`" + name + "`"
	}
	for _, key := range []string{"command", "filePath", "pattern", "path", "output_id", "description", "query", "url"} {
		if v, ok := fields[key].(string); ok && v != "" {
			line := cutAtWord(Printable(oneLine(v)), 120)
			fence := strings.Repeat("`", longestRun(line)+1)
			if strings.HasPrefix(line, "`") || strings.HasSuffix(line, "`") {
				line = " " + line + " "
			}
			return fmt.Sprintf("`%s` %s%s%s", name, fence, line, fence)
		}
	}
	return "`" + name + "`"
}

// fenceFor is a fence that the text cannot close.
func fenceFor(text string) string { return strings.Repeat("`", max(3, longestRun(text)+1)) }

func longestRun(text string) int {
	longest, run := 0, 0
	for _, r := range text {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// Printable is text that no terminal interprets: control characters other than
// newline and tab, and those that change the direction of writing, are shown
// by their codes.
func Printable(text string) string {
	harmful := func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
	}
	if strings.IndexFunc(text, harmful) < 0 {
		return strings.ToValidUTF8(text, "\ufffd")
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\r': // of a line ending
		case harmful(r):
			fmt.Fprintf(&b, "\\x%02x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
