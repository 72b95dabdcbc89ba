package terraform

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/tfstate"
)

// Another lineage. Terraform sends the same request whether or not somebody typed -force, so the
// door refuses a state of another lineage until it is told, once and for one state, to accept it.

// permit lets the state be replaced once by one of another lineage.
func (c *call) permit() error {
	last, err := c.query.Duration("allow-lineage", tfstate.MaxPermit)
	if err != nil {
		return err
	}
	body, err := c.small()
	if err != nil {
		return err
	}
	var asked tfstate.Permit
	if err := json.Unmarshal(body, &asked); err != nil {
		return door.Invalid("the body cannot be read: %v; write {\"by\": …, \"reason\": …}", err)
	}
	err = door.First(asked.Check(last), door.CheckText("by", asked.By, leasehold.MaxName),
		door.CheckText("reason", asked.Reason, leasehold.MaxName))
	if err != nil {
		return err
	}
	var given tfstate.Permit
	err = c.patiently(func() (err error) {
		given, err = c.grantPermit(asked, last)
		return err
	})
	if err == nil {
		c.send(http.StatusOK, "application/json", given)
	}
	return err
}

// grantPermit keeps the permit in a record that ends with a session of its own. Asked for again,
// it begins anew.
func (c *call) grantPermit(asked tfstate.Permit, last time.Duration) (tfstate.Permit, error) {
	var record *leasehold.Record
	if err := c.look(func(v core.View) { record, _ = v.Record(c.namespace, c.path, 0) }); err != nil {
		return asked, err
	}
	if record == nil {
		return asked, &leasehold.Error{Code: leasehold.NotFound,
			Message: "there is no state " + c.state + ": a state of any lineage can be written"}
	}
	session := "lineage-" + strings.ToLower(rand.Text())
	answer, err := c.do(&core.OpenSession{Namespace: c.namespace, ID: session, TTL: last})
	if err != nil {
		return asked, err
	}
	asked.Revision, asked.Until = uint64(record.Mod), moment(answer.Session.Expires)
	_, err = c.do(&core.PutRecord{Namespace: c.namespace, Path: tfstate.PermitPath(c.state), Value: asked.Encode(),
		Session: session, By: asked.By, Reason: asked.Reason})
	return asked, err
}

// permitIn returns the permit for a state as it is, and the session that it ends with; nil if
// there is none, or it was given for an earlier revision.
func (c *call) permitIn(v core.View, state *leasehold.Record) (permit *tfstate.Permit, session string) {
	kept, _ := v.Record(c.namespace, tfstate.PermitPath(c.state), 0)
	if kept == nil || state == nil {
		return nil, ""
	}
	permit = tfstate.ParsePermit(kept.Value)
	if permit == nil || permit.Revision != uint64(state.Mod) {
		return nil, ""
	}
	return permit, kept.Session
}

// permits reports whether a holder may write another lineage. Without the lock nobody may:
// somebody else could be at work on the state that is replaced.
func (p *present) permits(head tfstate.Head) bool {
	return p.permit != nil && p.mine && p.head.Lineage != head.Lineage
}

// usedUp takes a permit away that was used. If this fails, the permit is void all the same: the
// revision that it names is no longer there.
func (c *call) usedUp(session string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.signed()), farewell)
	defer cancel()
	_, _ = c.engine.Do(ctx, &core.CloseSession{Namespace: c.namespace, ID: session})
}

// whyForced says, for the journal, who wanted a write that would have been refused, and why;
// nothing if it would not have been.
func (c *call) whyForced(p present, head tfstate.Head) (by, reason string) {
	switch {
	case p.holder == nil || p.absent(c.azure):
		return "", ""
	case p.permits(head):
		return p.permit.By, tfstate.Clip("forced, another lineage was allowed: "+p.permit.Reason, leasehold.MaxName)
	case p.head.Lineage != head.Lineage:
		return p.holder.Holder, tfstate.Clip("forced, another lineage: "+p.holder.Reason, leasehold.MaxName)
	case head.Serial < p.head.Serial:
		return p.holder.Holder, tfstate.Clip("forced, a lower serial: "+p.holder.Reason, leasehold.MaxName)
	}
	return "", ""
}

// otherLineage refuses a state of another lineage, and says how to have it accepted.
func (c *call) otherLineage(there, sent string) error {
	if c.azure {
		return refused("%s has the lineage %s, and the state sent has %s: they describe different things; to replace "+
			"it anyway, force it", c.state, door.Brief(there), door.Brief(sent))
	}
	return refused("%s has the lineage %s, and the state sent has %s: they describe different things; to replace it "+
		"once, under its lock, run leasehold state allow-lineage %s%s --reason WHY and send it again",
		c.state, door.Brief(there), door.Brief(sent), c.state, c.inNamespace())
}

// inNamespace is the flag that a command of ours needs to be about this state.
func (c *call) inNamespace() string {
	if c.namespace == leasehold.DefaultNamespace {
		return ""
	}
	return " --namespace " + c.namespace
}
