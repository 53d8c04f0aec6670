// Package manager starts, watches, restarts and stops plugin processes and
// adapts them to the host's contracts: NewTools, NewWorkspace, NewModels and
// NewStorage for plugins that each host starts for itself, AttachStorage for
// the storage process that all hosts of a state directory share.
//
// A plugin is started by its first use, gets a pipe as its standard input that
// ends with the host, an environment from an allow list, and a process group of
// its own; what it writes to stderr goes to the host's log with its name.
package manager

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/boughdev/bough/plugins/wire/handshake"
)

// Command says how to start a plugin.
type Command struct {
	Name string   // in messages and in the log
	Path string   // of the executable
	Args []string // without the name of the program

	// Env is added to the environment, as NAME=VALUE.
	Env []string
	// PassEnv names variables that are handed on from the host's environment
	// beside the ones that every plugin gets. A * at the end is a prefix.
	PassEnv []string

	Logger       *slog.Logger  // nil: slog.Default()
	StartTimeout time.Duration // 0: 10 s
	// Restarts is how often the plugin is started again after a crash or a
	// failed start before it is disabled for a minute; 0: once. Crashes are
	// forgotten after a minute of running.
	Restarts int
}

const (
	defaultStartTimeout = 10 * time.Second
	defaultRestarts     = 1
)

func (c Command) withDefaults() Command {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = defaultStartTimeout
	}
	if c.Restarts <= 0 {
		c.Restarts = defaultRestarts
	}
	return c
}

func (c Command) check() error {
	if c.Name == "" || c.Path == "" {
		return errors.New("a plugin needs a name and the path of its executable")
	}
	return nil
}

// passed are the variables that every plugin gets: what a program needs to find
// its files, its language and its time zone. None holds a key or a token; a
// plugin that needs more gets it by name (Command.PassEnv).
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "TERM", "COLORTERM",
	"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_STATE_HOME",
	"XDG_CACHE_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// environment picks from the host's environment what a plugin may see, and adds
// what is meant for it alone.
func environment(host, more, added []string) []string {
	var out []string
	for _, variable := range host {
		name, _, _ := strings.Cut(variable, "=")
		if named(name, passed) || named(name, more) {
			out = append(out, variable)
		}
	}
	return append(out, added...)
}

func named(name string, list []string) bool {
	for _, pattern := range list {
		prefix, open := strings.CutSuffix(pattern, "*")
		if name == pattern || open && prefix != "" && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// logLevel is the variable that tells a plugin what the host's log keeps, so
// that it need not send more.
func logLevel(logger *slog.Logger) string {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if logger.Enabled(context.Background(), level) {
			return handshake.LogLevelKey + "=" + level.String()
		}
	}
	return handshake.LogLevelKey + "=" + slog.LevelError.String()
}
