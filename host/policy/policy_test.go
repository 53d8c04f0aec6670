package policy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/policy"
	"github.com/boughdev/bough/host/tool"
)

var specs = map[string]tool.Spec{
	"file_read":        {Name: "file_read", Effect: tool.EffectRead, PathFields: []string{"filePath"}},
	"file_glob":        {Name: "file_glob", Effect: tool.EffectRead, PathFields: []string{"path"}},
	"file_write":       {Name: "file_write", Effect: tool.EffectWrite, PathFields: []string{"filePath"}},
	"file_apply_patch": {Name: "file_apply_patch", Effect: tool.EffectWrite},
	"many":             {Name: "many", Effect: tool.EffectWrite, PathFields: []string{"paths"}},
	"shell":            {Name: "shell", Effect: tool.EffectExecute},
	"todo_write":       {Name: "todo_write", Effect: tool.EffectNone},
	"plugin_tool":      {Name: "plugin_tool"},
}

func toolNames() []string {
	var names []string
	for n := range specs {
		names = append(names, n)
	}
	return names
}

func decide(t *testing.T, o policy.Options, folder, name, input string) policy.Decision {
	t.Helper()
	p, err := policy.New(o, toolNames())
	if err != nil {
		t.Fatal(err)
	}
	d := p.Decide(tool.Call{Tool: name, Input: json.RawMessage(input)}, specs[name], folder)
	if d.Reason == "" {
		t.Errorf("%s %s: %s without a reason", name, input, d.Outcome)
	}
	return d
}

// home is a folder with links out of it and into its protected parts.
func home(t *testing.T) (folder, outside string) {
	t.Helper()
	top := t.TempDir()
	folder, outside = filepath.Join(top, "home"), filepath.Join(top, "outside")
	for _, dir := range []string{filepath.Join(folder, "sub", "deep"), filepath.Join(folder, ".ssh"), filepath.Join(outside, "inner")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"out": outside, "dangling": filepath.Join(outside, "nothing", "yet"), "keys": ".ssh", "inside": "sub/deep",
		"up": "..", "loop": "loop", "outer": filepath.Join(outside, "inner"),
	} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder, outside
}

func TestPathsDecide(t *testing.T) {
	folder, outside := home(t)
	for path, want := range map[string]policy.Outcome{
		"a.go":                               policy.Allow,
		"new/deep/file.go":                   policy.Allow,
		"sub/../a.go":                        policy.Allow,
		"inside/a.go":                        policy.Allow,
		"sub/.environment":                   policy.Allow,
		".env.example":                       policy.Allow,
		".github/workflows/ci.yml":           policy.Allow,
		filepath.Join(folder, "a.go"):        policy.Allow,
		"../a.go":                            policy.Ask,
		"sub/../../a.go":                     policy.Ask,
		outside:                              policy.Ask,
		"/etc/passwd":                        policy.Ask,
		folder + "-other/a.go":               policy.Ask,
		"out/a.go":                           policy.Ask,
		"out":                                policy.Ask,
		"dangling":                           policy.Ask,
		"up/x":                               policy.Ask,
		"loop/x":                             policy.Ask,
		"outer/../a.go":                      policy.Ask, // the kernel: outside; tidied up: inside
		"keys/id":                            policy.Ask,
		".ssh/id":                            policy.Ask,
		".git/hooks/pre-commit":              policy.Ask,
		"sub/.GIT/config":                    policy.Ask,
		".env":                               policy.Ask,
		"sub/.env.local":                     policy.Ask,
		".env.production.example":            policy.Ask,
		".npmrc":                             policy.Ask,
		"~/.bashrc":                          policy.Ask,
		"~root/x":                            policy.Ask,
		"a\x00b":                             policy.Ask,
		".bough/config.toml":                 policy.Ask,
		filepath.Join(folder, "sub", ".env"): policy.Ask,
	} {
		input, err := json.Marshal(map[string]string{"filePath": path})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"file_read", "file_write"} {
			if d := decide(t, policy.Options{}, folder, name, string(input)); d.Outcome != want {
				t.Errorf("%s %q: %s (%s), want %s", name, path, d.Outcome, d.Reason, want)
			}
		}
	}
}

func TestALinkedFolderIsTheSame(t *testing.T) {
	folder, _ := home(t)
	link := folder + "-link"
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a.go", filepath.Join(link, "a.go"), filepath.Join(folder, "a.go")} {
		if d := decide(t, policy.Options{}, link, "file_write", fmt.Sprintf(`{"filePath":%q}`, path)); d.Outcome != policy.Allow {
			t.Errorf("%s: %s (%s)", path, d.Outcome, d.Reason)
		}
	}
}

