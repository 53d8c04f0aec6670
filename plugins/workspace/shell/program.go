package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// program is the shell that runs lines.
type program struct {
	path  string
	info  fs.FileInfo // as it was when it was chosen
	flags []string
}

// BashVariable names the variable that chooses the shell.
const BashVariable = "BOUGH_BASH"

// findProgram chooses a shell. One that is asked for and cannot be used is an
// error and no reason to take another.
func findProgram(asked string) (*program, error) {
	from := "the configured shell"
	if asked == "" {
		asked, from = os.Getenv(BashVariable), BashVariable
	}
	if asked != "" {
		p, err := usable(asked)
		if err != nil {
			return nil, fmt.Errorf("%s is %q, which cannot be used: %w; set it to the absolute path of bash", from, asked, err)
		}
		return p, nil
	}
	usual := []string{"/bin/bash", "/usr/bin/bash", "/bin/sh"}
	for _, path := range usual {
		if p, err := usable(path); err == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("there is no shell at %s: set %s to the absolute path of bash", strings.Join(usual, ", "), BashVariable)
}

func usable(path string) (*program, error) {
	if !filepath.IsAbs(path) {
		return nil, errors.New("the path is not absolute")
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, errors.Unwrap(err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return nil, errors.New("it is not an executable file")
	}
	p := &program{path: path, info: info, flags: []string{"--noprofile", "--norc", "-c"}}
	if filepath.Base(path) == "sh" {
		p.flags = p.flags[2:] // it may be another shell than bash
	}
	return p, nil
}

// check refuses a shell that was replaced since it was chosen.
func (p *program) check() error {
	info, err := os.Stat(p.path)
	if err != nil {
		return fmt.Errorf("the shell %s is gone: %w; put it back and start bough again", p.path, errors.Unwrap(err))
	}
	if !os.SameFile(info, p.info) || info.Size() != p.info.Size() || !info.ModTime().Equal(p.info.ModTime()) {
		return fmt.Errorf("the shell %s has changed since bough was started: start bough again if that is right", p.path)
	}
	return nil
}

func (p *program) args(line string) []string {
	return append(append([]string{p.path}, p.flags...), line)
}

// passed are the variables that a line gets to see. Everything else, keys and
// tokens above all, stays here.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TMP", "TEMP", "LANG", "LC_ALL", "TERM",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
	"http_proxy", "https_proxy", "all_proxy", "no_proxy",
}

// environment is what every line gets.
func environment(lookup func(string) (string, bool)) []string {
	var env []string
	for _, name := range passed {
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, "NO_COLOR=1", "CLICOLOR=0")
}

// spawner is a thread that lives as long as the process: the death signal of a
// child comes when the thread ends that made it.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func onSpawner(f func()) {
	done := make(chan struct{})
	spawner() <- func() { defer close(done); f() }
	<-done
}
