package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/boughdev/bough/host/store"
)

// A bundle is the payloads of consecutive items of one segment, packed as one
// frame, which takes about a quarter less than a frame each. It lies under the
// key of its last item, so that the item of any number is found at the first
// key that is not before it.
//
// A bundle is: its tag, how many items it holds, and a coded frame of the
// length of each payload followed by all payloads.
const (
	// bundleItems and bundleBytes are the most that one holds: enough to pack
	// well, little enough that one item of it is read soon.
	bundleItems = 256
	bundleBytes = 256 << 10
)

var bundlers = sync.Pool{New: func() any { return newEncoder(zstd.SpeedBetterCompression, false) }}

// encodeBundle is the stored form of several payloads.
func encodeBundle(plains [][]byte) []byte {
	size := 0
	for _, p := range plains {
		size += len(p) + binary.MaxVarintLen32
	}
	data := make([]byte, 0, size)
	for _, p := range plains {
		data = binary.AppendUvarint(data, uint64(len(p)))
	}
	for _, p := range plains {
		data = append(data, p...)
	}
	enc := bundlers.Get().(*zstd.Encoder)
	defer bundlers.Put(enc)
	return appendFrame(binary.AppendUvarint([]byte{codedBundle1}, uint64(len(plains))), enc, data)
}

// held is how many items a stored value holds. It does not look into it: of a
// damaged one it may be wrong.
func held(value []byte) int {
	if len(value) == 0 || value[0] != codedBundle1 {
		return 1
	}
	count, n := binary.Uvarint(value[1:])
	if n <= 0 || count == 0 || count > bundleItems {
		return 1
	}
	return int(count)
}

var errBundle = errors.New("a bundle of items is damaged")

// unpackAll is the payloads that a stored value holds, in order. They may share
// memory with value, or lie in room.
func unpackAll(room *[]byte, value []byte) ([][]byte, error) {
	if len(value) == 0 || value[0] != codedBundle1 {
		plain, err := unpack(room, value)
		return [][]byte{plain}, err
	}
	count, n := binary.Uvarint(value[1:])
	if n <= 0 || count == 0 || count > bundleItems {
		return nil, errBundle
	}
	data, err := openFrame(room, value[1+n:])
	if err != nil {
		return nil, err
	}
	lengths := make([]int, count)
	for i := range lengths {
		l, n := binary.Uvarint(data)
		if n <= 0 || l > maxPayload {
			return nil, errBundle
		}
		lengths[i], data = int(l), data[n:]
	}
	plains := make([][]byte, count)
	for i, l := range lengths {
		if l > len(data) {
			return nil, errBundle
		}
		plains[i], data = data[:l:l], data[l:]
	}
	if len(data) > 0 {
		return nil, errBundle
	}
	return plains, nil
}

// storedIn yields what is in the store of the items first to last of a
// segment, in order and each once, without their parents. What is missing is
// left out.
func storedIn(ctx context.Context, st store.Store, segment, first, last uint64) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		r := store.Items(segment, first, last+bundleItems-1) // the bundle that holds last ends there, at most
		if first == last {
			r.Limit = 1
		}
		next := first
		for e, err := range st.Scan(ctx, r) {
			var number uint64
			if err == nil {
				_, number, err = store.SplitNumbered(e.Key)
			}
			if err != nil {
				yield(stored{}, fmt.Errorf("read the items of segment %x: %w", segment, err))
				return
			}
			begin := number + 1 - min(uint64(held(e.Value)), number)
			if begin > last {
				return
			}
			from := max(begin, next)
			next = min(number, last) + 1
			s := stored{ref: Ref{segment, from}, value: e.Value, skip: int(from - begin), count: int(next - from)}
			if !yield(s, nil) || next > last {
				return
			}
		}
	}
}
