package edit

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/boughdev/bough/host/tool/outputs/lines"
)

// Summary tells a person what changed in a file.
type Summary struct {
	Added, Removed int    // lines
	Diff           string // in unified form, visible; cut when it is long
}

// What a summary shows at most.
const (
	diffContext = 3
	diffLines   = 400
	diffWidth   = 500
)

// block is a run of whole lines and what they become.
type block struct {
	start, end int // bytes of the content
	line       int // number of the first line
	new        []byte
}

// Summarize describes changes of a content.
func Summarize(raw []byte, changes []Change) Summary {
	var s Summary
	var out strings.Builder
	shown, shift := 0, 0
	blocks := wholeLines(raw, changes)
	for i := 0; i < len(blocks); {
		n := 1
		for i+n < len(blocks) && near(raw, blocks[i+n-1], blocks[i+n]) {
			n++
		}
		var hunk strings.Builder
		removed, added, size := writeHunk(&hunk, raw, blocks[i:i+n], shift)
		if shown += size; shown <= diffLines {
			out.WriteString(hunk.String())
		} else if shown-size <= diffLines {
			fmt.Fprintf(&out, "… the rest of the changes is not shown\n")
		}
		s.Added, s.Removed = s.Added+added, s.Removed+removed
		shift += added - removed
		i += n
	}
	s.Diff = out.String()
	return s
}

// Created describes a new content.
func Created(content []byte) Summary { return Summarize(nil, []Change{{New: content}}) }

// wholeLines widens changes to whole lines and joins those of one line.
func wholeLines(raw []byte, changes []Change) []block {
	var blocks []block
	line, counted := 1, 0
	for _, c := range changes {
		start := bytes.LastIndexByte(raw[:c.Start], '\n') + 1
		end := c.End
		whole := c.Start == start && (end == start || raw[end-1] == '\n') &&
			(len(c.New) == 0 || c.New[len(c.New)-1] == '\n')
		if !whole {
			end += lineRest(raw[end:])
		}
		if last := len(blocks) - 1; last >= 0 && start < blocks[last].end {
			b := &blocks[last]
			// What follows the change before, up to this one, is in there.
			keep := len(b.new) - (b.end - c.Start)
			b.new = append(append(b.new[:keep:keep], c.New...), raw[c.End:max(end, b.end)]...)
			b.end = max(end, b.end)
			continue
		}
		line += bytes.Count(raw[counted:start], []byte{'\n'})
		counted = start
		text := append(append(bytes.Clone(raw[start:c.Start]), c.New...), raw[c.End:end]...)
		blocks = append(blocks, block{start, end, line, text})
	}
	return blocks
}

// lineRest is the length of the first line of text, its end included.
func lineRest(text []byte) int {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

// near tells whether two blocks belong into one hunk.
func near(raw []byte, a, b block) bool {
	return bytes.Count(raw[a.end:b.start], []byte{'\n'}) <= 2*diffContext
}

// writeHunk writes blocks with their context. shift is how many lines the
// changes before have added.
func writeHunk(out *strings.Builder, raw []byte, blocks []block, shift int) (removed, added, size int) {
	var body strings.Builder
	write := func(sign byte, text []byte) (n int) {
		for len(text) > 0 {
			end := lineRest(text)
			line := bytes.TrimSuffix(bytes.TrimSuffix(text[:end], []byte{'\n'}), []byte{'\r'})
			fmt.Fprintf(&body, "%c%s\n", sign, lines.Clip(line, 0, diffWidth))
			if text[end-1] != '\n' {
				body.WriteString("\\ No newline at end of file\n")
			}
			text = text[end:]
			n++
		}
		return n
	}
	first := blocks[0]
	start := first.start
	for range diffContext {
		if start > 0 {
			start = bytes.LastIndexByte(raw[:start-1], '\n') + 1
		}
	}
	context := write(' ', raw[start:first.start])
	from := first.line - context
	for i, b := range blocks {
		if i > 0 {
			context += write(' ', raw[blocks[i-1].end:b.start])
		}
		removed += write('-', raw[b.start:b.end])
		added += write('+', b.new)
	}
	rest := raw[blocks[len(blocks)-1].end:]
	end := 0
	for range diffContext {
		end += lineRest(rest[end:])
	}
	context += write(' ', rest[:end])
	fmt.Fprintf(out, "@@ -%d,%d +%d,%d @@\n%s", from, context+removed, from+shift, context+added, body.String())
	return removed, added, context + removed + added
}
