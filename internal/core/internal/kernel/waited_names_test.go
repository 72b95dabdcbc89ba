package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Units may get longer names while somebody waits for those of several pools. What it would get then is told in one
// answer, which is kept if it asks again, and has to fit into a snapshot: whoever comes now is refused, and so is who
// waits.
func TestWaitersGetNoMoreNamesThanAnAnswerHas(t *testing.T) {
	d := newDesk(t)
	d.open("s")
	rename := func(path string, long int) {
		for h := range 10 {
			c := &core.SetUnits{Namespace: ns, Resource: path, Host: fmt.Sprint("h", h)}
			for i := range 90 {
				c.Units = append(c.Units, core.HostUnit{Name: fmt.Sprintf("%d-%02d%s", h, i, strings.Repeat("x", long))})
			}
			d.must(c)
		}
	}
	for _, path := range []string{"gpu", "tpu"} {
		rename(path, 0)
	}
	d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "holder", Holder: "h", Session: "s", Slots: 900, Select: spread})
	wait := &core.Acquire{Namespace: ns, Resource: "gpu", ID: "w", Holder: "w", Session: "s", Slots: 900, Select: spread, Wait: time.Hour,
		Also: []core.Item{{Resource: "tpu", ID: "also", Slots: 900, Select: spread}}}
	d.must(wait)
	rename("tpu", 1000)
	rename("gpu", 1000) // the old ones are removed, and go with their lease
	d.must(&core.Release{Namespace: ns, ID: "holder"})
	d.tickAll()
	d.must(&core.Tick{})
	view := d.state.View(0)
	for _, path := range []string{"gpu", "tpu"} {
		if status := view.Status(ns, path, 10); len(status.Holders) > 0 || len(status.Queue) > 0 {
			t.Errorf("%s has %d holders and %d waiters", path, len(status.Holders), len(status.Queue))
		}
	}
	retry := *wait
	retry.Request = core.Request{Key: "again"}
	answer, names := d.do(&retry), 0
	leases := answer.Also
	if answer.Lease != nil {
		leases = append(leases, *answer.Lease)
	}
	for _, l := range leases {
		names += len(strings.Join(l.Units, ""))
	}
	if names > leasehold.MaxPoolNames {
		t.Errorf("an answer has %d bytes of names", names)
	}
}

// Each of the pools that are asked for at once is looked at: they have a limit together, for whoever comes now and for
// whoever waits while they grow.
func TestPoolsThatAreAskedForAtOnceHaveALimit(t *testing.T) {
	d := newDesk(t)
	d.open("s")
	const pools, each = 8, leasehold.MaxPoolsUnits / 8
	grow := func(path string, units int) {
		for h := range (units + leasehold.MaxHostUnits - 1) / leasehold.MaxHostUnits {
			d.must(hostUnits(path, fmt.Sprint("h", h), min(leasehold.MaxHostUnits, units-h*leasehold.MaxHostUnits)))
		}
	}
	ask := func(id string) *core.Acquire {
		c := takeUnits(id, 1)
		c.Session, c.TTL, c.Wait, c.Resource = "s", 0, time.Hour, "p0"
		for k := 1; k < pools; k++ {
			c.Also = append(c.Also, core.Item{Resource: fmt.Sprint("p", k), ID: fmt.Sprint(id, k), Slots: 1, Select: spread})
		}
		return c
	}
	for k := range pools {
		grow(fmt.Sprint("p", k), each)
	}
	d.must(ask("as many as may be"))
	d.must(&core.Release{Namespace: ns, ID: "as many as may be"})
	all := takeUnits("all", each)
	all.Resource = "p0"
	d.must(all)
	d.waits(ask("waits"))
	grow("p1", each+1)
	d.refused(ask("one more"), leasehold.Limited, "have 65537 units, counted once and once more for each condition: at most 65536 are allowed")
	d.must(&core.Release{Namespace: ns, ID: "all"})
	d.must(&core.Tick{})
	if queue := d.state.View(0).Status(ns, "p0", 10).Queue; len(queue) > 0 {
		t.Errorf("there are waiters: %+v", queue)
	}
}
