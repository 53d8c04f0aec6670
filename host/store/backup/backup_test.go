package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/store"
)

func entries(pairs ...string) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for i := 0; i < len(pairs); i += 2 {
			if !yield(store.Entry{Key: []byte(pairs[i]), Value: []byte(pairs[i+1])}, nil) {
				return
			}
		}
	}
}

func written(t testing.TB, pairs ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	n, err := Write(&out, entries(pairs...))
	if err != nil || n != uint64(len(pairs)/2) {
		t.Fatalf("wrote %d entries, %v", n, err)
	}
	return out.Bytes()
}

func read(r io.Reader) (string, uint64, error) {
	var got strings.Builder
	n, err := Read(r, func(k, v []byte) error {
		_, err := fmt.Fprintf(&got, "%s=%d ", k, len(v))
		return err
	})
	return got.String(), n, err
}

func TestRoundTrip(t *testing.T) {
	for want, pairs := range map[string][]string{
		"":                           nil,
		"a=1 b=0 ":                   {"a", "1", "b", ""},
		"a=3000000 " + "\x10\xff=5 ": {"a", strings.Repeat("x", 3_000_000), "\x10\xff", "bytes"},
	} {
		got, n, err := read(bytes.NewReader(written(t, pairs...)))
		if err != nil || got != want || n != uint64(len(pairs)/2) {
			t.Errorf("read %q, %d, %v; want %q", got, n, err, want)
		}
	}
}

// Whatever one does to a backup, it is not taken for a whole one.
func TestEveryChangeIsNoticed(t *testing.T) {
	whole := written(t, "key one", "value one", "key two", strings.Repeat("v", 300))
	for n := range len(whole) {
		if _, _, err := read(bytes.NewReader(whole[:n])); err == nil {
			t.Errorf("cut off after %d of %d bytes, and taken", n, len(whole))
		}
		changed := bytes.Clone(whole)
		changed[n] ^= 4
		if _, _, err := read(bytes.NewReader(changed)); err == nil {
			t.Errorf("byte %d changed, and taken", n)
		}
	}
	if _, _, err := read(bytes.NewReader(append(bytes.Clone(whole), 0))); err == nil {
		t.Error("a byte too many, and taken")
	}
	if _, _, err := read(bytes.NewReader(append(bytes.Clone(whole), whole...))); err == nil {
		t.Error("two backups in one file, and taken")
	}
}

func TestErrorsAreTold(t *testing.T) {
	broken := errors.New("the tape is torn")
	if _, _, err := read(io.MultiReader(bytes.NewReader(written(t, "a", "b")[:20]), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("an unreadable file gives %v", err)
	}
	if _, err := Read(bytes.NewReader(written(t, "a", "b")), func(_, _ []byte) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a refused entry gives %v", err)
	}
	var out bytes.Buffer
	_, err := Write(&out, func(yield func(store.Entry, error) bool) {
		_ = yield(store.Entry{Key: []byte("a")}, nil) && yield(store.Entry{}, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("an unreadable store gives %v", err)
	}
	if _, _, err := read(bytes.NewReader(out.Bytes())); err == nil {
		t.Error("half a backup was taken")
	}
	if _, err := Write(&out, entries("", "x")); err == nil {
		t.Error("an empty key was written")
	}
	if _, err := Write(refusing{broken}, entries("a", "b")); !errors.Is(err, broken) {
		t.Errorf("a full disk gives %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type refusing struct{ err error }

func (f refusing) Write([]byte) (int, error) { return 0, f.err }

func FuzzRead(f *testing.F) {
	whole := written(f, "key one", "value one", "key two", strings.Repeat("v", 300))
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte(header + "\x01a\xff\xff\xff\x0f"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var again []string
		n, err := Read(bytes.NewReader(data), func(k, v []byte) error {
			again = append(again, string(k), string(v))
			return nil
		})
		if err != nil {
			return
		}
		if n != uint64(len(again)/2) || !bytes.Equal(written(t, again...), data) {
			t.Errorf("%d entries do not make the same backup again", n)
		}
	})
}
