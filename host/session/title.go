package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/boughdev/bough/host/session/sessionpb"
)

const (
	// maxTitle is the most characters of a title made from a prompt.
	maxTitle = 100
	// maxName is the most characters of a name that a person gives.
	maxName = 64
)

// TitleFrom is the title that a prompt gives: its first meaningful line, at
// most 100 characters, cut at a word. It is empty when the prompt is only an
// address or a command: then the next prompt counts.
func TitleFrom(prompt string) string {
	for line := range strings.Lines(prompt) {
		line = oneLine(line)
		if meaningful(line) {
			return cutAtWord(line, maxTitle)
		}
	}
	return ""
}

// meaningful tells whether a line says something about its subject.
func meaningful(line string) bool {
	if line == "" || strings.HasPrefix(line, "/") || strings.HasPrefix(line, "!") {
		return false
	}
	if !strings.ContainsRune(line, ' ') && strings.Contains(line, "://") {
		return false
	}
	return strings.IndexFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0
}

// oneLine is text with control characters gone and white space folded.
func oneLine(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(clean), " ")
}

// cutAtWord shortens text to at most n characters, at a blank where there is
// one in its second half. Marks and joiners stay with what they belong to.
func cutAtWord(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	end := n
	for end > 0 && joins(runes[end-1], runes[end]) {
		end--
	}
	cut := end
	for cut > n/2 && runes[cut] != ' ' {
		cut--
	}
	if cut > n/2 {
		end = cut
	}
	if end == 0 { // nothing but marks: any place is as good
		end = n
	}
	return strings.TrimRight(string(runes[:end]), " ")
}

const zeroWidthJoiner = '\u200d'

func joins(a, b rune) bool {
	regional := func(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }
	return unicode.Is(unicode.M, b) || b == zeroWidthJoiner || a == zeroWidthJoiner ||
		b >= 0x1f3fb && b <= 0x1f3ff || regional(a) && regional(b)
}

// nameAfter gives a session without a title the one of its first prompt that
// says something.
func nameAfter(rec *sessionpb.Session, payloads []*sessionpb.Payload) {
	if rec.GetFirstTitle() != "" {
		return
	}
	for _, p := range payloads {
		if t := TitleFrom(p.GetPrompt().GetText()); t != "" {
			rec.FirstTitle = t
			if rec.GetTitleSource() <= sessionpb.TitleSource_TITLE_SOURCE_PROMPT {
				rec.Title, rec.TitleSource = t, sessionpb.TitleSource_TITLE_SOURCE_PROMPT
			}
			return
		}
	}
}

// SetTitle changes the title. One that a person gave is not replaced by a
// model's: then nothing happens. A person's name is one line of at most 64
// characters; "default" gives back the title of the first prompt.
func (o *Session) SetTitle(ctx context.Context, title string, source sessionpb.TitleSource) error {
	if source < o.rec.GetTitleSource() {
		return nil
	}
	first := o.rec.GetFirstTitle()
	if source == sessionpb.TitleSource_TITLE_SOURCE_PERSON {
		if title == "default" {
			if first == "" {
				return errors.New("the session has no first prompt yet, so there is no title to go back to")
			}
			title, source = first, sessionpb.TitleSource_TITLE_SOURCE_PROMPT
		} else if err := checkName(title); err != nil {
			return err
		}
	} else {
		title = cutAtWord(oneLine(title), maxTitle)
	}
	if title == "" {
		return errors.New("a title cannot be empty")
	}
	return o.setting(ctx, func(rec *sessionpb.Session) { rec.Title, rec.TitleSource = title, source })
}

func checkName(name string) error {
	switch n := utf8.RuneCountInString(name); {
	case strings.TrimSpace(name) == "":
		return errors.New("a name cannot be empty")
	case n > maxName:
		return fmt.Errorf("the name has %d characters, at most %d", n, maxName)
	case strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name):
		return errors.New("a name is one line of text without control characters")
	}
	return nil
}
