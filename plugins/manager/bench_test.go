package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/tool"
)

// quiet are the options of a benchmark, whose storage must not leave meanwhile.
func quiet(b *testing.B, linger string) StorageOptions {
	o := storageOptions(b, "memory", linger)
	o.Logger = slog.New(slog.DiscardHandler)
	return o
}

// BenchmarkAttach is a host that comes to a running storage process.
func BenchmarkAttach(b *testing.B) {
	o := quiet(b, "1s")
	attach(b, o)
	b.ReportAllocs()
	for b.Loop() {
		s, err := AttachStorage(context.Background(), o)
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

// BenchmarkColdStart is the first host of a fresh state directory, until its
// first answer; the program is this test binary.
func BenchmarkColdStart(b *testing.B) {
	for _, backend := range []string{"memory", "badger"} {
		b.Run(backend, func(b *testing.B) {
			for b.Loop() {
				o := quiet(b, "1ms")
				o.Command[len(o.Command)-2] = backend
				s, err := AttachStorage(context.Background(), o)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				pid := storagePID(b, o)
				s.Close()
				within(b, 10*time.Second, "the process leaves", func() bool { return !alive(pid) })
				b.StartTimer()
			}
		})
	}
}

// BenchmarkUnary is one call with 1 KB each way.
func BenchmarkUnary(b *testing.B) {
	s := attach(b, quiet(b, "1s"))
	ctx := context.Background()
	if _, err := s.Commit(ctx, put("k", strings.Repeat("x", 1<<10))); err != nil {
		b.Fatal(err)
	}
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Get(ctx, []byte("k")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("commit", func(b *testing.B) {
		batch := put("k", strings.Repeat("x", 1<<10))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Commit(ctx, batch); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkScan reads 64 MB of entries from a backend that costs nothing.
func BenchmarkScan(b *testing.B) {
	o := quiet(b, "1s")
	o.Command[len(o.Command)-2] = "endless"
	s := attach(b, o)
	for _, size := range []int{256, 1 << 10, 16 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size, "B"), func(b *testing.B) {
			const total = 64 << 20
			b.SetBytes(total)
			for b.Loop() {
				n := 0
				for _, err := range s.Scan(context.Background(), store.Range{Start: []byte(strconv.Itoa(size)), Limit: total / size}) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != total/size {
					b.Fatal(n)
				}
			}
		})
	}
}

// BenchmarkToolCall is a call with 1 KB each way, beyond the tool itself.
func BenchmarkToolCall(b *testing.B) {
	c := command(b, "tools")
	c.Logger = slog.New(slog.DiscardHandler)
	tools := NewTools(c)
	defer tools.Stop(context.Background())
	input := json.RawMessage(strconv.Quote(strings.Repeat("x", 1<<10)))
	b.Run("echo", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tools.Call(context.Background(), tool.Call{Session: "s", ID: "1", Tool: "echo", Input: input}, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("progress", func(b *testing.B) {
		b.SetBytes(64 << 20)
		for b.Loop() {
			n := 0
			_, err := tools.Call(context.Background(), tool.Call{Tool: "progress", Input: json.RawMessage("256")}, func(p tool.Progress) { n += len(p.Data) })
			if err != nil || n != 64<<20 {
				b.Fatal(n, err)
			}
		}
	})
}

// BenchmarkPluginStart is a plugin's start until its first answer, and its end.
func BenchmarkPluginStart(b *testing.B) {
	c := command(b, "tools")
	c.Logger = slog.New(slog.DiscardHandler)
	for b.Loop() {
		tools := NewTools(c)
		if _, err := tools.Tools(context.Background()); err != nil {
			b.Fatal(err)
		}
		tools.Stop(context.Background())
	}
}
