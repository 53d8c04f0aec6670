package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/boughdev/bough/plugins/manager"
	"github.com/boughdev/bough/plugins/workspace"
)

// The host does not ask its own workspace for its tools: it must know the same
// as the workspace tells.
func TestTheWorkspaceHasTheToolsThatTheHostKnows(t *testing.T) {
	tools := manager.NewTools(manager.Command{
		Name: "workspace", Path: filepath.Join(bin, "bough"), Logger: slog.New(slog.DiscardHandler),
		Args: []string{"plugin", "serve", "workspace", "--outputs", t.TempDir()},
	})
	defer func() {
		if err := tools.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	told, err := tools.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known, err := workspace.Specs()
	if err != nil {
		t.Fatal(err)
	}
	if len(told) == 0 || !reflect.DeepEqual(told, known) {
		t.Errorf("it tells\n%+v\nand the host knows\n%+v", told, known)
	}
}
