// Package rights answers what is asked about who may do what, and changes it, for our own API. How a request came in,
// and how its answer goes out, is the matter of package native.
package rights

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access/document"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// A Desk is where one request is served.
type Desk struct {
	Backend *door.Backend
	Ctx     context.Context // of the request, with who sends it
	Once    core.Request
	Do      func(core.Command) (core.Answer, error)
}

// errBusy is the answer to a change that was overtaken by others each time it tried.
var errBusy = engine.Unavailable("others change access all the time: try again")

// policy returns who may do what; nil: everybody may do everything.
func (d *Desk) policy() (p *access.Policy, err error) {
	err = d.Backend.Read(d.Ctx, func(v core.View) { p = v.Policy() })
	return p, err
}

// asAdmin returns the policy to somebody who may change it.
func (d *Desk) asAdmin() (*access.Policy, error) {
	p, err := d.policy()
	if err != nil {
		return nil, err
	}
	asker := engine.AskerOf(d.Ctx)
	if p.Compile(asker).MayCluster(access.Admin) {
		return p, nil
	}
	who := "nobody was proven to ask, and"
	if asker != nil {
		who = asker.Principal + " may not see or change who may do what:"
	}
	return nil, &leasehold.Error{Code: leasehold.Denied,
		Message: who + " that needs the verb admin for the whole cluster; ask an admin"}
}

// toChange returns the policy to somebody who may change it, if there is one.
func (d *Desk) toChange() (*access.Policy, error) {
	p, err := d.asAdmin()
	if err == nil && p == nil {
		err = engine.Refused("access is off: everybody may do everything; turn it on with a document that has " +
			"an admin (leasehold access apply)")
	}
	return p, err
}

// change does a change that was made for a policy, and reports whether it is done: it is not if the policy has
// become another meanwhile.
func (d *Desk) change(p *access.Policy, change *core.ChangeAccess, changed func(revision uint64)) (bool, error) {
	change.IfRevision, change.Wall = p.At(), time.Now().UnixNano()
	answer, err := d.Do(change)
	if errors.Is(err, leasehold.ErrRefused) {
		if now, bad := d.policy(); bad == nil && now.At() != p.At() {
			return false, nil
		}
	}
	if err == nil && answer.Access != nil && changed != nil {
		changed(answer.Access.Revision)
	}
	return err == nil, err
}

// Access returns the policy as a document.
func (d *Desk) Access() (v1.Access, error) {
	p, err := d.asAdmin()
	if err != nil {
		return v1.Access{}, err
	}
	return document.From(p), nil
}

// A Sender is where a request comes from.
type Sender struct {
	Address string
	Direct  bool // nobody says that it was passed on by somebody else
}

// mayBegin says why a request cannot turn access on: it has to come from the server's own machine, whose users could
// change the data anyway.
func (s Sender) mayBegin() error {
	host, _, err := net.SplitHostPort(s.Address)
	ip, bad := netip.ParseAddr(host)
	if err == nil && bad == nil && ip.Unmap().IsLoopback() && s.Direct {
		return nil
	}
	return &leasehold.Error{Code: leasehold.Denied, Message: "access is off, and can be turned on only from the " +
		"machine that the server runs on: run the command there"}
}

// Apply makes the policy as a document says. It compares and sets: tokens that the document names keep what they
// have, and one that was revoked meanwhile must not come back.
func (d *Desk) Apply(body *v1.ApplyAccessRequest, from Sender) (out *v1.AppliedAccess, err error) {
	err = door.Decide(d.Ctx, errBusy, func(tried bool) (bool, error) {
		p, items, err := d.declared(body, from)
		if err != nil {
			return false, err
		}
		next := p.With(p.Without(items), items)
		changes := document.Diff(p, next)
		if out == nil || !tried {
			out = &v1.AppliedAccess{Changes: changes}
		}
		out.Applied, out.Revision = !body.DryRun, p.At()
		if err := next.FitsAfter(p, engine.AskerOf(d.Ctx), time.Now().UnixNano()); err != nil {
			return false, engine.Refused("%v", err)
		}
		if len(changes) == 0 {
			return true, nil
		}
		if body.IfRevision != 0 && body.IfRevision != p.At() {
			return false, engine.Refused("access is at revision %d, and this change was made for revision %d: look "+
				"at what differs now, and apply it again", p.At(), body.IfRevision)
		}
		if body.DryRun {
			return true, nil
		}
		return d.change(p, &core.ChangeAccess{Put: items, Replace: true, By: body.By, Reason: body.Reason},
			func(revision uint64) { out.Revision = revision })
	})
	return out, err
}

// declared returns the policy, and what a document says that it should be.
func (d *Desk) declared(body *v1.ApplyAccessRequest, from Sender) (*access.Policy, access.Items, error) {
	p, err := d.asAdmin()
	if err == nil && p == nil {
		err = from.mayBegin()
	}
	if err != nil {
		return nil, access.Items{}, err
	}
	items, err := document.Items(body.Access, p, time.Now())
	if err == nil {
		err = items.Check()
	}
	if err != nil {
		return nil, access.Items{}, door.Invalid("%v", err)
	}
	return p, items, nil
}
