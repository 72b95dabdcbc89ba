package kernel_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// What is over is in nobody's way, and its token counts no more, however much of it is still
// to be collected: a guard that heard of a smaller floor would let a late holder in.
func TestTheFloorIsThatOfTheLiving(t *testing.T) {
	d := newDesk(t)
	d.must(&core.OpenSession{Namespace: ns, ID: "s", TTL: time.Minute})
	for i := range 3000 {
		d.must(&core.Acquire{Namespace: ns, Resource: "r", ID: fmt.Sprint("i", i), Holder: "ann", Session: "s", Slots: 1, Capacity: 4000})
	}
	d.at(2 * time.Minute)
	for tries := 0; ; tries++ {
		a := d.do(&core.Acquire{Namespace: ns, Resource: "r", ID: fmt.Sprint("new", tries), Holder: "bob", TTL: time.Minute, Slots: 1, Capacity: 4000})
		if a.Err != nil && a.Err.Code == leasehold.Unavailable && tries < 100 {
			d.must(&core.Tick{})
			continue
		}
		if a.Err != nil || a.Lease.Floor != a.Lease.Token {
			t.Errorf("%+v, %v", a.Lease, a.Err)
		}
		break
	}
}

// A request that was answered before the level was raised is the same request after it.
func TestAKeyIsGoodAcrossARaise(t *testing.T) {
	d := newDesk(t)
	request := &core.Acquire{Namespace: ns, Resource: "r", ID: "a", Holder: "ann", TTL: time.Minute, Request: core.Request{Key: "k"}}
	first := d.must(request).Lease
	if err := d.state.Raise(nextLevel); err != nil {
		t.Fatal(err)
	}
	if again := d.must(request).Lease; again.Token != first.Token {
		t.Errorf("sent again it gets token %d, and had %d", again.Token, first.Token)
	}
	other := *request
	other.Resource = "q"
	if a := d.do(&other); a.Err == nil || a.Err.Code != leasehold.Invalid {
		t.Errorf("another request under the key: %+v", a)
	}
}

// After a restore nobody knows what became of the leases that a session has: the number that
// it hears is above all that it knew.
func TestARestoreIsAnIntervention(t *testing.T) {
	d := newDesk(t)
	d.must(&core.OpenSession{Namespace: ns, ID: "s", TTL: time.Hour})
	d.must(&core.Acquire{Namespace: ns, Resource: "r", ID: "a", Holder: "ann", Session: "s"})
	d.must(&core.Break{Namespace: ns, ID: "a", Period: time.Minute})
	before := d.must(&core.RenewSession{Namespace: ns, ID: "s"}).Session.Interventions
	restored := reloaded(t, d.state)
	base, err := restored.FromBackup(core.Restoration{})
	if err != nil {
		t.Fatal(err)
	}
	d.state = restored
	d.must(&core.Lead{Node: 2, Boot: "again"})
	session := d.must(&core.RenewSession{Namespace: ns, ID: "s"}).Session
	if before != 1 || session.Interventions < base.Base || len(session.Intervened) != 0 {
		t.Errorf("before %d, after %+v", before, session)
	}
	mustBeSound(t, d.state)
}

// A copy shows the interventions that there were when it was made, although it shares memory with the original.
func TestACopyKeepsItsInterventions(t *testing.T) {
	d := newDesk(t)
	d.must(&core.OpenSession{Namespace: ns, ID: "s", TTL: time.Hour})
	type copied struct {
		state *core.State
		ids   []string
	}
	var copies []copied
	for i := range 600 {
		id := fmt.Sprint("i", i)
		d.must(&core.Acquire{Namespace: ns, Resource: "r", ID: id, Holder: "ann", Session: "s"})
		d.must(&core.Release{Namespace: ns, ID: id})
		if i%50 == 0 {
			session, _ := d.state.View(0).Session(ns, "s")
			copies = append(copies, copied{d.state.Freeze(), slices.Clone(session.Intervened)})
		}
	}
	for i, c := range copies {
		session, _ := c.state.View(0).Session(ns, "s")
		if want := min(50*i+1, 256); len(session.Intervened) != want || !slices.Equal(session.Intervened, c.ids) {
			t.Errorf("copy %d shows %d ids, and %d were there", i, len(session.Intervened), want)
		}
	}
}
