package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/plugins/badger"
)

// The page tells of all that is measured, against the same bars.
func TestThePageIsOfTheseRows(t *testing.T) {
	page, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows() {
		if !strings.Contains(string(page), "| "+r.what+" | "+r.bar+" |") {
			t.Errorf("docs/performance.md has no row %q with bar %q: run `make bench`", r.what, r.bar)
		}
	}
}

// A store is the same for the same seed, and whole.
func TestAStoreIsMadeFromItsSeed(t *testing.T) {
	var all [2][]proto.Message
	for i := range all {
		dir := t.TempDir()
		var out bytes.Buffer
		if err := run(t.Context(), []string{"store", dir, "-sessions", "3", "-items", "1500", "-seed", "9"}, &out, os.Stderr); err != nil {
			t.Fatal(err)
		}
		st, err := badger.Open(t.Context(), dir+"/store", badger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := session.Open(t.Context(), st, session.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range strings.Fields(out.String()) {
			rec, err := s.Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for it, err := range s.AllItems(t.Context(), rec) {
				if err != nil {
					t.Fatal(err)
				}
				all[i] = append(all[i], it.Payload)
			}
		}
		if report, err := s.Verify(t.Context(), nil); err != nil || report.Sessions != 3 || len(report.Problems) > 0 {
			t.Errorf("verify: %+v, %v", report, err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(all[0]) != 4500 || len(all[1]) != 4500 {
		t.Fatalf("%d and %d items", len(all[0]), len(all[1]))
	}
	for i := range all[0] {
		if !proto.Equal(all[0][i], all[1][i]) {
			t.Fatalf("item %d is %v, and then %v", i, all[0][i], all[1][i])
		}
	}
}

func TestBadArgumentsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"store"}, {"store", "-items", "3"}, {"-only", "["}, {"probe", "open"}} {
		if err := run(t.Context(), args, os.Stdout, new(bytes.Buffer)); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}

func TestTheMedianIsTheMiddle(t *testing.T) {
	if got := median([]int{9, 1, 5, 7, 2}); got != 5 {
		t.Error(got)
	}
}
