package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/store"
)

func newStorageCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "storage",
		Short: "Check, measure, back up and repair what bough keeps",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, op := range []struct {
		use, short string
		op         store.Operation
	}{
		{"check", "Read everything and compare it with its checksums", store.Check},
		{"stats", "How much there is", store.Stats},
		{"compact", "Pack old items and give deleted bytes back to the disk", store.Compact},
		{"repair", "Mend a damaged store as far as can be; nothing is deleted", store.Repair},
	} {
		cmd.AddCommand(newMaintainCommand(env, op.use, op.short, op.op))
	}
	cmd.AddCommand(newPathCommand(env), newBackupCommand(env), newRestoreCommand(env))
	return cmd
}

func (env *environment) withStorage(ctx context.Context, run func(a *app) error) error {
	if env.ephemeral {
		return usagef("--ephemeral keeps nothing: leave it out")
	}
	a, err := env.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(run(a), a.close())
}

func newPathCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "path",
		Short: "Print the state directory",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			dir, err := stateDir()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(env.stdout, dir)
			return err
		},
	}
}

func newMaintainCommand(env *environment, use, short string, op store.Operation) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.withStorage(cmd.Context(), func(a *app) error {
				progress := func(line string) {
					if !asJSON {
						fmt.Fprintln(env.stderr, line)
					}
				}
				if op == store.Compact {
					if err := settle(cmd.Context(), a.storage, progress); err != nil {
						return err
					}
				}
				report, err := a.storage.Maintain(cmd.Context(), op, progress)
				if err != nil {
					return err
				}
				return showReport(env, report, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// settle packs all items that are settled, a few MB at a time.
func settle(ctx context.Context, st store.Store, progress func(string)) error {
	sessions, err := session.Open(ctx, st, session.Options{})
	if err != nil {
		return err
	}
	for packed := 0; ; {
		r, err := sessions.Settle(ctx, 16<<20)
		if err != nil {
			return err
		}
		if packed += r.Items; r.Items > 0 {
			progress(fmt.Sprintf("packed %d settled items", packed))
		}
		if !r.More {
			return nil
		}
	}
}

func showReport(env *environment, r store.Report, asJSON bool) error {
	if asJSON {
		figures := map[string]int64{}
		for _, f := range r.Figures {
			figures[f.Name] = f.Value
		}
		if err := writeJSON(env.stdout, map[string]any{
			"figures": figures, "problems": append([]string{}, r.Problems...), "actions": append([]string{}, r.Actions...),
		}); err != nil {
			return err
		}
	} else {
		for _, f := range r.Figures {
			fmt.Fprintf(env.stdout, "%-18s %d\n", f.Name, f.Value)
		}
		for _, a := range r.Actions {
			fmt.Fprintln(env.stdout, a)
		}
		for _, p := range r.Problems {
			fmt.Fprintf(env.stdout, "problem: %s\n", p)
		}
		if len(r.Problems) == 0 {
			fmt.Fprintln(env.stdout, "no problems")
		}
	}
	if len(r.Problems) > 0 {
		return &codedError{code: exitError}
	}
	return nil
}

func newBackupCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a copy of the whole store; - is standard output",
		Args:  exactly(1, "a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withStorage(cmd.Context(), func(a *app) error {
				write := func(w io.Writer) error { return a.storage.Backup(cmd.Context(), w) }
				if args[0] == "-" {
					return write(env.stdout)
				}
				if err := writeFile(args[0], write); err != nil {
					return err
				}
				fmt.Fprintln(env.stdout, args[0])
				return nil
			})
		},
	}
}

func newRestoreCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Fill an empty or damaged store from a backup; what was there is kept beside it",
		Args:  exactly(1, "a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withStorage(cmd.Context(), func(a *app) error {
				in := io.Reader(env.stdin)
				if args[0] != "-" {
					f, err := os.Open(args[0])
					if err != nil {
						return fmt.Errorf("restore: %w", err)
					}
					defer f.Close()
					in = f
				}
				n, err := a.storage.Restore(cmd.Context(), in)
				if err != nil {
					return err
				}
				fmt.Fprintf(env.stdout, "%d entries restored\n", n)
				return nil
			})
		},
	}
}
