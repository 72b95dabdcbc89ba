package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// What is accepted must be written in snapshots: one that is too large for them stops every server for good. Package
// wire has room for so much of everything as the limits say; here are the sums of names that no single limit bounds.

// crowd gives a pool hosts whose units have names of a length, until it has as many as it can have.
func (d *desk) crowd(pool, prefix string, length int) (units int) {
	d.Helper()
	for h := 0; ; h++ {
		c := &core.SetUnits{Namespace: ns, Resource: pool, Host: fmt.Sprint(prefix, h)}
		for i := range 64 {
			name := fmt.Sprintf("%s%d-%04d-", prefix, h, i)
			c.Units = append(c.Units, core.HostUnit{Name: name + strings.Repeat("x", length-len(name))})
		}
		a := d.do(c)
		if a.Err != nil && a.Err.Code == leasehold.Limited {
			return units
		}
		if a.Err != nil {
			d.Fatal(a.Err)
		}
		units += len(c.Units)
	}
}

// clearOut takes the hosts of crowd away.
func (d *desk) clearOut(pool, prefix string, units int) {
	for h := range units / 64 {
		d.must(&core.SetUnits{Namespace: ns, Resource: pool, Host: fmt.Sprint(prefix, h)})
	}
}

func TestWhatOneRequestNamesOfAPoolCanBeWritten(t *testing.T) {
	d := newDesk(t)
	n := d.crowd("gpu", "h", leasehold.MaxName)
	if n < 512 || n*leasehold.MaxName > leasehold.MaxPoolNames {
		t.Fatalf("a pool has %d units with names of %d bytes", n, leasehold.MaxName)
	}
	d.must(&core.Reserve{Namespace: ns, ID: "all", Resource: "gpu", Holder: "me", Slots: n, Select: &leasehold.Select{Spread: true},
		From: reservation.Moment(wallOf(time.Hour)), Length: time.Hour, Request: core.Request{Key: "reserve"}})
	d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "all", Holder: "me", TTL: time.Hour, Slots: n,
		Select: &leasehold.Select{Spread: true}, Request: core.Request{Key: "acquire"}})
	d.must(&core.Break{Namespace: ns, ID: "all", By: "op", Period: time.Minute, Request: core.Request{Key: "break"}})
	d.mustAgree(&core.Tick{})
}

func TestSeveralPoolsNameNoMoreThanOne(t *testing.T) {
	d := newDesk(t)
	var asks core.Acquire
	for k := range 5 {
		pool := fmt.Sprint("gpu", k)
		n := d.crowd(pool, "h", leasehold.MaxName)
		asks.Also = append(asks.Also, core.Item{Resource: pool, ID: pool, Slots: n, Select: &leasehold.Select{Spread: true}})
	}
	asks.Namespace, asks.Resource, asks.ID, asks.Holder, asks.TTL = ns, "x", "x", "me", time.Hour
	d.refused(&asks, leasehold.Limited, "1048576 are allowed")
	asks.Also, asks.Request = asks.Also[:1], core.Request{Key: "k"}
	d.must(&asks)
	d.mustAgree(&core.Tick{})
}

// Units whose host takes them away while they rest go on resting, should they come back. Others may take their place,
// and rest too: at last all of the pool rests, and no list of names grows for ever.
func TestRestingUnitsThatAreGoneCanBeWritten(t *testing.T) {
	d := newDesk(t)
	d.must(&core.Define{Namespace: ns, Definition: leasehold.Definition{Path: "gpu", Unclean: leasehold.AwaitAcknowledgement}})
	for round := range 3 {
		prefix := fmt.Sprintf("r%dh", round)
		n := d.crowd("gpu", prefix, leasehold.MaxName)
		id := fmt.Sprint("all", round)
		a := d.do(&core.Acquire{Namespace: ns, Resource: "gpu", ID: id, Holder: "me", TTL: time.Second, Slots: n / 2, Select: &leasehold.Select{Spread: true}})
		if round < 2 && a.Err != nil {
			t.Fatal(a.Err)
		}
		d.at(d.now + 2*time.Second).must(&core.Tick{})
		d.clearOut("gpu", prefix, n)
		d.mustAgree(&core.Tick{})
	}
	n := d.crowd("gpu", "last", leasehold.MaxName)
	last := &core.Acquire{Namespace: ns, Resource: "gpu", ID: "last", Holder: "me", TTL: time.Second, Slots: n, Select: &leasehold.Select{Spread: true}}
	d.refused(last, leasehold.Held, "")
	d.must(&core.Acknowledge{Namespace: ns, Resource: "gpu", Token: leasehold.MaxToken})
	d.must(last)
}

// A cycle may have as many steps as there are parties, and is told in part.
func TestALongCycleCanBeWritten(t *testing.T) {
	d := newDesk(t)
	const parties = 1200
	name := func(what string, i int) string { return fmt.Sprintf("%s%04d", what, i) + strings.Repeat("x", 1000) }
	for i := range parties {
		d.must(&core.Acquire{Namespace: ns, Resource: name("r", i), ID: name("i", i), Holder: name("h", i)})
	}
	for i := range parties - 1 {
		d.waits(&core.Acquire{Namespace: ns, Resource: name("r", i+1), ID: name("w", i), Holder: name("h", i), Wait: time.Hour})
	}
	a := d.do(&core.Acquire{Namespace: ns, Resource: name("r", 0), ID: name("w", parties-1), Holder: name("h", parties-1), Wait: time.Hour,
		Request: core.Request{Key: "cycle"}})
	if a.Err == nil || a.Err.Code != leasehold.Refused || len(a.Err.Cycle) == 0 || len(a.Err.Cycle) > 66 || len(a.Err.Message) > 64*5*leasehold.MaxName {
		t.Fatalf("a cycle of %d parties: %+v", parties, a)
	}
	d.mustAgree(&core.Tick{})
}
