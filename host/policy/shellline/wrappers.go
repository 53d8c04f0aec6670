package shellline

import (
	"path"
	"strings"
)

// always are commands that run what no reading of the line can tell, or with
// rights that bough does not have.
var always = map[string]string{
	"eval": "eval runs text that it makes", "source": "source runs a file in the shell", ".": ". runs a file in the shell",
	"sudo": "sudo runs it as another user", "su": "su runs it as another user", "doas": "doas runs it as another user",
	"pkexec": "pkexec runs it as another user", "run0": "run0 runs it as another user", "runuser": "runuser runs it as another user",
	"sg": "sg runs it with another group",
}

// wrappers run another command that their arguments or their input name.
var wrappers = set(`
	env nice nohup timeout xargs exec command builtin setsid stdbuf ionice chrt taskset chroot unshare nsenter flock watch
	time strace ltrace gdb script parallel busybox toybox proot firejail bwrap setarch linux32 linux64 numactl prlimit
	systemd-run systemd-inhibit dbus-run-session xvfb-run unbuffer expect entr at batch start-stop-daemon daemonize
	faketime fakeroot ld.so ld-linux.so.2 ld-linux-x86-64.so.2 valgrind rlwrap hyperfine`)

// shellChangers change what later words of the line mean: variables, names of
// commands, options of the shell.
var shellChangers = set(`
	alias unalias hash enable trap bind complete compgen mapfile readarray read getopts unset set shopt fc let`)

// carriers run another command somewhere, in a container or on another machine.
// A rule may allow what the line says, word for word; what forbids looks at
// what they carry too.
var carriers = set(`
	ssh rsh mosh docker podman nerdctl kubectl lxc machinectl vagrant flatpak snap tmux screen npx bunx uvx pipx
	npm pnpm yarn bun uv poetry pipenv direnv mise asdf nix nix-shell make just task cargo go perf`)

// shells run a script: an argument, a file, or what they read.
var shells = set(`sh bash dash zsh ksh mksh ash yash fish csh tcsh rbash pwsh nu elvish xonsh`)

// interpreters run a program that one of these options holds, or that they read
// where no file is named. Those with no list always have it on the line.
var interpreters = map[string][]string{
	"python": {"-c"}, "python2": {"-c"}, "python3": {"-c"}, "pypy": {"-c"}, "pypy3": {"-c"},
	"perl": {"-e", "-E"}, "ruby": {"-e"}, "node": {"-e", "--eval", "-p", "--print"}, "nodejs": {"-e", "--eval", "-p", "--print"},
	"deno": {"eval"}, "bun": {"-e", "--eval", "-p", "--print"}, "php": {"-r", "-B", "-R", "-E"}, "lua": {"-e"}, "luajit": {"-e"},
	"Rscript": {"-e"}, "julia": {"-e", "-E"}, "osascript": {"-e"}, "tclsh": {"-"},
	"awk": nil, "gawk": nil, "mawk": nil, "nawk": nil, "ed": nil, "ex": nil, "vi": nil, "vim": nil, "nvim": nil, "emacs": nil,
	"bc": {"-"}, "sqlite3": {"-cmd"}, "psql": {"-c", "--command"}, "mysql": {"-e", "--execute"},
}

