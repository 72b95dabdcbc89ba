package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

// These tests count what is looked at; BenchmarkOneRequest says what that takes.

// TestDefinitionsAreFoundInFewSteps looks for the definition of deep paths among many.
func TestDefinitionsAreFoundInFewSteps(t *testing.T) {
	d := newDesk(t)
	deep := strings.Repeat("a/", 505)
	for i := range 1000 {
		d.must(&core.Define{Namespace: ns, Definition: leasehold.Definition{Path: fmt.Sprintf("%sx%05d", deep, i), Capacity: 4}})
	}
	if _, looked := d.state.DefinitionOf(ns, deep+"y"); looked > 2 {
		t.Errorf("%d definitions were looked at to find that none applies", looked)
	}
}

// TestDefinitionsAreFoundAsBefore compares with the plain way: the path, then each of its
// prefixes, the longest first, then the root.
func TestDefinitionsAreFoundAsBefore(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	path := func() string {
		b := []byte{}
		for range chance.IntN(6) + 1 {
			b = append(b, "ab/."[chance.IntN(4)])
		}
		return string(b)
	}
	for range 300 {
		d := newDesk(t)
		defined := map[string]bool{}
		for range chance.IntN(12) + 1 {
			p := path()
			defined[p] = true
			d.must(&core.Define{Namespace: ns, Definition: leasehold.Definition{Path: p, Capacity: 4}})
		}
		for range 40 {
			p := path()
			want := ""
			for i := range len(p) {
				if p[i] == '/' && defined[p[:i+1]] {
					want = p[:i+1]
				}
			}
			if want == "" && defined["/"] {
				want = "/"
			}
			if defined[p] {
				want = p
			}
			if got, _ := d.state.DefinitionOf(ns, p); got.Path != want {
				t.Fatalf("%q follows the definition of %q, not of %q, among %v", p, got.Path, want, defined)
			}
		}
	}
}

// shared is a desk with resources that many share, by way of a few sessions of 10 s.
func shared(t *testing.T, resources, sharers int) *desk {
	d := newDesk(t)
	d.manySharers(resources, sharers)
	return d
}

func (d *desk) manySharers(resources, sharers int) {
	for s := range 40 {
		d.must(&core.OpenSession{Namespace: ns, ID: fmt.Sprint("s", s), TTL: 10 * time.Second})
	}
	for n := range resources * sharers {
		d.must(&core.Acquire{
			Namespace: ns, Resource: fmt.Sprint("r", n%resources), ID: fmt.Sprint("l", n), Holder: "h",
			Session: fmt.Sprint("s", n%40), Slots: 1, Capacity: 65536,
		})
	}
}

// renewAll renews the sessions of shared.
func (d *desk) renewAll(now time.Duration) {
	d.Helper()
	d.at(now)
	for s := range 40 {
		d.must(&core.RenewSession{Namespace: ns, ID: fmt.Sprint("s", s)})
	}
}

// TestAListDoesNotLookAtAllWhoShare: whoever renewed in time is not looked at again.
func TestAListDoesNotLookAtAllWhoShare(t *testing.T) {
	const resources, sharers = 20, 1000
	d := shared(t, resources, sharers)
	d.renewAll(5 * time.Second)
	d.renewAll(11 * time.Second) // the first of them might have ended by now
	view := d.state.View(0)
	list, next := view.List(ns, "", "", 100, true)
	if len(list) != resources || next != "" {
		t.Fatalf("%d resources are listed", len(list))
	}
	for _, s := range list {
		if s.Holding != sharers || s.Used != sharers || len(s.Holders) != 10 {
			t.Errorf("%s is held by %d, who have %d slots; %d are shown", s.Resource, s.Holding, s.Used, len(s.Holders))
		}
	}
	if most := resources * 50; view.Work() > most {
		t.Errorf("a list of %d resources took %d units of work: more than %d", resources, view.Work(), most)
	}
}

