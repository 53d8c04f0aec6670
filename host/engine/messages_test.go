package engine_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/boughdev/bough/host/engine"
	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
)

// item makes an item of a path; number counts up by itself.
func item(items []*session.Item, p *sessionpb.Payload) []*session.Item {
	it := &session.Item{Ref: session.Ref{Segment: 1, Number: uint64(len(items) + 1)}, Payload: p}
	if len(items) > 0 {
		it.Parent = items[len(items)-1].Ref
	}
	return append(items, it)
}

func payload(kind session.Kind, id, said string) *sessionpb.Payload {
	p := &sessionpb.Payload{Kind: uint32(kind)}
	switch kind {
	case session.KindPrompt:
		p.Body = &sessionpb.Payload_Prompt{Prompt: &sessionpb.Prompt{Text: said}}
	case session.KindText:
		p.Body = &sessionpb.Payload_Text{Text: &sessionpb.Text{Text: said}}
	case session.KindReasoning:
		p.Body = &sessionpb.Payload_Reasoning{Reasoning: &sessionpb.Reasoning{Text: said, Opaque: []byte(id), Provider: "test"}}
	case session.KindToolCall:
		p.Body = &sessionpb.Payload_ToolCall{ToolCall: &sessionpb.ToolCall{Id: id, Name: "t", Input: []byte(said)}}
	case session.KindToolResult:
		p.Body = &sessionpb.Payload_ToolResult{ToolResult: &sessionpb.ToolResult{CallId: id, Text: said}}
	case session.KindNotice:
		p.Hidden = id != ""
		p.Body = &sessionpb.Payload_Notice{Notice: &sessionpb.Notice{Text: said}}
	case session.KindSummary:
		p.Body = &sessionpb.Payload_Summary{Summary: &sessionpb.Summary{Text: said}}
	}
	return p
}

// told is messages in short: u, a and t with their parts.
func told(messages []model.Message) string {
	var out []string
	for _, m := range messages {
		var parts []string
		for _, p := range m.Parts {
			switch {
			case p.ToolCall != nil:
				parts = append(parts, "call "+p.ToolCall.ID)
			case p.ToolResult != nil:
				parts = append(parts, "result "+p.ToolResult.CallID+" "+p.ToolResult.Text)
			case p.Reasoning != nil:
				parts = append(parts, "reasoning "+p.Reasoning.Text+" "+string(p.Reasoning.Opaque))
			case p.Image != nil:
				parts = append(parts, "image")
			default:
				parts = append(parts, p.Text)
			}
		}
		out = append(out, string(" uat"[m.Role])+"("+strings.Join(parts, ", ")+")")
	}
	return strings.Join(out, " ")
}

func TestMessages(t *testing.T) {
	const none = "[No result was recorded: the call was interrupted, or not run. What it did is not known.]"
	type it struct {
		kind     session.Kind
		id, said string
	}
	const (
		prompt = session.KindPrompt
		txt    = session.KindText
		reason = session.KindReasoning
		tcall  = session.KindToolCall
		result = session.KindToolResult
		notice = session.KindNotice
		summ   = session.KindSummary
	)
	for _, c := range []struct {
		about string
		items []it
		want  string
	}{
		{"assistant items are one message", []it{{prompt, "", "p"}, {reason, "o", "r"}, {txt, "", "x"}, {txt, "", "y"}, {tcall, "1", "{}"}, {tcall, "2", "{}"}, {result, "1", "A"}, {result, "2", "B"}, {txt, "", "z"}},
			"u(p) a(reasoning r o, x, y, call 1, call 2) t(result 1 A, result 2 B) a(z)"},
		{"steps without text between", []it{{prompt, "", "p"}, {tcall, "1", "{}"}, {result, "1", "A"}, {tcall, "2", "{}"}, {result, "2", "B"}},
			"u(p) a(call 1) t(result 1 A) a(call 2) t(result 2 B)"},
		{"a call without a result at the end", []it{{prompt, "", "p"}, {tcall, "1", "{}"}}, "u(p) a(call 1) t(result 1 " + none + ")"},
		{"one of two", []it{{prompt, "", "p"}, {tcall, "1", "{}"}, {tcall, "2", "{}"}, {result, "2", "B"}, {prompt, "", "q"}},
			"u(p) a(call 1, call 2) t(result 1 " + none + ", result 2 B) u(q)"},
		{"results out of order", []it{{prompt, "", "p"}, {tcall, "1", "{}"}, {tcall, "2", "{}"}, {result, "2", "B"}, {result, "1", "A"}},
			"u(p) a(call 1, call 2) t(result 1 A, result 2 B)"},
		{"a result that comes late", []it{{prompt, "", "p"}, {tcall, "1", "{}"}, {prompt, "", "q"}, {result, "1", "A"}, {txt, "", "x"}},
			"u(p) a(call 1) t(result 1 A) u(q) a(x)"},
		{"an orphan result", []it{{prompt, "", "p"}, {result, "9", "A"}, {txt, "", "x"}}, "u(p) a(x)"},
		{"a result before its call", []it{{prompt, "", "p"}, {result, "1", "A"}, {tcall, "1", "{}"}}, "u(p) a(call 1) t(result 1 " + none + ")"},
		{"two results", []it{{prompt, "", "p"}, {tcall, "1", "{}"}, {result, "1", "A"}, {result, "1", "B"}}, "u(p) a(call 1) t(result 1 A)"},
		{"an id used twice", []it{{prompt, "", "p"}, {tcall, "1", "{}"}, {result, "1", "A"}, {tcall, "1", "{}"}, {result, "1", "B"}},
			"u(p) a(call 1) t(result 1 A) a(call 1_2) t(result 1_2 B)"},
		{"an id used twice, first unanswered", []it{{prompt, "", "p"}, {tcall, "1", "{}"}, {prompt, "", "q"}, {tcall, "1", "{}"}, {result, "1", "B"}},
			"u(p) a(call 1) t(result 1 " + none + ") u(q) a(call 1_2) t(result 1_2 B)"},
		{"text after a call", []it{{prompt, "", "p"}, {tcall, "1", "{}"}, {txt, "", "x"}, {tcall, "2", "{}"}, {result, "1", "A"}, {result, "2", "B"}},
			"u(p) a(call 1) t(result 1 A) a(x, call 2) t(result 2 B)"},
		{"notices", []it{{prompt, "", "p"}, {notice, "", "for the person"}, {txt, "", "x"}, {notice, "hidden", "psst </system-reminder>"}},
			"u(p) a(x) u(<system-reminder>\npsst \n</system-reminder>)"},
		{"a visible notice does not split a step", []it{{prompt, "", "p"}, {tcall, "1", "{}"}, {notice, "", "n"}, {result, "1", "A"}}, "u(p) a(call 1) t(result 1 A)"},
		{"only reasoning", []it{{prompt, "", "p"}, {reason, "", "r"}, {prompt, "", "q"}}, "u(p) a(reasoning r , (empty)) u(q)"},
		{"an empty prompt", []it{{prompt, "", ""}}, "u((empty))"},
		{"a summary", []it{{prompt, "", "p"}, {tcall, "1", "{}"}, {result, "1", "A"}, {summ, "", "S"}, {prompt, "", "q"}},
			"u(<system-reminder>\nWhat was said before this point was summarised:\n\nS\n</system-reminder>) u(q)"},
		{"the last summary counts", []it{{prompt, "", "p"}, {summ, "", "S"}, {prompt, "", "q"}, {summ, "", "T"}, {prompt, "", "r"}},
			"u(<system-reminder>\nWhat was said before this point was summarised:\n\nT\n</system-reminder>) u(r)"},
		{"an unknown kind", []it{{prompt, "", "p"}, {session.Kind(99), "", ""}, {txt, "", "x"}}, "u(p) a(x)"},
	} {
		var items []*session.Item
		for _, i := range c.items {
			items = item(items, payload(i.kind, i.id, i.said))
		}
		if got := told(engine.Messages(items, "test", true)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.about, got, c.want)
		}
	}
}

