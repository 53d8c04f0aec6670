package session

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/session/sessionpb"
)

func FuzzPayload(f *testing.F) {
	for _, s := range []string{"", "short", strings.Repeat("func main() { return nil }\n", 50)} {
		v, _, err := encodePayload(&sessionpb.Payload{Kind: 2, Body: &sessionpb.Payload_Text{Text: &sessionpb.Text{Text: s}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(v)
	}
	f.Add([]byte{9, 1, 2})
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := decodePayload(value)
		if err != nil {
			return
		}
		again, _, err := encodePayload(p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := decodePayload(again)
		if err != nil || !proto.Equal(p, q) {
			t.Fatalf("a payload changed on its way: %v", err)
		}
	})
}

func FuzzSkeletonRow(f *testing.F) {
	f.Add(encodeRow([]Entry{{Ref: Ref{7, 1}, Kind: KindPrompt, Size: 10, Depth: 1, PathBytes: 10, UnixMS: 1},
		{Ref: Ref{7, 2}, Parent: Ref{7, 1}, Kind: KindText, Size: 5, Depth: 2, PathBytes: 15, UnixMS: 2},
		{Ref: Ref{7, 3}, Parent: Ref{3, 9}, Kind: KindText, Partial: true, Size: 5, Depth: 4, PathBytes: 99, UnixMS: 0}}))
	f.Fuzz(func(t *testing.T, row []byte) {
		entries, err := decodeRow(7, 1, row)
		if err != nil {
			return
		}
		again, err := decodeRow(7, 1, encodeRow(entries))
		if err != nil || len(again) != len(entries) {
			t.Fatalf("a row changed on its way: %v", err)
		}
		for i := range entries {
			if entries[i] != again[i] {
				t.Fatalf("entry %d: %+v, then %+v", i, entries[i], again[i])
			}
		}
	})
}

func TestABombIsRefused(t *testing.T) {
	enc := encoders.New().(interface {
		EncodeAll(src, dst []byte) []byte
	})
	bomb := enc.EncodeAll(make([]byte, maxDecoded+1<<20), []byte{codedDict1})
	if _, err := decodePayload(bomb); err == nil {
		t.Error("a payload over the limit was unpacked")
	}
}

func TestRealisticItemsShrink(t *testing.T) {
	body := bytes.Repeat([]byte("if err != nil {\n\t\treturn nil, fmt.Errorf(\"read config: %w\", err)\n\t}\n"), 12)
	v, size, err := encodePayload(&sessionpb.Payload{Kind: 5, Body: &sessionpb.Payload_ToolResult{ToolResult: &sessionpb.ToolResult{CallId: "c", Text: string(body)}}})
	if err != nil || len(v) > size*45/100 {
		t.Errorf("%d bytes are stored as %d: %v", size, len(v), err)
	}
}
