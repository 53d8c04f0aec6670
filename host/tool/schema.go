package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// InputError is an input that its tool's schema does not allow. The model is
// told, so that it can correct itself.
type InputError struct {
	Tool  string
	Field string // such as todos[].status; empty: the input as a whole
	Rule  string // what is wrong, beginning with the schema's keyword
}

// Error names the tool, the field and the rule.
func (e *InputError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("the input of %s: %s", e.Tool, e.Rule)
	}
	return fmt.Sprintf("the input of %s: %s: %s", e.Tool, e.Field, e.Rule)
}

// schema is a JSON Schema that is compiled when it is first needed.
type schema struct {
	source json.RawMessage

	once     sync.Once
	resolved *jsonschema.Resolved
	fields   []string
	err      error
}

func (s *schema) compile() {
	root := &jsonschema.Schema{}
	if s.err = json.Unmarshal(s.source, root); s.err != nil {
		return
	}
	if s.err = loops(s.source); s.err != nil {
		return
	}
	s.fields = slices.Sorted(maps.Keys(root.Properties))
	if s.resolved, s.err = root.Resolve(nil); s.err != nil {
		return
	}
	// Of the older drafts that the library does not know by name, what tools
	// use means the same in the newest one.
	if root.Schema != "" && !strings.Contains(root.Schema, "draft-07") {
		root.Schema = ""
	}
}

func (s *schema) check(tool string, input json.RawMessage) error {
	s.once.Do(s.compile)
	if s.err != nil {
		return fmt.Errorf("the schema of %s is broken, so no call of it can be checked: %w; tell the author of the tool", tool, s.err)
	}
	var value any
	if err := json.Unmarshal(input, &value); err != nil {
		return &InputError{Tool: tool, Rule: "it is no valid JSON: " + syntax(err)}
	}
	if _, object := value.(map[string]any); !object {
		return &InputError{Tool: tool, Rule: "type: it must be a JSON object"}
	}
	if err := s.resolved.Validate(value); err != nil {
		return s.refusal(tool, err)
	}
	return nil
}

func syntax(err error) string {
	var at *json.SyntaxError
	if errors.As(err, &at) {
		return fmt.Sprintf("%v (byte %d)", at, at.Offset)
	}
	return err.Error()
}

var (
	// The library leads to the place by one "validating PLACE: " a level.
	placeForm = regexp.MustCompile(`^validating (.*?): `)
	// It writes bounds and numbers as fractions.
	fractionForm = regexp.MustCompile(`(-?\d+)/1 is |(\d)\.000000\b`)
)

func (s *schema) refusal(tool string, err error) error {
	const longest = 500 // a rule quotes the value, which can be a whole file
	rule, place := err.Error(), ""
	for {
		m := placeForm.FindStringSubmatch(rule)
		if m == nil {
			break
		}
		rule, place = rule[len(m[0]):], m[1]
	}
	rule = fractionForm.ReplaceAllStringFunc(rule, func(f string) string {
		return strings.NewReplacer("/1 is ", " is ", ".000000", "").Replace(f)
	})
	if len(rule) > longest {
		rule = rule[:longest/2] + " … " + rule[len(rule)-longest/2:]
	}
	field := fieldOf(place)
	if field == "" && len(s.fields) > 0 {
		rule += "; the fields are " + strings.Join(s.fields, ", ")
	}
	return &InputError{Tool: tool, Field: field, Rule: strings.ToValidUTF8(rule, "�")}
}

// fieldOf makes todos[].status of /properties/todos/items/properties/status.
func fieldOf(place string) string {
	var b strings.Builder
	parts := strings.Split(place, "/")
	for i := 1; i < len(parts); i++ {
		switch parts[i] {
		case "properties":
			if i++; i < len(parts) {
				if b.Len() > 0 {
					b.WriteByte('.')
				}
				b.WriteString(strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[i]))
			}
		case "items":
			b.WriteString("[]")
		}
	}
	return b.String()
}
