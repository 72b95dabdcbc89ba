// Package rights judges who may do what, and how much of it, at each place in the simulator's log. It knows nothing of
// how the core decides that: it looks at all bindings, and counts everything anew, each time.
package rights

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// Root is who may do everything.
const Root = "root"

// Roles are what can be bound. No ready role is, so that what each allows is written here alone.
var Roles = []*access.Role{
	{Name: "worker", Any: access.Of(access.Read, access.List, access.Acquire, access.Share, access.RecordRead,
		access.RecordWrite), Own: access.Of(access.Renew, access.Release, access.Change, access.Break)},
	{Name: "boss", Any: access.Of(access.Read, access.List, access.Acquire, access.Share, access.RecordRead,
		access.RecordWrite, access.Renew, access.Release, access.Change, access.Break)},
	{Name: "writer", Any: access.Of(access.Acquire, access.RecordRead), Own: access.Of(access.Read, access.RecordWrite,
		access.Renew, access.Release)},
	{Name: "reader", Any: access.Of(access.Read, access.List, access.RecordRead)},
}

// A Judge follows who may do what, and whose everything is. It knows who sent each command, whatever the log says of
// that.
//
// By which group somebody has what it took is not followed. So what belongs to somebody of the same group may or may
// not be one's own, and nothing is said of that.
type Judge struct {
	violated func(format string, args ...any)
	count    func(what string)

	on       bool
	tokens   map[string]*access.Token
	bindings map[string]*access.Binding
	quotas   map[string]*access.Quota

	claims   map[spot]*owned
	sessions map[spot]*access.Asker // who opened it
	records  map[spot]*access.Asker // who made it
}

// A spot is something with a name in a namespace.
type spot struct{ space, name string }

// owned is a lease or a waiter, with who asked for it.
type owned struct {
	by           *access.Asker // nil: nobody was asked who it is
	path, holder string
	take         access.Verb // what it took to ask for it
	waits        bool
}

// New returns a judge that tells of what should not have been, and counts what it saw.
func New(violated func(format string, args ...any), count func(what string)) *Judge {
	return &Judge{violated: violated, count: count, tokens: map[string]*access.Token{},
		bindings: map[string]*access.Binding{}, quotas: map[string]*access.Quota{}, claims: map[spot]*owned{},
		sessions: map[spot]*access.Asker{}, records: map[spot]*access.Asker{}}
}

// A Verdict is whether somebody may do something: certainly, perhaps, or not.
type Verdict struct{ Perhaps, Surely bool }

var (
	yes     = Verdict{true, true}
	unknown = Verdict{true, false}
	no      = Verdict{}
)

func (v Verdict) and(o Verdict) Verdict { return Verdict{v.Perhaps && o.Perhaps, v.Surely && o.Surely} }
func (v Verdict) or(o Verdict) Verdict  { return Verdict{v.Perhaps || o.Perhaps, v.Surely || o.Surely} }

// On reports whether there is a policy. Until there is one everybody may do everything.
func (j *Judge) On() bool { return j.on }

// changed takes a change of the policy that was made.
func (j *Judge) changed(c *core.ChangeAccess) {
	j.on = true
	for _, id := range c.Remove.Tokens {
		delete(j.tokens, id)
	}
	for _, name := range c.Remove.Bindings {
		delete(j.bindings, name)
	}
	for _, key := range c.Remove.Quotas {
		delete(j.quotas, key)
	}
	for _, t := range c.Put.Tokens {
		j.tokens[t.ID] = t
	}
	for _, b := range c.Put.Bindings {
		j.bindings[b.Name] = b
	}
	for _, q := range c.Put.Quotas {
		j.quotas[q.Key()] = q
	}
}

// verbsOf returns what a role allows to anything, and to one's own.
func verbsOf(role string) (to, own access.Verbs) {
	if role == "admin" {
		return access.All, 0
	}
	i := slices.IndexFunc(Roles, func(r *access.Role) bool { return r.Name == role })
	return Roles[i].Any, Roles[i].Own
}

func covered(prefix, path string) bool {
	return prefix == "" || path == prefix || strings.HasPrefix(path, prefix+"/")
}

