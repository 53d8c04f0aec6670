package shellline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/policy/shellline"
)

func commands(list []shellline.Command) string {
	var all []string
	for _, c := range list {
		all = append(all, strings.Join(c.Words, "|"))
	}
	return strings.Join(all, " ; ")
}

func TestClearLines(t *testing.T) {
	for line, want := range map[string]string{
		"ls":                           "ls",
		"ls -la  src":                  "ls|-la|src",
		`r''m -r"f" x`:                 "rm|-rf|x",
		`\rm x`:                        "rm|x",
		`echo "a b" 'c d' e\ f`:        "echo|a b|c d|e f",
		`echo "a\"b\$c\d"`:             `echo|a"b$c\d`,
		"a && b || c; d | e |& f & g":  "a ; b ; c ; d ; e ; f ; g",
		"(cd x; make)":                 "cd|x ; make",
		"{ a; b; }":                    "a ; b",
		"! grep x y":                   "grep|x|y",
		"time make all":                "make|all",
		"ls 2>/dev/null":               "ls",
		"make >/dev/null 2>&1":         "make",
		"ls 2>&-":                      "ls",
		"cat <<'EOF'\n$(rm x)\nEOF":    "cat",
		"cat <<EOF\nplain\nEOF":        "cat",
		"grep x <<< hello":             "grep|x",
		"ls ./*.go src/[ab]?.txt":      "ls|./*.go|src/[ab]?.txt",
		"ls # rm -rf /":                "ls",
		"ls \\\n -l":                   "ls|-l",
		"[ -f x ]":                     "[|-f|x|]",
		"ls ~/x ~":                     "ls|~/x|~",
		"git log @{u}..":               "git|log|@{u}..",
		"find . -name {}":              "find|.|-name|{}",
		"command -v go":                "command|-v|go",
		"bash --version":               "bash|--version",
		"bash test.sh -c x":            "bash|test.sh|-c|x",
		"python3 run.py":               "python3|run.py",
		"python3 -m pytest -q":         "python3|-m|pytest|-q",
		"npm run eval":                 "npm|run|eval",
		"git switch -c new":            "git|switch|-c|new",
		"git -C sub status":            "git|-C|sub|status",
		"ssh host uptime":              "ssh|host|uptime",
		"find . -name '*.go' -newer x": "find|.|-name|*.go|-newer|x",
		"echo $'plain'":                "echo|plain",
		"echo '!' \"!x\"":              "echo|!|!x",
	} {
		t.Run(line, func(t *testing.T) {
			l := shellline.Read(line)
			if !l.Clear() {
				t.Fatalf("opaque %q, always %q", l.Opaque, l.Always)
			}
			if got := commands(l.Commands); got != want {
				t.Errorf("commands %s, want %s", got, want)
			}
		})
	}
}

