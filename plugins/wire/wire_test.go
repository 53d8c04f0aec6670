package wire

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/model"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/tool"
	"github.com/boughdev/bough/host/workspace"
	"github.com/boughdev/bough/plugins/api/modelpb"
	"github.com/boughdev/bough/plugins/api/storagepb"
	"github.com/boughdev/bough/plugins/api/toolpb"
	"github.com/boughdev/bough/plugins/wire/handshake"
)

// roundTrip checks that a value comes back with every field as it was.
func roundTrip[T any, M proto.Message](t *testing.T, name string, to func(T) M, from func(M) T) {
	t.Run(name, func(t *testing.T) {
		want := filled[T](t)
		same(t, from(sent(t, to(want))), want)
		var zero T
		same(t, from(sent(t, to(zero))), zero)
	})
}

func TestEveryFieldSurvives(t *testing.T) {
	roundTrip(t, "entry", EntryToProto, EntryFromProto)
	roundTrip(t, "range", RangeToProto, RangeFromProto)
	roundTrip(t, "holder", HolderToProto, HolderFromProto)
	roundTrip(t, "event", EventToProto, EventFromProto)
	roundTrip(t, "info", InfoToProto, InfoFromProto)
	roundTrip(t, "report", ReportToProto, ReportFromProto)
	roundTrip(t, "tool result", ResultToProto, ResultFromProto)
	roundTrip(t, "tool call", CallToProto, CallFromProto)
	roundTrip(t, "workspace session", SessionToProto, SessionFromProto)
	roundTrip(t, "model info", ModelInfoToProto, ModelInfoFromProto)
}

func TestEveryFieldOfABatchSurvives(t *testing.T) {
	want := filled[store.Batch](t)
	want.Durability = store.Async
	for _, b := range []store.Batch{want, {}} {
		got, err := BatchFromProto(sent(t, BatchToProto(&b)))
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, b)
	}
	if _, err := BatchFromProto(&storagepb.CommitRequest{Id: []byte("short")}); err == nil {
		t.Error("an id of 5 bytes was taken")
	}
}

func TestEveryFieldOfASpecSurvives(t *testing.T) {
	for effect := tool.EffectUnknown; effect <= tool.EffectExecute; effect++ {
		want := filled[tool.Spec](t)
		want.Effect = effect
		same(t, SpecFromProto(sent(t, SpecToProto(want))), want)
	}
	if got := SpecFromProto(&toolpb.Spec{Effect: 99}); got.Effect != tool.EffectUnknown {
		t.Errorf("an effect from the future is %s, want unknown", got.Effect)
	}
	for _, s := range []tool.Stream{tool.Stdout, tool.Stderr, tool.Note} {
		want := tool.Progress{Stream: s, Data: []byte("\x1b[0m\xff")}
		same(t, ProgressFromProto(sent(t, ProgressToProto(want))), want)
	}
}

func TestEveryFieldOfARequestSurvives(t *testing.T) {
	want := filled[model.Request](t)
	for i := range want.Tools { // a model is not told what a tool may touch
		want.Tools[i].Effect, want.Tools[i].PathFields = 0, nil
	}
	for i, role := range []model.Role{model.User, model.Assistant} {
		want.Messages[i].Role = role
	}
	// One message with a part for each field of the union.
	all := filled[model.Part](t)
	want.Messages[0].Parts = oneByOne(all)
	want.Messages[1].Parts = nil
	same(t, sentInParts(t, &want), &want)
}

// sentInParts is a request as it arrives.
func sentInParts(t *testing.T, r *model.Request) (got *model.Request) {
	t.Helper()
	for part := range RequestParts(r) {
		if size := proto.Size(part); size > 2*handshake.BatchBytes {
			t.Errorf("a part has %d bytes", size)
		}
		if part = sent(t, part); got == nil {
			got = RequestFromProto(part)
		} else {
			AddMessages(got, part)
		}
	}
	return got
}

func TestALongRequestIsSentInParts(t *testing.T) {
	want := &model.Request{Model: "m", System: "s"}
	for i := range 500 {
		want.Messages = append(want.Messages, model.Message{Role: model.User, Parts: []model.Part{{Text: strings.Repeat(fmt.Sprint(i), 1000)}}})
	}
	parts := 0
	for range RequestParts(want) {
		parts++
	}
	if parts < 3 {
		t.Errorf("1.4 MB are sent in %d parts", parts)
	}
	same(t, sentInParts(t, want), want)
}

func TestEveryPieceOfAnAnswerSurvives(t *testing.T) {
	all := filled[model.Event](t)
	all.Finish = model.FinishRefused
	for _, want := range oneByOne(all) {
		same(t, ModelEventFromProto(sent(t, ModelEventToProto(want))), want)
	}
}

// oneByOne is one value for each field of v, with that field alone set.
func oneByOne[T any](v T) []T {
	var out []T
	whole := reflect.ValueOf(v)
	for i := range whole.NumField() {
		one := reflect.New(whole.Type()).Elem()
		one.Field(i).Set(whole.Field(i))
		out = append(out, one.Interface().(T))
	}
	return out
}

func TestTextThatIsNoUTF8IsSentAllTheSame(t *testing.T) {
	bad := "caf\xe9"
	r := ResultFromProto(sent(t, ResultToProto(tool.Result{
		Text: bad, Files: []tool.FileState{{Path: "/tmp/" + bad}},
	})))
	if !strings.HasPrefix(r.Text, "caf") || !strings.HasPrefix(r.Files[0].Path, "/tmp/caf") {
		t.Errorf("got %+v", r)
	}
	request := model.Request{
		System: bad, Settings: map[string]string{bad: bad},
		Messages: []model.Message{{Role: model.Tool, Parts: []model.Part{{ToolResult: &model.ToolResult{Text: bad}}}}},
	}
	if got := sentInParts(t, &request); !strings.HasPrefix(got.System, "caf") {
		t.Errorf("got %+v", got)
	}
	problems := []string{"sound", bad}
	sent(t, ReportToProto(store.Report{Problems: problems}))
	if problems[1] != bad {
		t.Error("the sender's own list was changed")
	}
	sent(t, SessionToProto(workspace.Session{Folder: bad}))
}

func TestCountsThatLie(t *testing.T) {
	if got := RangeFromProto(&storagepb.ScanRequest{Limit: math.MaxUint64}).Limit; got < 0 {
		t.Errorf("a huge limit became %d", got)
	}
	if got := ModelInfoToProto(model.Info{ContextTokens: -1}).GetContextTokens(); got != 0 {
		t.Errorf("-1 tokens became %d", got)
	}
	if got := ModelEventFromProto(&modelpb.Event{}); !reflect.DeepEqual(got, model.Event{}) {
		t.Errorf("an empty event became %+v", got)
	}
}