// each calls fn with the bindings of somebody in a namespace.
func (j *Judge) each(a *access.Asker, space string, fn func(b *access.Binding, to, own access.Verbs)) {
	if j.tokens[a.Token] == nil {
		return
	}
	for _, b := range j.bindings {
		mine := b.Principal == a.Principal || b.Group != "" && slices.Contains(j.tokens[a.Token].Groups, b.Group)
		if mine && (b.Namespace == space || b.Namespace == access.AllNamespaces) {
			to, own := verbsOf(b.Role)
			fn(b, to, own)
		}
	}
}

// owns says whether something is somebody's own.
func (j *Judge) owns(a, by *access.Asker) Verdict {
	switch {
	case by == nil:
		return no
	case by.Principal == a.Principal:
		return yes
	case j.tokens[a.Token] != nil && slices.ContainsFunc(by.Groups, func(g string) bool {
		return slices.Contains(j.tokens[a.Token].Groups, g)
	}):
		return unknown
	}
	return no
}

// verb judges one verb at a path, in the name of a holder if it has one, on what somebody has.
func (j *Judge) verb(a *access.Asker, v access.Verb, at spot, holder string, by *access.Asker) (sum Verdict) {
	names := v == access.Acquire || v == access.Share || v == access.Change
	j.each(a, at.space, func(b *access.Binding, to, own access.Verbs) {
		switch {
		case !covered(b.Prefix, at.name) || names && !covered(b.Holders, holder):
		case to.Has(v):
			sum = yes
		case own.Has(v):
			sum = sum.or(j.owns(a, by))
		}
	})
	return sum
}

// Somewhere reports whether somebody may do one of some things somewhere in a namespace.
func (j *Judge) Somewhere(a *access.Asker, space string, verbs access.Verbs) (found bool) {
	j.each(a, space, func(_ *access.Binding, to, own access.Verbs) { found = found || (to|own)&verbs != 0 })
	return found
}

// session judges a verb on a session: on one's own where it is allowed somewhere, on others' if on everything.
func (j *Judge) session(a *access.Asker, v access.Verb, at spot) Verdict {
	by, known := j.sessions[at]
	if !known {
		return unknown
	}
	sum := no
	if j.Somewhere(a, at.space, access.Of(v)) {
		sum = j.owns(a, by)
	}
	j.each(a, at.space, func(b *access.Binding, to, _ access.Verbs) {
		if b.Prefix == "" && to.Has(v) {
			sum = yes
		}
	})
	return sum
}

// uses judges whether something may be bound to a session.
func (j *Judge) uses(a *access.Asker, space, id string) Verdict {
	by, known := j.sessions[spot{space, id}]
	switch {
	case id == "":
		return yes
	case !known:
		return unknown
	}
	return j.owns(a, by).or(Verdict{j.session(a, access.Renew, spot{space, id}).Perhaps, false})
}

// claim judges a verb on a lease or a waiter.
func (j *Judge) claim(a *access.Asker, v access.Verb, at spot) Verdict {
	if c := j.claims[at]; c != nil {
		return j.verb(a, v, spot{at.space, c.path}, "", c.by)
	}
	return unknown
}

// record judges a verb on a record. One that is not there yet would be one's own.
func (j *Judge) record(a *access.Asker, v access.Verb, at spot) Verdict {
	by, known := j.records[at]
	if !known {
		by = a
	}
	return j.verb(a, v, at, "", by)
}

// May says whether somebody may give a command, by what there is before it.
func (j *Judge) May(c core.Command, a *access.Asker) Verdict {
	switch {
	case a == nil || !j.on || a.Principal == Root:
		return yes
	case j.tokens[a.Token] == nil:
		return no
	}
	switch c := c.(type) {
	case *core.OpenSession:
		may := j.Somewhere(a, c.Namespace, access.Of(access.Acquire, access.Share, access.RecordWrite))
		return Verdict{may, may}
	case *core.RenewSession:
		return j.session(a, access.Renew, spot{c.Namespace, c.ID})
	case *core.CloseSession:
		return j.session(a, access.Release, spot{c.Namespace, c.ID})
	case *core.Acquire:
		return j.take(a, c)
	case *core.Renew:
		return j.claim(a, access.Renew, spot{c.Namespace, c.ID})
	case *core.Release:
		return j.claim(a, access.Release, spot{c.Namespace, c.ID})
	case *core.Break:
		return j.claim(a, access.Break, spot{c.Namespace, c.ID})
	case *core.Change:
		if claim := j.claims[spot{c.Namespace, c.ID}]; claim != nil {
			return j.verb(a, access.Change, spot{c.Namespace, claim.path}, cmp.Or(c.Holder, claim.holder), claim.by)
		}
	case *core.PutTask:
		return j.record(a, access.RecordWrite, spot{c.Namespace, c.Path})
	case *core.FinishTask:
		return j.claim(a, access.Release, spot{c.Namespace, c.ID})
	case *core.PutRecord:
		return j.record(a, access.RecordWrite, spot{c.Namespace, c.Path})
	case *core.Txn:
		return j.txn(a, c)
	case *core.Define, *core.Undefine, *core.SetUnits, *core.Drain, *core.ReportUse, *core.Reserve,
		*core.CancelReservation, *core.Acknowledge, *core.ChangeAccess:
		return no // no role here has these but root's
	}
	return unknown
}

