package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// TestATurnThatTakesMoreThanAnEntry has somebody wait for a unit and a lock at once. To find the unit takes more work
// than an entry has, and it must be granted for all that.
func TestATurnThatTakesMoreThanAnEntry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	where := "rack!=x"
	for i := range 15 {
		where += fmt.Sprint(", rack!=x", i)
	}
	for h := range 5 {
		c := hostUnits("gpu", fmt.Sprint("h", h), 1000)
		for i := range c.Units {
			c.Units[i].Labels = leasehold.Labels{{Key: "rack", Value: fmt.Sprint(i)}}
		}
		d.must(c)
	}
	d.open("s")
	for _, path := range []string{"lock", "other"} {
		d.must(&core.Acquire{Namespace: ns, Resource: path, ID: path, Holder: "h"})
	}
	d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "unit", Holder: "w", Session: "s", Slots: 1, Wait: 20 * time.Minute,
		Select: &leasehold.Select{Where: where, Spread: true}, Also: []core.Item{{Resource: "lock", ID: "second"}}})
	d.must(&core.Renew{Namespace: ns, ID: "unit"}) // the queue of the pool was looked at, and is calm
	d.must(&core.Release{Namespace: ns, ID: "lock"})
	for range 20 {
		d.at(d.now + time.Second).must(&core.Tick{})
	}
	if status := d.state.View(0).Status(ns, "lock", 10); status.Waiting > 0 {
		t.Error("all that it waits for is free, and it waits")
	}
}
