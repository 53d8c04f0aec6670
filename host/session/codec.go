package session

import (
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/session/sessionpb"
)

// The first byte of a stored payload says how the rest is coded. Tags are for
// ever, and so is every dictionary that was ever shipped: a payload can only be
// read with the one that wrote it.
const (
	codedRaw   = 0
	codedZstd  = 1
	codedDict1 = 2
)

// maxDecoded is the most that one payload may unpack to; it bounds what a
// damaged or hostile value can cost.
const maxDecoded = 256 << 20

//go:embed dictionary1.txt
var dictionary1 []byte

const dictionary1ID = 1

// smallest is the shortest payload that compression is tried on.
const smallest = 48

var encoders = sync.Pool{New: func() any {
	enc, err := zstd.NewWriter(nil,
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderDictRaw(dictionary1ID, dictionary1),
		zstd.WithEncoderCRC(true))
	if err != nil {
		panic("session: the payload encoder cannot be made: " + err.Error()) // only constant arguments
	}
	return enc
}}

var decoders = sync.Pool{New: func() any {
	dec, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(maxDecoded),
		zstd.WithDecoderDictRaw(dictionary1ID, dictionary1))
	if err != nil {
		panic("session: the payload decoder cannot be made: " + err.Error()) // only constant arguments
	}
	return dec
}}

// encodePayload is the stored form of a payload and its uncompressed size.
func encodePayload(p *sessionpb.Payload) (value []byte, size int, err error) {
	plain, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{codedRaw}, p)
	if err != nil {
		return nil, 0, fmt.Errorf("encode an item: %w", err)
	}
	size = len(plain) - 1
	if size > maxDecoded {
		return nil, 0, fmt.Errorf("an item of %d bytes is too large, at most %d", size, maxDecoded)
	}
	if size < smallest {
		return plain, size, nil
	}
	enc := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(enc)
	packed := enc.EncodeAll(plain[1:], append(make([]byte, 0, size/2+64), codedDict1))
	if len(packed) >= len(plain) {
		return plain, size, nil
	}
	return packed, size, nil
}

var errCoding = errors.New("its coding is not known to this version of bough")

// decodePayload reads what encodePayload wrote.
func decodePayload(value []byte) (*sessionpb.Payload, error) {
	if len(value) == 0 {
		return nil, errors.New("the stored value is empty")
	}
	plain := value[1:]
	switch value[0] {
	case codedRaw:
	case codedZstd, codedDict1:
		dec := decoders.Get().(*zstd.Decoder)
		defer decoders.Put(dec)
		var err error
		if plain, err = dec.DecodeAll(plain, nil); err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
	default:
		return nil, fmt.Errorf("%w (tag %d)", errCoding, value[0])
	}
	p := &sessionpb.Payload{}
	if err := proto.Unmarshal(plain, p); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	return p, nil
}
