package session_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/memstore"
)

// branched is a fork with a branch left behind in the parent and one of its own.
func branched(t *testing.T, s *session.Sessions) session.Record {
	t.Helper()
	ctx := context.Background()
	o := create(t, s)
	refs := add(t, o, prompt("start `here`"), text("a ``` fence"), call("c1"), result("c1", "out\x1b[31m```\n"))
	if err := o.MoveHead(ctx, refs[1], "undo"); err != nil {
		t.Fatal(err)
	}
	more := add(t, o, prompt("other way"), text("yes"))
	rec, _, err := s.Fork(ctx, o.ID(), more[1], session.ForkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Acquire(ctx, rec.ID(), me)
	if err != nil {
		t.Fatal(err)
	}
	add(t, f, prompt("in the fork"), text("fine"))
	if err := f.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return f.Record()
}

func export(t *testing.T, s *session.Sessions, id string) string {
	t.Helper()
	var buf bytes.Buffer
	if err := s.Export(context.Background(), id, &buf); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestAnExportComesBackEqual(t *testing.T) {
	ctx := context.Background()
	s := open(t, memstore.New(), session.Options{})
	rec := branched(t, s)
	first := export(t, s, rec.ID())
	other := open(t, memstore.New(), session.Options{})
	back, err := other.Import(ctx, strings.NewReader(first), session.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if back.ID() != rec.ID() || back.Title() != rec.Title() || back.Active() != rec.Active() {
		t.Errorf("imported %s %q %v, exported %s %q %v", back.ID(), back.Title(), back.Active(), rec.ID(), rec.Title(), rec.Active())
	}
	want, got := onPath(t, s, rec.Head()), onPath(t, other, back.Head())
	if strings.Join(got, "|") != strings.Join(want, "|") || len(got) != 6 {
		t.Errorf("path %q, want %q", got, want)
	}
	if n := strings.Count(export(t, other, back.ID()), "\n"); n != strings.Count(first, "\n") {
		t.Errorf("the second export has %d lines, the first %d: a branch was lost", n, strings.Count(first, "\n"))
	}
	if report, err := other.Verify(ctx, nil); err != nil || len(report.Problems) > 0 {
		t.Errorf("verify after import: %v %v", err, report.Problems)
	}
	again, err := other.Import(ctx, strings.NewReader(first), session.ImportOptions{Folder: "/elsewhere"})
	if err != nil || again.ID() == back.ID() || again.Folder() != "/elsewhere" {
		t.Errorf("a second import = %v, %v; want another id", again, err)
	}
	imported, err := other.Acquire(ctx, back.ID(), me)
	if err != nil {
		t.Fatal(err)
	}
	add(t, imported, prompt("goes on"))
}

func TestABadExportIsRefusedAndLeavesNothing(t *testing.T) {
	ctx := context.Background()
	s := open(t, memstore.New(), session.Options{})
	good := export(t, s, branched(t, s).ID())
	lines := strings.SplitAfter(good, "\n")
	for name, tt := range map[string]struct{ input, want string }{
		"empty":         {"", "line 1"},
		"not JSON":      {"hello\n", "line 1"},
		"other kind":    {`{"bough_export":"recipe","format":1}` + "\n", "bough_export"},
		"later format":  {strings.Replace(good, `"format":1`, `"format":9`, 1), "format is 9"},
		"unknown field": {strings.Replace(good, `"format":1`, `"format":1,"x":1`, 1), "unknown field"},
		"cut off":       {strings.Join(lines[:4], ""), "not whole"},
		"line missing":  {lines[0] + strings.Join(lines[2:], ""), "parent"},
		"line twice":    {lines[0] + lines[1] + strings.Join(lines[1:], ""), "only once"},
		"bad payload":   {strings.Replace(good, `"payload":{`, `"payload":{"zzz":1,`, 1), "payload"},
	} {
		st := memstore.New()
		other := open(t, st, session.Options{})
		_, err := other.Import(ctx, strings.NewReader(tt.input), session.ImportOptions{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		for e := range st.Scan(ctx, store.Range{KeysOnly: true}) {
			if string(e.Key) != string(store.SchemaKey()) {
				t.Errorf("%s: key %x is left", name, e.Key)
			}
		}
	}
}

func TestMarkdown(t *testing.T) {
	ctx := context.Background()
	s := open(t, memstore.New(), session.Options{})
	o := create(t, s)
	add(t, o, prompt("run it"), call("c1"), result("c1", "out\x1b[31m\n```\nafter"), text("done"))
	var short, full strings.Builder
	if err := s.Markdown(ctx, o.ID(), &short, session.MarkdownOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Markdown(ctx, o.ID(), &full, session.MarkdownOptions{Full: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(short.String(), "- `shell`") || strings.Contains(short.String(), "after") {
		t.Errorf("short export:\n%s", short.String())
	}
	if !strings.Contains(full.String(), "````\nout\\x1b[31m\n```\nafter\n````") {
		t.Errorf("full export:\n%s", full.String())
	}
}

func FuzzImport(f *testing.F) {
	s, err := session.Open(context.Background(), memstore.New(), session.Options{})
	if err != nil {
		f.Fatal(err)
	}
	o, err := s.New(context.Background(), session.NewOptions{Folder: "/", Holder: me})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := o.Append(context.Background(), []*sessionpb.Payload{prompt("p"), text("t")}, session.AppendOptions{}); err != nil {
		f.Fatal(err)
	}
	var buf bytes.Buffer
	if err := s.Export(context.Background(), o.ID(), &buf); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Add([]byte(`{"bough_export":"session","format":1,"head":"root","session":{}}` + "\n" + `{"end":true,"items":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		st := memstore.New()
		s := open(t, st, session.Options{})
		rec, err := s.Import(context.Background(), bytes.NewReader(data), session.ImportOptions{})
		report, verr := s.Verify(context.Background(), nil)
		if verr != nil || len(report.Problems) > 0 {
			t.Fatalf("after an import (%v) the store is not sound: %v %v", err, verr, report.Problems)
		}
		if err == nil {
			if _, err := s.Acquire(context.Background(), rec.ID(), me); err != nil {
				t.Fatalf("what was imported cannot be opened: %v", err)
			}
		}
	})
}