func TestWhatIsNamedDecides(t *testing.T) {
	folder, _ := home(t)
	patch := func(lines ...string) string {
		text, err := json.Marshal(map[string]string{"patchText": strings.Join(lines, "\n")})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, c := range []struct {
		tool, input string
		want        policy.Outcome
	}{
		{"file_glob", `{"pattern":"*"}`, policy.Allow},
		{"file_glob", `{"pattern":"*","path":""}`, policy.Allow},
		{"file_glob", `{"path":"/"}`, policy.Ask},
		{"file_glob", `{"PATH":"/"}`, policy.Ask},
		{"file_glob", `{"path":7}`, policy.Ask},
		{"file_write", `{}`, policy.Ask},
		{"file_write", `{"FilePath":".env","filePath":"a"}`, policy.Ask},
		{"many", `{"paths":["a","b"]}`, policy.Allow},
		{"many", `{"paths":["a","../b"]}`, policy.Ask},
		{"many", `{"paths":[]}`, policy.Ask},
		{"file_apply_patch", patch("*** Begin Patch", "*** Add File: a.go", "+x", "*** Update File: sub/b.go", "*** Move to: c.go", "@@", "-a", "+b", "*** End of File", "*** Delete File: d", "*** End Patch"), policy.Allow},
		{"file_apply_patch", patch("*** Begin Patch", "*** Update File: a.go", "*** Move to: ../c.go", "*** End Patch"), policy.Ask},
		{"file_apply_patch", patch("*** Begin Patch", "  ***  delete   file: .ssh/id", "*** End Patch"), policy.Ask},
		{"file_apply_patch", patch("*** Begin Patch", "*** Rename File: a", "*** End Patch"), policy.Ask},
		{"file_apply_patch", patch("*** Begin Patch", "*** End Patch"), policy.Ask},
		{"file_apply_patch", patch("*** Begin Patch", "*** Add File:", "*** End Patch"), policy.Ask},
		{"file_apply_patch", `{}`, policy.Ask},
		{"shell", `{"command":"ls"}`, policy.Ask},
		{"plugin_tool", `{}`, policy.Ask},
		{"todo_write", `{}`, policy.Allow},
	} {
		if d := decide(t, policy.Options{}, folder, c.tool, c.input); d.Outcome != c.want {
			t.Errorf("%s %s: %s (%s), want %s", c.tool, c.input, d.Outcome, d.Reason, c.want)
		}
	}
}

func TestFlags(t *testing.T) {
	folder, _ := home(t)
	shell, secret := `{"command":"ls"}`, `{"filePath":".env"}`
	for _, c := range []struct {
		about       string
		options     policy.Options
		tool, input string
		want        policy.Outcome
	}{
		{"yolo allows what asks", policy.Options{Yolo: true}, "shell", shell, policy.Allow},
		{"yolo allows protected paths", policy.Options{Yolo: true}, "file_write", secret, policy.Allow},
		{"a denial stands under yolo", policy.Options{Yolo: true, Disallowed: []string{"shell"}}, "shell", shell, policy.Deny},
		{"an allowed tool", policy.Options{Allowed: []string{"shell"}}, "shell", shell, policy.Allow},
		{"in Pascal case", policy.Options{Allowed: []string{"FileWrite"}}, "file_write", secret, policy.Allow},
		{"only that tool", policy.Options{Allowed: []string{"shell"}}, "file_write", secret, policy.Ask},
		{"denied beats allowed", policy.Options{Allowed: []string{"shell"}, Disallowed: []string{"Shell"}}, "shell", shell, policy.Deny},
		{"denied though it asks nothing", policy.Options{Disallowed: []string{"TodoWrite"}}, "todo_write", `{}`, policy.Deny},
	} {
		if d := decide(t, c.options, folder, c.tool, c.input); d.Outcome != c.want {
			t.Errorf("%s: %s (%s), want %s", c.about, d.Outcome, d.Reason, c.want)
		}
	}
	p, err := policy.New(policy.Options{Disallowed: []string{"FileRead"}}, toolNames())
	if err != nil {
		t.Fatal(err)
	}
	if p.Offers(specs["file_read"]) || !p.Offers(specs["shell"]) {
		t.Error("a disallowed tool is offered, or another is not")
	}
	for _, o := range []policy.Options{{Allowed: []string{"Bash"}}, {Disallowed: []string{"Bash"}}} {
		if _, err := policy.New(o, []string{"shell", "file_read"}); err == nil || !strings.Contains(err.Error(), "Bash") || !strings.Contains(err.Error(), "shell, file_read") {
			t.Errorf("an unknown tool: %v", err)
		}
	}
}

func FuzzPatchPathsStayInside(f *testing.F) {
	f.Add("*** Begin Patch\n*** Add File: a\n+x\n*** End Patch")
	f.Add("*** Update File: ../x")
	f.Add("***Add File:\t/etc/passwd\r\n")
	folder := f.TempDir()
	p, err := policy.New(policy.Options{}, toolNames())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		input, err := json.Marshal(map[string]string{"patchText": text})
		if err != nil {
			t.Fatal(err)
		}
		if p.Decide(tool.Call{Tool: "file_apply_patch", Input: input}, specs["file_apply_patch"], folder).Outcome != policy.Allow {
			return
		}
		for line := range strings.Lines(text) {
			verb, path, named := strings.Cut(strings.TrimSpace(line), ":")
			if !named || !strings.HasPrefix(verb, "***") {
				continue
			}
			if path = strings.TrimSpace(path); !filepath.IsAbs(path) {
				path = filepath.Join(folder, path)
			}
			if rel, err := filepath.Rel(folder, path); err != nil || strings.HasPrefix(rel, "../") {
				t.Fatalf("%q was allowed", text)
			}
		}
	})
}
