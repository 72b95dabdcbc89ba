package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

func TestPattern(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"ann", "ann", true}, {"ann", "anna", false}, {"ann", "", false}, {"", "", true}, {"", "ann", false},
		{"*", "", true}, {"*", "ann", true}, {"an*", "ann", true}, {"an*", "a", false}, {"*nn", "ann", true},
		{"a*n", "ann", true}, {"a*n", "a", false}, {"ann*ann", "ann", false}, {"ann*ann", "annann", true},
		{"*b*b", "b", false}, {"*b*b", "abab", true}, {"a**b", "ab", true}, {"*a*b*", "xxayyb", true},
		{"*a*b*", "ba", false}, {"*ab*ab*c", "ababxc", true},
	} {
		if got := core.NewPattern(test.pattern).Match(test.text); got != test.want {
			t.Errorf("%q matches %q: %v", test.pattern, test.text, got)
		}
	}
	if !(core.Pattern{}).Match("anything") {
		t.Error("no pattern refuses something")
	}
}

// slowMatch is a pattern as anybody would write it who need not care for time.
func slowMatch(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return slowMatch(pattern[1:], text) || text != "" && slowMatch(pattern, text[1:])
	}
	return text != "" && text[0] == pattern[0] && slowMatch(pattern[1:], text[1:])
}

func FuzzPattern(f *testing.F) {
	f.Add("a*b*", "aab")
	f.Add("**", "")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 12 || len(text) > 24 {
			t.Skip("the slow way takes too long")
		}
		if got, want := core.NewPattern(pattern).Match(text), slowMatch(pattern, text); got != want {
			t.Errorf("%q matches %q: %v, want %v", pattern, text, got, want)
		}
	})
}

// filterStage has leases of several holders, doors, sessions and states.
func filterStage(t *testing.T) *desk {
	d := newDesk(t)
	d.must(&core.OpenSession{Namespace: ns, ID: "s1", TTL: time.Minute})
	door := func(name string, c *core.Acquire) {
		t.Helper()
		c.Namespace = ns
		result, err := d.state.Apply(max(1, d.state.Now()), 0, []core.Command{c}, core.From{Origins: []leasehold.Origin{{Door: name}}})
		if err != nil || result.Answers[0].Err != nil {
			t.Fatal(err, result.Answers)
		}
	}
	team := leasehold.Labels{{Key: "team", Value: "ml"}}
	door("native", &core.Acquire{Resource: "a", ID: "a", Holder: "ann@one", TTL: time.Minute, Labels: team})
	door("native", &core.Acquire{Resource: "b", ID: "b", Holder: "bob@one", Session: "s1"})
	door("azure", &core.Acquire{Resource: "c", ID: "c", Holder: "ann@two"})
	door("", &core.Acquire{Resource: "d", ID: "d", Holder: "dora", TTL: time.Second})
	door("native", &core.Acquire{Resource: "e", ID: "e", Holder: "eve", TTL: time.Second})
	for i, holder := range []string{"ann@one", "bob@two", "ann@three"} {
		door("native", &core.Acquire{Resource: "pool", ID: fmt.Sprint("p", i), Holder: holder, TTL: time.Minute,
			Slots: 1, Capacity: 4})
	}
	d.must(&core.Release{Namespace: ns, ID: "e"})
	d.must(&core.Break{Namespace: ns, ID: "b", Period: time.Second})
	d.at(500 * time.Millisecond).apply(&core.Tick{})
	return d
}

func TestFilters(t *testing.T) {
	d := filterStage(t)
	find := func(f core.Filter) string {
		list, next := d.state.View(0).Find(ns, core.ListQuery{Most: 100, Filter: f})
		if next != "" {
			t.Error("there is more after", next)
		}
		var text []string
		for _, s := range list {
			one := s.Resource
			for _, l := range s.Holders {
				one += ":" + l.Holder
			}
			text = append(text, one)
		}
		return strings.Join(text, " ")
	}
	like := core.NewPattern
	for name, test := range map[string]struct {
		f    core.Filter
		want string
	}{
		"none":             {core.Filter{}, "a:ann@one b:bob@one c:ann@two d:dora pool:ann@one:bob@two:ann@three"},
		"holder":           {core.Filter{Holder: like("ann@two")}, "c:ann@two"},
		"holder by a star": {core.Filter{Holder: like("ann@*")}, "a:ann@one c:ann@two pool:ann@one:ann@three"},
		"session":          {core.Filter{Session: like("s1")}, "b:bob@one"},
		"any session":      {core.Filter{Session: like("*")}, "b:bob@one"},
		"door":             {core.Filter{Door: like("azure")}, "c:ann@two"},
		"no known door":    {core.Filter{Door: like("")}, "d:dora"},
		"state":            {core.Filter{State: leasehold.Breaking}, "b:bob@one"},
		"available":        {core.Filter{State: leasehold.Available}, "e"},
		"label":            {core.Filter{Labels: []core.LabelPattern{{Key: "team", Value: like("m*")}}}, "a:ann@one"},
		"another label":    {core.Filter{Labels: []core.LabelPattern{{Key: "team", Value: like("ops")}}}, ""},
		"two at once":      {core.Filter{Holder: like("ann*"), Door: like("native")}, "a:ann@one pool:ann@one:ann@three"},
		"nothing":          {core.Filter{Holder: like("zoe")}, ""},
	} {
		if got := find(test.f); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}

	// A lease that is over shows as the last one, before and after it is collected.
	for range 2 {
		d.at(2 * time.Second)
		expired := core.Filter{State: leasehold.Expired, Holder: like("do*")}
		if got := find(expired); got != "" && got != "d" {
			t.Errorf("expired: %q", got)
		}
		d.apply(&core.Tick{})
		if got := find(expired); got != "d" {
			t.Errorf("expired: %q", got)
		}
		if got := find(core.Filter{State: leasehold.Expired, Door: like("*")}); got != "" {
			t.Errorf("the door of a lease that ended: %q", got)
		}
	}
}

