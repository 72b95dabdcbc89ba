package kernel_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// TestFrozenIsReadElsewhere reads a frozen state in another goroutine while the original
// goes on, as a snapshot does; the race detector watches.
func TestFrozenIsReadElsewhere(t *testing.T) {
	j := writeJournal(1500, seeded(1))
	state := &replica{State: core.NewAt(core.NewestLevel)}
	var readers sync.WaitGroup
	for i, e := range j {
		if _, err := state.apply(e); err != nil {
			t.Fatal(err)
		}
		if i%40 != 0 {
			continue
		}
		frozen, want := state.Freeze(), render(state.State)
		readers.Go(func() {
			if render(frozen) != want {
				t.Error("what was frozen has changed")
			}
			readAll(frozen)
		})
	}
	readers.Wait()
}

// readAll asks everything that can be asked.
func readAll(s *core.State) {
	view := s.View(time.Second)
	for _, namespace := range view.Namespaces() {
		list, _ := view.List(namespace, "", "", 100, true)
		for _, status := range list {
			view.Status(namespace, status.Resource, 100)
			view.Held(namespace, status.Resource)
		}
		for _, e := range view.History(namespace).All() {
			view.Claim(namespace, e.ID)
			view.Session(namespace, e.Session)
			view.Ended(namespace, e.ID)
		}
	}
	for _, namespace := range view.Namespaces() {
		page, _ := view.Records(namespace, core.RecordQuery{Count: true})
		for _, r := range page.Records {
			_, _ = view.Record(namespace, r.Path, r.Create)
		}
		_, _ = view.Records(namespace, core.RecordQuery{Revision: page.Revision / 2})
	}
	view.Counts()
}

// pieces are records, and then perhaps the failure to read on.
func pieces(failure error, values ...any) iter.Seq2[core.Piece, error] {
	return func(yield func(core.Piece, error) bool) {
		for _, v := range values {
			space := ns
			if _, head := v.(*core.Head); head {
				space = ""
			}
			if !yield(core.Piece{Space: space, Value: v}, nil) {
				return
			}
		}
		if failure != nil {
			yield(core.Piece{}, failure)
		}
	}
}

// TestRestoreRefuses puts together what does not fit together.
func TestRestoreRefuses(t *testing.T) {
	head, space := &core.Head{Now: 1, Level: core.NewestLevel}, &core.SpaceHead{}
	broken := errors.New("the disk is broken")
	for _, test := range []struct {
		what    string
		records iter.Seq2[core.Piece, error]
		says    string
	}{
		{"nothing", pieces(nil), "empty"},
		{"a file that can not be read to its end", pieces(broken, head, space), "the disk is broken"},
		{"no head", pieces(nil, space), "head in the wrong place"},
		{"two heads", pieces(nil, head, head), "head in the wrong place"},
		{"a session without its namespace", pieces(nil, head, &core.Session{ID: "s1"}), `namespace "default" before its head`},
		{"a lease without its resource", pieces(nil, head, space, &core.Claim{ID: "a1", Resource: "printer"}), `lease "a1" on "printer"`},
		{"a lease without its session", pieces(nil, head, space, &core.Resource{Path: "printer", Claim: "a1"},
			&core.Claim{ID: "a1", Resource: "printer", Session: "s1", Token: 1}), `session "s1"`},
		{"a record twice", pieces(nil, head, space, &leasehold.Record{Path: "a"}, &leasehold.Record{Path: "a"}), `record "a" twice`},
		{"a record without its session", pieces(nil, head, space, &leasehold.Record{Path: "a", Session: "s1"}), `session "s1"`},
		{"a shelf twice", pieces(nil, head, space, &core.Shelf{Path: "a", Keep: 1, Deleted: 1}, &core.Shelf{Path: "a", Keep: 1, Deleted: 1}), `the shelf of "a" twice`},
		{"a shelf without its record", pieces(nil, head, space, &core.Shelf{Path: "a", Keep: 1}), `a shelf of "a"`},
		{"a shelf that keeps nothing", pieces(nil, head, space, &core.Shelf{Path: "a", Deleted: 1}), `a shelf of "a" that keeps nothing`},
		{"a version without a shelf", pieces(nil, head, space, &leasehold.Version{Path: "a", Revision: 1}), `a version of "a", which keeps none`},
		{"a version twice", pieces(nil, head, space, &core.Shelf{Path: "a", Keep: 2, Deleted: 1},
			&leasehold.Version{Path: "a", Revision: 1}, &leasehold.Version{Path: "a", Revision: 1}), `revision 1 of "a" twice`},
		{"more versions than are kept", pieces(nil, head, space, &core.Shelf{Path: "a", Keep: 1, Deleted: 1},
			&leasehold.Version{Path: "a", Revision: 1}, &leasehold.Version{Path: "a", Revision: 2}), "more versions than it keeps"},
		{"an outcome without a key", pieces(nil, head, space, &core.Outcome{}), "without a key"},
		{"something from the future", pieces(nil, head, space, "new"), "a string, which is unknown here"},
	} {
		if _, err := core.Restore(test.records); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, which does not say %q", test.what, err, test.says)
		}
	}
}

// TestRecordsCanBeLeft stops reading the records after each of them.
func TestRecordsCanBeLeft(t *testing.T) {
	state := &replica{State: core.NewAt(core.NewestLevel)}
	for _, e := range writeJournal(300, seeded(7)) {
		if _, err := state.apply(e); err != nil {
			t.Fatal(err)
		}
	}
	all := len(slices.Collect(state.Pieces()))
	for most := range all {
		seen := 0
		for range state.Pieces() {
			if seen++; seen > most {
				break
			}
		}
		if seen != most+1 {
			t.Fatalf("%d of %d records were read, not %d", seen, all, most+1)
		}
	}
}

