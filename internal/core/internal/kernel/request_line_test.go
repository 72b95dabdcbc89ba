package kernel_test

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// What one request may take that asks for units of many pools, in long queues, by many conditions, or behind those
// from whom units could be borrowed.
var lineCases = []worstCase{
	{"one unit of each of 64 pools with 1,000 waiters each", func(d *desk, part int) func() int {
		return d.command(d.longQueues(1000/part, 1))
	}},
	{"one unit of each of 64 pools with 1,000 different waiters each", func(d *desk, part int) func() int {
		return d.command(d.longQueues(1000/part, 16))
	}},
	{"a wait for one unit of each of 64 pools with 1,000 waiters each", func(d *desk, part int) func() int {
		c := d.longQueues(1000/part, 1)
		d.open("one")
		c.Session, c.TTL, c.Wait = "one", 0, time.Hour
		return d.command(c)
	}},
	{"an acquire by 8 conditions of 10,000 units that are all different", func(d *desk, part int) func() int {
		d.differentUnits()
		return d.command(byConditions("l", 1, "model=none"))
	}},
	{"an acquire by 8 numbers of 10,000 units that are all different", func(d *desk, part int) func() int {
		d.differentUnits()
		return d.command(byConditions("l", 1, "last>=1000000"))
	}},
	{"an acquire behind 16 that have 8 conditions each for units that are all different", func(d *desk, part int) func() int {
		d.differentUnits()
		d.open("s")
		d.must(&core.Drain{Namespace: ns, Resource: "gpu", Units: []string{"h000-0000"}, Why: "fan"})
		for i := range 16 {
			c := byConditions(fmt.Sprint("w", i), 10000, fmt.Sprintf("model!=x%d", i))
			c.Session, c.TTL, c.Wait = "s", 0, time.Hour
			d.do(c)
		}
		return d.command(byConditions("l", 1, "model!=y"))
	}},
	{"a task for 10,000 workers that wait", func(d *desk, part int) func() int {
		d.workers(10000 / part)
		return d.command(&core.PutTask{Namespace: ns, Path: "jobs/one"})
	}},
	{"64 tasks for 10,000 workers that wait", func(d *desk, part int) func() int {
		d.workers(10000 / part)
		var tasks []core.Command
		for i := range 64 {
			tasks = append(tasks, &core.PutTask{Namespace: ns, Path: fmt.Sprint("jobs/", i)})
		}
		return d.entry(tasks...)
	}},
	{"a worker for 10,000 tasks that are done, in doubt or to do", func(d *desk, part int) func() int {
		for i := range 10000 / part {
			d.must(&core.PutTask{Namespace: ns, Path: fmt.Sprint("jobs/", i), Priority: i % 8})
			if i%2 == 0 {
				id := fmt.Sprint("done", i)
				taken := d.must(&core.Acquire{Namespace: ns, Resource: "jobs/", ID: id, Holder: id, TTL: time.Hour, Task: true})
				if i%4 == 0 {
					d.must(&core.FinishTask{Namespace: ns, ID: id, Token: taken.Lease.Token})
				}
			}
		}
		return d.command(&core.Acquire{Namespace: ns, Resource: "jobs/", ID: "w", Holder: "w", TTL: time.Hour, Task: true})
	}},
	{"the end of a session with 10,000 workers that wait", func(d *desk, part int) func() int {
		d.workers(10000 / part)
		return d.command(&core.CloseSession{Namespace: ns, ID: "s"})
	}},
	{"a release behind which 1,000 could borrow", func(d *desk, part int) func() int {
		d.lending(1000 / part)
		return d.command(&core.Release{Namespace: ns, ID: "some"})
	}},
}

// workers lets so many wait for a task.
func (d *desk) workers(n int) {
	d.open("s")
	for i := range n {
		id := fmt.Sprint("w", i)
		d.must(&core.Acquire{Namespace: ns, Resource: "jobs/", ID: id, Holder: id, Session: "s", Task: true, Wait: time.Hour})
	}
}

// longQueues lets so many wait for each of 64 pools of two units, of which one is free and drained, in some number of
// different words. It returns a request for the unit of each.
func (d *desk) longQueues(waiters, words int) *core.Acquire {
	c := takeUnits("l0", 1)
	d.open("s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7")
	for k := range leasehold.MaxTogether {
		path := fmt.Sprint("p", k)
		d.units(path, 1, 2)
		d.must(&core.Drain{Namespace: ns, Resource: path, Units: []string{"h000-0000"}, Why: "fan"})
		for i := range waiters {
			d.must(&core.Acquire{Namespace: ns, Resource: path, ID: fmt.Sprint(path, "-w", i), Holder: "w",
				Session: fmt.Sprint("s", k%8), Slots: 1, Wait: time.Hour,
				Select: &leasehold.Select{Where: fmt.Sprintf("unit=h000-0000, model!=x%d", i%words)}})
		}
		if c.Resource = "p0"; k > 0 {
			c.Also = append(c.Also, core.Item{Resource: path, ID: fmt.Sprint("l", k), Slots: 1, Select: spread})
		}
	}
	return c
}

// differentUnits makes a pool of 10,000 units of which no two on a host have the same labels, 16 each.
func (d *desk) differentUnits() {
	for h := range 10 {
		c := hostUnits("gpu", fmt.Sprintf("h%03d", h), 1000)
		for i := range c.Units {
			c.Units[i].Labels = nil
			for k := range 10 {
				c.Units[i].Labels = append(c.Units[i].Labels, leasehold.Label{Key: fmt.Sprintf("k%02d", k), Value: "1234"})
			}
			c.Units[i].Labels = append(c.Units[i].Labels, leasehold.Label{Key: "last", Value: "123456"},
				leasehold.Label{Key: "model", Value: fmt.Sprint("H", i)})
		}
		d.must(c)
	}
}

// byConditions asks for units by 7 conditions that all of differentUnits fulfil, and another.
func byConditions(id string, n int, last string) *core.Acquire {
	c, where := takeUnits(id, n), ""
	for k := range 7 {
		where += fmt.Sprintf("last>=%d, ", k)
	}
	c.Select = &leasehold.Select{Spread: true, Where: where + last}
	return c
}

// lending makes a pool in which the first waiter needs more units than are free, and so many behind it are of a kind
// that usually takes a short time.
func (d *desk) lending(waiters int) {
	d.must(&core.Define{Namespace: ns, Definition: leasehold.Definition{Path: "gpu", Backfill: true}})
	d.units("gpu", 10, 100)
	d.open("s")
	for i := range 40 { // of its kind, so that it is known
		c := takeUnits(fmt.Sprint("k", i), 1)
		c.Labels = leasehold.Labels{{Key: "kind", Value: "short"}}
		d.must(c)
		d.at(d.now + time.Second).must(&core.Release{Namespace: ns, ID: c.ID})
	}
	d.must(takeUnits("some", 10))
	d.must(takeUnits("most", 990))
	d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: "first", Holder: "f", Session: "s", Slots: 1000, Wait: time.Hour, Select: spread})
	for i := range waiters {
		d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: fmt.Sprint("w", i), Holder: fmt.Sprint("h", i), Session: "s", Slots: 11,
			Wait: time.Hour, Labels: leasehold.Labels{{Key: "kind", Value: "short"}}, Select: spread})
	}
}
