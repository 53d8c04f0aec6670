package session_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/contrib/bench/sample"
	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/session/sessionpb"
)

func samples(t *testing.T, n int) []*sessionpb.Payload {
	t.Helper()
	s, err := sample.New(1)
	if err != nil {
		t.Fatal(err)
	}
	items := make([]*sessionpb.Payload, n)
	for i := range items {
		items[i] = s.Next()
	}
	return items
}

func TestRealisticItemsShrink(t *testing.T) {
	var plain, packed int
	for _, p := range samples(t, 4000) {
		v, size, err := session.EncodePayload(p)
		if err != nil {
			t.Fatal(err)
		}
		plain, packed = plain+size, packed+len(v)
	}
	ratio := float64(packed) / float64(plain)
	t.Logf("%d bytes an item, stored as %.3f of that", plain/4000, ratio)
	if ratio > 0.46 {
		t.Errorf("items are stored as %.3f of their size, and 0.45 is wanted", ratio)
	}
}

func TestRealisticItemsShrinkMoreTogether(t *testing.T) {
	var plain, packed int
	var some [][]byte
	size := 0
	for _, p := range samples(t, 4000) {
		raw, err := proto.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		plain += len(raw)
		if len(some) == session.BundleItems || size+len(raw) > session.BundleBytes {
			packed += len(session.EncodeBundle(some))
			some, size = nil, 0
		}
		some, size = append(some, raw), size+len(raw)
	}
	packed += len(session.EncodeBundle(some))
	ratio := float64(packed) / float64(plain)
	t.Logf("%d bytes an item, stored as %.3f of that", plain/4000, ratio)
	if ratio > 0.35 {
		t.Errorf("settled items are stored as %.3f of their size, and 0.35 is wanted", ratio)
	}
}
