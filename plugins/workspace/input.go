package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/boughdev/bough/host/tool/outputs/lines"
)

// decode reads the input of a call. Unknown fields are refused: a model that
// misspells one should know.
func (c *call) decode(into any) error {
	d := json.NewDecoder(bytes.NewReader(c.Input))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after the object")
		}
	}
	if err != nil {
		return fmt.Errorf("the input of %s cannot be used: %s", c.Tool, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// number is a whole number, which some models write as 10.0.
type number int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f != float64(int64(f)) {
		return fmt.Errorf("%s is not a whole number", text)
	}
	*n = number(f)
	return nil
}

// between gives a number or, where there is none, the usual one, and refuses
// what is out of range.
func between(field string, n *number, usual, least, most int64) (int64, error) {
	if n == nil {
		return usual, nil
	}
	if int64(*n) < least || int64(*n) > most {
		return 0, fmt.Errorf("%s is %d; it must be from %d to %d", field, *n, least, most)
	}
	return int64(*n), nil
}

// shown is the name of a file as text of one line that does nothing to a
// terminal: quoted if need be.
func shown(name string) string {
	plain := lines.Visible([]byte(name))
	if plain != name || strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// count is a number of things in words.
func count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// details is the view of a result for people.
func details(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		return nil // a result without details is still one
	}
	return text
}
