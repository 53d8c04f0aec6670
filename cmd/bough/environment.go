package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// environment is what a command gets from outside: its streams, and the
// settings of the flags that all commands share.
type environment struct {
	stdin          *os.File
	stdout, stderr io.Writer
	ephemeral      bool
}

// stateDir is the folder that everything is kept in: BOUGH_STATE_DIR, or bough
// below XDG_STATE_HOME, or ~/.local/state/bough.
func stateDir() (string, error) {
	if dir := os.Getenv("BOUGH_STATE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "bough"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the state directory: %w; set BOUGH_STATE_DIR to a folder", err)
	}
	return filepath.Join(home, ".local", "state", "bough"), nil
}

// layout is where things lie in a state directory.
type layout struct{ root string }

func (l layout) outputs() string { return filepath.Join(l.root, "tool-output") }
func (l layout) logs() string    { return filepath.Join(l.root, "logs") }
func (l layout) store() string   { return filepath.Join(l.root, "store") }

// makeStateDir makes the folder and closes it to other users.
func makeStateDir(root string) (layout, error) {
	l := layout{root}
	for _, dir := range []string{root, l.outputs(), l.logs()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return l, fmt.Errorf("make the state directory: %w; set BOUGH_STATE_DIR to a folder that can be written", err)
		}
	}
	return l, nil
}

// makeEphemeral makes a private state directory that remove deletes again.
func makeEphemeral() (l layout, remove func() error, err error) {
	base := os.Getenv("XDG_RUNTIME_DIR")
	root, err := os.MkdirTemp(base, "bough-ephemeral-")
	if err != nil && base != "" {
		root, err = os.MkdirTemp("", "bough-ephemeral-")
	}
	if err != nil {
		return l, nil, fmt.Errorf("make a temporary state directory for --ephemeral: %w", err)
	}
	if l, err = makeStateDir(root); err != nil {
		return l, nil, err
	}
	return l, func() error { return os.RemoveAll(root) }, nil
}

// numberFrom reads a whole number from the environment; absent gives 0.
func numberFrom(name string, least int) (int, error) {
	text := os.Getenv(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		return 0, usagef("%s is %q: it takes a whole number, at least %d", name, text, least)
	}
	return n, nil
}
