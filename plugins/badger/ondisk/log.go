package ondisk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"

	"github.com/dgraph-io/badger/v4/y"
)

// LogID is the number of a memtable log's file; ok is false for other files.
func LogID(name string) (id uint64, ok bool) { return numbered(name, ".mem") }

// LogName is the file of the log with that number.
func LogName(id uint64) string { return fmt.Sprintf("%05d.mem", id) }

// logHeader is how many bytes precede the entries: number of a key, and the
// start vector, both unused without encryption.
const logHeader = 20

// Log is what a log of a memtable holds as far as it is sound: whole
// transactions, of which Badger reads the same.
type Log struct {
	First, Last uint64 // lowest and highest version; 0: it has no entry
	Entries     int
}

// ReadLog reads a log to the end of its last sound transaction. Each entry of
// a sound transaction is given to yield, unless that is nil.
func ReadLog(path string, yield func(Entry) error) (Log, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Log{}, err
	}
	var l Log
	if len(data) < logHeader {
		return l, nil
	}
	if binary.BigEndian.Uint64(data) != 0 {
		return l, errors.New("it is encrypted")
	}
	var open []Entry
	version := uint64(0) // of the transaction that is open
	for rest := data[logHeader:]; ; {
		raw, n := logEntry(rest)
		if n == 0 {
			return l, nil
		}
		rest = rest[n:]
		switch {
		case raw.meta&metaFin != 0:
			if v, err := strconv.ParseUint(string(raw.value), 10, 64); err != nil || v != version {
				return l, nil
			}
			if err := l.take(open, yield); err != nil {
				return l, err
			}
			open, version = open[:0], 0
		case raw.meta&metaTxn != 0:
			e := raw.entry()
			if version == 0 {
				version = e.Version
			}
			if version != e.Version {
				return l, nil
			}
			open = append(open, e)
		case version != 0:
			return l, nil
		default:
			if err := l.take([]Entry{raw.entry()}, yield); err != nil {
				return l, err
			}
		}
	}
}

func (l *Log) take(entries []Entry, yield func(Entry) error) error {
	for _, e := range entries {
		if l.Entries == 0 {
			l.First = e.Version
		}
		l.First, l.Last = min(l.First, e.Version), max(l.Last, e.Version)
		l.Entries++
		if yield != nil {
			if err := yield(e); err != nil {
				return err
			}
		}
	}
	return nil
}

type logRecord struct {
	meta, userMeta byte
	expires        uint64
	key, value     []byte
}

func (r logRecord) entry() Entry {
	return Entry{
		Key: append([]byte{}, y.ParseKey(r.key)...), Version: y.ParseTs(r.key), Value: append([]byte{}, r.value...),
		Deleted: r.meta&metaDeleted != 0, UserMeta: r.userMeta, ExpiresAt: r.expires,
	}
}

// logEntry reads the entry at the beginning of p: meta, the caller's meta, the
// lengths of key and value, the expiry, key, value, CRC-32C. It returns how
// many bytes that are; 0: there is none, or it is not sound.
func logEntry(p []byte) (logRecord, int) {
	if len(p) < 2 {
		return logRecord{}, 0
	}
	r := logRecord{meta: p[0], userMeta: p[1]}
	at := 2
	var lengths [3]uint64
	for i := range lengths {
		v, n := binary.Uvarint(p[at:])
		if n <= 0 {
			return r, 0
		}
		lengths[i] = v
		at += n
	}
	klen, vlen := lengths[0], lengths[1]
	r.expires = lengths[2]
	left := uint64(len(p) - at)
	if klen == 0 || klen > 1<<16 || vlen > left || klen+vlen+crc32.Size > left {
		return r, 0
	}
	end := at + int(klen+vlen)
	r.key, r.value = p[at:at+int(klen)], p[at+int(klen):end]
	if crc32.Checksum(p[:end], y.CastagnoliCrcTable) != binary.BigEndian.Uint32(p[end:]) {
		return r, 0
	}
	return r, end + crc32.Size
}
