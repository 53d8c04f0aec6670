// Command bough is a terminal host for coding agents: it keeps every prompt,
// answer, tool call and result, and runs what a model asks for in processes
// that it watches.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(run())
}

// run is main without os.Exit, so that deferred work is done.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	env := &environment{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	root := newRoot(env)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintln(os.Stderr, "bough: "+msg)
	}
	return exitCodeOf(err)
}
