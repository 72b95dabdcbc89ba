package kernel

import (
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
)

// Records are judged by their path and their owner. To compare one, or to expect something of it, is to read it.

func (t *turn) allowPut(c *PutRecord) *leasehold.Error {
	if c.IfRevision != 0 || c.IfAbsent || c.From != 0 {
		if failure := t.allowRecord(access.RecordRead, c.Namespace, c.Path); failure != nil {
			return failure
		}
	}
	if failure := t.allowRecord(access.RecordWrite, c.Namespace, c.Path); failure != nil {
		return failure
	}
	return t.allowLink(c.Namespace, c.Session, c.Link)
}

// allowLink judges the session that a put binds its record to, and the claim that it makes. A claim that it ends, or
// takes from another, is judged when it is known: see planPut.
func (t *turn) allowLink(namespace, session string, l *Link) *leasehold.Error {
	if l == nil || !l.Claims() {
		return t.allowUse(namespace, session)
	}
	if failure := t.allowMirror(namespace, l); failure != nil {
		return failure
	}
	return t.allowAcquire(l.Acquire(namespace, session))
}

// allowMirror judges a mirror: it shows all who have the resource or want it, in records anywhere below the prefix.
func (t *turn) allowMirror(namespace string, l *Link) *leasehold.Error {
	switch {
	case l.Mirror == "":
		return nil
	case !t.permit.May(access.Read, namespace, l.Resource, nil):
		return t.deny(access.Read, namespace, l.Resource)
	case l.Stands():
		return nil
	}
	return t.allowRecords(access.RecordWrite, namespace, l.Mirror, PrefixEnd(l.Mirror), true)
}

func (t *turn) allowDelete(c *DeleteRecord) *leasehold.Error {
	if c.IfRevision != 0 {
		if failure := t.allowRecord(access.RecordRead, c.Namespace, c.Path); failure != nil {
			return failure
		}
	}
	return t.allowRecords(access.RecordWrite, c.Namespace, c.Path, c.To, c.Range)
}

// allowRecords judges one record, or a range.
func (t *turn) allowRecords(v access.Verb, namespace, path, to string, isRange bool) *leasehold.Error {
	if !isRange {
		return t.allowRecord(v, namespace, path)
	}
	if !t.permit.MaySpan(v, namespace, path, to) {
		return t.denySpan(v, namespace, path, to)
	}
	if meetsForeign(path, to) && !t.throughOwnDoor() && !t.permit.MaySpan(access.Foreign, namespace, path, to) {
		return t.denySpan(access.Foreign, namespace, path, to)
	}
	return nil
}

func (l *look) denySpan(v access.Verb, namespace, from, to string) *leasehold.Error {
	if to == "" {
		to = "the end"
	}
	return deny("%s may not %s all paths from %s to %s%s: that needs the verb %s for all of them; ask an admin",
		l.permit.Asker.Principal, strings.TrimSuffix(v.Doing(), " the record"), from, to, inNamespace(namespace), v)
}

// allowRecord judges one record. One that does not exist yet would be the asker's own.
func (t *turn) allowRecord(v access.Verb, namespace, path string) *leasehold.Error {
	owner := t.permit.Self()
	if sp := t.space(namespace); sp != nil {
		if sp.records.Get(path) != nil {
			owner = sp.recordOwner(path)
		}
	}
	if !t.permit.May(v, namespace, path, owner) {
		return t.deny(v, namespace, path)
	}
	if access.IsForeign(path) && !t.throughOwnDoor() && !t.permit.May(access.Foreign, namespace, path, nil) {
		return t.deny(access.Foreign, namespace, path)
	}
	return nil
}

// meetsForeign reports whether a range has something of a foreign root.
func meetsForeign(from, to string) bool {
	for _, root := range access.ForeignRoots() {
		if from < root.End() && (to == "" || to > root.Path) {
			return true
		}
	}
	return false
}

// throughOwnDoor reports whether a command came through a door that checks the keys of what it keeps.
func (t *turn) throughOwnDoor() bool { return access.IsForeignDoor(t.door) }

// allowTxn judges everything that a transaction names: both lists, whichever will be done. A lease to release that
// cannot be seen is not refused here, since the list may not be done: see releasable.
func (t *turn) allowTxn(c *Txn) *leasehold.Error {
	if !t.permit.Knows(c.Namespace) { // also if it does nothing: the answer has the revision of the namespace
		return deny("%s may do nothing%s: ask an admin", t.permit.Asker.Principal, inNamespace(c.Namespace))
	}
	return t.allowParts(c.Namespace, c)
}

