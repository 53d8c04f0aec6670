// Package sample makes the items of coding sessions from a seed: prompts,
// reasoning, answers, calls and their results, of real code and real English;
// and stores full of them.
package sample

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
)

// Sampler makes the items of a coding session: a prompt, then steps of
// reasoning, text, calls and their results. The same seed makes the same ones
// with the same Go distribution.
type Sampler struct {
	*corpus
	r    *rand.Rand
	at   int64
	todo []*sessionpb.Payload
}

// New is a sampler. It reads the source of the Go distribution, which must be
// there.
func New(seed uint64) (*Sampler, error) {
	c, err := loadCorpus()
	if err != nil {
		return nil, err
	}
	return &Sampler{corpus: c, r: rand.New(rand.NewPCG(seed, 0)), at: begin}, nil
}

// begin is the time of the first item, in Unix milliseconds: September 2026.
const begin = 1_790_000_000_000

// Next is the next item.
func (s *Sampler) Next() *sessionpb.Payload {
	if len(s.todo) == 0 {
		s.turn()
	}
	p := s.todo[0]
	s.todo = s.todo[1:]
	s.at += int64(s.r.ExpFloat64() * 3000)
	p.TimeUnixMs = s.at
	return p
}

func (s *Sampler) add(k session.Kind, p *sessionpb.Payload) {
	p.Kind = uint32(k)
	s.todo = append(s.todo, p)
}

func (s *Sampler) turn() {
	s.add(session.KindPrompt, &sessionpb.Payload{Body: &sessionpb.Payload_Prompt{Prompt: &sessionpb.Prompt{Text: s.words(400)}}})
	for range 1 + s.r.IntN(12) {
		if s.r.IntN(2) == 0 {
			s.add(session.KindReasoning, &sessionpb.Payload{Body: &sessionpb.Payload_Reasoning{Reasoning: &sessionpb.Reasoning{Text: s.words(800), Model: "practice"}}})
		}
		if s.r.IntN(3) == 0 {
			s.text(400)
		}
		s.call()
	}
	s.text(1500)
}

func (s *Sampler) text(mean float64) {
	s.add(session.KindText, &sessionpb.Payload{Body: &sessionpb.Payload_Text{Text: &sessionpb.Text{Text: s.words(mean), Model: "practice"}}})
}

func (s *Sampler) call() {
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
	s.add(session.KindToolCall, &sessionpb.Payload{Body: &sessionpb.Payload_ToolCall{ToolCall: &sessionpb.ToolCall{Id: id, Name: name, Input: input, Model: "practice"}}})
	s.add(session.KindToolResult, &sessionpb.Payload{Body: &sessionpb.Payload_ToolResult{ToolResult: &sessionpb.ToolResult{CallId: id, Name: name, Text: out, DurationMs: int64(s.r.IntN(900))}}})
}

// piece is some of a text, of a mean length.
func (s *Sampler) piece(text string, mean float64) string {
	n := min(20+int(s.r.ExpFloat64()*mean), len(text)*2/3)
	at := s.r.IntN(len(text) - n)
	return strings.ToValidUTF8(text[at:at+n], "")
}

func (s *Sampler) words(mean float64) string {
	var b strings.Builder
	for b.Len() < int(3*mean) {
		b.WriteString(s.prose[s.r.IntN(len(s.prose))] + "\n\n")
	}
	return s.piece(b.String(), mean)
}

func (s *Sampler) numbered(text string) string {
	var b strings.Builder
	n := 1 + s.r.IntN(300)
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "%6d\t%s", n, line)
		n++
	}
	return b.String()
}
