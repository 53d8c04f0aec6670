package wire

import (
	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
	"github.com/boughdev/bough/plugins/api/toolpb"
)

// SpecToProto is a tool's description as it is sent.
func SpecToProto(s tool.Spec) *toolpb.Spec {
	return &toolpb.Spec{
		Name: Text(s.Name), Description: Text(s.Description), InputSchema: s.InputSchema,
		Effect: toolpb.Effect(s.Effect), PathFields: texts(s.PathFields),
	}
}

// SpecFromProto is a tool's description as it was received. An effect that this
// host does not know is EffectUnknown, which is treated as the strongest.
func SpecFromProto(p *toolpb.Spec) tool.Spec {
	effect := tool.Effect(p.GetEffect())
	if effect < tool.EffectUnknown || effect > tool.EffectExecute {
		effect = tool.EffectUnknown
	}
	return tool.Spec{
		Name: p.GetName(), Description: p.GetDescription(), InputSchema: p.GetInputSchema(),
		Effect: effect, PathFields: p.GetPathFields(),
	}
}

// CallToProto is a call as it is sent.
func CallToProto(c tool.Call) *toolpb.CallRequest {
	return &toolpb.CallRequest{Session: Text(c.Session), CallId: Text(c.ID), Tool: Text(c.Tool), Input: c.Input}
}

// CallFromProto is a call as it was received.
func CallFromProto(p *toolpb.CallRequest) tool.Call {
	return tool.Call{Session: p.GetSession(), ID: p.GetCallId(), Tool: p.GetTool(), Input: p.GetInput()}
}

// ProgressToProto is a piece of progress as it is sent.
func ProgressToProto(pr tool.Progress) *toolpb.Progress {
	return &toolpb.Progress{Stream: toolpb.Progress_Stream(pr.Stream), Data: pr.Data}
}

// ProgressFromProto is a piece of progress as it was received.
func ProgressFromProto(p *toolpb.Progress) tool.Progress {
	return tool.Progress{Stream: tool.Stream(p.GetStream()), Data: p.GetData()}
}

// ResultToProto is a result as it is sent.
func ResultToProto(r tool.Result) *toolpb.Result {
	p := &toolpb.Result{
		Text: Text(r.Text), Error: r.Error, Details: r.Details, OutputId: Text(r.OutputID),
		Files: filesToProto(r.Files), Interrupted: r.Interrupted,
	}
	for _, i := range r.Images {
		p.Images = append(p.Images, &toolpb.Image{MediaType: Text(i.MediaType), Data: i.Data})
	}
	return p
}

// ResultFromProto is a result as it was received.
func ResultFromProto(p *toolpb.Result) tool.Result {
	r := tool.Result{
		Text: p.GetText(), Error: p.GetError(), Details: p.GetDetails(), OutputID: p.GetOutputId(),
		Files: filesFromProto(p.GetFiles()), Interrupted: p.GetInterrupted(),
	}
	for _, i := range p.GetImages() {
		r.Images = append(r.Images, tool.Image{MediaType: i.GetMediaType(), Data: i.GetData()})
	}
	return r
}

// SessionToProto is what a workspace is told of a session, as it is sent.
func SessionToProto(s workspace.Session) *toolpb.OpenRequest {
	return &toolpb.OpenRequest{Session: Text(s.ID), Folder: Text(s.Folder), Seen: filesToProto(s.Seen)}
}

// SessionFromProto is what a workspace is told of a session, as it was received.
func SessionFromProto(p *toolpb.OpenRequest) workspace.Session {
	return workspace.Session{ID: p.GetSession(), Folder: p.GetFolder(), Seen: filesFromProto(p.GetSeen())}
}

func filesToProto(files []tool.FileState) []*toolpb.FileState {
	var out []*toolpb.FileState
	for _, f := range files {
		out = append(out, &toolpb.FileState{Path: Text(f.Path), Sha256: f.SHA256, Written: f.Written, Partial: f.Partial})
	}
	return out
}

func filesFromProto(files []*toolpb.FileState) []tool.FileState {
	var out []tool.FileState
	for _, f := range files {
		out = append(out, tool.FileState{
			Path: f.GetPath(), SHA256: f.GetSha256(), Written: f.GetWritten(), Partial: f.GetPartial(),
		})
	}
	return out
}
