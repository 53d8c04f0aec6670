package sdk

import (
	"io"
	"log/slog"
	"os"

	"github.com/hashicorp/go-hclog"

	"github.com/boughdev/bough/plugins/wire/handshake"
)

// Logger writes lines to the process's stderr that the host takes over into its
// own log, with their level and attributes. It keeps what the host keeps.
func Logger() *slog.Logger { return newLogger(os.Stderr) }

func newLogger(w io.Writer) *slog.Logger {
	var level slog.Level // info, unless the host says otherwise
	if text := os.Getenv(handshake.LogLevelKey); text != "" {
		if err := level.UnmarshalText([]byte(text)); err != nil {
			level = slog.LevelInfo
		}
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
}

// goPluginLogger lets through what go-plugin says when it fails; it has no
// other way to tell.
func goPluginLogger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: "go-plugin", Level: hclog.Error, Output: os.Stderr})
}
