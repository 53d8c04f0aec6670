// Package session is the data model: items linked by parents, segments that
// hold them, sessions as movable heads, forks, titles and drafts, and how all
// of it lies in the store. It starts nothing and knows no model and no tool.
package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/boughdev/bough/host/session/sessionpb"
	"github.com/boughdev/bough/host/store"
)

// schema is the version of the layout that this program writes.
const schema = 1

// Options are the settings of Open. Zero values mean the defaults.
type Options struct {
	// MaxEagerLoadMB is the size ceiling of storage.max_eager_load_mb: the
	// most uncompressed payload, in MB, that a session may hold to be opened.
	// Default 1024.
	MaxEagerLoadMB int
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Sessions is all sessions of one store. Its methods may be called from any
// goroutine.
type Sessions struct {
	st      store.Store
	now     func() time.Time
	ceiling uint64
}

// Open checks that this program understands the store, and marks an empty one
// as its own. A store of a later version is refused and not touched.
func Open(ctx context.Context, st store.Store, o Options) (*Sessions, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxEagerLoadMB == 0 {
		o.MaxEagerLoadMB = 1024
	}
	s := &Sessions{st: st, now: o.Now, ceiling: uint64(o.MaxEagerLoadMB) << 20}
	for {
		entries, err := st.Get(ctx, store.SchemaKey())
		if err != nil {
			return nil, fmt.Errorf("read the schema version of the store: %w", err)
		}
		if entries[0].Version != 0 {
			return s, checkSchema(entries[0].Value)
		}
		var b store.Batch
		b.Require(store.SchemaKey(), 0)
		b.Put(store.SchemaKey(), []byte(strconv.Itoa(schema)))
		if _, err := st.Commit(ctx, b); err == nil {
			return s, nil
		} else if !errors.Is(err, store.ErrConflict) {
			return nil, fmt.Errorf("mark the new store: %w", err)
		}
	}
}

func checkSchema(value []byte) error {
	v, err := strconv.Atoi(string(value))
	if err != nil {
		return fmt.Errorf("the schema version of the store is %q, which is no number: run `bough storage check`", value)
	}
	if v > schema {
		return fmt.Errorf("the store has schema version %d, and this bough knows up to %d: it was left as it is; use a newer bough", v, schema)
	}
	return nil
}

// Record is what is stored of a session besides its items.
type Record struct {
	pb      *sessionpb.Session
	version uint64
	damage  error
}

// Damage is why the record cannot be read; nil: it can. List has such sessions
// too, with nothing but their id, so that none vanishes from sight.
func (r Record) Damage() error { return r.damage }

// ID is the session's id; it never changes.
func (r Record) ID() string { return r.pb.GetId() }

// Title is its name for people; empty before the first prompt.
func (r Record) Title() string { return r.pb.GetTitle() }

// Folder is the absolute folder that it works in.
func (r Record) Folder() string { return r.pb.GetFolder() }

// Head is the item it stands on.
func (r Record) Head() Ref { return refOf(r.pb.GetHead()) }

// Segment is the one it writes into.
func (r Record) Segment() uint64 { return r.pb.GetSegment() }

// Active is the time of the last item, or head move of a person.
func (r Record) Active() time.Time { return time.UnixMilli(r.pb.GetActiveUnixMs()) }

// Created is when it was made.
func (r Record) Created() time.Time { return time.UnixMilli(r.pb.GetCreatedUnixMs()) }

// Proto is the stored form. It is not to be changed.
func (r Record) Proto() *sessionpb.Session { return r.pb }

func recordOf(e store.Entry) (Record, error) {
	pb := &sessionpb.Session{}
	if err := proto.Unmarshal(e.Value, pb); err != nil {
		return Record{}, fmt.Errorf("the record of session %q is damaged: %w", e.Key[1:], err)
	}
	return Record{pb: pb, version: e.Version}, nil
}

// Get is the record of the session of that id.
func (s *Sessions) Get(ctx context.Context, id string) (Record, error) {
	if id == "" {
		return Record{}, notFound(id)
	}
	entries, err := s.st.Get(ctx, store.SessionKey(id))
	if err != nil {
		return Record{}, fmt.Errorf("read session %s: %w", id, err)
	}
	if entries[0].Version == 0 {
		return Record{}, notFound(id)
	}
	return recordOf(entries[0])
}

// Find is the session of that id, or else the only one whose title has the
// text in it, in whatever case. Several give an AmbiguousError.
func (s *Sessions) Find(ctx context.Context, name string) (Record, error) {
	r, err := s.Get(ctx, name)
	if err == nil || !errors.Is(err, ErrNotFound) || name == "" {
		return r, err
	}
	all, listErr := s.List(ctx, ListOptions{})
	if listErr != nil {
		return Record{}, listErr
	}
	var exact, part []Record
	for _, r := range all {
		switch title := strings.ToLower(r.Title()); {
		case title == strings.ToLower(name):
			exact = append(exact, r)
		case strings.Contains(title, strings.ToLower(name)):
			part = append(part, r)
		}
	}
	if len(exact) == 0 {
		exact = part
	}
	switch len(exact) {
	case 0:
		return Record{}, err
	case 1:
		return exact[0], nil
	}
	return Record{}, &AmbiguousError{name, exact}
}

// ListOptions select sessions. Zero values select all.
type ListOptions struct {
	Folder string
	Limit  int
}

// List is the sessions, last active first. It reads index keys and records,
// never items.
func (s *Sessions) List(ctx context.Context, o ListOptions) ([]Record, error) {
	r := store.Activity()
	if o.Folder != "" {
		r = store.Folder(o.Folder)
	}
	r.KeysOnly, r.Limit = true, o.Limit
	var ids []string
	for e, err := range s.st.Scan(ctx, r) {
		if err != nil {
			return nil, fmt.Errorf("list the sessions: %w", err)
		}
		id, err := store.IndexedID(e.Key)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	found, err := s.recordsOf(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read the sessions of the list: %w", err)
	}
	records := make([]Record, 0, len(ids))
	for _, id := range ids {
		e, there := found[id]
		if !there {
			continue // deleted since the index was read
		}
		rec, err := recordOf(e)
		if err != nil {
			rec = Record{pb: &sessionpb.Session{Id: id}, version: e.Version, damage: err}
		}
		records = append(records, rec)
	}
	return records, nil
}

// fewRecords are looked up one by one; more are faster found by reading all
// records, which lie together.
const fewRecords = 200

func (s *Sessions) recordsOf(ctx context.Context, ids []string) (map[string]store.Entry, error) {
	found := make(map[string]store.Entry, len(ids))
	if len(ids) > fewRecords {
		for _, id := range ids {
			found[id] = store.Entry{}
		}
		for e, err := range s.st.Scan(ctx, store.Sessions()) {
			if err != nil {
				return nil, err
			}
			if _, wanted := found[string(e.Key[1:])]; wanted {
				found[string(e.Key[1:])] = e
			}
		}
		maps.DeleteFunc(found, func(_ string, e store.Entry) bool { return e.Version == 0 })
		return found, nil
	}
	keys := make([][]byte, len(ids))
	for i, id := range ids {
		keys[i] = store.SessionKey(id)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	entries, err := s.st.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		if e.Version != 0 {
			found[ids[i]] = e
		}
	}
	return found, nil
}

// Latest is the session last active in a folder, for --continue. One whose
// record is damaged is refused, so that no other is taken for it.
func (s *Sessions) Latest(ctx context.Context, folder string) (Record, error) {
	found, err := s.List(ctx, ListOptions{Folder: folder, Limit: 1})
	if err != nil {
		return Record{}, err
	}
	if len(found) == 0 {
		return Record{}, fmt.Errorf("%w in %s: nothing to continue; `bough sessions list` shows all", ErrNotFound, folder)
	}
	if err := found[0].Damage(); err != nil {
		return Record{}, fmt.Errorf("%w; it was the last active one in %s: name another one, of those that `bough sessions list` shows", err, folder)
	}
	return found[0], nil
}

// putRecord adds the record and both index entries to a batch, and takes the
// entries of the former state away. was is nil for a new session.
func putRecord(b *store.Batch, was, now *sessionpb.Session) error {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(now)
	if err != nil {
		return fmt.Errorf("encode the record of session %s: %w", now.GetId(), err)
	}
	if was == nil || was.GetFolder() != now.GetFolder() || was.GetActiveUnixMs() != now.GetActiveUnixMs() {
		if was != nil {
			dropIndex(b, was)
		}
		b.Put(store.FolderKey(now.GetFolder(), now.GetActiveUnixMs(), now.GetId()), nil)
		b.Put(store.ActivityKey(now.GetActiveUnixMs(), now.GetId()), nil)
	}
	b.Put(store.SessionKey(now.GetId()), value)
	return nil
}

func dropIndex(b *store.Batch, rec *sessionpb.Session) {
	b.Delete(store.FolderKey(rec.GetFolder(), rec.GetActiveUnixMs(), rec.GetId()))
	b.Delete(store.ActivityKey(rec.GetActiveUnixMs(), rec.GetId()))
}
