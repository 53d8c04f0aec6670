package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/boughdev/bough/host/tool"
)

// fake provides the given tools; every call gives result.
type fake struct {
	specs  []tool.Spec
	result tool.Result
	err    error
}

func (f fake) Tools(context.Context) ([]tool.Spec, error) { return f.specs, nil }

func (f fake) Call(context.Context, tool.Call, func(tool.Progress)) (tool.Result, error) {
	return f.result, f.err
}

func registry(t *testing.T, specs ...tool.Spec) *tool.Registry {
	t.Helper()
	r := tool.NewRegistry(tool.Limits{}, nil)
	if err := r.Add(t.Context(), "test", fake{specs: specs}); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAddRefusesAClashAndNamesBoth(t *testing.T) {
	r := registry(t, tool.Spec{Name: "shell"})
	err := r.Add(t.Context(), "acme", fake{specs: []tool.Spec{{Name: "other"}, {Name: "shell"}}})
	if err == nil || !strings.Contains(err.Error(), "test") || !strings.Contains(err.Error(), "acme") || !strings.Contains(err.Error(), "shell") {
		t.Fatalf("error %v", err)
	}
	if names := r.Names(); !slices.Equal(names, []string{"shell"}) {
		t.Fatalf("a refused provider left tools behind: %v", names)
	}
	for _, bad := range []string{"", "9x", "a b", strings.Repeat("x", 65), "a.b"} {
		if r.Add(t.Context(), "acme", fake{specs: []tool.Spec{{Name: bad}}}) == nil {
			t.Errorf("name %q was taken", bad)
		}
	}
	if r.Add(t.Context(), "acme", fake{specs: []tool.Spec{{Name: "x"}, {Name: "x"}}}) == nil {
		t.Error("two tools of one name were taken")
	}
}

func TestSpecsAreSortedAndFiltered(t *testing.T) {
	r := registry(t, tool.Spec{Name: "c"}, tool.Spec{Name: "a", Effect: tool.EffectRead}, tool.Spec{Name: "b"})
	var names []string
	for _, s := range r.Specs(func(s tool.Spec) bool { return s.Name != "b" }) {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"a", "c"}) {
		t.Fatalf("got %v", names)
	}
	s, err := r.Lookup("c")
	if err != nil || s.Effect != tool.EffectExecute || string(s.InputSchema) != `{"type":"object"}` {
		t.Fatalf("an unknown effect and an empty schema: %+v, %v", s, err)
	}
}

func TestUnknownToolNamesTheNearest(t *testing.T) {
	r := registry(t, tool.Spec{Name: "file_read"}, tool.Spec{Name: "file_write"}, tool.Spec{Name: "shell"}, tool.Spec{Name: "todo_write"})
	for name, want := range map[string]string{
		"FileRead":  "file_read",
		"file-reed": "file_read",
		"read":      "file_read",
		"shel":      "shell",
		"TodoWrite": "todo_write",
	} {
		_, err := r.Lookup(name)
		var unknown *tool.UnknownError
		if !errors.As(err, &unknown) || unknown.Near[0] != want {
			t.Errorf("%s: %v, want %s first", name, err, want)
		}
	}
	_, err := r.Lookup("qqqqqqqqqqqqqqq")
	if want := "file_read, file_write, shell, todo_write"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("nothing near: %v, want all", err)
	}
	if _, err := r.Call(t.Context(), tool.Call{Tool: "nope"}, nil); err == nil {
		t.Error("an unknown tool was called")
	}
}

const fields = `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{
	"filePath":{"type":"string","minLength":1},
	"offset":{"type":"integer","minimum":1},
	"todos":{"type":"array","maxItems":2,"items":{"type":"object","required":["content"],
		"properties":{"content":{"type":"string"},"status":{"enum":["pending","completed"]}}}}},
	"required":["filePath"],"additionalProperties":false}`

