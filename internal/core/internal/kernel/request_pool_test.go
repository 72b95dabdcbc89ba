package kernel_test

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// units brings the units of some hosts to a pool.
func (d *desk) units(path string, hosts, each int) {
	for h := range hosts {
		d.must(hostUnits(path, fmt.Sprintf("h%03d", h), each))
	}
}

func hostUnits(path, host string, n int) *core.SetUnits {
	c := &core.SetUnits{Namespace: ns, Resource: path, Host: host, Units: make([]core.HostUnit, n)}
	for i := range c.Units {
		c.Units[i].Name = fmt.Sprintf("%s-%04d", host, i)
		c.Units[i].Labels = leasehold.Labels{{Key: "model", Value: "H100"}}
	}
	return c
}

var spread = &leasehold.Select{Spread: true}

func takeUnits(id string, n int) *core.Acquire {
	return &core.Acquire{Namespace: ns, Resource: "gpu", ID: id, Holder: "ann", TTL: time.Hour, Slots: n, Select: spread}
}

// mixed gives units of a pool back one after the other, those of the first hosts last.
func (d *desk) mixed(units int) {
	for i := range 10 {
		d.must(takeUnits(fmt.Sprint("mixed", i), units/10))
	}
	for i := range 10 {
		d.at(d.now + time.Millisecond).must(&core.Release{Namespace: ns, ID: fmt.Sprint("mixed", 9-i)})
	}
}

var poolCases = []worstCase{
	{"an acquire of 10,000 units", func(d *desk, part int) func() int {
		d.units("gpu", 10, 1000)
		return d.command(takeUnits("l", 10000))
	}},
	{"an acquire of 5,000 of 10,000 units", func(d *desk, part int) func() int {
		d.units("gpu", 10, 1000)
		d.mixed(10000)
		return d.command(takeUnits("l", 5000))
	}},
	{"a change of the holder of 10,000 units", func(d *desk, part int) func() int {
		d.units("gpu", 10, 1000)
		d.must(takeUnits("l", 10000))
		return d.command(&core.Change{Namespace: ns, ID: "l", Holder: "bob"})
	}},
	{"a release of 10,000 units", func(d *desk, part int) func() int {
		d.units("gpu", 10, 1000)
		d.must(takeUnits("l", 10000))
		return d.command(&core.Release{Namespace: ns, ID: "l"})
	}},
	{"1,024 units of a host", func(d *desk, part int) func() int {
		d.units("gpu", 8, leasehold.MaxHostUnits)
		return d.command(hostUnits("gpu", "h999", leasehold.MaxHostUnits))
	}},
	{"the report of a host with 1,024 units", func(d *desk, part int) func() int {
		d.units("gpu", 9, leasehold.MaxHostUnits)
		report := &core.ReportUse{Namespace: ns, Resource: "gpu", Host: "h000"}
		for i := range leasehold.MaxHostUnits {
			report.Units = append(report.Units, core.UnitReport{Name: fmt.Sprintf("h000-%04d", i), Percent: 50})
		}
		return d.command(report)
	}},
	{"one unit of each of 64 pools", func(d *desk, part int) func() int {
		c := takeUnits("l0", 1)
		for k := range leasehold.MaxTogether {
			path := fmt.Sprint("p", k)
			d.units(path, 1, leasehold.MaxPoolsUnits/leasehold.MaxTogether/part)
			if c.Resource = "p0"; k > 0 {
				c.Also = append(c.Also, core.Item{Resource: path, ID: fmt.Sprint("l", k), Slots: 1, Select: spread})
			}
		}
		return d.command(c)
	}},
	{"an acquire behind 256 waiters for one drained unit", func(d *desk, part int) func() int {
		drainedWaiters(d)
		return d.command(takeUnits("l", 1))
	}},
	{"the report of a host behind 256 waiters for one drained unit", func(d *desk, part int) func() int {
		drainedWaiters(d)
		return d.command(hostUnits("gpu", "new", 1000))
	}},
	{"a read of the queue of 256 who wait for one drained unit", func(d *desk, part int) func() int {
		drainedWaiters(d)
		return d.read(func(v core.View) { v.Pool(ns, "gpu", core.PoolQuery{Most: 1, Waiters: 1000}) })
	}},
	{"an acquire behind 64 waiters for drained units with labels", func(d *desk, part int) func() int {
		d.open("s")
		d.units("gpu", 10, 900)
		d.must(&core.Drain{Namespace: ns, Resource: "gpu", Units: []string{"h000-0000"}, Why: "fan"})
		for i := range 64 {
			d.do(&core.Acquire{Namespace: ns, Resource: "gpu", ID: fmt.Sprint("w", i), Holder: "w", Session: "s", Slots: 9000, Wait: time.Hour,
				Select: &leasehold.Select{Where: fmt.Sprintf("model=H100, model!=x%d", i), Spread: true}})
		}
		return d.command(takeUnits("l", 1))
	}},
}

// drainedWaiters lets many wait for one unit that is drained, in different words, and all others be free.
func drainedWaiters(d *desk) {
	d.open("s")
	d.units("gpu", 9, 1000)
	d.must(&core.Drain{Namespace: ns, Resource: "gpu", Units: []string{"h000-0000"}, Why: "fan"})
	for i := range 256 {
		d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: fmt.Sprint("w", i), Holder: "w", Session: "s", Slots: 1, Wait: time.Hour,
			Select: &leasehold.Select{Where: fmt.Sprintf("unit=h000-0000, model!=x%d", i)}})
	}
}
