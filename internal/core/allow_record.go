package core

import (
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
)

// Records are judged by their path and their owner. To compare one, or to expect something of it, is to read it.

func (s *State) allowPut(c *PutRecord) *leasehold.Error {
	if c.IfRevision != 0 || c.IfAbsent || c.From != 0 {
		if failure := s.allowRecord(access.RecordRead, c.Namespace, c.Path); failure != nil {
			return failure
		}
	}
	if failure := s.allowRecord(access.RecordWrite, c.Namespace, c.Path); failure != nil {
		return failure
	}
	return s.allowLink(c.Namespace, c.Session, c.Link)
}

// allowLink judges the session that a put binds its record to, and the claim that it makes. A claim that it ends, or
// takes from another, is judged when it is known: see planPut.
func (s *State) allowLink(namespace, session string, l *Link) *leasehold.Error {
	if l == nil || !l.Claims() {
		return s.allowUse(namespace, session)
	}
	if failure := s.allowMirror(namespace, l); failure != nil {
		return failure
	}
	return s.allowAcquire(l.Acquire(namespace, session))
}

// allowMirror judges a mirror: it shows all who have the resource or want it, in records anywhere below the prefix.
func (s *State) allowMirror(namespace string, l *Link) *leasehold.Error {
	switch {
	case l.Mirror == "":
		return nil
	case !s.permit.May(access.Read, namespace, l.Resource, nil):
		return s.deny(access.Read, namespace, l.Resource)
	case l.Stands():
		return nil
	}
	return s.allowRecords(access.RecordWrite, namespace, l.Mirror, PrefixEnd(l.Mirror), true)
}

func (s *State) allowDelete(c *DeleteRecord) *leasehold.Error {
	if c.IfRevision != 0 {
		if failure := s.allowRecord(access.RecordRead, c.Namespace, c.Path); failure != nil {
			return failure
		}
	}
	return s.allowRecords(access.RecordWrite, c.Namespace, c.Path, c.To, c.Range)
}

// allowRecords judges one record, or a range.
func (s *State) allowRecords(v access.Verb, namespace, path, to string, isRange bool) *leasehold.Error {
	if !isRange {
		return s.allowRecord(v, namespace, path)
	}
	if !s.permit.MaySpan(v, namespace, path, to) {
		return s.denySpan(v, namespace, path, to)
	}
	if meetsForeign(path, to) && !s.throughOwnDoor() && !s.permit.MaySpan(access.Foreign, namespace, path, to) {
		return s.denySpan(access.Foreign, namespace, path, to)
	}
	return nil
}

func (s *State) denySpan(v access.Verb, namespace, from, to string) *leasehold.Error {
	if to == "" {
		to = "the end"
	}
	return deny("%s may not %s all paths from %s to %s%s: that needs the verb %s for all of them; ask an admin",
		s.permit.Asker.Principal, strings.TrimSuffix(v.Doing(), " the record"), from, to, inNamespace(namespace), v)
}

// allowRecord judges one record. One that does not exist yet would be the asker's own.
func (s *State) allowRecord(v access.Verb, namespace, path string) *leasehold.Error {
	owner := s.permit.Self()
	if sp := s.space(namespace); sp != nil {
		if _, ok := sp.records.Get(path); ok {
			owner = sp.recordOwner(path)
		}
	}
	if !s.permit.May(v, namespace, path, owner) {
		return s.deny(v, namespace, path)
	}
	if access.IsForeign(path) && !s.throughOwnDoor() && !s.permit.May(access.Foreign, namespace, path, nil) {
		return s.deny(access.Foreign, namespace, path)
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
func (s *State) throughOwnDoor() bool { return access.IsForeignDoor(s.door) }

// allowTxn judges everything that a transaction names: both lists, whichever will be done. A lease to release that
// cannot be seen is not refused here, since the list may not be done: see releasable.
func (s *State) allowTxn(c *Txn) *leasehold.Error {
	if !s.permit.Knows(c.Namespace) { // also if it does nothing: the answer has the revision of the namespace
		return deny("%s may do nothing%s: ask an admin", s.permit.Asker.Principal, inNamespace(c.Namespace))
	}
	return s.allowParts(c.Namespace, c)
}

// allowParts judges the comparisons and operations of a transaction, or of one that is nested.
func (s *State) allowParts(namespace string, c *Txn) *leasehold.Error {
	s.work.take((len(c.If) + len(c.Then) + len(c.Else)) / perUnit)
	for i := range c.If {
		if failure := s.allowCompare(namespace, &c.If[i]); failure != nil {
			return failure
		}
	}
	for _, list := range [2][]Op{c.Then, c.Else} {
		for i := range list {
			if failure := s.allowOp(namespace, &list[i]); failure != nil {
				return failure
			}
		}
	}
	return nil
}

func (s *State) allowCompare(namespace string, c *Compare) *leasehold.Error {
	if !c.What.OfLease() {
		return s.allowRecords(access.RecordRead, namespace, c.Path, c.To, c.Range)
	}
	owner := s.permit.Self()
	if sp := s.space(namespace); sp != nil {
		if r, ok := sp.resources.Get(c.Path); ok && r.held() {
			owner = sp.claimOwner(sp.senior(r).ID)
		}
	}
	if !s.permit.May(access.Read, namespace, c.Path, owner) {
		return s.deny(access.Read, namespace, c.Path)
	}
	return nil
}

// allowOp asks for the right to read as well, wherever an answer would tell what was there.
func (s *State) allowOp(namespace string, o *Op) *leasehold.Error {
	switch o.Do {
	case Put:
		if o.From != 0 || o.KeepValue || o.KeepSession || o.Before {
			if failure := s.allowRecord(access.RecordRead, namespace, o.Path); failure != nil {
				return failure
			}
		}
		if failure := s.allowRecord(access.RecordWrite, namespace, o.Path); failure != nil {
			return failure
		}
		return s.allowLink(namespace, o.Session, o.Link)
	case Delete:
		if o.Before {
			if failure := s.allowRecords(access.RecordRead, namespace, o.Path, o.To, o.Range); failure != nil {
				return failure
			}
		}
		return s.allowRecords(access.RecordWrite, namespace, o.Path, o.To, o.Range)
	case Get:
		return s.allowRecords(access.RecordRead, namespace, o.Path, o.To, o.Range)
	case AcquireLease:
		return s.allowAcquire(o.Acquire)
	case ReleaseLease:
		if failure := s.allowClaim(access.Release, namespace, o.ID); failure != nil &&
			failure.Code == leasehold.Denied {
			return failure
		}
		return nil
	case Nested:
		return s.allowParts(namespace, o.Txn)
	}
	return deny("%s may not do this: nobody said who may", s.permit.Asker.Principal)
}
