package policy

import (
	"slices"
	"strings"

	"github.com/boughdev/bough/host/policy/shellline"
)

// dangers are commands that are asked for unless a rule allows them, and why.
var dangers = map[string]string{
	"rm": "deletes files", "rmdir": "deletes folders", "unlink": "deletes a file", "shred": "destroys files",
	"chmod": "changes who may do what", "chown": "changes the owner of files", "chgrp": "changes the group of files",
	"dd": "writes to files and disks byte by byte", "mkfs": "formats a disk", "fdisk": "changes a disk's partitions",
	"curl": "talks to the network", "wget": "talks to the network", "nc": "talks to the network", "ncat": "talks to the network",
	"netcat": "talks to the network", "socat": "talks to the network", "telnet": "talks to the network", "ftp": "talks to the network",
	"scp": "copies to or from another machine", "sftp": "copies to or from another machine", "rsync": "copies files, also to other machines",
	"ssh": "runs commands on another machine", "rsh": "runs commands on another machine", "mosh": "runs commands on another machine",
	"kill": "ends processes", "pkill": "ends processes", "killall": "ends processes",
}

// risky says why a command is asked for if nothing covers it; empty: for no
// reason of its own.
func risky(c shellline.Command) string {
	name := c.Name()
	if why := dangers[name]; why != "" {
		return name + " " + why
	}
	if strings.HasPrefix(name, "mkfs.") {
		return name + " formats a disk"
	}
	if name == "git" {
		return riskyGit(c.Words[1:])
	}
	return ""
}

// losses are the words after which git takes something away for good, after
// each subcommand; no words: always.
var losses = map[string][]string{
	"reset": {"--hard", "--merge", "--keep"}, "clean": nil, "restore": nil, "rm": nil, "gc": {"--prune", "--aggressive"},
	"push":   {"--force", "-f", "--force-with-lease", "--force-if-includes", "--delete", "-d", "--mirror", "--prune"},
	"branch": {"-D", "-d", "--delete", "-M", "-f", "--force"}, "tag": {"-d", "--delete", "-f", "--force"},
	"checkout": {"--", ".", "-f", "--force", "-B", "--ours", "--theirs"}, "switch": {"-f", "--force", "--discard-changes", "-C"},
	"stash": {"drop", "clear"}, "reflog": {"expire", "delete"}, "update-ref": nil, "filter-branch": nil, "filter-repo": nil,
	"worktree": {"remove", "prune"}, "prune": nil, "read-tree": {"-u", "--reset"}, "submodule": {"deinit"}, "lfs": {"prune"},
}

func riskyGit(words []string) string {
	for i := 0; i < len(words); i++ { // options before the subcommand
		switch w := words[i]; {
		case w == "-C" || w == "--git-dir" || w == "--work-tree" || w == "--namespace":
			i++
		case strings.HasPrefix(w, "-"):
		default:
			when, known := losses[w]
			if known && (when == nil || slices.ContainsFunc(words[i+1:], func(option string) bool {
				head, _, _ := strings.Cut(option, "=")
				return slices.Contains(when, head) || w == "push" && strings.HasPrefix(option, "+")
			})) {
				return "git " + w + " can take work away for good"
			}
			return ""
		}
	}
	return ""
}

// versions are the programs whose version may be asked for without asking.
var versions = []string{
	"bash", "bun", "cargo", "cmake", "deno", "docker", "gcc", "git", "go", "java", "make", "node", "npm", "perl", "php", "pip",
	"pip3", "pnpm", "python", "python3", "ruby", "rustc", "tsc", "uv", "yarn",
}

// innocent says why a command needs no rule; empty: it does.
func innocent(c shellline.Command) string {
	w := c.Words
	switch {
	case c.Globs:
		return ""
	case w[0] == "echo":
		return "echo only prints its words"
	case len(w) == 3 && (w[0] == "command" && w[1] == "-v" || w[0] == "type" && w[1] == "-t"), len(w) == 2 && w[0] == "which":
		return "only looks where a program is"
	case len(w) == 2 && w[1] == "--version" && slices.Contains(versions, w[0]), len(w) == 2 && w[0] == "go" && w[1] == "version":
		return "only prints a version"
	}
	return ""
}
