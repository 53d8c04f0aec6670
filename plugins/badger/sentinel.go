package badger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"sync"
)

// sentinel is a small file with a version that was durable when it was
// written: a store that opens with less has lost something, whatever Badger
// says. It has two places that are written in turn, so that a power cut leaves
// one of them.
type sentinel struct {
	mu      sync.Mutex
	f       *os.File
	reached uint64
	turn    uint64 // how often it was written; the higher one counts
}

const (
	sentinelMagic = "bough2"
	sentinelBytes = len(sentinelMagic) + 8 + 8 + 4
	sentinelApart = 4096 // so that the places never share a block of the disk
)

// load reads the sentinel. made is false when the store has none, so is new.
func (n *sentinel) load(path string) (made bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reached, n.turn = 0, 0
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the sentinel: %w", err)
	}
	for at := 0; at < len(raw); at += sentinelApart {
		if version, turn, ok := parseSentinel(raw[at:]); ok && turn > n.turn {
			n.reached, n.turn = version, turn
		}
	}
	if n.turn == 0 {
		return true, damaged("the file %s is damaged, so it cannot be told whether the store is whole", path)
	}
	return true, nil
}

func parseSentinel(p []byte) (version, turn uint64, ok bool) {
	if len(p) < sentinelBytes || !bytes.HasPrefix(p, []byte(sentinelMagic)) {
		return 0, 0, false
	}
	body, sum := p[:sentinelBytes-4], binary.BigEndian.Uint32(p[sentinelBytes-4:])
	if crc32.ChecksumIEEE(body) != sum {
		return 0, 0, false
	}
	body = body[len(sentinelMagic):]
	return binary.BigEndian.Uint64(body), binary.BigEndian.Uint64(body[8:]), true
}

// open opens the file for writing, or makes it.
func (n *sentinel) open(path string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil && n.f != nil { // of an opening that failed
		err = n.f.Close()
	}
	if err != nil {
		return fmt.Errorf("open the sentinel: %w", err)
	}
	n.f = f
	return nil
}

// write notes that a version is durable. Without sync the note survives the
// process, not a power cut.
func (n *sentinel) write(version uint64, sync bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.turn++
	n.reached = max(n.reached, version)
	p := binary.BigEndian.AppendUint64([]byte(sentinelMagic), n.reached)
	p = binary.BigEndian.AppendUint64(p, n.turn)
	p = binary.BigEndian.AppendUint32(p, crc32.ChecksumIEEE(p))
	_, err := n.f.WriteAt(p, int64(n.turn%2)*sentinelApart)
	if err == nil && sync {
		err = n.f.Sync()
	}
	if err != nil {
		return fmt.Errorf("write the sentinel: %w", err)
	}
	return nil
}

func (n *sentinel) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.f == nil {
		return nil
	}
	err := n.f.Close()
	n.f = nil
	return err
}
