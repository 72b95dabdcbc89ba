package native

import (
	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/api/v1/pools"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/pool"
	"github.com/leasehold/leasehold/internal/door/native/encode"
)

// pools lists pools, without their units.
func (c *call) pools() error {
	part, err := c.part()
	if err != nil {
		return err
	}
	var list []leasehold.PoolStatus
	var next string
	err = c.look(func(v core.View) { list, next = v.Pools(c.namespace, part.prefix, part.after, part.limit) })
	if err != nil {
		return err
	}
	return sendPage(c, list, cursor(next), (*encode.Buffer).PoolCounts)
}

// pool shows units of a pool, and who waits for some.
func (c *call) pool() error {
	path := c.path("path")
	after, badAfter := c.after()
	limit, badLimit := c.number("limit", v1.DefaultLimit, leasehold.MaxPoolUnits)
	queue, badQueue := c.number("queue", v1.DefaultLimit, v1.MaxLimit)
	if err := firstError(checkPath("resource", path), badAfter, badLimit, badQueue); err != nil {
		return err
	}
	var status leasehold.PoolStatus
	var known bool
	q := core.PoolQuery{After: after, Most: limit, Waiters: queue}
	if err := c.look(func(v core.View) { status, known = v.Pool(c.namespace, path, q) }); err != nil {
		return err
	}
	if !known {
		return &leasehold.Error{Code: leasehold.NotFound, Message: path + " is no pool with hosts: leasehold pool " +
			"create makes one"}
	}
	c.send(func(b *encode.Buffer) { b.Pool(&status, cursor(status.Next)) })
	return nil
}

// setUnits says which units of a pool a host has.
func (c *call) setUnits(r *pools.UnitsRequest) (*core.SetUnits, error) {
	command := &core.SetUnits{Namespace: c.namespace, Resource: c.path("path"), Host: r.Host, By: r.By,
		Reason: r.Reason, Request: c.once}
	err := firstError(checkPath("resource", command.Resource), checkText("host", r.Host), checkText("by", r.By),
		checkText("reason", r.Reason))
	for _, u := range r.Units {
		ls, wrong := labels(u.Labels)
		if err = firstError(err, wrong, checkName("unit", u.Name), checkText("unfit", u.Unfit)); err != nil {
			return nil, err
		}
		command.Units = append(command.Units, core.HostUnit{Name: u.Name, Labels: ls, Unfit: u.Unfit})
	}
	return command, firstError(err, command.Validate())
}

// drain keeps units from being granted, or lets them be granted again.
func (c *call) drain(r *pools.DrainRequest) (*core.Drain, error) {
	command := &core.Drain{Namespace: c.namespace, Resource: c.path("path"), Units: r.Units, Why: r.Why, By: r.By,
		Request: c.once}
	return command, firstError(checkPath("resource", command.Resource), checkText("why", r.Why), checkText("by", r.By),
		command.Validate())
}

// reportUse says how the units of a host are used.
func (c *call) reportUse(r *pools.UseRequest) (*core.ReportUse, error) {
	command := &core.ReportUse{Namespace: c.namespace, Resource: c.path("path"), Host: r.Host, By: r.By,
		Request: c.once}
	err := firstError(checkPath("resource", command.Resource), checkText("host", r.Host), checkText("by", r.By))
	for _, u := range r.Units {
		unit := core.UnitReport{Name: u.Name, Percent: pool.UnknownPercent, Memory: u.Memory, Unfit: u.Unfit}
		if u.Percent != nil {
			unit.Percent = *u.Percent
		}
		err = firstError(err, checkName("unit", u.Name), checkText("unfit", u.Unfit))
		for _, p := range u.Processes {
			err = firstError(err, checkText("user", p.User), checkText("process", p.Name))
			unit.Processes = append(unit.Processes, core.UnitProcess(p))
		}
		command.Units = append(command.Units, unit)
	}
	return command, firstError(err, command.Validate())
}

// selection is what a request selects of a pool; nil if it selects nothing.
func selection(a *v1.AcquireRequest) *leasehold.Select {
	if a.Where == "" && !a.Spread && len(a.Units) == 0 {
		return nil
	}
	return &leasehold.Select{Where: a.Where, Spread: a.Spread, Units: a.Units}
}