// runners run a command, or write files, when they are given one of these
// options, with a value or without.
var runners = map[string][]string{
	"find":   {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"},
	"fd":     {"-x", "--exec", "-X", "--exec-batch"},
	"fdfind": {"-x", "--exec", "-X", "--exec-batch"},
	"tar":    {"--to-command", "--checkpoint-action", "-I", "--use-compress-program", "--rsh-command", "--info-script", "-F"},
	"rsync":  {"-e", "--rsh", "--rsync-path"},
	"scp":    {"-S", "-o"}, "sftp": {"-S", "-o", "-D"}, "ssh": {"-o", "-F"},
	"rg":    {"--pre", "--hostname-bin"},
	"sort":  {"--compress-program", "-o", "--output"},
	"split": {"--filter"},
	"zip":   {"-TT", "--unzip-command"},
	"man":   {"-P", "--pager", "-H", "--html"},
	"go":    {"-exec", "--exec", "-toolexec", "--toolexec"},
	"make":  {"--eval", "SHELL"}, "gmake": {"--eval", "SHELL"},
	"printf": {"-v"},
	"npm":    {"-c", "--call", "--script-shell"}, "npx": {"-c", "--call", "--script-shell"},
	"curl": {"-K", "--config"}, "wget": {"--use-askpass", "-e", "--execute"},
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// Name is the name of a command's program, without its folders.
func (c Command) Name() string {
	if len(c.Words) == 0 || c.Words[0] == "" { // Base would make a dot of nothing
		return ""
	}
	return path.Base(c.Words[0])
}

// wrapped looks at commands that run others.
func (r *reader) wrapped(c Command) {
	name := c.Name()
	switch {
	case always[name] != "":
		r.line.always(always[name])
		r.inside(c, true)
	case isProbe(c), isVersion(c):
	case wrappers[name]:
		r.carries(c, name+" runs another command")
	case shellChangers[name]:
		r.carries(c, name+" changes what the words after it mean")
	case shells[name] && runsText(c), interprets(c):
		r.carries(c, name+" runs a program from its arguments or its input")
	case given(c.Words[1:], runners[name]):
		r.carries(c, name+" runs another command, or writes files, with these options")
	case name == "git":
		r.git(c)
	case carriers[name], shells[name]:
		r.inside(c, false)
	}
}

// carries notes that a command runs others.
func (r *reader) carries(c Command, why string) {
	r.line.opaque(why)
	r.inside(c, true)
}

// isProbe: `command -v X` only looks where X is.
func isProbe(c Command) bool {
	return c.Name() == "command" && len(c.Words) >= 3 && (c.Words[1] == "-v" || c.Words[1] == "-V")
}

func isVersion(c Command) bool {
	return len(c.Words) == 2 && (c.Words[1] == "--version" || c.Words[1] == "--help") && !wrappers[c.Name()]
}

// runsText: a shell is only given a file to run when that comes first.
func runsText(c Command) bool {
	return len(c.Words) == 1 || c.Words[1] == "" || strings.ContainsAny(c.Words[1][:1], "-+") || c.Words[1] == "/dev/stdin"
}

// interprets tells whether an interpreter is given its program on the line, or
// reads it.
func interprets(c Command) bool {
	inline, known := interpreters[c.Name()]
	switch {
	case !known:
		return false
	case inline == nil || len(c.Words) == 1:
		return true
	}
	for _, w := range c.Words[1:] {
		if w == "-" || w == "/dev/stdin" {
			return true
		}
		for _, o := range inline {
			if clustered(w, o) {
				return true
			}
		}
	}
	return given(c.Words[1:], inline)
}

// clustered: -ne is -n and -e.
func clustered(word, option string) bool {
	return len(option) == 2 && len(word) > 2 && word[0] == '-' && word[1] != '-' && strings.IndexByte(word[1:], option[1]) >= 0
}

// given tells whether one of the options is among the words, with its value
// behind it, in it or next to it. Long options may be cut short.
func given(words, options []string) bool {
	for _, w := range words {
		head, _, _ := strings.Cut(w, "=")
		for _, o := range options {
			switch {
			case head == o:
				return true
			case len(o) == 2 && o[0] == '-' && o[1] != '-' && strings.HasPrefix(w, o):
				return true
			case strings.HasPrefix(o, "--") && len(head) > 3 && strings.HasPrefix(o, head):
				return true
			}
		}
	}
	return false
}

// gitOptions take a value of their own before the subcommand.
var gitOptions = set(`-C -c --git-dir --work-tree --namespace --super-prefix --config-env --exec-path --attr-source --list-cmds`)

// git notes the command without the options before its subcommand, which hide
// it from rules, and those that make git run something.
func (r *reader) git(c Command) {
	i := 1
	for ; i < len(c.Words) && strings.HasPrefix(c.Words[i], "-"); i++ {
		switch head, _, joined := strings.Cut(c.Words[i], "="); {
		case head == "-c" || head == "--config-env" || head == "--exec-path" && joined:
			r.carries(c, "git "+head+" can make git run anything")
			i++
		case gitOptions[head] && !joined:
			i++
		}
	}
	if i >= len(c.Words) {
		return
	}
	plain := Command{Text: c.Text, Words: append([]string{"git"}, c.Words[i:]...)}
	if i > 1 {
		r.line.Hidden = append(r.line.Hidden, plain)
	}
	sub, rest := plain.Words[1], plain.Words[2:]
	runs := given(rest, []string{"--upload-pack", "--receive-pack", "--ext-diff", "--extcmd", "--open-files-in-pager", "--exec", "--output", "--textconv"})
	switch sub {
	case "rebase":
		runs = runs || given(rest, []string{"-x"})
	case "grep":
		runs = runs || given(rest, []string{"-O"})
	case "difftool":
		runs = runs || given(rest, []string{"-x"})
	case "bisect":
		runs = runs || len(rest) > 0 && rest[0] == "run"
	case "submodule":
		runs = runs || given(rest, []string{"foreach"})
	case "filter-branch", "for-each-repo", "hook", "mergetool", "daemon", "shell":
		runs = true
	}
	if runs {
		r.carries(c, "git "+sub+" runs another command, or writes files, with these options")
	}
}

// inside notes every command that the words of a command may come to: from each
// word on, and what is written in one. It is for what forbids; with here set, the
// command would run on this machine with this line's rights.
func (r *reader) inside(c Command, here bool) {
	const most = 64 // words that are looked at from
	for i := 1; i < len(c.Words) && i <= most; i++ {
		w := c.Words[i]
		r.line.Hidden = append(r.line.Hidden, Command{Text: c.Text, Words: c.Words[i:]})
		if why := always[path.Base(w)]; here && why != "" && w != "." {
			r.line.always(why)
		}
		if r.depth == deepest || !strings.ContainsAny(w, " \t\n;&|<>()$`") {
			continue
		}
		inner := &Line{}
		if inner.read(w, r.depth+1) != nil {
			continue // no line of bash, and so none that runs
		}
		if here && inner.Always != "" {
			r.line.always(inner.Always)
		}
		r.line.Hidden = append(append(r.line.Hidden, inner.Commands...), inner.Hidden...)
	}
}
