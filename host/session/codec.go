package session

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/session/sessionpb"
)

// The first byte of a stored payload says how the rest is coded. Tags are for
// ever, and so is every dictionary that was ever shipped: a payload can only be
// read with the one that wrote it. A coded frame lacks its magic number.
const (
	codedRaw     = 0
	codedDict1   = 1
	codedBundle1 = 2 // of several payloads (bundle.go), with dictionary 1
)

// maxPayload is the largest payload, uncompressed: 64 MiB. It also bounds what
// a damaged or hostile value can cost to read.
const maxPayload = 64 << 20

// smallest is the shortest payload that compression is tried on.
const smallest = 40

// dictionary1 is made by internal/dictionary.
//
//go:embed dictionary1.zdict
var dictionary1 []byte

const frameMagic = "\x28\xb5\x2f\xfd"

var encoders = sync.Pool{New: func() any { return newEncoder(zstd.SpeedFastest, true) }}

func newEncoder(level zstd.EncoderLevel, dictionary bool) *zstd.Encoder {
	options := []zstd.EOption{
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(level),
		zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(1 << 20),
		zstd.WithSingleSegment(true), // a byte less, and readers know the size
		zstd.WithEncoderCRC(true),    // not every backend notices damage
	}
	if dictionary {
		options = append(options, zstd.WithEncoderDict(dictionary1))
	}
	enc, err := zstd.NewWriter(nil, options...)
	if err != nil {
		panic("session: the payload encoder cannot be made: " + err.Error()) // only constant arguments
	}
	return enc
}

var decoders = sync.Pool{New: func() any {
	dec, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(maxPayload),
		zstd.WithDecoderDicts(dictionary1))
	if err != nil {
		panic("session: the payload decoder cannot be made: " + err.Error()) // only constant arguments
	}
	return dec
}}

// frames are buffers for coded frames.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// encodePayload is the stored form of a payload and its uncompressed size.
func encodePayload(p *sessionpb.Payload) (value []byte, size int, err error) {
	if k := p.GetKind(); k == 0 || k > math.MaxUint8 {
		return nil, 0, fmt.Errorf("an item has kind %d; kinds go from 1 to 255", k)
	}
	plain, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{codedRaw}, p)
	if err != nil {
		return nil, 0, fmt.Errorf("encode an item: %w", err)
	}
	size = len(plain) - 1
	if size > maxPayload {
		return nil, 0, fmt.Errorf("an item of %d bytes is too large, at most %d", size, maxPayload)
	}
	enc := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(enc)
	return pack(enc, plain), size, nil
}

// pack compresses what follows the tag byte of plain, where that is shorter.
func pack(enc *zstd.Encoder, plain []byte) []byte {
	if len(plain) <= smallest {
		return plain
	}
	if packed := appendFrame([]byte{codedDict1}, enc, plain[1:]); len(packed) < len(plain) {
		return packed
	}
	return plain
}

// appendFrame adds the coded frame of data to b.
func appendFrame(b []byte, enc *zstd.Encoder, data []byte) []byte {
	frame := frames.Get().(*[]byte)
	defer frames.Put(frame)
	*frame = enc.EncodeAll(data, (*frame)[:0])
	return append(b, (*frame)[len(frameMagic):]...)
}

// openFrame is the data of a coded frame. With room it lies there, until room
// is used again.
func openFrame(room *[]byte, packed []byte) ([]byte, error) {
	frame := frames.Get().(*[]byte)
	defer frames.Put(frame)
	*frame = append(append((*frame)[:0], frameMagic...), packed...)
	dec := decoders.Get().(*zstd.Decoder)
	defer decoders.Put(dec)
	var into []byte
	if room != nil {
		into = (*room)[:0]
	}
	data, err := dec.DecodeAll(*frame, into)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if room != nil && cap(data) <= keepRoom {
		*room = data
	}
	return data, nil
}

// keepRoom is the largest room that is kept for the next frame.
const keepRoom = 4 * bundleBytes

var errCoding = errors.New("its coding is not known to this version of bough")

// unpack is what pack was given, without the tag byte. The result may share
// memory with value, or lie in room.
func unpack(room *[]byte, value []byte) ([]byte, error) {
	if len(value) == 0 {
		return nil, errors.New("the stored value is empty")
	}
	switch value[0] {
	case codedRaw:
		return value[1:], nil
	case codedDict1:
		return openFrame(room, value[1:])
	}
	return nil, fmt.Errorf("%w (tag %d)", errCoding, value[0])
}

// parsePayload reads what encodePayload wrote, once it is unpacked.
func parsePayload(plain []byte) (*sessionpb.Payload, error) {
	p := &sessionpb.Payload{}
	if err := proto.Unmarshal(plain, p); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	if k := p.GetKind(); k == 0 || k > math.MaxUint8 {
		return nil, fmt.Errorf("parse: kind %d, and kinds go from 1 to 255", k)
	}
	return p, nil
}
