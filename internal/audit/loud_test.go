package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// cycleIn is cycle in a namespace.
func (w *world) cycleIn(namespace string, i int) Entry {
	id := fmt.Sprint("id", i)
	w.at += time.Second
	return w.entry(leasehold.Origin{},
		&core.Acquire{Namespace: namespace, Resource: fmt.Sprintf("jobs/%02d", i%20), ID: id, Holder: fmt.Sprint("worker-", i%7), TTL: time.Minute},
		&core.Release{Namespace: namespace, ID: id})
}

// TestALoudNamespacePushesOutItsOwnLines floods the journal from one namespace, while others
// do little: theirs are all there, those of the flood are its newest, and it stays bounded;
// also after another start.
func TestALoudNamespacePushesOutItsOwnLines(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", t.TempDir()} {
		w := newWorld(t)
		j := start(t, Config{Dir: dir, Bytes: MinBytes})
		quiet := Query{Kind: Operation, Namespace: "quiet"}
		for i := range 12000 {
			switch {
			case i%100 == 0:
				j.Append(w.cycleIn("quiet", i))
			case i%100 == 50:
				j.Append(w.cycleIn("other", i))
			default:
				j.Append(w.cycleIn("loud", i))
			}
		}
		look := func(when string) {
			t.Helper()
			for namespace, want := range map[string]int{"quiet": 240, "other": 240} {
				if got := all(t, j, Query{Kind: Operation, Namespace: namespace}); len(got) != want {
					t.Errorf("%s: %d of %d lines of %s are there", when, len(got), want, namespace)
				}
			}
			same(t, when, all(t, j, quiet), what(projected(w.log), quiet))
			q := Query{Kind: Hold, Namespace: "loud"}
			loud := all(t, j, q)
			if len(loud) < 1000 || len(loud) > 11000 {
				t.Errorf("%s: %d holds of the loud namespace are there", when, len(loud))
			}
			same(t, when, loud, what(projected(w.log), q)[:len(loud)])
			q.Holder = "worker-3" // which the filters of thinned segments still know
			if got := all(t, j, q); len(got) < 100 {
				t.Errorf("%s: %d holds of one holder are found", when, len(got))
			}
			if s := j.Statistics(); s.Bytes > MinBytes || s.Thinned == 0 && when == "at first" || s.Damaged != 0 {
				t.Errorf("%s: %+v", when, s)
			}
		}
		look("at first")
		if dir == "" {
			closed(t, j)
			continue
		}
		closed(t, j)
		// What an interrupted replacement left is removed, and an index that is missing made again.
		left := filepath.Join(dir, "0000000000000001.journal.new")
		numbers, err := segmentNumbers(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(left, []byte("half"), 0o600), os.Remove(indexName(dir, numbers[0]))); err != nil {
			t.Fatal(err)
		}
		j = start(t, Config{Dir: dir, Bytes: MinBytes, End: 1 << 40})
		look("after another start")
		if _, err := os.Stat(left); !os.IsNotExist(err) {
			t.Errorf("what was left is there: %v", err)
		}
		closed(t, j)
	}
}

// TestPlacesStayGoodInAThinnedSegment takes the lines of a namespace out of a segment, twice:
// those of others keep their places.
func TestPlacesStayGoodInAThinnedSegment(t *testing.T) {
	b := []byte(segmentMagic)
	for i := range 300 {
		b = appendFramed(b, &Line{Kind: Operation, Namespace: []string{"a", "b", "b", "c"}[i%4], Resource: fmt.Sprint("r", i), At: time.Unix(0, wall)})
	}
	places := func(b []byte, skip ...string) (list []string) {
		good := eachLine(b, func(at int, text string) bool {
			var l Line
			if err := decodeLine(text, &l); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(skip, l.Namespace) {
				list = append(list, fmt.Sprint(at, l.Resource))
			}
			return true
		})
		if good != len(b) {
			t.Errorf("%d of %d bytes are good", good, len(b))
		}
		return list
	}
	once, last := thinned(b, "b")
	twice, _ := thinned(once, "a")
	if len(once) >= len(b) || len(twice) >= len(once) {
		t.Errorf("%d bytes became %d and %d", len(b), len(once), len(twice))
	}
	if got, want := places(once), places(b, "b"); !slices.Equal(got, want) {
		t.Errorf("without b: %v", got)
	}
	if got, want := places(twice), places(b, "a", "b"); !slices.Equal(got, want) {
		t.Errorf("without a and b: %v", got)
	}
	if all := places(b, "a", "c"); all[len(all)-1] != fmt.Sprint(last, "r298") {
		t.Errorf("the last one that was taken out is at %d: %s", last, all[len(all)-1])
	}
}

// TestAReaderOfALoudNamespaceIsToldWhatItLost reads from the oldest on, while what comes next
// is pushed out.
func TestAReaderOfALoudNamespaceIsToldWhatItLost(t *testing.T) {
	w := newWorld(t)
	j := start(t, Config{Bytes: MinBytes})
	defer closed(t, j)
	j.Append(w.cycleIn("quiet", 0))
	for i := range 100 {
		j.Append(w.cycleIn("loud", i+1))
	}
	first := func(namespace string) Page {
		t.Helper()
		page, err := j.Find(t.Context(), Query{Kind: Operation, Namespace: namespace, Oldest: true, Limit: 1})
		if err != nil || page.Next == (Place{}) {
			t.Fatalf("%+v, %v", page, err)
		}
		return page
	}
	loud, quiet := first("loud"), first("quiet")
	for i := range 12000 {
		j.Append(w.cycleIn("loud", i+1000))
	}
	_, err := j.Find(t.Context(), Query{Kind: Operation, Namespace: "loud", Oldest: true, Limit: 1, After: loud.Next})
	if !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("who reads the loud one is told %v", err)
	}
	page, err := j.Find(t.Context(), Query{Kind: Operation, Namespace: "quiet", Oldest: true, Limit: 1, After: quiet.Next})
	if err != nil || len(page.Lines) != 1 || page.Lines[0].Verb != "release" {
		t.Errorf("who reads the quiet one gets %+v, %v", page, err)
	}
}
