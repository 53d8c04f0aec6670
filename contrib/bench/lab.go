package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/boughdev/bough/contrib/bench/sample"
	"github.com/boughdev/bough/plugins/manager"
)

// lab is where things are measured: a folder of its own, with the programs
// and the stores, which are made once and copied for whoever writes to them.
type lab struct {
	dir    string
	bin    string
	log    io.Writer
	small  bool
	stores map[sample.Shape]made
}

type made struct {
	state string
	ids   []string
}

func newLab(ctx context.Context, log io.Writer, small bool) (*lab, error) {
	dir, err := os.MkdirTemp("", "bough-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir, bin: filepath.Join(dir, "bin"), log: log, small: small, stores: map[sample.Shape]made{}}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", l.bin+string(filepath.Separator), "./cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build bough: %w\n%s", err, out), l.close())
	}
	return l, nil
}

func (l *lab) close() error { return os.RemoveAll(l.dir) }

// store is a state directory with a store of some shape, and the ids of its
// sessions. It is shared: who writes to it takes a copy.
func (l *lab) store(ctx context.Context, shape sample.Shape) (made, error) {
	if l.small {
		shape.Items = max(60, shape.Items/100)
		shape.Sessions = max(1, shape.Sessions/100)
	}
	if m, ok := l.stores[shape]; ok {
		return m, nil
	}
	fmt.Fprintf(l.log, "making a store: %d sessions of %d items\n", shape.Sessions, shape.Items)
	m := made{state: l.path("store%d", len(l.stores))}
	var err error
	if m.ids, err = fill(ctx, m.state, shape, false); err != nil {
		return m, err
	}
	l.stores[shape] = m
	return m, nil
}

func (l *lab) path(format string, args ...any) string {
	return filepath.Join(l.dir, fmt.Sprintf(format, args...))
}

// fresh is an empty folder.
func (l *lab) fresh() (string, error) { return os.MkdirTemp(l.dir, "fresh-") }

// copied is a copy of a state directory.
func (l *lab) copied(state string) (string, error) {
	dir, err := l.fresh()
	if err != nil {
		return "", err
	}
	return dir, os.CopyFS(dir, os.DirFS(state))
}

// bough is a command of the real program with a state directory.
func (l *lab) bough(ctx context.Context, state, url string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(l.bin, "bough"), args...)
	cmd.Dir = l.dir
	cmd.Env = append(os.Environ(), "BOUGH_STATE_DIR="+state, "HOME="+l.dir, "BOUGH_OPENAI_COMPATIBLE_BASE_URL="+url)
	return cmd
}

// must runs a command and says what it wrote when it fails.
func must(cmd *exec.Cmd) error {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return nil
}

// attach is a connection to the storage process of a state directory.
func (l *lab) attach(ctx context.Context, state string) (*manager.Storage, error) {
	return attach(ctx, l.bin, state)
}

func attach(ctx context.Context, bin, state string) (*manager.Storage, error) {
	return manager.AttachStorage(ctx, manager.StorageOptions{
		StateDir: state, Logger: slog.New(slog.DiscardHandler),
		Command: []string{filepath.Join(bin, "bough"), "plugin", "serve", "storage", "--state-dir", state},
	})
}

// endStorage ends the storage process of a state directory and waits for it.
func endStorage(state string) error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		pids := processes("serve\x00storage\x00--state-dir\x00" + state)
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the storage process %v does not end", pids)
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGTERM); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
}

// processes are those with some text in their command line or environment.
func processes(text string) []int {
	var pids []int
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // another system: the rows that need it say so
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		for _, name := range []string{"cmdline", "environ"} {
			raw, err := os.ReadFile(filepath.Join("/proc", e.Name(), name))
			if err == nil && bytes.Contains(raw, []byte(text)) {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// median is the middle of several measurements.
func median[T int | float64 | time.Duration](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}

// times is the median duration of several runs.
func times(n int, do func() error) (time.Duration, error) {
	var all []time.Duration
	for range n {
		began := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(began))
	}
	return median(all), nil
}