// allowParts judges the comparisons and operations of a transaction, or of one that is nested.
func (t *turn) allowParts(namespace string, c *Txn) *leasehold.Error {
	t.work.take((len(c.If) + len(c.Then) + len(c.Else)) / PerUnit)
	for i := range c.If {
		if failure := t.allowCompare(namespace, &c.If[i]); failure != nil {
			return failure
		}
	}
	for _, list := range [2][]Op{c.Then, c.Else} {
		for i := range list {
			if failure := t.allowOp(namespace, &list[i]); failure != nil {
				return failure
			}
		}
	}
	return nil
}

func (t *turn) allowCompare(namespace string, c *Compare) *leasehold.Error {
	if !c.What.OfLease() {
		return t.allowRecords(access.RecordRead, namespace, c.Path, c.To, c.Range)
	}
	owner := t.permit.Self()
	if sp := t.space(namespace); sp != nil {
		if r, ok := sp.resources.Get(c.Path); ok && r.Held() {
			owner = sp.claimOwner(sp.senior(r).ID)
		}
	}
	if !t.permit.May(access.Read, namespace, c.Path, owner) {
		return t.deny(access.Read, namespace, c.Path)
	}
	return nil
}

// allowOp asks for the right to read as well, wherever an answer would tell what was there.
func (t *turn) allowOp(namespace string, o *Op) *leasehold.Error {
	switch o.Do {
	case Put:
		if o.From != 0 || o.KeepValue || o.KeepSession || o.Before {
			if failure := t.allowRecord(access.RecordRead, namespace, o.Path); failure != nil {
				return failure
			}
		}
		if failure := t.allowRecord(access.RecordWrite, namespace, o.Path); failure != nil {
			return failure
		}
		return t.allowLink(namespace, o.Session, o.Link)
	case Delete:
		if o.Before {
			if failure := t.allowRecords(access.RecordRead, namespace, o.Path, o.To, o.Range); failure != nil {
				return failure
			}
		}
		return t.allowRecords(access.RecordWrite, namespace, o.Path, o.To, o.Range)
	case Get:
		return t.allowRecords(access.RecordRead, namespace, o.Path, o.To, o.Range)
	case AcquireLease:
		return t.allowAcquire(o.Acquire)
	case ReleaseLease:
		if failure := t.allowClaim(access.Release, namespace, o.ID); failure != nil &&
			failure.Code == leasehold.Denied {
			return failure
		}
		return nil
	case Nested:
		return t.allowParts(namespace, o.Txn)
	}
	return deny("%s may not do this: nobody said who may", t.permit.Asker.Principal)
}

// mayEnd refuses to end a claim through its record to those who could not end it by its id.
func (l *look) mayEnd(sp *space, claim *Claim) *leasehold.Error {
	if l.permit == nil {
		return nil
	}
	verb := access.Release
	if r := claim.Linked(); r != nil && r.Made {
		verb = access.Break
	}
	if l.permit.May(verb, sp.name, claim.Resource, sp.claimOwner(claim.ID)) {
		return nil
	}
	if !l.sees(sp, claim.ID, claim.Resource) {
		return deny("%s may not end the lease that %s stands for: that needs the verb %s; ask an admin",
			l.permit.Asker.Principal, claim.Linked().Path, verb)
	}
	return l.deny(verb, sp.name, claim.Resource)
}

// mayTakeOver refuses to take a lease through its record for another holder.
func (l *look) mayTakeOver(sp *space, claim *Claim, link *Link) *leasehold.Error {
	switch {
	case l.quarantined():
		return l.notGiven(&Change{ID: claim.ID, Holder: link.Holder}).Err
	case l.permit != nil &&
		!l.permit.MayHold(access.Change, sp.name, link.Resource, link.Holder, sp.claimOwner(claim.ID)):
		return l.deny(access.Change, sp.name, link.Resource)
	case l.gains(sp, claim):
		return l.withinOwn(tally{leases: 1})
	}
	return nil
}

// gains reports whether a lease that is taken was not the asker's before.
func (l *look) gains(sp *space, claim *Claim) bool {
	return l.permit != nil && !l.permit.Owns(sp.claimOwner(claim.ID))
}
