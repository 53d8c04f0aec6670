package wire

import (
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/plugins/api/modelpb"
	"github.com/boughdev/bough/plugins/wire/handshake"
)

// ModelInfoToProto is a model's description as it is sent.
func ModelInfoToProto(i model.Info) *modelpb.Info {
	return &modelpb.Info{
		Name: Text(i.Name), ContextTokens: unsigned(i.ContextTokens), MaxOutputTokens: unsigned(i.MaxOutputTokens),
		Images: i.Images, Reasoning: i.Reasoning, Unusable: Text(i.Unusable),
	}
}

// ModelInfoFromProto is a model's description as it was received.
func ModelInfoFromProto(p *modelpb.Info) model.Info {
	return model.Info{
		Name: p.GetName(), ContextTokens: signed(p.GetContextTokens()), MaxOutputTokens: signed(p.GetMaxOutputTokens()),
		Images: p.GetImages(), Reasoning: p.GetReasoning(), Unusable: p.GetUnusable(),
	}
}

// RequestParts is a request as it is sent: the first part has all but the
// messages that would make it long, those after it have messages only. Of a tool
// a model is told the name, the description and the input schema.
func RequestParts(r *model.Request) iter.Seq[*modelpb.StreamRequest] {
	return func(yield func(*modelpb.StreamRequest) bool) {
		p := &modelpb.StreamRequest{
			Model: Text(r.Model), System: Text(r.System), MaxOutputTokens: unsigned(r.MaxOutputTokens),
			Session: Text(r.Session), Settings: settings(r.Settings), Tools: make([]*modelpb.Tool, len(r.Tools)),
		}
		for i, t := range r.Tools {
			p.Tools[i] = &modelpb.Tool{Name: Text(t.Name), Description: Text(t.Description), InputSchema: t.InputSchema}
		}
		size := 0
		for i := range r.Messages {
			m := messageToProto(&r.Messages[i])
			n := proto.Size(m)
			if size > 0 && size+n > handshake.BatchBytes {
				if !yield(p) {
					return
				}
				p, size = &modelpb.StreamRequest{}, 0
			}
			p.Messages = append(p.Messages, m)
			size += n
		}
		yield(p)
	}
}

func messageToProto(m *model.Message) *modelpb.Message {
	out := &modelpb.Message{Role: modelpb.Role(m.Role), Parts: make([]*modelpb.Part, len(m.Parts))}
	for j := range m.Parts {
		out.Parts[j] = partToProto(&m.Parts[j])
	}
	return out
}

// RequestFromProto is a request as its first part was received.
func RequestFromProto(p *modelpb.StreamRequest) *model.Request {
	r := &model.Request{
		Model: p.GetModel(), System: p.GetSystem(), MaxOutputTokens: signed(p.GetMaxOutputTokens()),
		Session: p.GetSession(), Settings: p.GetSettings(),
	}
	AddMessages(r, p)
	for _, t := range p.GetTools() {
		r.Tools = append(r.Tools, tool.Spec{
			Name: t.GetName(), Description: t.GetDescription(), InputSchema: t.GetInputSchema(),
		})
	}
	return r
}

// AddMessages adds those of a further part.
func AddMessages(r *model.Request, p *modelpb.StreamRequest) {
	for _, m := range p.GetMessages() {
		out := model.Message{Role: model.Role(m.GetRole())}
		for _, part := range m.GetParts() {
			out.Parts = append(out.Parts, partFromProto(part))
		}
		r.Messages = append(r.Messages, out)
	}
}

func partToProto(part *model.Part) *modelpb.Part {
	switch {
	case part.Image != nil:
		return &modelpb.Part{Part: &modelpb.Part_Image{Image: imageToProto(*part.Image)}}
	case part.Reasoning != nil:
		return &modelpb.Part{Part: &modelpb.Part_Reasoning{Reasoning: reasoningToProto(part.Reasoning)}}
	case part.ToolCall != nil:
		return &modelpb.Part{Part: &modelpb.Part_ToolCall{ToolCall: toolCallToProto(part.ToolCall)}}
	case part.ToolResult != nil:
		t := part.ToolResult
		out := &modelpb.ToolResult{CallId: Text(t.CallID), Text: Text(t.Text), Error: t.Error}
		for _, i := range t.Images {
			out.Images = append(out.Images, imageToProto(i))
		}
		return &modelpb.Part{Part: &modelpb.Part_ToolResult{ToolResult: out}}
	}
	return &modelpb.Part{Part: &modelpb.Part_Text{Text: Text(part.Text)}}
}

