package ondisk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/y"
	"google.golang.org/protobuf/proto"
)

// ManifestName is the file that names the tables of a store.
const ManifestName = "MANIFEST"

// Manifest is what a MANIFEST says.
type Manifest struct {
	Levels map[uint64]int // table -> level
	// Sound is how many of its bytes are whole records. What follows is a
	// record that was not written to its end: its change did not happen.
	Sound int
}

// magic begins a MANIFEST: Badger's name, no number of the program's own, and
// version 8 of the format.
var magic = []byte{'B', 'd', 'g', 'r', 0, 0, 0, 8}

// ParseManifest reads a MANIFEST. A record that is whole and does not match
// its checksum is an error.
func ParseManifest(raw []byte) (Manifest, error) {
	m := Manifest{Levels: map[uint64]int{}}
	if !bytes.HasPrefix(raw, magic) {
		return m, errors.New("it does not begin as a MANIFEST of Badger 4 does")
	}
	m.Sound = len(magic)
	for {
		rest := raw[m.Sound:]
		if len(rest) < 8 {
			return m, nil
		}
		n := binary.BigEndian.Uint32(rest)
		if uint64(n)+8 > uint64(len(rest)) {
			return m, nil
		}
		body := rest[8 : 8+n]
		if crc32.Checksum(body, y.CastagnoliCrcTable) != binary.BigEndian.Uint32(rest[4:]) {
			return m, fmt.Errorf("the record at byte %d does not match its checksum", m.Sound)
		}
		var set pb.ManifestChangeSet
		if err := proto.Unmarshal(body, &set); err != nil {
			return m, fmt.Errorf("the record at byte %d: %w", m.Sound, err)
		}
		for _, c := range set.GetChanges() {
			if err := m.apply(c); err != nil {
				return m, fmt.Errorf("the record at byte %d: %w", m.Sound, err)
			}
		}
		m.Sound += 8 + int(n)
	}
}

func (m *Manifest) apply(c *pb.ManifestChange) error {
	_, there := m.Levels[c.GetId()]
	switch c.GetOp() {
	case pb.ManifestChange_CREATE:
		if there {
			return fmt.Errorf("table %d is made twice", c.GetId())
		}
		m.Levels[c.GetId()] = int(c.GetLevel())
	case pb.ManifestChange_DELETE:
		delete(m.Levels, c.GetId()) // one that is gone already is no error, as in Badger
	default:
		return fmt.Errorf("change %d is not known", c.GetOp())
	}
	return nil
}

// ManifestAdding is a record that names tables, at level 0, where tables may
// overlap.
func ManifestAdding(ids []uint64) ([]byte, error) {
	var set pb.ManifestChangeSet
	for _, id := range ids {
		set.Changes = append(set.Changes, &pb.ManifestChange{Id: id, Op: pb.ManifestChange_CREATE})
	}
	body, err := proto.Marshal(&set)
	if err != nil {
		return nil, err
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = binary.BigEndian.AppendUint32(out, crc32.Checksum(body, y.CastagnoliCrcTable))
	return append(out, body...), nil
}
