package store

import (
	"bytes"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestKeys lists every type of key once, with its bytes: what is here is in
// the stores that people have.
func TestKeys(t *testing.T) {
	const (
		segment  = "0102030405060708"
		number   = "1112131415161718"
		newest   = "fffffe74301a97ff" // 1_700_000_000_000, complemented so that newer sorts first
		homeHash = "e45213920083d94f7080746ce1ffe709"
	)
	seen := map[byte]string{}
	for _, tt := range []struct {
		name string
		key  []byte
		want string
	}{
		{"schema", SchemaKey(), "10"},
		{"session", SessionKey("ab"), "53" + "6162"},
		{"folder", FolderKey("/home", 1_700_000_000_000, "ab"), "46" + homeHash + newest + "6162"},
		{"activity", ActivityKey(1_700_000_000_000, "ab"), "41" + newest + "6162"},
		{"segment", SegmentKey(0x0102030405060708), "47" + segment},
		{"skeleton", SkeletonKey(0x0102030405060708, 0x1112131415161718), "4b" + segment + number},
		{"item", ItemKey(0x0102030405060708, 0x1112131415161718), "49" + segment + number},
		{"head move", HeadMoveKey("ab", 0x0102030405060708), "48" + "6162" + "00" + segment},
		{"draft", DraftKey("ab"), "44" + "6162"},
		{"partial", PartialKey("ab"), "50" + "6162"},
		{"forks", ForksKey("ab"), "4e" + "6162"},
	} {
		if got := hex.EncodeToString(tt.key); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if other, taken := seen[tt.key[0]]; taken {
			t.Errorf("%s and %s have the same type %#x", tt.name, other, tt.key[0])
		}
		seen[tt.key[0]] = tt.name
		if ReservedForBackend(tt.key) {
			t.Errorf("%s is in the backend's own range", tt.name)
		}
	}
	for own := range reservedBackend {
		if !ReservedForBackend([]byte{byte(own)}) {
			t.Errorf("%#x is not kept for the backend", own)
		}
	}
	if ReservedForBackend(nil) {
		t.Error("the empty key is said to be the backend's")
	}
}

func TestRanges(t *testing.T) {
	in := func(r Range, k []byte) bool {
		return bytes.Compare(k, r.Start) >= 0 && (len(r.End) == 0 || bytes.Compare(k, r.End) < 0)
	}
	for _, tt := range []struct {
		name string
		r    Range
		in   [][]byte
		out  [][]byte
	}{
		{"sessions", Sessions(), [][]byte{SessionKey(""), SessionKey("\xff\xff")}, [][]byte{SegmentKey(1), DraftKey("S")}},
		{"activity", Activity(), [][]byte{ActivityKey(0, "a"), ActivityKey(math.MaxInt64, "a")}, [][]byte{SessionKey("a")}},
		{"folders", Folders(), [][]byte{FolderKey("/a", 1, "x"), FolderKey("/b", 1, "x")}, [][]byte{ActivityKey(1, "x")}},
		{"folder", Folder("/a"), [][]byte{FolderKey("/a", 1, "x")}, [][]byte{FolderKey("/b", 1, "x"), FolderKey("/a/", 1, "x")}},
		{"segments", Segments(), [][]byte{SegmentKey(0), SegmentKey(math.MaxUint64)}, [][]byte{ItemKey(0, 0)}},
		{"items", Items(7, 3, 5), [][]byte{ItemKey(7, 3), ItemKey(7, 5)}, [][]byte{ItemKey(7, 2), ItemKey(7, 6), ItemKey(6, 4), SkeletonKey(7, 4)}},
		{"skeletons", Skeletons(7), [][]byte{SkeletonKey(7, 0), SkeletonKey(7, math.MaxUint64)}, [][]byte{SkeletonKey(8, 0), ItemKey(7, 0)}},
		{"head moves", HeadMoves("a"), [][]byte{HeadMoveKey("a", 0), HeadMoveKey("a", math.MaxUint64)}, [][]byte{HeadMoveKey("ab", 0), HeadMoveKey("b", 0)}},
	} {
		for _, k := range tt.in {
			if !in(tt.r, k) {
				t.Errorf("%s: %x is not in its range", tt.name, k)
			}
		}
		for _, k := range tt.out {
			if in(tt.r, k) {
				t.Errorf("%s: %x is in its range", tt.name, k)
			}
		}
	}
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{
		"a": "b", "a\xff": "b", "a\xfe": "a\xff", "\xff\xff": "", "": "", "ab\x00": "ab\x01",
	} {
		if got := PrefixEnd([]byte(prefix)); string(got) != want {
			t.Errorf("PrefixEnd(%x) = %x, want %x", prefix, got, want)
		}
	}
	p := []byte("ab")
	if PrefixEnd(p); string(p) != "ab" {
		t.Error("PrefixEnd changed its argument")
	}
}

// The order of the keys is what scans rely on.
func TestKeyOrder(t *testing.T) {
	for name, keys := range map[string][][]byte{
		"items by segment, then number": {
			ItemKey(0, 0), ItemKey(0, 1), ItemKey(0, 255), ItemKey(0, 256), ItemKey(0, math.MaxUint64), ItemKey(1, 0), ItemKey(256, 0),
		},
		"the latest activity first": {
			ActivityKey(math.MaxInt64, "a"), ActivityKey(1_700_000_000_001, "a"), ActivityKey(1_700_000_000_000, "b"), ActivityKey(0, "a"),
		},
		"head moves as they were made": {
			HeadMoveKey("a", 0), HeadMoveKey("a", 1), HeadMoveKey("a", 300), HeadMoveKey("ab", 0),
		},
	} {
		if !slices.IsSortedFunc(keys, bytes.Compare) {
			t.Errorf("%s: out of order: %x", name, keys)
		}
	}
}

func TestKeysAreTheirOwn(t *testing.T) {
	// A key may be appended to and kept: no two share memory.
	a, b := SessionKey("one"), SessionKey("two")
	_ = append(a, "xxx"...)
	if string(b) != "Stwo" || string(SessionKey("one")) != "Sone" {
		t.Errorf("keys share memory: %q %q", a, b)
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte{}, "id", uint64(1), uint64(2), int64(3))
	f.Add(FolderKey("/a", 5, "x"), "", uint64(math.MaxUint64), uint64(0), int64(math.MaxInt64))
	f.Add([]byte("A12345678"), strings.Repeat("x", 200), uint64(0), uint64(math.MaxUint64), int64(-1))
	f.Add([]byte("F"), "\x00\xff", uint64(9), uint64(9), int64(0))
	f.Add(ItemKey(1, 2)[:16], "ab", uint64(9), uint64(9), int64(0))
	f.Fuzz(func(t *testing.T, raw []byte, id string, segment, number uint64, at int64) {
		if got, err := IndexedID(raw); err == nil && !bytes.HasSuffix(raw, []byte(got)) {
			t.Errorf("IndexedID(%x) = %q", raw, got)
		}
		if s, n, err := SplitNumbered(raw); err == nil && !bytes.Equal(ItemKey(s, n), raw) && !bytes.Equal(SkeletonKey(s, n), raw) {
			t.Errorf("SplitNumbered(%x) = %d, %d", raw, s, n)
		}
		for _, k := range [][]byte{ItemKey(segment, number), SkeletonKey(segment, number)} {
			if s, n, err := SplitNumbered(k); err != nil || s != segment || n != number {
				t.Errorf("SplitNumbered(%x) = %d, %d, %v; want %d, %d", k, s, n, err, segment, number)
			}
		}
		for _, k := range [][]byte{FolderKey(string(raw), at, id), ActivityKey(at, id)} {
			got, err := IndexedID(k)
			if (err != nil) != (id == "") || got != id {
				t.Errorf("IndexedID(%x) = %q, %v; want %q", k, got, err, id)
			}
		}
		if end := PrefixEnd(raw); end != nil && (bytes.Compare(raw, end) >= 0 || bytes.HasPrefix(end, raw)) {
			t.Errorf("PrefixEnd(%x) = %x", raw, end)
		}
	})
}
