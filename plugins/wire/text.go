package wire

import (
	"strings"
	"unicode/utf8"
)

// Text makes a string fit for a protobuf string field. Those hold UTF-8 only,
// and one stray byte of a program's output or a file's name would make the
// whole message unsendable.
func Text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func texts(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, Text(s))
	}
	return out
}

func settings(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[Text(k)] = Text(v)
	}
	return out
}
