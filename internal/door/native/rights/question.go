package rights

import (
	"github.com/leasehold/leasehold/internal/access/document"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// CanI answers whether somebody may do something to a path, or to the lease there that has an id: the one who asks, or
// for an admin anybody.
func (d *Desk) CanI(q document.Question, id, as string, groups []string) (out v1.CanI, err error) {
	p, asker, err := d.asked(as, groups)
	if err != nil {
		return out, err
	}
	if q.ID = id; id != "" {
		err = d.Backend.Read(d.Ctx, func(v core.View) {
			if v.PathOfClaim(q.Namespace, id) == q.Path {
				q.Owner = v.OwnerOfClaim(q.Namespace, id)
			}
		})
		if err != nil {
			return out, err
		}
	}
	return document.CanI(p, asker, q), nil
}

// asked returns for whom a question is.
func (d *Desk) asked(as string, groups []string) (*access.Policy, *access.Asker, error) {
	if as == "" && len(groups) == 0 {
		p, err := d.policy()
		asker := engine.AskerOf(d.Ctx)
		if asker == nil {
			asker = &access.Asker{}
		}
		return p, asker, err
	}
	p, err := d.asAdmin()
	return p, document.As(p, as, groups), err
}

// WhoCan answers who may do something.
func (d *Desk) WhoCan(q document.Question) (out v1.WhoCan, err error) {
	p, err := d.asAdmin()
	if err != nil {
		return out, err
	}
	return document.WhoCan(p, q), nil
}

// Whoami answers who asks, and what that one may do.
func (d *Desk) Whoami() (out v1.Whoami, err error) {
	p, err := d.policy()
	if err != nil {
		return out, err
	}
	return document.Whoami(p, engine.AskerOf(d.Ctx)), nil
}
