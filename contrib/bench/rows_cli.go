package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/boughdev/bough/contrib/bench/sample"
	"github.com/boughdev/bough/plugins/models/modeltest"
)

func prompt(more ...string) []string {
	return append([]string{"-p", "-m", "openai-compatible/test", "--prompt", "hello"}, more...)
}

// oneShot is `bough -p` until it has ended.
func oneShot(cold bool, bar time.Duration) measure {
	return func(ctx context.Context, l *lab) (string, bool, error) {
		server := modeltest.New(modeltest.Text("Hello."))
		defer server.Close()
		state, err := l.fresh()
		if err != nil {
			return "", false, err
		}
		run := func() error { return must(l.bough(ctx, state, server.BaseURL(), prompt()...)) }
		if err := run(); err != nil {
			return "", false, err
		}
		var all []time.Duration
		for range 21 {
			if cold {
				if err := endStorage(state); err != nil {
					return "", false, err
				}
			}
			took, err := times(1, run)
			if err != nil {
				return "", false, err
			}
			all = append(all, took)
		}
		took := median(all)
		return ms(took), took < bar, endStorage(state)
	}
}

// idle is all processes of a host whose model does not answer.
func idle(ctx context.Context, l *lab) (string, bool, error) {
	server := modeltest.New(modeltest.Reply{Wait: time.Hour})
	defer server.Close()
	state, err := l.fresh()
	if err != nil {
		return "", false, err
	}
	cmd := l.bough(ctx, state, server.BaseURL(), prompt()...)
	if err := cmd.Start(); err != nil {
		return "", false, err
	}
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it was killed
	}()
	for len(server.Requests()) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(2 * time.Second) // what follows the start
	pids := family(cmd.Process.Pid, state)
	before, err := ticks(pids)
	if err != nil {
		return "", false, err
	}
	const watch = 10 * time.Second
	time.Sleep(watch)
	after, err := ticks(pids)
	if err != nil {
		return "", false, err
	}
	memory, err := pss(pids)
	if err != nil {
		return "", false, err
	}
	const perSecond = 100 // USER_HZ of Linux
	cpu := 100 * float64(after-before) / perSecond / watch.Seconds()
	figure := fmt.Sprintf("%.0f MB in %d processes, %.2f %%", memory, len(pids), cpu)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return "", false, err
	}
	_ = cmd.Wait() // it was interrupted
	return figure, memory <= 70 && cpu < 0.3, endStorage(state)
}

// family is a process, its children, and the storage process.
func family(pid int, state string) []int {
	pids := append([]int{pid}, processes("serve\x00storage\x00--state-dir\x00"+state)...)
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return pids
	}
	for _, stat := range stats {
		f := fields(stat)
		if len(f) > 3 && f[3] == strconv.Itoa(pid) {
			if child, err := strconv.Atoi(f[0]); err == nil && !slices.Contains(pids, child) {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// fields are those of a stat file: the name, which may hold spaces, is one.
func fields(path string) []string {
	raw, err := os.ReadFile(path)
	open, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if err != nil || open < 0 || end < open {
		return nil
	}
	f := append(strings.Fields(string(raw[:open])), string(raw[open:end+1]))
	return append(f, strings.Fields(string(raw[end+1:]))...)
}

// ticks is the processor time of some processes.
func ticks(pids []int) (all int, err error) {
	for _, pid := range pids {
		f := fields(fmt.Sprintf("/proc/%d/stat", pid))
		if len(f) < 15 {
			return 0, fmt.Errorf("process %d has ended", pid)
		}
		user, err := strconv.Atoi(f[13])
		system, err2 := strconv.Atoi(f[14])
		if err := errors.Join(err, err2); err != nil {
			return 0, err
		}
		all += user + system
	}
	return all, nil
}

// pss is the proportional memory of some processes, in MB.
func pss(pids []int) (all float64, err error) {
	for _, pid := range pids {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(raw)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" {
				kb, err := strconv.ParseFloat(f[1], 64)
				if err != nil {
					return 0, err
				}
				all += kb / 1024
			}
		}
	}
	return all, nil
}

// resume goes on with a long session: until the model has the request.
func resume(ctx context.Context, l *lab) (string, bool, error) {
	m, err := l.store(ctx, long)
	if err != nil {
		return "", false, err
	}
	state, err := l.copied(m.state)
	if err != nil {
		return "", false, err
	}
	var arrived time.Time
	size := int64(0)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return // the row fails, as bough does
		}
		arrived, size = time.Now(), n
		w.Header().Set("Content-Type", "text/event-stream")
		for _, ev := range modeltest.Text("Hello.").Events {
			fmt.Fprintf(w, "data: %s\n\n", ev)
		}
	}))
	defer server.Close()
	var all []time.Duration
	for range 7 {
		began := time.Now()
		if err := must(l.bough(ctx, state, server.URL+"/v1", prompt("-s", m.ids[0])...)); err != nil {
			return "", false, err
		}
		all = append(all, arrived.Sub(began))
	}
	took := median(all)
	return fmt.Sprintf("%s, %.1f MB of request", ms(took), float64(size)/1e6), took < 300*time.Millisecond, endStorage(state)
}

// deleteAll is what is left on the disk of a store whose sessions are removed.
func deleteAll(ctx context.Context, l *lab) (string, bool, error) {
	m, err := l.store(ctx, sample.Shape{Seed: 5, Sessions: 100, Items: 2000})
	if err != nil {
		return "", false, err
	}
	state, err := l.copied(m.state)
	if err != nil {
		return "", false, err
	}
	before := usage(state)
	for _, args := range [][]string{append([]string{"sessions", "rm"}, m.ids...), {"storage", "compact"}} {
		if err := must(l.bough(ctx, state, "", args...)); err != nil {
			return "", false, err
		}
	}
	after := usage(state)
	return fmt.Sprintf("%.1f MB of %.0f MB", after, before), after < 20, endStorage(state)
}

// usage is what a folder takes on the disk, in MB.
func usage(dir string) (mb float64) {
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error { // files come and go
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil {
			mb += float64(st.Blocks) * 512 / 1e6
		}
		return nil
	})
	return mb
}

// goBench is a figure of a benchmark of a package, times a factor.
func goBench(pkg, name, unit string, factor float64, shown string, bar float64, atLeast bool) measure {
	return func(ctx context.Context, _ *lab) (string, bool, error) {
		parts := strings.Split(name, "/")
		for i := range parts {
			parts[i] = "^" + parts[i] + "$"
		}
		out, err := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", strings.Join(parts, "/"), "-benchtime", "1s", "-count", "3", pkg).CombinedOutput()
		if err != nil {
			return "", false, fmt.Errorf("%w: %s", err, out)
		}
		var all []float64
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			for i := 2; i+1 < len(f) && strings.HasPrefix(f[0], name); i += 2 {
				if v, err := strconv.ParseFloat(f[i], 64); err == nil && f[i+1] == unit {
					all = append(all, v*factor)
				}
			}
		}
		if len(all) == 0 {
			return "", false, fmt.Errorf("%s of %s gives no %s: %s", name, pkg, unit, out)
		}
		v := median(all)
		return fmt.Sprintf("%.3g %s", v, shown), v < bar != atLeast, nil
	}
}
