package main

import (
	"context"
	"fmt"
	"time"

	"github.com/boughdev/bough/contrib/bench/sample"
)

// The shapes of the stores.
var (
	long    = sample.Shape{Seed: 1, Sessions: 1, Items: 20_000}
	longer  = sample.Shape{Seed: 2, Sessions: 1, Items: 100_000}
	longest = sample.Shape{Seed: 3, Sessions: 1, Items: 1_000_000}
	loose   = sample.Shape{Seed: 1, Sessions: 1, Items: 20_000, Loose: true}
	many    = sample.Shape{Seed: 4, Sessions: 5000, Items: 20}
)

// rows are all that is measured; the bars are those of the design.
func rows() []row {
	return []row{
		{"one-shot answer, storage running", "< 60 ms", oneShot(false, 60*time.Millisecond)},
		{"one-shot answer, cold", "< 90 ms", oneShot(true, 90*time.Millisecond)},
		{"idle, waiting for the model: memory (PSS) of all processes, CPU", "≤ 70 MB, < 0.3 %", idle},
		{"open 20,000 items until the last screen is read; memory", "< 100 ms, < 50 MB", open(long, 100*time.Millisecond, 50)},
		{"open 100,000 items until the last screen is read; memory", "< 200 ms, < 150 MB", open(longer, 200*time.Millisecond, 150)},
		{"fork on 1,000,000 items: in the process, from the CLI, stored", "< 10 ms, < 50 ms, < 4 KB", fork},
		{"head move on 1,000,000 items: in the process, stored", "< 10 ms, < 4 KB", headMove},
		{"picker over 5,000 sessions: in the process, from the CLI", "< 150 ms", picker},
		{"append of a 3-item step, one session: share of the disk's sync rate", "≥ 0.8", appendSteps},
		{"load a path of 100,000 items", "≥ 400 MB/s", load},
		{"stored size of items, as written", "≤ 0.45 ×", stored(loose, 0.45)},
		{"stored size of items, packed", "≤ 0.35 ×", stored(longer, 0.35)},
		{"resume 20,000 items headless until the request has left", "< 300 ms", resume},
		{"shell call beyond what bash takes", "< 3 ms", goBench("./plugins/workspace/shell", "BenchmarkOverhead", "ms/over", 1, "ms", 3, false)},
		{"plugin call, 1 KB each way", "< 0.3 ms", goBench("./plugins/manager", "BenchmarkToolCall/echo", "ns/op", 1e-6, "ms", 0.3, false)},
		{"plugin stream, entries of 1 KB", "> 300 MB/s", goBench("./plugins/manager", "BenchmarkScan/1024B", "MB/s", 1, "MB/s", 300, true)},
		{"after deleting everything", "< 20 MB on disk", deleteAll},
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }

type measure = func(ctx context.Context, l *lab) (string, bool, error)
