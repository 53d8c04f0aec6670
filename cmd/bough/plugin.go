package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/boughdev/bough/plugins/badger"
	"github.com/boughdev/bough/plugins/sdk"
	"github.com/boughdev/bough/plugins/workspace"
)

func newPluginCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "The plugins that bough runs",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPluginListCommand(env), newServeCommand())
	return cmd
}

type pluginInfo struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Program string `json:"program"`
	Present bool   `json:"present"`
}

func newPluginListCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the plugins",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find our own program: %w", err)
			}
			list := []pluginInfo{
				{"storage", "storage (badger)", self, true},
				{"workspace", "workspace (files, shell)", self, true},
				{Name: "models", Kind: "models (openai-compatible)", Program: filepath.Join(filepath.Dir(self), "bough-models")},
			}
			_, err = os.Stat(list[2].Program)
			list[2].Present = err == nil
			if asJSON {
				return writeJSON(env.stdout, list)
			}
			for _, p := range list {
				missing := ""
				if !p.Present {
					missing = "  (not installed)"
				}
				fmt.Fprintf(env.stdout, "%-10s  %-26s %s%s\n", p.Name, p.Kind, p.Program, missing)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// newServeCommand is how bough starts itself as one of its own plugins.
func newServeCommand() *cobra.Command {
	serve := &cobra.Command{Use: "serve", Short: "Run as a plugin process; bough starts these itself", Hidden: true, Args: noArguments}
	var state string
	var linger time.Duration
	storage := &cobra.Command{
		Use:  "storage",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return serveStorage(cmd.Context(), state, linger) },
	}
	storage.Flags().StringVar(&state, "state-dir", "", "the state directory")
	storage.Flags().DurationVar(&linger, "linger", 0, "how long to stay after the last connection")
	var out string
	ws := &cobra.Command{
		Use:  "workspace",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := workspace.New(workspace.Options{OutputsDir: out, Logger: sdk.Logger()})
			return sdk.Serve(cmd.Context(), sdk.Plugin{Name: "workspace", Version: version, Workspace: w, Close: w.Stop})
		},
	}
	ws.Flags().StringVar(&out, "outputs", "", "where whole outputs are kept")
	serve.AddCommand(storage, ws)
	return serve
}

func serveStorage(ctx context.Context, state string, linger time.Duration) error {
	if state == "" {
		return usagef("--state-dir is missing")
	}
	l := layout{state}
	logger := sdk.Logger()
	// A terminal's hang-up or Ctrl+C is not meant for the storage: it ends
	// when its last connection is gone.
	err := sdk.ServeStorage(context.WithoutCancel(ctx), sdk.StorageServer{
		StateDir: state, Linger: linger, Logger: logger,
		Open: func(ctx context.Context) (sdk.Backend, error) {
			return badger.Open(ctx, l.store(), badger.Options{Logger: logger})
		},
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