func takeVerb(c *core.Acquire) access.Verb {
	if c.Slots != 0 {
		return access.Share
	}
	return access.Acquire
}

func (j *Judge) take(a *access.Asker, c *core.Acquire) Verdict {
	return j.verb(a, takeVerb(c), spot{c.Namespace, c.Resource}, c.Holder, nil).and(j.uses(a, c.Namespace, c.Session))
}

func (j *Judge) txn(a *access.Asker, c *core.Txn) Verdict {
	all := yes
	for _, x := range c.If {
		if x.What == core.LeaseToken { // the token of its holder, if there is one
			all = all.and(j.verb(a, access.Read, spot{c.Namespace, x.Path}, "", nil).or(unknown))
			continue
		}
		all = all.and(j.record(a, access.RecordRead, spot{c.Namespace, x.Path}))
	}
	for _, o := range slices.Concat(c.Then, c.Else) {
		switch o.Do {
		case core.Put, core.Delete:
			all = all.and(j.record(a, access.RecordWrite, spot{c.Namespace, o.Path}))
		case core.AcquireLease:
			all = all.and(j.take(a, o.Acquire))
		case core.ReleaseLease: // one that cannot be seen is as one that is not there
			all = all.and(j.claim(a, access.Release, spot{c.Namespace, o.ID}).or(unknown))
		}
	}
	return all
}

// Check checks what a command came to: nothing was done by somebody who had no right to, and nobody was denied
// what it may do.
func (j *Judge) Check(c core.Command, a *access.Asker, v Verdict, answer core.Answer, events []*leasehold.Event) {
	if a == nil {
		return
	}
	withdraws := false
	if r, ok := c.(*core.Release); ok {
		withdraws = r.Withdraw // of what cannot be seen nothing is withdrawn, and that is not said
	}
	switch {
	case answer.Err != nil && answer.Err.Code == leasehold.Denied:
		j.count("denied")
		if v.Surely {
			j.violated("%s may %T %+v, and was denied it: %v", a.Principal, c, c, answer.Err)
		}
	case answer.Err == nil && !v.Perhaps && !withdraws:
		j.violated("%s may not %T %+v, and it was done", a.Principal, c, c)
	}
	for _, e := range events {
		if !j.did(c, a, e).Perhaps {
			j.violated("%s did %v of %s%s by %T %+v, and may not", a.Principal, e.Kind, e.ID, e.Resource, c, c)
		}
	}
	if change, ok := c.(*core.ChangeAccess); ok && answer.Err == nil {
		j.count("changes of access")
		j.changed(change)
	}
}

// did judges an event that is the doing of a command's sender. Others' ends are nobody's doing.
func (j *Judge) did(c core.Command, a *access.Asker, e *leasehold.Event) Verdict {
	if !j.on || a.Principal == Root {
		return yes
	}
	id, at := spot{e.Namespace, e.ID}, spot{e.Namespace, e.Resource}
	_, breaks := c.(*core.Break)
	_, closes := c.(*core.CloseSession)
	switch {
	case e.Kind == leasehold.Ended && e.How == leasehold.Released && !closes:
		return j.claim(a, access.Release, id)
	case e.Kind == leasehold.BreakSet, e.Kind == leasehold.Ended && e.How == leasehold.ByBreak && breaks:
		return j.claim(a, access.Break, id).or(Verdict{e.Kind == leasehold.Ended && c.(*core.Break).ID != e.ID, false})
	case e.Kind == leasehold.RecordPut, e.Kind == leasehold.RecordDeleted && e.How == 0:
		return j.record(a, access.RecordWrite, at)
	}
	begins := j.claims[id] == nil && (e.Kind == leasehold.Acquired || e.Kind == leasehold.Queued)
	if x := Asked(c, e); x != nil && begins {
		return j.take(a, x)
	}
	return yes
}

