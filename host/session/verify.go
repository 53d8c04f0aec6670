package session

import (
	"context"
	"fmt"

	"github.com/boughdev/bough/host/store"
)

// VerifyReport says what Verify looked at and found.
type VerifyReport struct {
	Sessions int
	Items    int
	Problems []Problem
}

// Problem is one thing that is wrong.
type Problem struct {
	Session string
	Item    Ref // Root: the session itself
	Text    string
}

// Verify walks every head to its root and reads every item on the way. It also
// compares the indexes with the sessions. It changes nothing.
func (s *Sessions) Verify(ctx context.Context, progress func(id string)) (VerifyReport, error) {
	var report VerifyReport
	records := map[string]Record{}
	for e, err := range s.st.Scan(ctx, store.Sessions()) {
		if err != nil {
			return report, fmt.Errorf("list the sessions: %w", err)
		}
		id := string(e.Key[1:])
		rec, err := recordOf(e)
		if err != nil {
			report.add(id, Root, err.Error())
			continue
		}
		records[id] = rec
		report.Sessions++
	}
	for id, rec := range records {
		if progress != nil {
			progress(id)
		}
		if err := s.verifyPath(ctx, rec, &report); err != nil {
			return report, err
		}
	}
	return report, s.verifyIndexes(ctx, records, &report)
}

func (r *VerifyReport) add(session string, item Ref, text string) {
	r.Problems = append(r.Problems, Problem{session, item, text})
}

func (s *Sessions) verifyPath(ctx context.Context, rec Record, report *VerifyReport) error {
	path, err := s.Path(ctx, rec.Head())
	if err == nil {
		err = path.reach(ctx, 0)
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		report.add(rec.ID(), rec.Head(), fmt.Sprintf("the way from its head to its root is broken: %v", err))
		return nil
	}
	if !path.next.IsRoot() {
		report.add(rec.ID(), path.next, "the path does not end at the root")
	}
	if want := rec.pb.GetItems(); want != uint64(path.Len()) {
		report.add(rec.ID(), Root, fmt.Sprintf("its record counts %d items, its path has %d", want, path.Len()))
	}
	i := 0
	for it, err := range path.Items(ctx, 0, path.Len()) {
		if it == nil {
			return err
		}
		if err != nil {
			report.add(rec.ID(), it.Ref, err.Error())
		} else if text := s.disagreement(ctx, path, i, it); text != "" {
			report.add(rec.ID(), it.Ref, text)
		}
		report.Items++
		i++
	}
	return nil
}

// disagreement is how an item and its skeleton entry differ; empty: they agree.
func (s *Sessions) disagreement(ctx context.Context, path *Path, i int, it *Item) string {
	e, err := path.Entry(ctx, i)
	if err != nil {
		return err.Error()
	}
	parent := Ref{it.Ref.Segment, it.Ref.Number - 1}
	if it.Payload.GetParent() != nil {
		parent = refOf(it.Payload.GetParent())
	}
	switch {
	case e.Depth != uint64(i)+1:
		return fmt.Sprintf("the skeleton has it at depth %d, it is at %d", e.Depth, i+1)
	case e.Kind != Kind(it.Payload.GetKind()):
		return fmt.Sprintf("the skeleton calls it %s, it is %s", e.Kind, it.Kind())
	case parent != e.Parent:
		return fmt.Sprintf("the skeleton has %s as its parent, the item has %s", e.Parent, parent)
	}
	return ""
}

func (s *Sessions) verifyIndexes(ctx context.Context, records map[string]Record, report *VerifyReport) error {
	for name, r := range map[string]store.Range{"activity": store.Activity(), "folder": store.Folders()} {
		seen := map[string]bool{}
		r.KeysOnly = true
		for e, err := range s.st.Scan(ctx, r) {
			if err != nil {
				return fmt.Errorf("read the %s index: %w", name, err)
			}
			id, err := store.IndexedID(e.Key)
			if err != nil {
				report.add("", Root, err.Error())
				continue
			}
			rec, there := records[id]
			switch {
			case !there:
				// It may have been stored after the records were read.
				if _, err := s.Get(ctx, id); err != nil {
					report.add(id, Root, "the "+name+" index lists it, and it is not there")
				}
			case string(e.Key) != string(store.FolderKey(rec.Folder(), rec.pb.GetActiveUnixMs(), id)) &&
				string(e.Key) != string(store.ActivityKey(rec.pb.GetActiveUnixMs(), id)):
				if now, err := s.Get(ctx, id); err == nil && now.version == rec.version {
					report.add(id, Root, "the "+name+" index has an outdated entry of it")
				}
			}
			seen[id] = true
		}
		for id := range records {
			if !seen[id] {
				report.add(id, Root, "the "+name+" index does not list it")
			}
		}
	}
	return nil
}

// RebuildIndexes makes both indexes anew from the sessions and says how many
// there are. Other processes may go on meanwhile.
func (s *Sessions) RebuildIndexes(ctx context.Context) (int, error) {
	for _, r := range []store.Range{store.Activity(), store.Folders()} {
		if err := s.dropStale(ctx, r); err != nil {
			return 0, err
		}
	}
	n := 0
	for e, err := range s.st.Scan(ctx, store.Sessions()) {
		if err != nil {
			return n, fmt.Errorf("list the sessions: %w", err)
		}
		rec, err := recordOf(e)
		if err != nil {
			return n, err
		}
		var b store.Batch
		b.Require(store.SessionKey(rec.ID()), rec.version)
		b.Put(store.FolderKey(rec.Folder(), rec.pb.GetActiveUnixMs(), rec.ID()), nil)
		b.Put(store.ActivityKey(rec.pb.GetActiveUnixMs(), rec.ID()), nil)
		if _, err := s.st.Commit(ctx, b); err != nil && !isConflict(err) { // changed since: its writer indexed it
			return n, fmt.Errorf("index session %s: %w", rec.ID(), err)
		}
		n++
	}
	return n, nil
}

// dropStale removes the index entries that fit no session.
func (s *Sessions) dropStale(ctx context.Context, r store.Range) error {
	r.KeysOnly = true
	for e, err := range s.st.Scan(ctx, r) {
		if err != nil {
			return fmt.Errorf("read an index: %w", err)
		}
		id, err := store.IndexedID(e.Key)
		var b store.Batch
		if err == nil {
			rows, err := s.st.Get(ctx, store.SessionKey(id))
			if err != nil {
				return err
			}
			if rows[0].Version != 0 {
				rec, err := recordOf(rows[0])
				if err != nil {
					return err
				}
				active := rec.pb.GetActiveUnixMs()
				if string(e.Key) == string(store.FolderKey(rec.Folder(), active, id)) || string(e.Key) == string(store.ActivityKey(active, id)) {
					continue
				}
			}
			b.Require(store.SessionKey(id), rows[0].Version)
		}
		b.Delete(e.Key)
		if _, err := s.st.Commit(ctx, b); err != nil && !isConflict(err) {
			return fmt.Errorf("drop an index entry: %w", err)
		}
	}
	return nil
}
