package session

import (
	"encoding/json"
	"fmt"
	"go/build"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/boughdev/bough/host/session/sessionpb"
)

// corpus is real code and real English: parts of the Go distribution that the
// dictionary was not made from.
type corpus struct {
	paths []string
	code  []string // one a path
	prose []string // doc comments
}

var loadCorpus = sync.OnceValue(func() *corpus {
	c := &corpus{}
	src := filepath.Join(build.Default.GOROOT, "src")
	for _, dir := range []string{"net", "net/http", "cmd/go/internal/load", "cmd/go/internal/modload", "database/sql", "log/slog", "html/template"} {
		files, _ := filepath.Glob(filepath.Join(src, dir, "*.go"))
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil || len(data) < 2000 {
				continue
			}
			rel, _ := filepath.Rel(src, f)
			c.paths, c.code = append(c.paths, rel), append(c.code, string(data))
			c.prose = append(c.prose, comments(string(data))...)
		}
	}
	if len(c.code) < 20 {
		panic("the source of the Go distribution is not at " + src)
	}
	return c
})

// comments are the longer comments of a file, as running text.
func comments(code string) []string {
	var found []string
	var b strings.Builder
	for line := range strings.Lines(code) {
		text, is := strings.CutPrefix(strings.TrimSpace(line), "// ")
		if is {
			b.WriteString(text + " ")
			continue
		}
		if b.Len() > 150 {
			found = append(found, b.String())
		}
		b.Reset()
	}
	return found
}

// sampler makes the items of a coding session: a prompt, then steps of
// reasoning, text, calls and their results.
type sampler struct {
	*corpus
	r    *rand.Rand
	at   int64
	todo []*sessionpb.Payload
}

func newSampler(seed uint64) *sampler {
	return &sampler{corpus: loadCorpus(), r: rand.New(rand.NewPCG(seed, 0)), at: 1_790_000_000_000}
}

func sampleItems(seed uint64, n int) []*sessionpb.Payload {
	s := newSampler(seed)
	items := make([]*sessionpb.Payload, n)
	for i := range items {
		items[i] = s.next()
	}
	return items
}

func (s *sampler) next() *sessionpb.Payload {
	if len(s.todo) == 0 {
		s.turn()
	}
	p := s.todo[0]
	s.todo = s.todo[1:]
	s.at += int64(s.r.ExpFloat64() * 3000)
	p.TimeUnixMs = s.at
	return p
}

func (s *sampler) add(k Kind, p *sessionpb.Payload) {
	p.Kind = uint32(k)
	s.todo = append(s.todo, p)
}

func (s *sampler) turn() {
	s.add(KindPrompt, &sessionpb.Payload{Body: &sessionpb.Payload_Prompt{Prompt: &sessionpb.Prompt{Text: s.words(400)}}})
	for range 1 + s.r.IntN(12) {
		if s.r.IntN(2) == 0 {
			s.add(KindReasoning, &sessionpb.Payload{Body: &sessionpb.Payload_Reasoning{Reasoning: &sessionpb.Reasoning{Text: s.words(800), Model: "practice"}}})
		}
		if s.r.IntN(3) == 0 {
			s.text(400)
		}
		s.call()
	}
	s.text(1500)
}

func (s *sampler) text(mean float64) {
	s.add(KindText, &sessionpb.Payload{Body: &sessionpb.Payload_Text{Text: &sessionpb.Text{Text: s.words(mean), Model: "practice"}}})
}

func (s *sampler) call() {
	id := fmt.Sprintf("call_%012X", s.r.Uint64N(1<<48))
	i := s.r.IntN(len(s.paths))
	path := s.paths[i]
	var name, out string
	var in map[string]any
	switch s.r.IntN(6) {
	case 0, 1:
		name, in = "file_read", map[string]any{"filePath": path, "offset": 1 + s.r.IntN(200), "limit": 60}
		out = s.numbered(s.piece(s.code[i], 4500))
	case 2:
		old := s.piece(s.code[i], 300)
		name, in = "file_edit", map[string]any{"filePath": path, "oldString": old, "newString": old[:len(old)/2] + s.piece(s.code[i], 200)}
		out = "The file has been updated. Here is the result of the edit:\n" + s.numbered(s.piece(s.code[i], 500))
	case 3:
		name, in = "file_grep", map[string]any{"pattern": "func .*Error", "path": filepath.Dir(path)}
		for range 3 + s.r.IntN(25) {
			out += s.paths[s.r.IntN(len(s.paths))] + fmt.Sprintf(":%d:%s\n", s.r.IntN(900), strings.TrimSpace(s.piece(s.code[i], 60)))
		}
	case 4:
		name, in = "shell", map[string]any{"command": "go test ./" + filepath.Dir(path) + "/..."}
		for range 2 + s.r.IntN(20) {
			out += fmt.Sprintf("ok  \tgithub.com/example/project/%s\t%d.%03ds\n", filepath.Dir(s.paths[s.r.IntN(len(s.paths))]), s.r.IntN(9), s.r.IntN(1000))
		}
	case 5:
		name, in = "shell", map[string]any{"command": "ls -la " + filepath.Dir(path)}
		for range 2 + s.r.IntN(30) {
			out += fmt.Sprintf("-rw-r--r-- 1 ada ada %6d Mar %2d %02d:%02d %s\n", s.r.IntN(90000), s.r.IntN(31), s.r.IntN(24), s.r.IntN(60), filepath.Base(s.paths[s.r.IntN(len(s.paths))]))
		}
	}
	input, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	s.add(KindToolCall, &sessionpb.Payload{Body: &sessionpb.Payload_ToolCall{ToolCall: &sessionpb.ToolCall{Id: id, Name: name, Input: input, Model: "practice"}}})
	s.add(KindToolResult, &sessionpb.Payload{Body: &sessionpb.Payload_ToolResult{ToolResult: &sessionpb.ToolResult{CallId: id, Name: name, Text: out, DurationMs: int64(s.r.IntN(900))}}})
}

// piece is some of a text, of a mean length.
func (s *sampler) piece(text string, mean float64) string {
	n := min(20+int(s.r.ExpFloat64()*mean), len(text)*2/3)
	at := s.r.IntN(len(text) - n)
	return strings.ToValidUTF8(text[at:at+n], "")
}

func (s *sampler) words(mean float64) string {
	var b strings.Builder
	for b.Len() < int(3*mean) {
		b.WriteString(s.prose[s.r.IntN(len(s.prose))] + "\n\n")
	}
	return s.piece(b.String(), mean)
}

func (s *sampler) numbered(text string) string {
	var b strings.Builder
	n := 1 + s.r.IntN(300)
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "%6d\t%s", n, line)
		n++
	}
	return b.String()
}