func TestValidateNamesFieldAndRule(t *testing.T) {
	r := registry(t, tool.Spec{Name: "x", InputSchema: json.RawMessage(fields)})
	for _, good := range []string{`{"filePath":"a"}`, `{"filePath":"a","offset":3,"todos":[{"content":"c","status":"pending"}]}`} {
		if err := r.Validate("x", json.RawMessage(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, want := range map[string][2]string{
		`{"filePath":`:                {"", "no valid JSON"},
		`{"filePath":"a"} x`:          {"", "byte 18"},
		``:                            {"", "no valid JSON"},
		`null`:                        {"", "type"},
		`[]`:                          {"", "type"},
		`{}`:                          {"", `required: missing properties: ["filePath"]`},
		`{"filePath":"a","z":1}`:      {"", "the fields are filePath, offset, todos"},
		`{"filePath":3}`:              {"filePath", "type"},
		`{"filePath":""}`:             {"filePath", "minLength"},
		`{"filePath":"a","offset":0}`: {"offset", "minimum: 0 is less than 1"},
		`{"filePath":"a","todos":[{"content":"c","status":"done"}]}`: {"todos[].status", "enum"},
		`{"filePath":"a","todos":[{}]}`:                              {"todos[]", "required"},
		`{"filePath":"a","todos":[1,2,3]}`:                           {"todos", ""},
	} {
		err := r.Validate("x", json.RawMessage(bad))
		var input *tool.InputError
		if !errors.As(err, &input) {
			t.Errorf("%s: %v is no InputError", bad, err)
			continue
		}
		if !strings.HasPrefix(input.Field, want[0]) || (want[0] == "") != (input.Field == "") || !strings.Contains(input.Rule, want[1]) {
			t.Errorf("%s: field %q, rule %q; want %q", bad, input.Field, input.Rule, want)
		}
		if !strings.Contains(err.Error(), "x") {
			t.Errorf("%s: %v does not name the tool", bad, err)
		}
	}
	huge := fmt.Sprintf(`{"filePath":"a","todos":[{"content":"c","status":%q}]}`, strings.Repeat("é", 1<<20))
	if err := r.Validate("x", json.RawMessage(huge)); err == nil || len(err.Error()) > 1000 || !utf8.ValidString(err.Error()) {
		t.Errorf("a huge value makes a message of %d bytes", len(fmt.Sprint(err)))
	}
}

func TestBrokenSchemasAreSaid(t *testing.T) {
	for name, schema := range map[string]string{
		"no_json":  `{`,
		"loop":     `{"$ref":"#"}`,
		"far_loop": `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`,
		"remote":   `{"$ref":"https://example.com/x.json"}`,
	} {
		r := registry(t, tool.Spec{Name: name, InputSchema: json.RawMessage(schema)})
		err := r.Validate(name, json.RawMessage(`{"a":1}`))
		var input *tool.InputError
		if err == nil || errors.As(err, &input) || !strings.Contains(err.Error(), "schema of "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tree := `{"type":"object","properties":{"child":{"$ref":"#"},"v":{"type":"integer"}}}`
	r := registry(t, tool.Spec{Name: "tree", InputSchema: json.RawMessage(tree)})
	if err := r.Validate("tree", json.RawMessage(`{"child":{"child":{"v":1}}}`)); err != nil {
		t.Errorf("a recursive schema: %v", err)
	}
	if err := r.Validate("tree", json.RawMessage(`{"child":{"child":{"v":"x"}}}`)); err == nil {
		t.Error("a recursive schema let a wrong value through")
	}
}

func FuzzValidate(f *testing.F) {
	f.Add(fields, `{"filePath":"a"}`)
	f.Add(`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/a"}}}}`, `{"a":[[]]}`)
	f.Add(`true`, `{}`)
	f.Fuzz(func(t *testing.T, schema, input string) {
		r := tool.NewRegistry(tool.Limits{}, nil)
		if err := r.Add(t.Context(), "fuzz", fake{specs: []tool.Spec{{Name: "x", InputSchema: json.RawMessage(schema)}}}); err != nil {
			t.Fatal(err)
		}
		err := r.Validate("x", json.RawMessage(input))
		if err == nil && !json.Valid([]byte(input)) {
			t.Fatalf("%q passed", input)
		}
	})
}