// known is somebody with the groups that its token has now, whatever its sender believed.
func (j *Judge) known(a *access.Asker) *access.Asker {
	if a == nil || j.tokens[a.Token] == nil {
		return a
	}
	return &access.Asker{Principal: a.Principal, Groups: j.tokens[a.Token].Groups, Token: a.Token}
}

// Follow takes an event: whose is what.
func (j *Judge) Follow(c core.Command, a *access.Asker, e *leasehold.Event) {
	if a = j.known(a); !j.on {
		a = nil
	}
	id, at := spot{e.Namespace, e.ID}, spot{e.Namespace, e.Resource}
	switch e.Kind {
	case leasehold.SessionOpened:
		j.sessions[spot{e.Namespace, e.Session}] = a
	case leasehold.SessionEnded:
		delete(j.sessions, spot{e.Namespace, e.Session})
	case leasehold.Queued, leasehold.Acquired:
		if x := Asked(c, e); x != nil && j.claims[id] == nil {
			j.claims[id] = &owned{by: a, path: e.Resource, holder: x.Holder, take: takeVerb(x)}
		}
		if claim := j.claims[id]; claim != nil {
			j.granted(e, claim)
			claim.waits = e.Kind == leasehold.Queued
		}
	case leasehold.Changed:
		change := c.(*core.Change)
		if claim := j.claims[spot{e.Namespace, change.ID}]; claim != nil {
			delete(j.claims, spot{e.Namespace, change.ID})
			claim.holder = cmp.Or(change.Holder, claim.holder)
			j.claims[id] = claim
		}
	case leasehold.Ended, leasehold.Left:
		delete(j.claims, id)
	case leasehold.RecordPut:
		if _, known := j.records[at]; !known {
			j.records[at] = a
		}
	case leasehold.RecordDeleted:
		delete(j.records, at)
	}
}

// granted checks that who waited for something may still have it when it is granted.
func (j *Judge) granted(e *leasehold.Event, c *owned) {
	if e.Kind != leasehold.Acquired || !c.waits || c.by == nil || c.by.Principal == Root {
		return
	}
	j.count("grants to those who waited, judged")
	if !j.verb(c.by, c.take, spot{e.Namespace, c.path}, c.holder, nil).Perhaps {
		j.violated("%s waited for %s as %s and was granted it, which it may not have any more", c.by.Principal, c.path,
			e.ID)
	}
}

// Asked returns the acquire that an event answers: the command, or an operation of it; nil if
// the event is about somebody else's request.
func Asked(c core.Command, e *leasehold.Event) *core.Acquire {
	switch c := c.(type) {
	case *core.Acquire:
		if c.Namespace == e.Namespace {
			return part(c, e)
		}
	case *core.PutRecord:
		if l := c.Link; l != nil && l.ID == e.ID && l.Resource == e.Resource && c.Namespace == e.Namespace {
			return l.Acquire(c.Namespace, c.Session)
		}
	case *core.Txn:
		for _, list := range [][]core.Op{c.Then, c.Else} {
			for _, o := range list {
				if a := o.Acquire; a != nil && a.ID == e.ID && a.Resource == e.Resource && a.Namespace == e.Namespace {
					return a
				}
			}
		}
	}
	return nil
}

// part returns the acquire of the one resource that an event is about, of those that are asked for at once; nil if it
// is about none. A task is asked for by its folder.
func part(c *core.Acquire, e *leasehold.Event) *core.Acquire {
	name, task := strings.CutPrefix(e.Resource, c.Resource)
	if c.ID == e.ID && (name == "" || c.Task && task && !strings.Contains(name, "/")) {
		return c
	}
	for _, item := range c.Also {
		if item.ID == e.ID && item.Resource == e.Resource {
			one := *c
			one.Resource, one.ID, one.Select = item.Resource, item.ID, item.Select
			one.Slots, one.Capacity = item.Slots, item.Capacity
			return &one
		}
	}
	return nil
}
