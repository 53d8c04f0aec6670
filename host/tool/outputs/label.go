package outputs

import "strings"

// Label names a shell line by the program that it runs, for the id of its
// output or of its job: cargo-test, git-log, ls. Only programs and subcommands
// of a fixed list are named, never arguments, paths or variables, which may
// hold secrets. A line that runs more than one program, or another one, has no
// label.
func Label(command string) string {
	command = strings.TrimSpace(command)
	if strings.ContainsAny(command, "\n\r;|&<>()`${}") {
		return ""
	}
	words := strings.Fields(command)
	if len(words) == 0 {
		return ""
	}
	subcommands, known := programs[words[0]]
	if !known {
		return ""
	}
	if len(words) > 1 {
		for sub := range strings.FieldsSeq(subcommands) {
			if sub == words[1] {
				return words[0] + "-" + sub
			}
		}
	}
	return words[0]
}

// programs are the ones that are named, with their subcommands that are.
var programs = map[string]string{
	"ant": "", "awk": "", "bazel": "build test run query", "biome": "check format lint",
	"black": "", "brew": "install list", "buf": "build generate lint",
	"bun":       "add build install run test",
	"bundle":    "exec install",
	"cargo":     "add bench build check clippy doc fmt install run test update",
	"cat":       "",
	"clang":     "",
	"cmake":     "",
	"cp":        "",
	"ctest":     "",
	"curl":      "",
	"date":      "",
	"deno":      "check fmt lint run task test",
	"df":        "",
	"diff":      "",
	"docker":    "build compose exec images logs ps pull run",
	"dotnet":    "build restore run test",
	"du":        "",
	"echo":      "",
	"env":       "",
	"eslint":    "",
	"file":      "",
	"find":      "",
	"gcc":       "",
	"gh":        "issue pr release repo run",
	"git":       "add apply blame branch checkout cherry-pick clone commit diff fetch grep init log ls-files merge pull push rebase reset restore revert rm show stash status switch tag worktree",
	"go":        "build env fmt generate get install list mod run test tool vet version work",
	"gofmt":     "",
	"gradle":    "build test",
	"grep":      "",
	"head":      "",
	"helm":      "install lint list template upgrade",
	"java":      "",
	"javac":     "",
	"jest":      "",
	"jq":        "",
	"just":      "",
	"kubectl":   "apply describe get logs",
	"ls":        "",
	"make":      "all bench build check clean install lint test",
	"mkdir":     "",
	"mv":        "",
	"mvn":       "clean compile install package test verify",
	"mypy":      "",
	"ninja":     "",
	"node":      "",
	"npm":       "build ci install run test",
	"npx":       "",
	"ollama":    "list pull run",
	"php":       "",
	"pip":       "freeze install list show",
	"pnpm":      "add build install run test",
	"poetry":    "add install run",
	"prettier":  "",
	"ps":        "",
	"pwd":       "",
	"pytest":    "",
	"python":    "",
	"python3":   "",
	"rg":        "",
	"rm":        "",
	"rspec":     "",
	"ruby":      "",
	"ruff":      "check format",
	"rustc":     "",
	"rustfmt":   "",
	"sed":       "",
	"sleep":     "",
	"sort":      "",
	"swift":     "build run test",
	"tail":      "",
	"tar":       "",
	"terraform": "apply fmt init plan validate",
	"touch":     "",
	"tox":       "",
	"tree":      "",
	"tsc":       "",
	"uname":     "",
	"uv":        "add pip run sync",
	"vitest":    "",
	"wc":        "",
	"which":     "",
	"yarn":      "add build install run test",
	"zig":       "build fmt test",
}
