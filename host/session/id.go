package session

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"
)

// crockford is the alphabet of session ids: no I, L, O or U, which people
// misread.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID is a fresh session id: `s-` and 8 random characters (40 bits). The
// batch that stores the session requires that the id is free.
func NewID() string {
	var b [8]byte
	fill(b[:])
	id := []byte("s-")
	for _, x := range b {
		id = append(id, crockford[x%32])
	}
	return string(id)
}

// newSegment is a fresh segment id: 48 bits of time, so that what was written
// together lies together, and 16 random ones. The batch that stores the
// segment requires that it is free.
func newSegment(now time.Time) uint64 {
	var b [2]byte
	fill(b[:])
	return uint64(now.UnixMilli())<<16 | uint64(binary.BigEndian.Uint16(b[:]))
}

func fill(b []byte) {
	rand.Read(b) // crypto/rand never fails: it ends the process instead
}

// checkID refuses ids that cannot be a file name or a key.
func checkID(id string) error {
	if id == "" || len(id) > 64 {
		return fmt.Errorf("session id %q: an id has 1 to 64 characters", id)
	}
	for _, r := range id {
		ok := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
		if !ok {
			return fmt.Errorf("session id %q: an id has only letters, digits, - and _", id)
		}
	}
	return nil
}
