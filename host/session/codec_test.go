package session

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/session/sessionpb"
)

func decodePayload(value []byte) (*sessionpb.Payload, error) {
	plain, err := unpack(nil, value)
	if err != nil {
		return nil, err
	}
	return parsePayload(plain)
}

func FuzzPayloadCodec(f *testing.F) {
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
	enc := newEncoder(zstd.SpeedFastest, true)
	bomb := enc.EncodeAll(make([]byte, maxPayload+1<<20), nil)
	value := append([]byte{codedDict1}, bomb[len(frameMagic):]...)
	if len(value) > maxPayload/1000 {
		t.Fatalf("the bomb has %d bytes", len(value))
	}
	if _, err := decodePayload(value); err == nil {
		t.Error("a payload over the limit was unpacked")
	}
	if _, _, err := encodePayload(textPayload(strings.Repeat("x", maxPayload))); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a payload over the limit is stored: %v", err)
	}
}

func textPayload(s string) *sessionpb.Payload {
	return &sessionpb.Payload{Kind: uint32(KindText), Body: &sessionpb.Payload_Text{Text: &sessionpb.Text{Text: s}}}
}

func TestEveryCodingComesBack(t *testing.T) {
	noise := make([]byte, 4000)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	for _, s := range []string{"", "a", "short words", strings.Repeat("func (s *Server) Serve() error {\n", 40), hex.EncodeToString(noise)} {
		p := textPayload(s)
		value, size, err := encodePayload(p)
		if err != nil || size != proto.Size(p) || len(value) > size+1 {
			t.Fatalf("%d bytes are stored as %d (size %d): %v", len(s), len(value), size, err)
		}
		back, err := decodePayload(value)
		if err != nil || !proto.Equal(p, back) {
			t.Fatalf("%q came back as %v: %v", s, back, err)
		}
	}
}

func TestDamageOfAPayloadIsNoticed(t *testing.T) {
	value, _, err := encodePayload(textPayload(strings.Repeat("The quick brown fox, 42 times. ", 30)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range value {
		broken := bytes.Clone(value)
		broken[i] ^= 0x20
		if _, err := decodePayload(broken); err == nil {
			t.Errorf("a flipped bit in byte %d was not noticed", i)
		}
	}
	if _, err := decodePayload([]byte{77, 1, 2}); !errors.Is(err, errCoding) {
		t.Errorf("an unknown coding = %v", err)
	}
}

func FuzzBundle(f *testing.F) {
	f.Add(encodeBundle([][]byte{{8, 2}}))
	f.Add(encodeBundle([][]byte{{8, 2}, {}, bytes.Repeat([]byte("what was said "), 90)}))
	f.Add([]byte{codedBundle1, 0})
	f.Fuzz(func(t *testing.T, value []byte) {
		plains, err := unpackAll(nil, value)
		if err != nil {
			return
		}
		if len(plains) != held(value) {
			t.Fatalf("%d items, and %d were told", len(plains), held(value))
		}
		if len(plains) > 1 {
			again, err := unpackAll(nil, encodeBundle(plains))
			if err != nil || !slices.EqualFunc(plains, again, bytes.Equal) {
				t.Fatalf("items changed on their way: %v", err)
			}
		}
	})
}