func partFromProto(p *modelpb.Part) model.Part {
	switch part := p.GetPart().(type) {
	case *modelpb.Part_Text:
		return model.Part{Text: part.Text}
	case *modelpb.Part_Image:
		image := imageFromProto(part.Image)
		return model.Part{Image: &image}
	case *modelpb.Part_Reasoning:
		return model.Part{Reasoning: reasoningFromProto(part.Reasoning)}
	case *modelpb.Part_ToolCall:
		return model.Part{ToolCall: toolCallFromProto(part.ToolCall)}
	case *modelpb.Part_ToolResult:
		t := part.ToolResult
		out := &model.ToolResult{CallID: t.GetCallId(), Text: t.GetText(), Error: t.GetError()}
		for _, i := range t.GetImages() {
			out.Images = append(out.Images, imageFromProto(i))
		}
		return model.Part{ToolResult: out}
	}
	return model.Part{}
}

// ModelEventToProto is a piece of an answer as it is sent.
func ModelEventToProto(e model.Event) *modelpb.Event {
	switch {
	case e.Reasoning != "":
		return &modelpb.Event{Event: &modelpb.Event_Reasoning{Reasoning: Text(e.Reasoning)}}
	case e.ReasoningDone != nil:
		return &modelpb.Event{Event: &modelpb.Event_ReasoningDone{ReasoningDone: reasoningToProto(e.ReasoningDone)}}
	case e.ToolCallDelta != nil:
		d := e.ToolCallDelta
		return &modelpb.Event{Event: &modelpb.Event_ToolCallDelta{ToolCallDelta: &modelpb.ToolCallDelta{
			Id: Text(d.ID), Name: Text(d.Name), InputBytes: unsigned(d.InputBytes),
		}}}
	case e.ToolCall != nil:
		return &modelpb.Event{Event: &modelpb.Event_ToolCall{ToolCall: toolCallToProto(e.ToolCall)}}
	case e.Usage != nil:
		u := e.Usage
		return &modelpb.Event{Event: &modelpb.Event_Usage{Usage: &modelpb.Usage{
			InputTokens: unsigned(u.InputTokens), OutputTokens: unsigned(u.OutputTokens),
			CacheReadTokens: unsigned(u.CacheReadTokens), CacheWriteTokens: unsigned(u.CacheWriteTokens),
			ReasoningTokens: unsigned(u.ReasoningTokens),
		}}}
	case e.Finish != 0:
		return &modelpb.Event{Event: &modelpb.Event_Finish{Finish: &modelpb.Finish{
			Reason: modelpb.Finish_Reason(e.Finish),
		}}}
	}
	return &modelpb.Event{Event: &modelpb.Event_Text{Text: Text(e.Text)}}
}

// ModelEventFromProto is a piece of an answer as it was received.
func ModelEventFromProto(p *modelpb.Event) model.Event {
	switch e := p.GetEvent().(type) {
	case *modelpb.Event_Text:
		return model.Event{Text: e.Text}
	case *modelpb.Event_Reasoning:
		return model.Event{Reasoning: e.Reasoning}
	case *modelpb.Event_ReasoningDone:
		return model.Event{ReasoningDone: reasoningFromProto(e.ReasoningDone)}
	case *modelpb.Event_ToolCallDelta:
		d := e.ToolCallDelta
		return model.Event{ToolCallDelta: &model.ToolCallDelta{
			ID: d.GetId(), Name: d.GetName(), InputBytes: signed(d.GetInputBytes()),
		}}
	case *modelpb.Event_ToolCall:
		return model.Event{ToolCall: toolCallFromProto(e.ToolCall)}
	case *modelpb.Event_Usage:
		u := e.Usage
		return model.Event{Usage: &model.Usage{
			InputTokens: signed(u.GetInputTokens()), OutputTokens: signed(u.GetOutputTokens()),
			CacheReadTokens: signed(u.GetCacheReadTokens()), CacheWriteTokens: signed(u.GetCacheWriteTokens()),
			ReasoningTokens: signed(u.GetReasoningTokens()),
		}}
	case *modelpb.Event_Finish:
		return model.Event{Finish: model.Finish(e.Finish.GetReason())}
	}
	return model.Event{}
}

func imageToProto(i model.Image) *modelpb.Image {
	return &modelpb.Image{MediaType: Text(i.MediaType), Data: i.Data}
}

func imageFromProto(p *modelpb.Image) model.Image {
	return model.Image{MediaType: p.GetMediaType(), Data: p.GetData()}
}

func reasoningToProto(r *model.Reasoning) *modelpb.Reasoning {
	return &modelpb.Reasoning{Text: Text(r.Text), Opaque: r.Opaque, Provider: Text(r.Provider)}
}

func reasoningFromProto(p *modelpb.Reasoning) *model.Reasoning {
	return &model.Reasoning{Text: p.GetText(), Opaque: p.GetOpaque(), Provider: p.GetProvider()}
}

func toolCallToProto(c *model.ToolCall) *modelpb.ToolCall {
	return &modelpb.ToolCall{Id: Text(c.ID), Name: Text(c.Name), Input: c.Input}
}

func toolCallFromProto(p *modelpb.ToolCall) *model.ToolCall {
	return &model.ToolCall{ID: p.GetId(), Name: p.GetName(), Input: p.GetInput()}
}
