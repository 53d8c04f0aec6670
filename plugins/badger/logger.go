package badger

import (
	"fmt"
	"log/slog"
	"strings"
)

// logger hands Badger's messages to slog. Some of Badger's texts hold pieces of
// values, so that what follows a hex dump is cut.
type logger struct{ l *slog.Logger }

func (g logger) text(format string, args []any) string {
	s := strings.TrimSpace(fmt.Sprintf(format, args...))
	if i := strings.Index(s, "00000000  "); i >= 0 {
		s = s[:i] + "(a value, not shown)"
	}
	return s
}

// Errorf implements Badger's logger.
func (g logger) Errorf(format string, args ...any) { g.l.Error(g.text(format, args)) }

// Warningf implements Badger's logger.
func (g logger) Warningf(format string, args ...any) { g.l.Warn(g.text(format, args)) }

// Infof implements Badger's logger; its chatter is of interest to developers only.
func (g logger) Infof(format string, args ...any) { g.l.Debug(g.text(format, args)) }

// Debugf implements Badger's logger.
func (g logger) Debugf(string, ...any) {}