// TestAListIsShortWhileVeryManyEnd goes over resources of which everything is over, and
// nothing is collected.
func TestAListIsShortWhileVeryManyEnd(t *testing.T) {
	const resources, sharers = 10, 1500
	d := shared(t, resources, sharers)
	d.at(time.Minute)
	d.must(&core.OpenSession{Namespace: "elsewhere", ID: "s", TTL: time.Hour}) // time goes on, nothing is touched
	seen, after := 0, ""
	for {
		view := d.state.View(0)
		list, next := view.List(ns, "", after, 100, true)
		if view.Work() > kernel.MaxReadWork+50 {
			t.Fatalf("a page took %d units of work", view.Work())
		}
		for _, s := range list {
			if seen++; s.Holding != 0 || s.State != leasehold.Expired {
				t.Errorf("%s is %v, held by %d", s.Resource, s.State, s.Holding)
			}
		}
		if after = next; after == "" {
			break
		}
	}
	if seen != resources {
		t.Errorf("%d resources of %d were listed", seen, resources)
	}
	d.tickAll()
}

// tickAll collects all that is over.
func (d *desk) tickAll() {
	d.Helper()
	for range 10000 {
		at, ok := d.state.Due()
		if !ok || at > d.state.Now() && !d.state.DueBy(d.state.Now()) {
			return
		}
		d.must(&core.Tick{})
	}
	d.Fatal("there is no end to the ticks")
}

// TestAResourceWithVeryManyOverIsShown: the read comes to an end all the same.
func TestAResourceWithVeryManyOverIsShown(t *testing.T) {
	const sharers = 9000
	d := shared(t, 1, sharers)
	d.at(time.Minute)
	d.must(&core.OpenSession{Namespace: "elsewhere", ID: "s", TTL: time.Hour})
	view := d.state.View(0)
	s := view.Status(ns, "r0", 10)
	if view.Work() > kernel.MaxReadWork+10 {
		t.Errorf("it took %d units of work", view.Work())
	}
	if s.Holding > sharers-kernel.MaxReadWork+10 || s.Holding != s.Used || s.State != leasehold.Leased {
		t.Errorf("%d are counted, of %d slots; it is %v", s.Holding, s.Used, s.State)
	}
	d.tickAll()
}

// present is a desk with sessions of 10 s that have a record each.
func present(t *testing.T, sessions int) *desk {
	d := newDesk(t)
	for i := range sessions {
		id := fmt.Sprint("s", i)
		d.must(&core.OpenSession{Namespace: ns, ID: id, TTL: 10 * time.Second})
		d.must(&core.PutRecord{Namespace: ns, Path: fmt.Sprintf("presence/%05d", i), Value: "x", Session: id})
	}
	return d
}

// TestWhatIsOverIsLookedAtOnce shows each of many who share a resource with many more that are over:
// the smallest token that counts is the same for all.
func TestWhatIsOverIsLookedAtOnce(t *testing.T) {
	const over, alive = 1000, 500
	d := newDesk(t)
	share := func(id string, ttl time.Duration) {
		d.must(&core.Acquire{Namespace: ns, Resource: "r", ID: id, Holder: "h", TTL: ttl, Slots: 1, Capacity: 65536})
	}
	for n := range over {
		share(fmt.Sprint("over", n), time.Second)
	}
	for n := range alive {
		share(fmt.Sprint("alive", n), time.Hour)
	}
	d.at(time.Minute)
	d.must(&core.OpenSession{Namespace: "elsewhere", ID: "s", TTL: time.Hour}) // time goes on, nothing is touched
	view := d.state.View(0)
	for n := range alive {
		if l := view.Claim(ns, fmt.Sprint("alive", n)).Lease; l == nil || l.Floor != over+1 {
			t.Fatalf("lease %d is %+v", n, l)
		}
	}
	if most := 3 * alive; view.Work() > most {
		t.Errorf("to show %d leases took %d units of work: more than %d", alive, view.Work(), most)
	}
}

