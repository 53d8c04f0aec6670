package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/tool/outputs"
)

func newSessionsCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sessions",
		Short: "List, show, fork, export and remove sessions",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newSessionsListCommand(env), newSessionsShowCommand(env), newSessionsTreeCommand(env),
		newSessionsRenameCommand(env), newSessionsForkCommand(env), newSessionsExportCommand(env), newSessionsImportCommand(env),
		newSessionsRemoveCommand(env), newSessionsVerifyCommand(env),
	)
	return cmd
}

// exactly wants n arguments and says what they are.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("`%s` takes %s; `%s --help` shows more", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return nil
	}
}

// withSessions runs a command on the sessions of the state directory.
func (env *environment) withSessions(ctx context.Context, run func(a *app) error) error {
	if env.ephemeral {
		return usagef("--ephemeral keeps no sessions: leave it out")
	}
	a, err := env.openSessions(ctx)
	if err != nil {
		return err
	}
	return errors.Join(run(a), a.close())
}

type sessionJSON struct {
	ID         string    `json:"id"`
	Title      string    `json:"title"`
	Folder     string    `json:"folder"`
	Model      string    `json:"model"`
	Created    time.Time `json:"created"`
	Active     time.Time `json:"active"`
	Items      uint64    `json:"items"`
	Bytes      uint64    `json:"payload_bytes"`
	Head       string    `json:"head"`
	ForkedFrom string    `json:"forked_from,omitempty"`
	OpenTurn   bool      `json:"open_turn,omitempty"`
	Damage     string    `json:"damage,omitempty"` // why the rest is not known
}

func sessionOf(r session.Record) sessionJSON {
	if err := r.Damage(); err != nil {
		return sessionJSON{ID: r.ID(), Damage: err.Error()}
	}
	p := r.Proto()
	return sessionJSON{
		ID: r.ID(), Title: r.Title(), Folder: r.Folder(), Model: p.GetModel(), Created: r.Created(), Active: r.Active(),
		Items: p.GetItems(), Bytes: p.GetPayloadBytes(), Head: r.Head().String(), ForkedFrom: p.GetForkedFrom(), OpenTurn: p.GetOpenTurn() != nil,
	}
}

