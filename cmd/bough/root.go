package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

func newRoot(env *environment) *cobra.Command {
	opts := &runOptions{}
	root := &cobra.Command{
		Use:   "bough",
		Short: "a terminal host for coding agents",
		Long: `bough runs a coding agent in your folder and keeps every prompt, answer, tool
call and result, so that any point of a session can be returned to.

Without a command it opens here; with --print it answers one prompt and ends.`,
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runRoot(cmd.Context(), env, opts)
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usagef("%w; `bough --help` lists the flags", err)
	})
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.PersistentFlags().BoolVar(&env.ephemeral, "ephemeral", false, "keep nothing: a private temporary state directory, removed at exit")
	opts.addFlags(root.Flags())
	root.AddCommand(
		newSessionsCommand(env),
		newStorageCommand(env),
		newPluginCommand(env),
		newVersionCommand(env),
	)
	suggest(root)
	return root
}

// suggest lets every command name the nearest of its own for a typo.
func suggest(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	for _, c := range cmd.Commands() {
		suggest(c)
	}
}

// noArguments refuses a bare word: it can only be a command that was mistyped.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	msg := fmt.Sprintf("%q is no command of %s", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		msg += fmt.Sprintf("; did you mean `%s %s`?", cmd.CommandPath(), strings.Join(near, "`, `"+cmd.CommandPath()+" "))
	} else {
		msg += fmt.Sprintf("; `%s --help` lists them", cmd.CommandPath())
	}
	if cmd.Parent() == nil && len(cmd.SuggestionsFor(args[0])) == 0 {
		msg += ", and a prompt is given with --prompt TEXT or on standard input"
	}
	return usagef("%s", msg)
}

func newVersionCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return writeJSON(env.stdout, map[string]string{
					"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(env.stdout, "bough %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}
