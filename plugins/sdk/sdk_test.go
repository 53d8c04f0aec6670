package sdk

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
	"github.com/boughdev/bough/plugins/wire/handshake"
	"github.com/boughdev/bough/plugins/wire/rendezvous"
)

func TestPluginsThatCannotBeServed(t *testing.T) {
	var tools struct{ tool.Provider }
	var space struct{ workspace.Workspace }
	var models struct{ model.Provider }
	t.Setenv(handshake.CookieKey, "")
	for want, p := range map[string]Plugin{
		"needs a name":             {Tools: tools},
		"offers nothing":           {Name: "p"},
		"both Tools and Workspace": {Name: "p", Tools: tools, Workspace: space},
		"bough starts it":          {Name: "p", Models: models},
	} {
		if err := Serve(t.Context(), p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", p, err, want)
		}
	}
}

func TestStorageOfAnOwnedDirectory(t *testing.T) {
	dir := t.TempDir()
	lock, err := rendezvous.TryLock(dir, rendezvous.OwnerLock)
	if err != nil || lock == nil {
		t.Fatal(lock, err)
	}
	defer lock.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = ServeStorage(ctx, StorageServer{StateDir: dir, Open: func(context.Context) (Backend, error) {
		t.Error("the store of a directory that another process owns was opened")
		return nil, errors.New("opened")
	}})
	if err == nil || !strings.Contains(err.Error(), dir+": another storage process owns it, and does not leave") {
		t.Errorf("got %v", err)
	}
}

func TestDrainWaitsForCalls(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	l := &life{ctx: ctx}
	if !l.drain(0) {
		t.Error("nothing runs, and drain waits")
	}
	work, end := l.call(t.Context())
	if l.drain(10 * time.Millisecond) {
		t.Error("drain does not wait for a call")
	}
	stop()
	<-work.Done() // the call's work ends with the process's life
	drained := make(chan bool)
	go func() { drained <- l.drain(10 * time.Second) }()
	end()
	if !<-drained {
		t.Error("drain does not see the end of the call")
	}
}

// TestDoor: the last who leaves starts the clock, and one who comes stops it.
func TestDoor(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	d := newDoor(l, time.Hour, func() bool { return true }, func() { close(left) })
	defer d.Close()
	for range 2 {
		if !d.enter() {
			t.Fatal("nobody may enter")
		}
	}
	d.exit()
	d.empty() // the clock of a moment when nobody was inside, too late
	select {
	case <-left:
		t.Fatal("it left with somebody inside")
	default:
	}
	d.exit()
	d.empty()
	<-left
	if d.enter() {
		t.Error("somebody entered after it left")
	}
}

func TestDoorOfADeletedDirectory(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	d := newDoor(l, time.Hour, func() bool { return false }, func() { close(left) })
	defer d.Close()
	d.enter()
	d.exit()
	select {
	case <-left:
	case <-time.After(5 * time.Second):
		t.Error("it waits for hosts that cannot come")
	}
}