// A futureCommand is one that a newer version has put in the log.
type futureCommand struct{ core.Tick }

// TestUnknownCommandStopsTheLog holds that a node does not guess.
func TestUnknownCommandStopsTheLog(t *testing.T) {
	d := newDesk(t)
	d.must(&core.Tick{})
	_, err := d.state.Apply(stampOf(0), wallOf(0), []core.Command{&futureCommand{}})
	if err == nil || !strings.Contains(err.Error(), "unknown here") {
		t.Fatalf("a command of the future: %v", err)
	}
}

// TestTimeBeginsAfterZero holds that no entry is stamped with "no moment".
func TestTimeBeginsAfterZero(t *testing.T) {
	for _, stamp := range []core.Time{0, -1} {
		if _, err := core.NewAt(core.NewestLevel).Apply(stamp, 0, nil); err == nil {
			t.Errorf("an entry is stamped %d", stamp)
		}
	}
}

// TestHeldSaysWho reads the details that are beside the words of a refusal.
func TestHeldSaysWho(t *testing.T) {
	d := newDesk(t)
	labels := leasehold.Labels{{Key: "host", Value: "h1"}}
	d.must(&core.Acquire{
		Namespace: ns, Resource: "printer", ID: "a1", Holder: "ann", TTL: 10 * time.Second, Grace: 5 * time.Second,
		Reason: "nightly run", Labels: labels,
	})
	wants := &core.Acquire{Namespace: ns, Resource: "printer", ID: "b1", Holder: "bob", TTL: 10 * time.Second}
	held := d.at(4 * time.Second).do(wants).Err
	want := leasehold.Lease{
		Namespace: ns, Resource: "printer", ID: "a1", Holder: "ann", Labels: labels, Reason: "nightly run", State: leasehold.Leased,
		Token: 1, Floor: 1, TTL: 10 * time.Second, Remaining: 6 * time.Second, Acquired: epoch, Expires: epoch.Add(10 * time.Second), Revision: 1,
	}
	if renderAny(held.Lease) != renderAny(want) {
		t.Errorf("it is held by %s\nand not by %s", renderAny(held.Lease), renderAny(want))
	}

	rests := d.at(12 * time.Second).do(wants).Err
	want = leasehold.Lease{
		Namespace: ns, Resource: "printer", ID: "a1", Holder: "ann", State: leasehold.Expired, Token: 1, Floor: 1,
		Expires: epoch.Add(12 * time.Second), AvailableAt: epoch.Add(15 * time.Second),
	}
	if renderAny(rests.Lease) != renderAny(want) {
		t.Errorf("it rests after %s\nand not after %s", renderAny(rests.Lease), renderAny(want))
	}
}

// TestViewOfAWait is what a request that waits is told when it has got nothing.
func TestViewOfAWait(t *testing.T) {
	d := newDesk(t)
	d.must(&core.Acquire{Namespace: ns, Resource: "printer", ID: "a1", Holder: "ann", TTL: 10 * time.Second, Grace: 5 * time.Second})
	d.must(&core.Acquire{Namespace: ns, Resource: "printer", ID: "b1", Holder: "bob", TTL: 10 * time.Second, Wait: 2 * time.Second})
	if how := d.state.View(0).Ended(ns, "b1"); how != 0 {
		t.Errorf("while it waits, it ended by %v", how)
	}
	d.at(2 * time.Second).apply(&core.Tick{})
	if how := d.state.View(0).Ended(ns, "b1"); how != leasehold.WaitOver {
		t.Errorf("its wait ended by %v", how)
	}
	for _, test := range []struct {
		at   time.Duration
		says string
	}{
		{2 * time.Second, "printer is held by ann; ends in 8s unless renewed"},
		{12 * time.Second, "printer rests after the unclean end of ann's lease for another 3s"},
		{15 * time.Second, "printer was not free for this request while it waited; nobody has it now"},
	} {
		d.at(test.at).apply(&core.Tick{})
		if held := d.state.View(0).Held(ns, "printer"); held.Code != leasehold.Held || held.Message != test.says {
			t.Errorf("at %v: %s, and not %q", test.at, tellError(held), test.says)
		}
	}
	if held := d.state.View(0).Held("green", "printer"); held.Code != leasehold.Held {
		t.Errorf("in a namespace that nobody used: %v", held.Code)
	}
	if how := d.state.View(0).Ended("green", "b1"); how != 0 {
		t.Errorf("in a namespace that nobody used, it ended by %v", how)
	}
}

// TestListPassesOver holds that a page is not for ever: it passes over so many resources
// that are merely available, and then says where to go on.
func TestListPassesOver(t *testing.T) {
	d := newDesk(t)
	for i := range 2500 {
		id := fmt.Sprintf("r%04d", i)
		d.must(&core.Acquire{Namespace: ns, Resource: id, ID: id, Holder: "ann"})
		if i != 2400 {
			d.must(&core.Release{Namespace: ns, ID: id})
		}
	}
	var found []string
	pages, after := 0, ""
	for {
		list, next := d.state.View(0).List(ns, "r", after, 10, false)
		for _, status := range list {
			found = append(found, status.Resource)
		}
		pages++
		if next == "" {
			break
		}
		after = next
	}
	if !slices.Equal(found, []string{"r2400"}) || pages != 3 {
		t.Fatalf("%d pages show %v", pages, found)
	}

	found = nil
	for after = ""; ; {
		list, next := d.state.View(0).List(ns, "r1", after, 300, true)
		for _, status := range list {
			found = append(found, status.Resource)
		}
		if after = next; next == "" {
			break
		}
	}
	if len(found) != 1000 || found[0] != "r1000" || found[999] != "r1999" {
		t.Fatalf("page by page there are %d", len(found))
	}
}
