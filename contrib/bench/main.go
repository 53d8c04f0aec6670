// Command bench measures bough as its users run it: the real programs, real
// storage, a local server in place of the model. It prints a table of what is
// measured, the bar that it should pass, and the figure.
//
//	go run ./contrib/bench                 all of it, a few minutes
//	go run ./contrib/bench -only append    rows whose name matches
//	go run ./contrib/bench -o FILE         the table as a document, too
//	go run ./contrib/bench store DIR ...   only make a store (see its -h)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"

	"golang.org/x/sys/unix"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "store":
			return makeStore(ctx, args[1:], stdout, stderr)
		case "probe": // this program as a process of its own, which a row measures
			return probe(ctx, args[1:], stdout)
		}
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "measure only the rows whose name matches this `pattern`")
	out := flags.String("o", "", "write the table to this `file` as a document")
	small := flags.Bool("small", false, "a hundredth of the items: to see that it works, not to measure")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	l, err := newLab(ctx, stderr, *small)
	if err != nil {
		return err
	}
	results, err := measureAll(ctx, l, pattern, stdout)
	if err = errors.Join(err, l.close()); err != nil {
		return err
	}
	if *out == "" {
		return nil
	}
	return writeDocument(*out, results)
}
