package terraform

import (
	"fmt"
	"slices"
	"testing"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// A user saw: the lock of a first apply that was killed blocked everybody, and "state list" showed
// nothing.
func TestListShowsLocksWithoutAState(t *testing.T) {
	b := newBench(t)
	want := []string{}
	for i := range 12 {
		name := fmt.Sprintf("prod/s%02d", i)
		if i%3 != 1 {
			b.ask("POST", "/terraform/"+name, state(1, "L", "")).expect(200)
		}
		if i%3 != 0 {
			b.ask("LOCK", "/terraform/"+name, info(fmt.Sprint("id", i))).expect(200)
		}
		want = append(want, name)
	}
	// What was locked once is no state, and neither is a resource that no state can be called.
	b.ask("LOCK", "/terraform/prod/once", info("once")).expect(200)
	b.ask("UNLOCK", "/terraform/prod/once", info("once")).expect(200)
	b.do(&core.Acquire{Namespace: "default", Resource: "terraform/prod/s/lock", ID: "x", Holder: "ann"})
	b.ask("LOCK", "/terraform/test/other", info("other")).expect(200)
	for limit := 1; limit <= 14; limit++ {
		var names []string
		for next := ""; ; {
			var page tfstate.Page[tfstate.State]
			read(b.ask("GET", fmt.Sprintf("/terraform/?prefix=prod/&limit=%d&after=%s", limit, next), "").expect(200), &page)
			if len(page.Items) > limit {
				t.Fatalf("a page of %d has %d items", limit, len(page.Items))
			}
			for _, s := range page.Items {
				names = append(names, s.Name)
				var i int
				_, _ = fmt.Sscanf(s.Name, "prod/s%02d", &i)
				if (s.Lock != nil) != (i%3 != 0) || (s.Revision != 0) != (i%3 != 1) {
					t.Errorf("%s is shown as %+v", s.Name, s)
				}
			}
			if next = page.Next; next == "" {
				break
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("by %d, the list is %v", limit, names)
		}
	}
}
