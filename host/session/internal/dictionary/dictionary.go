// Package dictionary makes the zstd dictionaries that items are compressed
// with. A dictionary is text that items are likely to repeat, and tables of how
// often which byte, length and distance occurs.
//
// A dictionary that was ever shipped is kept for ever, byte for byte, since
// what was written with it can only be read with it. So this package is run
// once for each: `go test ./host/session/internal/dictionary -write`.
package dictionary

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// text1 is what dictionary 1 holds. First what is written by hand: tool names
// and inputs, words of answers, idioms of Go, Python, JavaScript and Rust,
// lines of tool output. Then short fragments that occur in many source files
// and documents, the most frequent last.
//
//go:embed dictionary1.txt
var text1 []byte

// samples1 is code and documents of bough from before dictionary 1 was made.
// The tables are trained on pieces of it.
//
//go:embed samples1.txt
var samples1 []byte

// id1 is the number of dictionary 1 in the frames that are written with it.
const id1 = 1

// Build1 makes dictionary 1, the same one each time.
func Build1() ([]byte, error) {
	r := rand.New(rand.NewPCG(id1, 0))
	samples := make([][]byte, 1500)
	for i := range samples {
		samples[i] = sample(r, i)
	}
	d, err := zstd.BuildDict(zstd.BuildDictOptions{
		ID: id1, Contents: samples, History: text1, Offsets: [3]int{1, 4, 8},
		CompatV155: true, Level: zstd.SpeedFastest,
	})
	if err != nil {
		return nil, fmt.Errorf("build dictionary 1: %w", err)
	}
	return d, nil
}

// sample is a piece of text in one of the forms that items have it in: within
// JSON as the input of a call, with line numbers as the result of one, or plain.
func sample(r *rand.Rand, i int) []byte {
	n := min(60+int(r.ExpFloat64()*800), len(samples1)/2)
	at := r.IntN(len(samples1) - n)
	piece := strings.ToValidUTF8(string(samples1[at:at+n]), "")
	switch i % 4 {
	case 0:
		quoted, err := json.Marshal(piece)
		if err != nil {
			panic("dictionary: a string cannot be quoted: " + err.Error())
		}
		return fmt.Appendf(nil, "call_%012X file_edit %s", r.Uint64N(1<<48), quoted)
	case 1:
		var b []byte
		number := 1 + r.IntN(300)
		for line := range strings.Lines(piece) {
			b = fmt.Appendf(b, "%6d\t%s", number, line)
			number++
		}
		return b
	}
	return []byte(piece)
}