// TestAnAnswerLooksAtFewThatAreOver renews a lease beside many that are over: an entry may have
// thousands of such answers, so each looks at a few alone.
func TestAnAnswerLooksAtFewThatAreOver(t *testing.T) {
	for _, over := range []int{3, 1000} {
		d := newDesk(t)
		share := func(id string, ttl time.Duration) {
			d.must(&core.Acquire{Namespace: ns, Resource: "r", ID: id, Holder: "h", TTL: ttl, Slots: 1, Capacity: 65536})
		}
		for n := range over {
			share(fmt.Sprint("over", n), time.Second)
		}
		share("alive", time.Hour)
		d.at(time.Minute)
		floor := d.must(&core.Renew{Namespace: ns, ID: "alive"}).Lease.Floor
		if want := leasehold.Token(min(over, kernel.MaxAnswerFloor) + 1); floor != want {
			t.Errorf("with %d that are over, the floor is %d, not %d", over, floor, want)
		}
	}
}

// TestACountLooksAtNoSessionThatLives counts the records of many sessions.
func TestACountLooksAtNoSessionThatLives(t *testing.T) {
	d := present(t, 2000)
	count := func(want int) {
		t.Helper()
		view := d.state.View(0)
		page, failure := view.Records(ns, core.RecordQuery{From: "presence/", Most: 1, Count: true})
		if failure != nil || page.Count != want {
			t.Fatalf("%d records are counted, not %d: %v", page.Count, want, failure)
		}
		if view.Work() > 10+4*(2000-want) {
			t.Errorf("to count %d records took %d units of work", page.Count, view.Work())
		}
	}
	count(2000)
	d.at(5 * time.Second)
	for i := range 2000 - 30 {
		d.must(&core.RenewSession{Namespace: ns, ID: fmt.Sprint("s", i)})
	}
	d.at(11 * time.Second)
	d.must(&core.RenewSession{Namespace: ns, ID: "s0"})
	count(2000 - 30)
	d.must(&core.DeleteRecord{Namespace: ns, Path: "presence/00007"})
	count(2000 - 31)
	d.must(&core.CloseSession{Namespace: ns, ID: "s8"})
	count(2000 - 32)
}

// TestRecordsAreNotReadWhileVeryManyEnd: to pass over each of them would take too long.
func TestRecordsAreNotReadWhileVeryManyEnd(t *testing.T) {
	d := present(t, 5000)
	d.at(time.Minute)
	d.must(&core.OpenSession{Namespace: "elsewhere", ID: "s", TTL: time.Hour})
	for _, q := range []core.RecordQuery{{From: "presence/", Most: 1}, {From: "presence/04999", Most: 1, Count: true}} {
		view := d.state.View(0)
		_, failure := view.Records(ns, q)
		if failure == nil || failure.Code != leasehold.Limited {
			t.Errorf("%+v answers %v", q, failure)
		}
		if view.Work() > kernel.MaxReadWork+10 {
			t.Errorf("%+v took %d units of work", q, view.Work())
		}
	}
	d.tickAll()
	if page, failure := d.state.View(0).Records(ns, core.RecordQuery{Count: true}); failure != nil || page.Count != 0 {
		t.Errorf("%d records are left: %v", page.Count, failure)
	}
}

// TestUnitsFollowTheirDefinition: units that a definition dropped stay while a lease has
// them, whatever the order of the names.
func TestUnitsFollowTheirDefinition(t *testing.T) {
	d := newDesk(t)
	define := func(units ...string) {
		d.must(&core.Define{Namespace: ns, Definition: leasehold.Definition{Path: "pool", Units: units}})
	}
	define("a", "b", "c")
	for i, want := range []string{"a", "b", "c"} {
		got := d.must(&core.Acquire{Namespace: ns, Resource: "pool", ID: want, Holder: fmt.Sprint("h", i), TTL: time.Minute, Slots: 1}).Lease.Units
		if fmt.Sprint(got) != "["+want+"]" {
			t.Errorf("lease %s has %v", want, got)
		}
	}
	define("d", "b", "a") // c goes once nobody has it
	names := func() (list []string) {
		for _, u := range d.state.View(0).Status(ns, "pool", 0).Units {
			list = append(list, u.Name+":"+u.Lease)
		}
		return list
	}
	if got := fmt.Sprint(names()); got != "[d: b:b a:a c:c]" {
		t.Errorf("units are %s", got)
	}
	d.must(&core.Release{Namespace: ns, ID: "c"})
	if got := fmt.Sprint(names()); got != "[d: b:b a:a]" {
		t.Errorf("units are %s", got)
	}
}
