package workspace

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/boughdev/bough/host/tool"
)

// texts are what models are told: NAME.md describes a tool, NAME.json is the
// schema of its input.
//
//go:embed tools
var texts embed.FS

// toolKind is a tool.
type toolKind struct {
	run     func(context.Context, *call) (tool.Result, error)
	effect  tool.Effect
	paths   []string // fields of the input that hold paths
	noFiles bool     // it works without the session's folder
	notKept bool     // it sees itself to what is kept
}

var tools = map[string]toolKind{
	"file_read":        {run: fileRead, effect: tool.EffectRead, paths: []string{"filePath"}},
	"file_write":       {run: fileWrite, effect: tool.EffectWrite, paths: []string{"filePath"}},
	"file_edit":        {run: fileEdit, effect: tool.EffectWrite, paths: []string{"filePath"}},
	"file_apply_patch": {run: fileApplyPatch, effect: tool.EffectWrite}, // the patch names the paths
	"file_glob":        {run: fileGlob, effect: tool.EffectRead, paths: []string{"path"}},
	"file_grep":        {run: fileGrep, effect: tool.EffectRead, paths: []string{"path"}},
	"shell":            {run: runShell, effect: tool.EffectExecute, paths: []string{"workdir"}, notKept: true},
	"tool_output":      {run: toolOutput, effect: tool.EffectNone, noFiles: true, notKept: true},
}

func names() []string { return slices.Sorted(maps.Keys(tools)) }

// Specs describes the tools, by name. The host that starts its own workspace
// knows them without asking it.
func Specs() ([]tool.Spec, error) {
	var list []tool.Spec
	for _, name := range names() {
		description, err := texts.ReadFile("tools/" + name + ".md")
		if err != nil {
			return nil, fmt.Errorf("describe %s: %w", name, err)
		}
		schema, err := texts.ReadFile("tools/" + name + ".json")
		if err != nil {
			return nil, fmt.Errorf("describe the input of %s: %w", name, err)
		}
		list = append(list, tool.Spec{
			Name: name, Description: strings.TrimSpace(string(description)), InputSchema: json.RawMessage(schema),
			Effect: tools[name].effect, PathFields: tools[name].paths,
		})
	}
	return list, nil
}
