package lines

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Visible writes bytes so that a model sees each of them and no terminal acts
// on any: control characters become their pictures (ESC is ␛), characters that
// reorder or hide text become their numbers (\u202e), bytes that are not UTF-8
// become \xff. Line ends and tabs stay; a carriage return before a line end is
// left out, since every CRLF text would be full of them.
func Visible(text []byte) string {
	return string(AppendVisible(make([]byte, 0, len(text)), text))
}

// AppendVisible appends the visible form of text.
func AppendVisible(to, text []byte) []byte {
	for i := 0; i < len(text); {
		n := plain(text[i:])
		to = append(to, text[i:i+n]...)
		if i += n; i == len(text) {
			break
		}
		var size int
		to, size = appendUnit(to, text[i:])
		i += size
	}
	return to
}

// plain is how many bytes at the beginning are ASCII that needs no change.
func plain(text []byte) int {
	for i, b := range text {
		if (b < ' ' && b != '\n' && b != '\t') || b >= 0x7f {
			return i
		}
	}
	return len(text)
}

// appendUnit appends the first character or stray byte of text.
func appendUnit(to, text []byte) ([]byte, int) {
	r, size := utf8.DecodeRune(text)
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Appendf(to, `\x%02x`, text[0]), 1
	case r == '\n' || r == '\t':
		return append(to, text[0]), 1
	case r == '\r' && len(text) > 1 && text[1] == '\n':
		return to, 1
	case r < ' ':
		return utf8.AppendRune(to, '\u2400'+r), 1
	case r == 0x7f:
		return utf8.AppendRune(to, '\u2421'), 1
	case deceives(r):
		quoted := strconv.AppendQuoteRuneToASCII(nil, r)
		return append(to, quoted[1:len(quoted)-1]...), size
	}
	return append(to, text[:size]...), size
}

// deceives tells whether a character can make text look like other text: C1
// controls, marks and overrides of direction, line and paragraph separators,
// tags.
func deceives(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9f,
		r == 0x061c, r == 0x200e, r == 0x200f,
		r >= 0x2028 && r <= 0x202e,
		r >= 0x2066 && r <= 0x2069,
		r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}

// VisibleHead writes the beginning of text, at most max bytes of visible form,
// and tells how many bytes of text that is. It does not break a character.
func VisibleHead(text []byte, max int) (shown []byte, used int) {
	var unit []byte
	for used < len(text) {
		var size int
		unit, size = appendUnit(unit[:0], text[used:])
		if len(shown)+len(unit) > max {
			break
		}
		shown = append(shown, unit...)
		used += size
	}
	return shown, used
}

// VisibleTail writes the end of text, at most max bytes of visible form, and
// tells how many bytes of text that is.
func VisibleTail(text []byte, max int) (shown []byte, used int) {
	var unit []byte
	width, start := 0, len(text)
	for start > 0 {
		_, size := utf8.DecodeLastRune(text[:start])
		unit, _ = appendUnit(unit[:0], text[start-size:])
		if width+len(unit) > max {
			break
		}
		width += len(unit)
		start -= size
	}
	return AppendVisible(make([]byte, 0, width), text[start:]), len(text) - start
}

// Clip is the visible form of a line of any length: max bytes of it around
// byte at, with a note of how much is left out on either side.
func Clip(line []byte, at, max int) string {
	if len(line) <= max {
		return Visible(line)
	}
	from := 0
	if at > max*3/4 {
		from = at - max/4
		for from < len(line) && !utf8.RuneStart(line[from]) {
			from++
		}
	}
	shown, used := VisibleHead(line[from:], max)
	text := string(shown)
	if from > 0 {
		text = fmt.Sprintf("[%d bytes …]%s", from, text)
	}
	if rest := len(line) - from - used; rest > 0 {
		text = fmt.Sprintf("%s[… %d bytes]", text, rest)
	}
	return text
}
