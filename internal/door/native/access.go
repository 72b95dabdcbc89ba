package native

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/access/document"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
)

// maxAccess is how large a document may be: as many items as one change may have fit in.
const maxAccess = 1 << 20

// changeAccess is how the journal calls every change of who may do what.
const changeAccess = "change-access"

// errBusyAccess is the answer to a change that was overtaken by others each time it tried.
var errBusyAccess = engine.Unavailable("others change access all the time: try again")

// policy returns who may do what; nil: everybody may do everything.
func (c *call) policy() (p *access.Policy, err error) {
	err = c.door.backend.Read(c.ctx, func(v core.View) { p = v.Policy() })
	return p, err
}

// asAdmin returns the policy to somebody who may change it.
func (c *call) asAdmin() (*access.Policy, error) {
	p, err := c.policy()
	if err != nil {
		return nil, err
	}
	asker := engine.AskerOf(c.ctx)
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
func (c *call) toChangeAccess() (*access.Policy, error) {
	p, err := c.asAdmin()
	if err == nil && p == nil {
		err = engine.Refused("access is off: everybody may do everything; turn it on with a document that has " +
			"an admin (leasehold access apply)")
	}
	return p, err
}

// mayBegin says why a request cannot turn access on: it has to come from the server's own machine, whose users could
// change the data anyway.
func (c *call) mayBegin() error {
	host, _, err := net.SplitHostPort(c.address())
	ip, bad := netip.ParseAddr(host)
	if err == nil && bad == nil && ip.Unmap().IsLoopback() && c.direct() {
		return nil
	}
	return &leasehold.Error{Code: leasehold.Denied, Message: "access is off, and can be turned on only from the " +
		"machine that the server runs on: run the command there"}
}

func (c *call) access() error {
	p, err := c.asAdmin()
	if err != nil {
		return err
	}
	return c.sendValue(document.From(p))
}

// applyAccess makes the policy as a document says. It compares and sets: tokens that the document names keep what they
// have, and one that was revoked meanwhile must not come back.
func (c *call) applyAccess(body *v1.ApplyAccessRequest) error {
	if err := firstError(checkText("by", body.By), checkText("reason", body.Reason)); err != nil {
		return err
	}
	var out *v1.AppliedAccess
	err := door.Decide(c.ctx, errBusyAccess, func(tried bool) (bool, error) {
		p, items, err := c.declared(body)
		if err != nil {
			return false, err
		}
		next := p.With(p.Without(items), items)
		changes := document.Diff(p, next)
		if out == nil || !tried {
			out = &v1.AppliedAccess{Changes: changes}
		}
		out.Applied, out.Revision = !body.DryRun, p.At()
		if err := next.FitsAfter(p, engine.AskerOf(c.ctx), time.Now().UnixNano()); err != nil {
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
		return c.changeAccess(p, &core.ChangeAccess{Put: items, Replace: true, By: body.By, Reason: body.Reason},
			func(revision uint64) { out.Revision = revision })
	})
	if err != nil {
		return err
	}
	return c.sendValue(out)
}

// declared returns the policy, and what a document says that it should be.
func (c *call) declared(body *v1.ApplyAccessRequest) (*access.Policy, access.Items, error) {
	p, err := c.asAdmin()
	if err == nil && p == nil {
		err = c.mayBegin()
	}
	if err != nil {
		return nil, access.Items{}, err
	}
	items, err := document.Items(body.Access, p, time.Now())
	if err == nil {
		err = items.Check()
	}
	if err != nil {
		return nil, access.Items{}, invalid("%v", err)
	}
	return p, items, nil
}

// changeAccess does a change that was made for a policy, and reports whether it is done: it is not if the policy has
// become another meanwhile.
func (c *call) changeAccess(p *access.Policy, change *core.ChangeAccess, changed func(revision uint64)) (bool, error) {
	change.IfRevision, change.Wall = p.At(), time.Now().UnixNano()
	answer, err := c.do(change)
	if errors.Is(err, leasehold.ErrRefused) {
		if now, bad := c.policy(); bad == nil && now.At() != p.At() {
			return false, nil
		}
	}
	if err == nil && answer.Access != nil && changed != nil {
		changed(answer.Access.Revision)
	}
	return err == nil, err
}

func (c *call) canI() error {
	question, err := c.question()
	if err != nil {
		return err
	}
	p, asker, err := c.asked()
	if err != nil {
		return err
	}
	if question.ID, question.Owner, err = c.askedLease(question.Path); err != nil {
		return err
	}
	return c.sendValue(document.CanI(p, asker, question))
}

// askedLease returns the lease or waiter on a path that the question is about, and whose it is.
func (c *call) askedLease(path string) (id string, owner *access.Owner, err error) {
	if id = c.query.Get("id"); id == "" {
		return "", nil, nil
	}
	if err := checkText("id", id); err != nil {
		return "", nil, err
	}
	err = c.door.backend.Read(c.ctx, func(v core.View) {
		if v.PathOfClaim(c.namespace, id) == path {
			owner = v.OwnerOfClaim(c.namespace, id)
		}
	})
	return id, owner, err
}

// asked returns for whom the question is: the one who asks, or for an admin anybody.
func (c *call) asked() (*access.Policy, *access.Asker, error) {
	as, groups := c.query.Get("as"), c.query.Values["group"]
	if as == "" && len(groups) == 0 {
		p, err := c.policy()
		asker := engine.AskerOf(c.ctx)
		if asker == nil {
			asker = &access.Asker{}
		}
		return p, asker, err
	}
	p, err := c.asAdmin()
	return p, document.As(p, as, groups), err
}

// question reads what may be done or not.
func (c *call) question() (document.Question, error) {
	name, path := c.query.Get("verb"), c.query.Get("path")
	verb, ok := access.VerbOf(name)
	if !ok {
		return document.Question{}, invalid("unknown verb %s; known verbs: %s", brief(name),
			strings.Join(access.Names(), ", "))
	}
	return document.Question{Verb: verb, Namespace: c.namespace, Path: path}, checkText("path", path)
}

func (c *call) whoCan() error {
	question, err := c.question()
	if err != nil {
		return err
	}
	p, err := c.asAdmin()
	if err != nil {
		return err
	}
	return c.sendValue(document.WhoCan(p, question))
}

func (c *call) whoami() error {
	p, err := c.policy()
	if err != nil {
		return err
	}
	out := document.Whoami(p, engine.AskerOf(c.ctx))
	if c.proof != nil {
		out.Credential = string(c.proof.Kind)
		if ends := c.proof.Expires; !ends.IsZero() {
			out.Expires = &v1.Time{Time: ends}
		}
	}
	return c.sendValue(out)
}
