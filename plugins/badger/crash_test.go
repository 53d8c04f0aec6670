package badger_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/plugins/badger"
)

// TestCrashWriter is not a test but the process that TestKilled kills: it
// writes, and tells what it was told is durable.
func TestCrashWriter(t *testing.T) {
	dir := os.Getenv("BOUGH_TEST_CRASH")
	if dir == "" {
		t.Skip("it is run by TestKilled")
	}
	s, err := badger.Open(context.Background(), dir, badger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nopen\n")
	go func() { // and gives room back all the while
		for {
			if _, err := s.Maintain(context.Background(), store.Compact, nil); err != nil {
				fmt.Println("FAIL", err)
			}
		}
	}()
	for i := 0; ; i++ {
		var b store.Batch
		b.Put([]byte("In"), fmt.Append(nil, i))
		b.Put(fmt.Appendf(nil, "I%03d", i%200), bytes.Repeat([]byte{byte(i)}, 20_000))
		if _, err := s.Commit(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%d\n", i)
	}
}

// TestKilled kills a writer with -9 at any moment, in merges too: what it was
// told is durable is there.
func TestKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	for round := range 12 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCrashWriter$", "-test.v")
		cmd.Env = append(os.Environ(), "BOUGH_TEST_CRASH="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		acked := -1
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if n := 0; len(lines.Text()) > 0 {
				if _, err := fmt.Sscanf(lines.Text(), "%d", &n); err == nil {
					acked = n
				} else if strings.Contains(lines.Text(), "FAIL") {
					t.Fatalf("round %d: %s", round, lines.Text())
				}
			}
			if acked >= 150*(round+1) {
				break
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it said before it died
			n := 0
			if _, err := fmt.Sscanf(lines.Text(), "%d\n", &n); err == nil && fmt.Sprint(n) == lines.Text() {
				acked = max(acked, n)
			}
		}
		_ = cmd.Wait() // killed
		s := open(t, dir, badger.Options{})
		if info, err := s.Info(t.Context()); err != nil || info.Refusal != "" {
			t.Fatalf("round %d: refusal %q, %v", round, info.Refusal, err)
		}
		entries, err := s.Get(t.Context(), []byte("In"))
		if err != nil {
			t.Fatal(err)
		}
		last := -1
		if _, err := fmt.Sscanf(string(entries[0].Value), "%d", &last); err != nil || last < acked {
			t.Fatalf("round %d: %d was acknowledged, and %d is there: %v", round, acked, last, err)
		}
		for i := max(0, last-199); i <= last; i++ {
			e, err := s.Get(t.Context(), fmt.Appendf(nil, "I%03d", i%200))
			if err != nil || !bytes.Equal(e[0].Value, bytes.Repeat([]byte{byte(i)}, 20_000)) {
				t.Fatalf("round %d: row %d of %d is wrong: %v", round, i, last, err)
			}
		}
		if report, err := s.Maintain(t.Context(), store.Check, nil); err != nil || len(report.Problems) > 0 {
			t.Fatalf("round %d: %+v, %v", round, report, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
