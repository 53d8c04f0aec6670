package store

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// The first byte of a key is its type. Keys that begin with a byte below 0x10
// are the backend's own (commit ids, tokens, counts): users of the contract
// neither read nor write them. TestKeys lists every type once.
const (
	typeSchema      = 0x10 // -> the schema version of the store
	typeSession     = 'S'  // id -> session record
	typeByFolder    = 'F'  // folder hash, newest first, id -> nothing
	typeByActivity  = 'A'  // newest first, id -> nothing
	typeSegment     = 'G'  // segment -> segment record
	typeSkeleton    = 'K'  // segment, first number -> skeleton row
	typeItem        = 'I'  // segment, number -> payload
	typeHeadMove    = 'H'  // id, number -> head move
	typeDraft       = 'D'  // id -> draft
	typePartial     = 'P'  // id -> the answer being streamed
	typeForks       = 'N'  // id -> how many forks were made of the session
	reservedBackend = 0x10
)

// ReservedForBackend tells whether a key belongs to the backend itself.
func ReservedForBackend(key []byte) bool { return len(key) > 0 && key[0] < reservedBackend }

// SchemaKey holds the schema version of the store.
func SchemaKey() []byte { return []byte{typeSchema} }

// SessionKey holds the record of a session.
func SessionKey(id string) []byte { return append([]byte{typeSession}, id...) }

// Sessions is the range of all session records.
func Sessions() Range { return Prefix([]byte{typeSession}) }

// FolderKey indexes a session by its folder and the time of its last activity
// (Unix milliseconds), newest first.
func FolderKey(folder string, activeMS int64, id string) []byte {
	k := folderPrefix(folder)
	k = binary.BigEndian.AppendUint64(k, ^uint64(activeMS))
	return append(k, id...)
}

// Folder is the range of the index of one folder.
func Folder(folder string) Range { return Prefix(folderPrefix(folder)) }

// Folders is the range of the whole folder index.
func Folders() Range { return Prefix([]byte{typeByFolder}) }

func folderPrefix(folder string) []byte {
	h := fnv.New128a()
	h.Write([]byte(folder))
	return h.Sum([]byte{typeByFolder})
}

// ActivityKey indexes a session by the time of its last activity (Unix
// milliseconds), newest first.
func ActivityKey(activeMS int64, id string) []byte {
	k := binary.BigEndian.AppendUint64([]byte{typeByActivity}, ^uint64(activeMS))
	return append(k, id...)
}

// Activity is the range of the whole activity index.
func Activity() Range { return Prefix([]byte{typeByActivity}) }

// IndexedID is the session id in a key of either index.
func IndexedID(key []byte) (string, error) {
	skip := 1 + 8
	if len(key) > 0 && key[0] == typeByFolder {
		skip = 1 + 16 + 8
	}
	if len(key) <= skip || (key[0] != typeByFolder && key[0] != typeByActivity) {
		return "", fmt.Errorf("key %x is not of a session index", key)
	}
	return string(key[skip:]), nil
}

// SegmentKey holds the record of a segment.
func SegmentKey(segment uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{typeSegment}, segment)
}

// Segments is the range of all segment records.
func Segments() Range { return Prefix([]byte{typeSegment}) }

// ItemKey holds the payload of an item.
func ItemKey(segment, number uint64) []byte { return numbered(typeItem, segment, number) }

// Items is the range of the items of a segment with from <= number <= to.
func Items(segment, from, to uint64) Range {
	return Range{Start: ItemKey(segment, from), End: ItemKey(segment, to+1)}
}

// SkeletonKey holds the skeleton row of a segment whose first entry is of item
// number first.
func SkeletonKey(segment, first uint64) []byte { return numbered(typeSkeleton, segment, first) }

// Skeletons is the range of the skeleton rows of a segment.
func Skeletons(segment uint64) Range {
	return Prefix(binary.BigEndian.AppendUint64([]byte{typeSkeleton}, segment))
}

func numbered(kind byte, segment, number uint64) []byte {
	k := binary.BigEndian.AppendUint64([]byte{kind}, segment)
	return binary.BigEndian.AppendUint64(k, number)
}

// SplitNumbered is the segment and number of an item or skeleton key.
func SplitNumbered(key []byte) (segment, number uint64, err error) {
	if len(key) != 17 || (key[0] != typeItem && key[0] != typeSkeleton) {
		return 0, 0, fmt.Errorf("key %x is not of an item or a skeleton row", key)
	}
	return binary.BigEndian.Uint64(key[1:]), binary.BigEndian.Uint64(key[9:]), nil
}

// HeadMoveKey holds the n-th head move of a session.
func HeadMoveKey(id string, n uint64) []byte {
	return binary.BigEndian.AppendUint64(headMovePrefix(id), n)
}

// HeadMoves is the range of a session's head-move log.
func HeadMoves(id string) Range { return Prefix(headMovePrefix(id)) }

// The zero byte keeps the logs of "a" and "ab" apart.
func headMovePrefix(id string) []byte {
	return append(append([]byte{typeHeadMove}, id...), 0)
}

// DraftKey holds the draft of a session.
func DraftKey(id string) []byte { return append([]byte{typeDraft}, id...) }

// PartialKey holds what has been streamed of a session's unfinished answer.
func PartialKey(id string) []byte { return append([]byte{typePartial}, id...) }

// ForksKey counts the forks that were made of a session. It is a key of its own
// because a fork may be made while another process owns the session's record.
func ForksKey(id string) []byte { return append([]byte{typeForks}, id...) }
