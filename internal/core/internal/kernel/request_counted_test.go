package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// What is looked at for a command is counted with it, so that an entry begins with no more commands than it has time
// for.

// limited lets so many have one unit each of a pool, under limits of all kinds.
func (d *desk) limited(leases int) {
	d.units("gpu", 10, 1000)
	for i := range leases {
		d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: fmt.Sprint("l", i), Holder: fmt.Sprint("ci/holder-", i), TTL: time.Hour, Slots: 1,
			Labels: leasehold.Labels{{Key: "team", Value: fmt.Sprint("team", i)}}})
	}
	limits := []leasehold.UnitLimit{{By: leasehold.EachHolder, Most: 5}, {By: leasehold.EachValue, Name: "team", Most: 5}}
	for i := range len("ci/holder-") {
		limits = append(limits, leasehold.UnitLimit{By: leasehold.EachPrefix, Name: "ci/holder-"[:i+1], Most: leasehold.MaxPoolUnits})
	}
	d.must(&core.Define{Namespace: ns, Definition: leasehold.Definition{Path: "gpu", Limits: limits}})
}

// left closes a session that had more than one entry ends.
func (d *desk) left(leases int) {
	d.open("s")
	for i := range leases {
		d.must(&core.Acquire{Namespace: ns, Resource: fmt.Sprint("q", i), ID: fmt.Sprint("q", i), Holder: "h", Session: "s"})
	}
	d.must(&core.CloseSession{Namespace: ns, ID: "s"})
}

// named lets so many wait for 64 units each by their long names, all of which are drained.
func (d *desk) named(waiters int) {
	c := &core.SetUnits{Namespace: ns, Resource: "gpu", Host: "h", Units: make([]core.HostUnit, 1000)}
	names := make([]string, len(c.Units))
	for i := range c.Units {
		names[i] = fmt.Sprintf("%s%03d", strings.Repeat("x", 1000), i)
		c.Units[i].Name = names[i]
	}
	d.must(c)
	d.must(&core.Drain{Namespace: ns, Resource: "gpu", Units: names, Why: "fan"})
	d.must(hostUnits("gpu", "free", 2))
	d.open("s")
	for i := range waiters {
		d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: fmt.Sprint("w", i), Holder: "w", Session: "s", Wait: time.Hour,
			Slots: 64, Select: &leasehold.Select{Units: names[i : i+64]}})
	}
}

var countedCases = []worstCase{
	{"an acquire under limits in a pool of 10,000 leases", func(d *desk, part int) func() int {
		d.limited(9999)
		return d.command(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "x", Holder: "x", TTL: time.Hour, Slots: 1})
	}},
	{"1,024 changes of holders under such limits", func(d *desk, part int) func() int {
		d.limited(10000 / part)
		var many []core.Command
		for i := range 1024 {
			many = append(many, &core.Change{Namespace: ns, ID: fmt.Sprint("l", i), Holder: "bob"})
		}
		return d.entry(many...)
	}},
	{"1,024 acquires of what 30,000 share while a session is collected", func(d *desk, part int) func() int {
		d.share("r", 30000/part, "")
		d.left(leasehold.MaxClaimsPerSession / part)
		var many []core.Command
		for i := range 1024 {
			many = append(many, &core.Acquire{Namespace: ns, Resource: "r", ID: fmt.Sprint("x", i), Holder: "x", TTL: time.Hour})
		}
		return d.entry(many...)
	}},
	{"an acquire behind 300 waiters for drained units with long names", func(d *desk, part int) func() int {
		d.named(300 / part)
		return d.command(takeUnits("l", 1))
	}},
}

// TestLimitsAreCounted compares leases with limits more often than an entry has time for.
func TestLimitsAreCounted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.limited(2000)
	var many []core.Command
	for i := range 1024 {
		many = append(many, &core.Change{Namespace: ns, ID: fmt.Sprint("l", i), Holder: "bob"})
	}
	d.begins(100, many...)
}

// TestLooksWhileASessionIsCollected has many ask for what thousands share, each of whom may be over.
func TestLooksWhileASessionIsCollected(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const resources = 40
	for r := range resources {
		d.share(fmt.Sprint("r", r), 2000, "")
	}
	d.left(2048)
	var many []core.Command
	for i := range 1024 {
		many = append(many, &core.Acquire{Namespace: ns, Resource: fmt.Sprint("r", i%resources), ID: fmt.Sprint("x", i), Holder: "x", TTL: time.Hour})
	}
	d.begins(100, many...)
	d.tickAll()
}

// begins reports an error if more commands of an entry than that are begun with.
func (d *desk) begins(most int, commands ...core.Command) {
	d.Helper()
	begun := 0
	for _, a := range d.apply(commands...).Answers {
		if a.Err == nil || a.Err.Code != leasehold.Unavailable {
			begun++
		}
	}
	if begun > most {
		d.Errorf("%d commands were begun with, of which each looks at thousands", begun)
	}
}
