package native

import (
	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
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
