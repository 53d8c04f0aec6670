package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A row is one thing that is measured.
type row struct {
	what string
	bar  string
	// measure returns the figure for people, and whether it passes the bar.
	measure func(ctx context.Context, l *lab) (figure string, met bool, err error)
}

type result struct {
	row
	figure string
	met    bool
}

func measureAll(ctx context.Context, l *lab, only *regexp.Regexp, out io.Writer) ([]result, error) {
	var results []result
	for _, r := range rows() {
		if !only.MatchString(r.what) {
			continue
		}
		figure, met, err := r.measure(ctx, l)
		if err != nil {
			return results, fmt.Errorf("measure %q: %w", r.what, err)
		}
		results = append(results, result{r, figure, met})
		fmt.Fprintf(out, "%-6s %s\n       bar %s\n       is  %s\n", verdict(met), r.what, r.bar, figure)
	}
	return results, nil
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}

// writeDocument writes the table with the description of the machine.
func writeDocument(path string, results []result) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Performance

What bough should reach, and what it was measured to reach. `+"`make bench`"+` measures anew and writes this page; medians of
several runs, of the whole tree of processes, with the real programs and a local server in place of the model. The items are
made from a seed, of real code and English. Timings of one machine say little about another; compare runs of one machine.

Measured on %s: %s.

| what | bar | figure | |
|---|---|---|---|
`, time.Now().Format(time.DateOnly), machine())
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.what, r.bar, r.figure, verdict(r.met))
	}
	fmt.Fprintf(&b, `
`+"`make bench-go`"+` runs the benchmarks of the packages, for work on one of them.
`)
	return os.WriteFile(path, b.Bytes(), 0o644) //nolint:gosec // a document
}

// machine describes where it was measured.
func machine() string {
	cpu := "unknown CPU"
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	var u unix.Utsname
	system := runtime.GOOS
	if unix.Uname(&u) == nil {
		system = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	return fmt.Sprintf("%d cores of %s, %s, %s", runtime.NumCPU(), cpu, system, runtime.Version())
}
