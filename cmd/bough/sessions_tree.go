package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
)

type treeItem struct {
	Item   string    `json:"item"`
	Parent string    `json:"parent"`
	Kind   string    `json:"kind"`
	Time   time.Time `json:"time"`
	Text   string    `json:"text"`
	OnPath bool      `json:"on_path"`
	Head   bool      `json:"head,omitempty"`
}

func newSessionsTreeCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tree SESSION",
		Short: "Show all items of a session, the branches left behind too",
		Args:  exactly(1, "a session: its id or title"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.withSessions(cmd.Context(), func(a *app) error {
				rec, err := a.sessions.Find(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return writeTree(cmd.Context(), env.stdout, a.sessions, rec, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON lines")
	return cmd
}

// writeTree writes a line an item. A branch is set in below the item it leaves;
// `*` marks the path to the head.
func writeTree(ctx context.Context, w io.Writer, s *session.Sessions, rec session.Record, asJSON bool) error {
	path, err := s.Path(ctx, rec.Head())
	if err != nil {
		return err
	}
	onPath := map[session.Ref]bool{}
	for i := range path.Len() {
		ref, err := path.Ref(ctx, i)
		if err != nil {
			return err
		}
		onPath[ref] = true
	}
	out := bufio.NewWriter(w)
	depth := map[session.Ref]int{}      // how far an item is set in
	continued := map[session.Ref]bool{} // it has a child already: the next one branches
	for it, err := range s.AllItems(ctx, rec) {
		if it == nil {
			return err
		}
		text := itemSummary(it.Payload)
		if err != nil {
			text = err.Error()
		}
		in := depth[it.Parent]
		if continued[it.Parent] {
			in++
		}
		continued[it.Parent] = true
		if in > 0 {
			depth[it.Ref] = in
		}
		node := treeItem{it.Ref.String(), it.Parent.String(), it.Kind().String(), it.Time(), text, onPath[it.Ref], it.Ref == rec.Head()}
		if asJSON {
			if err := writeLine(out, node); err != nil {
				return err
			}
			continue
		}
		mark := " "
		if node.OnPath {
			mark = "*"
		}
		tail := ""
		if node.Head {
			tail = "   <- head"
		}
		fmt.Fprintf(out, "%s %s%-18s %-11s %s%s\n", mark, strings.Repeat("    ", min(in, 8)), node.Item, node.Kind, node.Text, tail)
	}
	return out.Flush()
}

// itemSummary is an item in one short line.
func itemSummary(p *sessionpb.Payload) string {
	line := itemLine(p)
	switch p.GetBody().(type) {
	case *sessionpb.Payload_Prompt, *sessionpb.Payload_Text, *sessionpb.Payload_Reasoning, *sessionpb.Payload_ToolCall:
		line = strings.TrimLeft(line, ">~* ")
	case *sessionpb.Payload_ToolResult:
		line = strings.TrimSpace(line)
	}
	line = strings.Join(strings.Fields(line), " ")
	if runes := []rune(line); len(runes) > 90 {
		line = string(runes[:89]) + "…"
	}
	return line
}