func newSessionsListCommand(env *environment) *cobra.Command {
	var asJSON bool
	var here string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions, last active first",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.withSessions(cmd.Context(), func(a *app) error {
				folder := here
				if folder != "" {
					var err error
					if folder, err = (&runOptions{cwd: folder}).folder(); err != nil {
						return err
					}
				}
				records, err := a.sessions.List(cmd.Context(), session.ListOptions{Folder: folder, Limit: limit})
				if err != nil {
					return err
				}
				if asJSON {
					list := make([]sessionJSON, len(records))
					for i, r := range records {
						list[i] = sessionOf(r)
					}
					return writeJSON(env.stdout, list)
				}
				if len(records) == 0 {
					fmt.Fprintln(env.stderr, "No sessions yet. `bough` or `bough -p` begins one.")
				}
				for _, r := range records {
					if err := r.Damage(); err != nil {
						fmt.Fprintf(env.stdout, "%-12s %v\n", r.ID(), err)
						continue
					}
					fmt.Fprintf(env.stdout, "%-12s %s  %5d items  %s  (%s)\n", r.ID(), r.Active().Format("2006-01-02 15:04"),
						r.Proto().GetItems(), session.Printable(r.Title()), session.Printable(r.Folder()))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().StringVar(&here, "folder", "", "only those of this folder")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many")
	return cmd
}

func newSessionsShowCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show the path of a session: what the model is told",
		Args:  exactly(1, "a session: its id or title"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withSessions(cmd.Context(), func(a *app) error {
				ctx := cmd.Context()
				rec, err := a.sessions.Find(ctx, args[0])
				if err != nil {
					return err
				}
				path, err := a.sessions.Path(ctx, rec.Head())
				if err != nil {
					return err
				}
				out := bufio.NewWriter(env.stdout)
				if asJSON {
					if err := writeLine(out, sessionOf(rec)); err != nil {
						return err
					}
				}
				for it, err := range path.Items(ctx, 0, path.Len()) {
					if it == nil {
						return err
					}
					if asJSON {
						err = showJSON(out, rec.ID(), it, err)
					} else {
						err = showText(out, it, err)
					}
					if err != nil {
						return err
					}
				}
				return out.Flush()
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON lines: the session, then its items")
	return cmd
}

func showJSON(w io.Writer, id string, it *session.Item, damage error) error {
	m := messageOf(id, it.Ref, it.Payload)
	if m == nil {
		m = &message{Type: "system", Subtype: "unknown", SessionID: id, Item: it.Ref.String()}
	}
	if damage != nil {
		m.Subtype, m.Text = "damaged", damage.Error()
	}
	return writeLine(w, m)
}

func showText(w io.Writer, it *session.Item, damage error) error {
	line := itemLine(it.Payload)
	if damage != nil {
		line = "(damaged) " + damage.Error()
	}
	if it.Payload.GetPartial() {
		line += "\n  (cut off here)"
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

func newSessionsRenameCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rename SESSION NAME",
		Short: "Name a session; `default` gives back the title of its first prompt",
		Args:  exactly(2, "a session and its new name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withSessions(cmd.Context(), func(a *app) error {
				rec, err := a.sessions.Find(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				o, err := a.sessions.Acquire(cmd.Context(), rec.ID(), holder("bough sessions rename"))
				if err != nil {
					return err
				}
				err = o.SetTitle(cmd.Context(), args[1], sessionpb.TitleSource_TITLE_SOURCE_PERSON)
				switch {
				case err != nil:
				case asJSON:
					err = writeJSON(env.stdout, sessionOf(o.Record()))
				default:
					fmt.Fprintf(env.stdout, "%s is now called %s\n", o.ID(), session.Printable(o.Record().Title()))
				}
				return errors.Join(err, o.Close(context.WithoutCancel(cmd.Context())))
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON: the session")
	return cmd
}

func newSessionsRemoveCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rm SESSION...",
		Short: "Remove sessions, with their outputs; what a fork needs stays",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("`%s` takes one session or more", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withSessions(cmd.Context(), func(a *app) error {
				return removeSessions(cmd.Context(), env, a, args, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func removeSessions(ctx context.Context, env *environment, a *app, names []string, asJSON bool) error {
	var ids []string
	for _, name := range names {
		rec, err := a.sessions.Find(ctx, name)
		if err != nil {
			return err // before anything is removed
		}
		ids = append(ids, rec.ID())
	}
	removed := []string{}
	var failed error
	for _, id := range ids {
		err := a.sessions.Delete(ctx, id, holder("bough sessions rm"))
		if err == nil {
			removed = append(removed, id)
			err = outputs.New(a.layout.outputs()).RemoveSession(id)
		}
		failed = errors.Join(failed, err)
	}
	if _, err := a.sessions.Sweep(ctx); err != nil {
		failed = errors.Join(failed, err)
	}
	if asJSON {
		return errors.Join(failed, writeJSON(env.stdout, map[string][]string{"removed": removed}))
	}
	for _, id := range removed {
		fmt.Fprintf(env.stdout, "removed %s\n", id)
	}
	return failed
}

func newSessionsVerifyCommand(env *environment) *cobra.Command {
	var asJSON, rebuild bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Walk every session from its head to its root, and read every item",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return env.withSessions(cmd.Context(), func(a *app) error {
				if rebuild {
					n, err := a.sessions.RebuildIndexes(cmd.Context())
					if err != nil {
						return err
					}
					fmt.Fprintf(env.stderr, "The indexes of %d sessions were made anew.\n", n)
				}
				report, err := a.sessions.Verify(cmd.Context(), nil)
				if err != nil {
					return err
				}
				return showVerify(env, report, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().BoolVar(&rebuild, "rebuild-indexes", false, "first make the indexes of the list anew")
	return cmd
}

func showVerify(env *environment, report session.VerifyReport, asJSON bool) error {
	if asJSON {
		type problem struct{ Session, Item, Problem string }
		problems := []problem{}
		for _, p := range report.Problems {
			problems = append(problems, problem{p.Session, p.Item.String(), p.Text})
		}
		if err := writeJSON(env.stdout, map[string]any{"sessions": report.Sessions, "items": report.Items, "problems": problems}); err != nil {
			return err
		}
	} else {
		for _, p := range report.Problems {
			fmt.Fprintf(env.stdout, "%s %s: %s\n", p.Session, p.Item, p.Text)
		}
		fmt.Fprintf(env.stdout, "%d sessions, %d items, %d problems\n", report.Sessions, report.Items, len(report.Problems))
	}
	if len(report.Problems) > 0 {
		return &codedError{code: exitError}
	}
	return nil
}