// One read never looks at everything: a filter that picks one lease of many takes pages.
func TestAFilterTakesPages(t *testing.T) {
	d := newDesk(t)
	const n = 10000
	for i := range n {
		holder := "other"
		if i == n-1 {
			holder = "wanted"
		}
		d.must(&core.Acquire{Namespace: ns, Resource: fmt.Sprintf("r%05d", i), ID: fmt.Sprint(i), Holder: holder})
	}
	found, pages, after := 0, 0, ""
	for {
		view := d.state.View(0)
		list, next := view.Find(ns, core.ListQuery{Most: 10, After: after, Filter: core.Filter{Holder: core.NewPattern("want*")}})
		if found, pages = found+len(list), pages+1; view.Work() > 2*4096 {
			t.Fatalf("a page took %d units of work", view.Work())
		}
		if after = next; next == "" {
			break
		}
	}
	if found != 1 || pages < 2 {
		t.Errorf("%d found in %d pages", found, pages)
	}
}

// What nobody holds is passed over, and that is work too: there may be 100,000 such resources.
func TestAFilterPassesOverWhatNobodyHolds(t *testing.T) {
	d := newDesk(t)
	for i := range 10000 {
		id := fmt.Sprint(i)
		d.must(&core.Acquire{Namespace: ns, Resource: fmt.Sprintf("r%05d", i), ID: id, Holder: "ann"})
		d.must(&core.Release{Namespace: ns, ID: id})
	}
	for name, f := range map[string]core.Filter{
		"door": {Door: core.NewPattern("x")}, "state": {State: leasehold.Leased},
	} {
		view := d.state.View(0)
		if _, next := view.Find(ns, core.ListQuery{Most: 10, Filter: f}); next == "" || view.Work() > 4096 {
			t.Errorf("%s: one page looked at everything, with %d units of work", name, view.Work())
		}
	}
}

// Long labels cost more pages, and hide nothing.
func TestAFilterCountsLongLabels(t *testing.T) {
	d := newDesk(t)
	long := leasehold.Labels{{Key: "k", Value: strings.Repeat("ab", 2000)}}
	for i := range 900 {
		d.must(&core.Acquire{Namespace: ns, Resource: fmt.Sprintf("pool%d", i/300), ID: fmt.Sprint(i), Holder: "ann",
			Labels: long, Slots: 1, Capacity: 1000})
	}
	d.must(&core.Acquire{Namespace: ns, Resource: "pool1", ID: "x", Holder: "ann", Slots: 1, Capacity: 1000,
		Labels: leasehold.Labels{{Key: "k", Value: "wanted"}}})
	f := core.Filter{Labels: []core.LabelPattern{{Key: "k", Value: core.NewPattern("*abababac*")}}}
	for _, want := range []int{0, 1} {
		found, pages := 0, 0
		for after, more := "", true; more; more = after != "" {
			view := d.state.View(0)
			list, next := view.Find(ns, core.ListQuery{Most: 10, After: after, Filter: f})
			if found, pages, after = found+len(list), pages+1, next; view.Work() > 2*4096 {
				t.Fatalf("a page took %d units of work", view.Work())
			}
		}
		if found != want || want == 0 && pages < 2 {
			t.Errorf("%d found in %d pages, want %d", found, pages, want)
		}
		f.Labels[0].Value = core.NewPattern("want*")
	}
}

func TestSessionsAreListed(t *testing.T) {
	d := newDesk(t)
	for i := range 5 {
		d.must(&core.OpenSession{Namespace: ns, ID: fmt.Sprint("s", i), TTL: time.Duration(1+i) * time.Minute})
	}
	d.must(&core.OpenSession{Namespace: ns, ID: "t", TTL: time.Minute})
	d.at(90 * time.Second).apply(&core.Tick{})
	var ids []string
	for after := ""; ; {
		list, next := d.state.View(0).Sessions(ns, "s", after, 2)
		for _, s := range list {
			ids = append(ids, s.ID)
		}
		if after = next; next == "" {
			break
		}
	}
	if got := strings.Join(ids, " "); got != "s1 s2 s3 s4" {
		t.Errorf("the sessions are %s", got)
	}
}