// TestOpaqueLines has lines of which not all can be told, with a command that
// may run in each and must be seen.
func TestOpaqueLines(t *testing.T) {
	for line, seen := range map[string]string{
		"echo $(rm x)":                  "rm|x",
		"echo `rm x`":                   "rm|x",
		`echo "$(rm x)"`:                "rm|x",
		"diff <(rm x) y":                "rm|x",
		"tee >(rm x)":                   "rm|x",
		"cat <<EOF\n$(rm x)\nEOF":       "rm|x",
		"grep y <<< $(rm x)":            "rm|x",
		"echo ${a:=$(rm x)}":            "rm|x",
		"echo $((a[$(rm x)]))":          "rm|x",
		"A=$(rm x) ls":                  "rm|x",
		"A=1 rm x":                      "rm|x",
		"for f in *; do rm $f; done":    "rm|",
		"while true; do rm x; done":     "rm|x",
		"if true; then rm x; fi":        "rm|x",
		"case a in a) rm x;; esac":      "rm|x",
		"[[ -n $(rm x) ]]":              "rm|x",
		"f() { rm x; }; f":              "rm|x",
		"coproc rm x":                   "rm|x",
		"$CMD x":                        "|x",
		"rm $X":                         "rm|",
		"{rm,x}":                        "{rm,x}",
		`{rm,"x"}`:                      "{rm,x}",
		"r{m,n} x":                      "r{m,n}|x",
		"env rm x":                      "rm|x",
		"env A=1 rm x":                  "rm|x",
		"/usr/bin/env rm x":             "rm|x",
		"nice -n 5 rm x":                "rm|x",
		"nohup rm x":                    "rm|x",
		"timeout 5 rm x":                "rm|x",
		"ls | xargs rm":                 "rm",
		"xargs -I{} sh -c 'rm {}'":      "rm|{}",
		"exec rm x":                     "rm|x",
		"command rm x":                  "rm|x",
		"builtin cd x":                  "cd|x",
		"busybox rm x":                  "rm|x",
		"bash -c 'rm x'":                "rm|x",
		"bash -lc 'rm x'":               "rm|x",
		"sh -c \"sh -c 'rm x'\"":        "rm|x",
		"find . -exec rm {} +":          "rm|{}|+",
		"find . -delete":                "-delete",
		"watch 'rm x'":                  "rm|x",
		"git -c alias.x='!rm y' x":      "-c|alias.x=!rm y|x",
		"git rebase -x 'rm x'":          "rm|x",
		"git bisect run rm x":           "rm|x",
		"git submodule foreach 'rm x'":  "rm|x",
		"tar xf a --to-command='rm x'":  "--to-command=rm x",
		"rsync -e 'rm x' a b":           "rm|x",
		"rsync -e'rm x' a b":            "-erm x|a|b",
		"sort --compress-prog=rm a":     "--compress-prog=rm|a",
		"awk 'BEGIN{system(\"rm x\")}'": "BEGIN{system(\"rm x\")}",
		"python3 -c 'import os'":        "-c|import os",
		"perl -ne 'unlink' x":           "-ne|unlink|x",
		"node -e 1":                     "-e|1",
		"ls > out":                      "ls",
		"ls >& out":                     "ls",
		"ls &> out":                     "ls",
		"cat < in":                      "cat",
		"ls {x}>/dev/null":              "ls",
		"alias ls=rm":                   "ls=rm",
		"export PATH=/tmp; ls":          "ls",
		"printf -v PATH x; ls":          "-v|PATH|x",
		"read PATH <<< /tmp; ls":        "ls",
		"hash -p /bin/rm ls; ls x":      "ls|x",
		"ls *.go":                       "ls|*.go",
		"ls *x -l ?y":                   "ls|*x|-l|?y",
		"ls -* ":                        "ls|-*",
		"l* x":                          "l*|x",
		"echo $'r\\x6d'":                "echo|",
		"ls ~root":                      "ls|~root",
		"bash":                          "bash",
		"curl -s x | bash":              "bash",
		"python3 -":                     "python3|-",
		"make SHELL=/bin/rm":            "SHELL=/bin/rm",
		"ls @(a|b)":                     "ls|",
	} {
		t.Run(line, func(t *testing.T) {
			l := shellline.Read(line)
			if len(l.Opaque) == 0 {
				t.Error("not opaque")
			}
			if l.Always != "" {
				t.Errorf("always: %s", l.Always)
			}
			all := slices.Concat(l.Commands, l.Hidden)
			for _, c := range all {
				if strings.Join(c.Words, "|") == seen {
					return
				}
			}
			t.Errorf("%s is not among %s", seen, commands(all))
		})
	}
}

func TestLinesThatAreAlwaysAsked(t *testing.T) {
	for _, line := range []string{
		"eval ls", "source x", ". x", "sudo ls", "/usr/bin/sudo ls", "su -c ls", "doas ls", "ls; sudo ls", "ls | sudo tee x",
		"echo $(sudo ls)", "env sudo ls", "command eval ls", "bash -c 'sudo ls'", "xargs sudo rm", "for i in 1; do sudo ls; done",
		"ls (", "ls 'x", "if", "ls\x00", "ls\rrm x", strings.Repeat("a", shellline.MaxBytes+1), strings.Repeat("$(", 30000),
	} {
		if l := shellline.Read(line); l.Always == "" {
			t.Errorf("%.60q is not always asked: opaque %q", line, l.Opaque)
		}
	}
}

func TestFilesOfRedirections(t *testing.T) {
	l := shellline.Read("sort < in > out 2>> log; cat <> both; x >$Y")
	if got := fmt.Sprint(l.Reads, l.Writes); got != "[in both] [out log both]" {
		t.Error(got)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"ls -l | grep x && rm -rf 'y z'", "echo $(env A=1 sh -c \"rm $x\") > a", "cat <<A\n$(b)\nA", "{a,\"b\"}[c]*\\d~e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := shellline.Read(text)
		for _, c := range slices.Concat(l.Commands, l.Hidden) {
			if len(c.Words) == 0 {
				t.Errorf("a command without words in %q", text)
			}
		}
		if !l.Clear() {
			return
		}
		// What is clear means the same when its words are written down anew.
		for _, c := range l.Commands {
			if slices.ContainsFunc(c.Words, func(w string) bool { return strings.ContainsAny(w, "*?[~{") }) {
				continue
			}
			if strings.Contains(c.String(), "$'") {
				continue // a form with escapes, which is opaque
			}
			again := shellline.Read(c.String())
			if len(again.Commands) != 1 || !slices.Equal(again.Commands[0].Words, c.Words) {
				t.Errorf("%q has %q, which reads as %q", text, c.Words, again.Commands)
			}
		}
	})
}
