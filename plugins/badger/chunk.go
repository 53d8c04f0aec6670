package badger

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	db "github.com/dgraph-io/badger/v4"

	"github.com/boughdev/bough/host/store"
)

// Badger's largest transaction is 15 % of a memtable, and the contract's
// largest batch is 48 MiB. So what does not fit is cut into chunks, rows of
// this package that are written before the batch's own transaction, with the
// same version. In the row of the key lies then, marked by metaChunked, how
// long the value is. Nobody reads a version before all of it is written, and a
// crash between leaves chunks that no row tells of; sweepChunks removes those,
// and the ones whose row was written again or deleted.
const (
	metaChunked = 1
	chunkBytes  = 512 << 10
	// txnBytes is how much is put into one transaction, rows counted with
	// what Badger adds to each.
	txnBytes = memtableBytes * 15 / 100 * 8 / 10
	rowCost  = 64
	// smallest value that is worth a chunk.
	smallest = 256
)

// chunkKey is the key of a piece: version and place in the batch, then the
// number of the piece.
func chunkKey(version uint64, op, piece int) []byte {
	k := binary.BigEndian.AppendUint64([]byte{rowChunk}, version)
	k = binary.BigEndian.AppendUint16(k, uint16(op))
	return binary.BigEndian.AppendUint16(k, uint16(piece))
}

// cut chooses the values of a batch that are stored in chunks: the largest,
// until the rest fits one transaction, and those over the largest row.
func cut(ops []store.Op) map[int]bool {
	size := 0
	var large []int
	for i, op := range ops {
		size += len(op.Key) + len(op.Value) + rowCost
		if len(op.Value) >= smallest && !op.Delete {
			large = append(large, i)
		}
	}
	slices.SortFunc(large, func(a, b int) int { return cmp.Compare(len(ops[b].Value), len(ops[a].Value)) })
	chosen := map[int]bool{}
	for _, i := range large {
		if size <= txnBytes && len(ops[i].Value) <= chunkBytes {
			break
		}
		chosen[i] = true
		size -= len(ops[i].Value)
	}
	return chosen
}

// chunkRow is what lies in the row of a key whose value is in chunks: its
// length and its place in the batch. The version of the row is that of the
// chunks.
func chunkRow(length, op int) []byte {
	p := binary.BigEndian.AppendUint32(nil, uint32(length))
	return binary.BigEndian.AppendUint16(p, uint16(op))
}

func parseChunkRow(p []byte) (length, op int, err error) {
	if len(p) != 6 {
		return 0, 0, fmt.Errorf("a row of %d bytes tells of chunks", len(p))
	}
	length, op = int(binary.BigEndian.Uint32(p)), int(binary.BigEndian.Uint16(p[4:]))
	if length > store.MaxValueBytes {
		return 0, 0, fmt.Errorf("a value in chunks of %d bytes", length)
	}
	return length, op, nil
}

// chunk is a row to be written.
type chunk struct{ key, value []byte }

func chunksOf(ops []store.Op, chosen map[int]bool, version uint64) []chunk {
	var out []chunk
	for i := range ops {
		if !chosen[i] {
			continue
		}
		piece := 0
		for part := range slices.Chunk(ops[i].Value, chunkBytes) {
			out = append(out, chunk{chunkKey(version, i, piece), part})
			piece++
		}
	}
	return out
}

// valueOf is the value of an item, put together if it is in chunks.
func (s *Store) valueOf(txn *db.Txn, item *db.Item) ([]byte, error) {
	v, err := item.ValueCopy(nil)
	if err != nil {
		return nil, err
	}
	if v == nil {
		v = []byte{}
	}
	if item.UserMeta() != metaChunked {
		return v, nil
	}
	length, op, err := parseChunkRow(v)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, length)
	for piece := 0; len(out) < length; piece++ {
		key := chunkKey(item.Version(), op, piece)
		if err := s.trust.keys(key); err != nil {
			return nil, err
		}
		part, err := txn.Get(key)
		if err != nil {
			return nil, damaged("piece %d of the value of key %x: %v", piece, item.Key(), err)
		}
		before := len(out)
		if err := part.Value(func(p []byte) error { out = append(out, p...); return nil }); err != nil {
			return nil, err
		}
		if len(out) == before || len(out) > length {
			return nil, damaged("piece %d of the value of key %x has %d bytes", piece, item.Key(), len(out)-before)
		}
	}
	return out, nil
}

// sweepChunks removes chunks that belong to no row that is there.
func (s *Store) sweepChunks(ctx context.Context) error {
	used, there, err := s.findChunks(ctx)
	if err != nil {
		return fmt.Errorf("look for pieces of values: %w", err)
	}
	var b store.Batch
	flush := func() error {
		_, err := s.commit(ctx, &b)
		b = store.Batch{}
		return err
	}
	for _, key := range there {
		if used[string(key[:11])] {
			continue
		}
		if b.Delete(key); len(b.Ops) == store.MaxBatchOps {
			if err := flush(); err != nil {
				return fmt.Errorf("remove pieces of values: %w", err)
			}
		}
	}
	if len(b.Ops) > 0 {
		if err := flush(); err != nil {
			return fmt.Errorf("remove pieces of values: %w", err)
		}
	}
	return nil
}

// findChunks returns the chunks that are there as of one moment, and the
// prefixes of those that rows tell of. Without any chunk no row is read.
func (s *Store) findChunks(ctx context.Context) (used map[string]bool, there [][]byte, err error) {
	d, release, err := s.use()
	if err != nil {
		return nil, nil, err
	}
	defer release()
	r := s.beginRead(d)
	defer r.end()
	err = s.walk(ctx, r, store.Prefix([]byte{rowChunk}), func(item *db.Item) error {
		there = append(there, item.KeyCopy(nil))
		return nil
	})
	if err != nil || len(there) == 0 {
		return nil, nil, err
	}
	used = map[string]bool{}
	err = s.walk(ctx, r, store.Range{Start: []byte{firstKey}}, func(item *db.Item) error {
		if item.UserMeta() != metaChunked {
			return nil
		}
		return item.Value(func(p []byte) error {
			_, op, err := parseChunkRow(p)
			used[string(chunkKey(item.Version(), op, 0)[:11])] = true
			return err
		})
	})
	return used, there, err
}