func TestReasoningAndImagesForAnotherModel(t *testing.T) {
	p := payload(session.KindPrompt, "", "p")
	p.GetPrompt().Images = []*sessionpb.Image{{MediaType: "image/png", Data: []byte{1}, Name: "shot.png"}}
	r := payload(session.KindToolResult, "1", "A")
	r.GetToolResult().Images = []*sessionpb.Image{{MediaType: "image/png", Data: []byte{1}}}
	items := item(item(item(item(nil, p), payload(session.KindReasoning, "sig", "r")), payload(session.KindToolCall, "1", "{}")), r)
	if got, want := told(engine.Messages(items, "test", true)), "u(p, image) a(reasoning r sig, call 1) t(result 1 A)"; got != want {
		t.Errorf("the same provider: got %s, want %s", got, want)
	}
	want := "u(p, [The image shot.png was left out: this model takes none.]) a(reasoning r , call 1) t(result 1 A\n[An image was left out: this model takes none.])"
	if got := told(engine.Messages(items, "other", false)); got != want {
		t.Errorf("another: got %s, want %s", got, want)
	}
	signed := item(nil, payload(session.KindReasoning, "sig", ""))
	if got := told(engine.Messages(signed, "other", true)); got != "" {
		t.Errorf("reasoning that another provider cannot read: %s", got)
	}
}

// pathOf makes a path of any bytes.
func pathOf(data []byte) []*session.Item {
	var items []*session.Item
	for len(data) >= 2 {
		kind, id := session.Kind(data[0]%9), fmt.Sprint(data[1]%5)
		p := payload(kind, id, fmt.Sprint(data[1]>>4))
		if kind == session.KindSummary {
			p.GetSummary().ReplacesTo = &sessionpb.Ref{Segment: 1, Number: uint64(data[1])}
		}
		if data[1] == 77 {
			p.Body = nil
		}
		items = item(items, p)
		data = data[2:]
	}
	return items
}

func FuzzMessages(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 40 {
		seed := make([]byte, 0, 8*n)
		for range n {
			seed = binary.LittleEndian.AppendUint64(seed, random.Uint64())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		messages := engine.Messages(pathOf(data), "test", data == nil)
		if len(messages) == 0 {
			return
		}
		if err := sound(&model.Request{Messages: messages}); err != nil {
			t.Fatalf("%v: %s", err, told(messages))
		}
	})
}

func TestAnyPathMakesASoundRequest(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		data := make([]byte, 2*random.IntN(40))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		messages := engine.Messages(pathOf(data), "test", true)
		if len(messages) == 0 {
			continue
		}
		if err := sound(&model.Request{Messages: messages}); err != nil {
			t.Fatalf("%v: %s", err, told(messages))
		}
	}
}
