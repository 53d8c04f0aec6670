package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/tool/outputs"
)

func newSessionsForkCommand(env *environment) *cobra.Command {
	var at string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "fork SESSION",
		Short: "Make a session that goes on from an item of another; nothing is copied",
		Args:  exactly(1, "a session: its id or title"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withSessions(cmd.Context(), func(a *app) error {
				rec, err := a.sessions.Find(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				ref := rec.Head()
				if at != "" {
					if ref, err = session.ParseRef(at); err != nil {
						return usagef("--at: %w", err)
					}
				}
				child, prompt, err := a.sessions.Fork(cmd.Context(), rec.ID(), ref, session.ForkOptions{})
				if err != nil {
					return err
				}
				if err := outputs.New(a.layout.outputs()).CopyTo(rec.ID(), child.ID()); err != nil {
					fmt.Fprintf(env.stderr, "bough: the fork was made, but not all retained outputs came along: %v\n", err)
				}
				if asJSON {
					return writeJSON(env.stdout, struct {
						sessionJSON
						Composer string `json:"composer,omitempty"`
					}{sessionOf(child), prompt.GetText()})
				}
				fmt.Fprintln(env.stdout, child.ID())
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "the item, as `bough sessions tree` shows it (default: the head)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func newSessionsExportCommand(env *environment) *cobra.Command {
	var format string
	var full, asJSON bool
	cmd := &cobra.Command{
		Use:   "export SESSION [FILE]",
		Short: "Write a session as Markdown, or as JSON lines that import reads",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return usagef("`%s` takes a session, and perhaps a file or folder", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON {
				if cmd.Flags().Changed("format") && format != "json" {
					return usagef("--json and --format %s exclude each other", format)
				}
				format = "json"
			}
			if format != "markdown" && format != "json" {
				return usagef("--format is %q: it takes markdown or json", format)
			}
			return env.withSessions(cmd.Context(), func(a *app) error {
				rec, err := a.sessions.Find(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				write := func(w io.Writer) error {
					if format == "json" {
						return a.sessions.Export(cmd.Context(), rec.ID(), w)
					}
					return a.sessions.Markdown(cmd.Context(), rec.ID(), w, session.MarkdownOptions{Full: full})
				}
				if len(args) == 2 && args[1] == "-" {
					return write(env.stdout)
				}
				path, err := exportFile(rec, args[1:], format)
				if err != nil {
					return err
				}
				if err := writeFile(path, write); err != nil {
					return err
				}
				fmt.Fprintln(env.stdout, path)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "markdown", "markdown or json")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	cmd.Flags().BoolVar(&full, "full", false, "of markdown: also reasoning and the output of calls")
	return cmd
}

// exportFile is where an export goes: a file named after the session here, or
// in the folder that is given, or the file that is given.
func exportFile(rec session.Record, args []string, format string) (string, error) {
	name := rec.ID() + map[string]string{"markdown": ".md", "json": ".jsonl"}[format]
	if len(args) == 0 {
		return name, nil
	}
	info, err := os.Stat(args[0])
	if err == nil && info.IsDir() {
		return filepath.Join(args[0], name), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("export to %s: %w", args[0], err)
	}
	return args[0], nil
}

// writeFile writes a file whole or not at all.
func writeFile(path string, write func(io.Writer) error) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".bough-export-")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(tmp.Name())
	err = write(tmp)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func newSessionsImportCommand(env *environment) *cobra.Command {
	var o session.ImportOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Read a session that `export --format json` wrote; - is standard input",
		Args:  exactly(1, "a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withSessions(cmd.Context(), func(a *app) error {
				in := io.Reader(env.stdin)
				if args[0] != "-" {
					f, err := os.Open(args[0])
					if err != nil {
						return fmt.Errorf("import: %w", err)
					}
					defer f.Close()
					in = f
				}
				rec, err := a.sessions.Import(cmd.Context(), in, o)
				if err != nil {
					return err
				}
				if asJSON {
					return writeJSON(env.stdout, sessionOf(rec))
				}
				fmt.Fprintln(env.stdout, rec.ID())
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&o.ID, "id", "", "the id of the new session (default: its old one where that is free)")
	cmd.Flags().StringVar(&o.Folder, "folder", "", "the folder it works in (default: its old one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}
