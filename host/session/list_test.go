package session_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/boughdev/bough/host/session"
	"github.com/boughdev/bough/host/store"
	"github.com/boughdev/bough/host/store/memstore"
)

// Few sessions and many are listed alike: last active first, a damaged one
// among them.
func TestSessionsAreListedLastActiveFirst(t *testing.T) {
	for _, n := range []int{9, 450} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			st := memstore.New()
			now := time.Now()
			s := open(t, st, session.Options{Now: func() time.Time { return now }})
			var all, even []string
			for i := range n {
				now = now.Add(time.Second)
				o, err := s.New(t.Context(), session.NewOptions{Folder: fmt.Sprint("/f", i%2), Holder: me})
				if err != nil {
					t.Fatal(err)
				}
				add(t, o, prompt("x"))
				all = append(all, o.ID())
				if i%2 == 0 {
					even = append(even, o.ID())
				}
			}
			slices.Reverse(all)
			slices.Reverse(even)
			var b store.Batch
			b.Put(store.SessionKey(even[2]), []byte{0xff, 1, 2})
			if _, err := st.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			listed(t, s, session.ListOptions{}, all, even[2])
			listed(t, s, session.ListOptions{Folder: "/f0"}, even, even[2])
			listed(t, s, session.ListOptions{Folder: "/f0", Limit: 4}, even[:4], even[2])
		})
	}
}

func listed(t *testing.T, s *session.Sessions, o session.ListOptions, want []string, damaged string) {
	t.Helper()
	records, err := s.List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records {
		got = append(got, r.ID())
		if (r.Damage() != nil) != (r.ID() == damaged) {
			t.Errorf("session %s: damage %v", r.ID(), r.Damage())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v lists\n%v\nwant\n%v", o, got, want)
	}
}
