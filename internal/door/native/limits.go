package native

import (
	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
)

// limits shows how much there is in the cluster, and how much there may be.
func (c *call) limits() error {
	var allowed, used leasehold.Caps
	if err := c.door.backend.Read(c.ctx, func(v core.View) { allowed, used = v.Caps() }); err != nil {
		return err
	}
	return c.sendValue(v1.Limits{
		Leases:     v1.Limit{Used: used.Leases, Allowed: allowed.Leases},
		Sessions:   v1.Limit{Used: used.Sessions, Allowed: allowed.Sessions},
		Waiters:    v1.Limit{Used: used.Waiters, Allowed: allowed.Waiters},
		Namespaces: v1.Limit{Used: used.Namespaces, Allowed: allowed.Namespaces},
	})
}

func (c *call) setLimits(body *v1.LimitsRequest) error {
	if err := firstError(checkText("by", body.By), checkText("reason", body.Reason)); err != nil {
		return err
	}
	caps := leasehold.Caps{Leases: body.Leases, Sessions: body.Sessions, Waiters: body.Waiters,
		Namespaces: body.Namespaces}
	if _, err := c.do(&core.SetCaps{Caps: caps, By: body.By, Reason: body.Reason}); err != nil {
		return err
	}
	return c.limits()
}
