package records

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
)

// Records are written under a fence, within the limits of a session and of the store, and with
// the events that let a watch follow them.

// liveRecord returns a record; nil if there is none. If its session is over at the stamp, the
// session ends first and the record with it.
func (s *records) Live(k kernel.Turn, path string) *leasehold.Record { return s.liveRecord(k, path) }

func (s *records) liveRecord(k kernel.Turn, path string) *leasehold.Record {
	r, _ := s.table.Get(path)
	if r != nil && r.Lease != "" {
		k.Touch(r.Lease) // if the claim is over it ends here, and the record follows
		r, _ = s.table.Get(path)
		return r
	}
	if r == nil || r.Session == "" || k.LiveSession(r.Session) != nil {
		return r
	}
	// The session has more than one entry may collect. The record that was asked for is over
	// all the same, and goes now.
	if r, bound := s.table.Get(path); bound { // there is too much bound to its session
		s.dropRecord(k, r, k.Left(r.Session).How)
	}
	return nil
}

// recordOver reports whether the session of a record, or the claim that it stands for, is over at the stamp: then
// the record no longer exists, collected or not. One that stays after its claim is shown as it was until the log has
// the end of that.
func recordOver(n kernel.Namespace, r *leasehold.Record) bool {
	claim := claimOf(n, r)
	switch {
	case claim == nil:
		return sessionOver(n, r)
	case claim.Linked().Stay:
		return false
	}
	return n.IsOver(claim)
}

func sessionOver(n kernel.Namespace, r *leasehold.Record) bool {
	if r.Session == "" {
		return false
	}
	session := n.Session(r.Session)
	return session == nil || session.Expires <= n.Now()
}

// A writing is who writes a record: under which token, 0 if it has none, and why.
type writing struct {
	token      leasehold.Token
	by, reason string
	made       bool   // for a claim that was made without the record: it is nobody's
	holder     string // whom it stands for from now on, if that did not write it
}

// setRecord creates a record or changes it.
func (s *records) setRecord(k kernel.Turn, w record.Write, from writing) *leasehold.Record {
	k.Take(kernel.RecordCost)
	was, _ := s.table.Get(w.Path)
	stamp := record.Stamp{Revision: k.ReviseRecord(was), Token: from.token, Wall: k.Wall()}
	before := k.OwnedBytes(w.Path)
	bound := s.table.Binds(was)
	r, old := s.store.Put(&s.table, w, stamp)
	if bound {
		k.CountBound(old.Session, -1)
	}
	if r.Session != "" && !w.Loose {
		k.CountBound(r.Session, 1)
	}
	if !from.made {
		k.OwnRecord(r.Path, old == nil, before)
	}
	s.timeShelf(k, r.Path)
	if w.Lease == "" {
		k.HolderChanged(r.Path)
	}
	k.Emit(&leasehold.Event{
		Kind: leasehold.RecordPut, Resource: r.Path, Token: from.token, Session: r.Session, Record: r, Previous: old,
		Holder: from.holder, By: from.by, Reason: from.reason, Owner: k.RecordOwner(r.Path),
	})
	return r
}

// dropRecord deletes a record. how is zero unless the end of its session does it.
func (s *records) dropRecord(k kernel.Turn, r *leasehold.Record, how leasehold.How) {
	k.ReviseRecord(r)
	shown := "" // by a record that its own door did not put
	if c := claimOf(k.Namespace, r); c.ShownAsHolder() {
		shown = c.Holder
	}
	owner, bound := k.DisownRecord(r.Path), s.table.Binds(r)
	s.store.Drop(&s.table, r, k.Now())
	k.DropTask(r.Path)
	s.forgetHolder(k, r.Path)
	if bound {
		k.CountBound(r.Session, -1)
	}
	s.timeShelf(k, r.Path)
	k.Emit(&leasehold.Event{
		Kind: leasehold.RecordDeleted, How: how, Resource: r.Path, Session: r.Session, Previous: r, Holder: shown,
		Owner: owner,
	})
}

// timeShelf keeps the timer that takes the former versions of a deleted record away. Most
// namespaces have none, and the first comparison makes that cheap.
func (s *records) timeShelf(k kernel.Turn, path string) {
	if s.table.Shelves() == 0 && s.timers.Len() == 0 {
		return
	}
	at := kernel.Time(0)
	if shelf, ok := s.table.Shelf(path); ok {
		at = shelf.Due()
	}
	due, timed := s.timers.Get(path)
	if at == 0 && !timed {
		return
	}
	due = k.SetTimer(due, path, at)
	switch {
	case at == 0:
		s.timers.Delete(path)
	case !timed:
		s.timers.Set(path, due)
	}
}

// EndBound deletes the first of the records that are bound to a session.
func (s *records) EndBound(k kernel.Turn, session string, how leasehold.How) bool {
	path := s.table.FirstBound(session)
	if path == "" {
		return false
	}
	k.Take(kernel.RecordCost)
	s.dropRecord(k, s.Get(path), how)
	return true
}

// DropFormer drops the former versions of a record that was deleted long ago.
func (s *records) DropFormer(k kernel.Turn, path string) {
	shelf, _ := s.table.Shelf(path)
	versions := s.store.DropShelf(&s.table, shelf)
	s.timeShelf(k, path)
	k.Take(versions)
}

// Write and MayWrite are for records that belong to something else.
func (s *records) Write(k kernel.Turn, w record.Write, by, reason string) *leasehold.Record {
	return s.setRecord(k, w, writing{by: by, reason: reason})
}

func (s *records) MayWrite(k kernel.Turn, w record.Write) *leasehold.Error {
	return s.roomFor(k, []record.Write{w})
}

// roomFor refuses writes, to different paths, of which not all can be made: because a session
// has ended or has too much, or because there would be too many records, in all or of one owner or namespace.
func (s *records) roomFor(k kernel.Turn, writes []record.Write) *leasehold.Error {
	bound := 0
	for i := range writes {
		w := &writes[i]
		if w.Session == "" || w.Loose {
			continue
		}
		session := k.LiveSession(w.Session)
		if session == nil {
			return k.NoSession(w.Session)
		}
		if old, ok := s.table.Get(w.Path); !ok || w.Session != old.Session {
			bound++ // as if all were of this session: few transactions are so large
		}
		if session.Claims+bound > leasehold.MaxClaimsPerSession {
			return refuse(leasehold.Limited, "session %q has %d leases, waiters and records already, "+
				"which is as many as it can have", w.Session, session.Claims)
		}
	}
	if failure := s.store.Room(&s.table, writes); failure != nil {
		return failure
	}
	return k.WithinQuotas(writes)
}

// unlessAsExpected refuses a write to a record that is not as its writer saw it.
func unlessAsExpected(old *leasehold.Record, path string, revision leasehold.Revision, absent bool) *leasehold.Error {
	switch {
	case absent && old != nil:
		return refuse(leasehold.Refused, "%s is there already, at revision %d", path, old.Mod)
	case revision == 0:
		return nil
	case old == nil:
		return refuse(leasehold.Refused, "%s is not there, and was expected at revision %d: read it again", path,
			revision)
	case old.Mod != revision:
		return refuse(leasehold.Refused, "%s is at revision %d, and was expected at %d: read it again", path, old.Mod,
			revision)
	}
	return nil
}

// passFence returns the token that a write is made under, 0 without a fence; or why the writer
// may no longer write. A lease is judged by the state. A token alone is judged by the record,
// which remembers the largest it was written under; a token that was never granted is refused,
// or one typing error would lock every real holder out.
func (s *records) passFence(
	k kernel.Turn, old *leasehold.Record, path string, f kernel.Fence,
) (leasehold.Token, *leasehold.Error) {
	switch {
	case f == kernel.Fence{}:
		return 0, nil
	case f.Lease != "" && k.IsNew():
		return 0, kernel.NoFence(f)
	case f.Lease != "":
		return k.CheckFence(f)
	case f.Token > k.Token():
		return 0, refuse(leasehold.Refused, "token %d was never granted in this namespace", f.Token)
	case old != nil && f.Token < old.Token:
		return 0, refuse(leasehold.Lost, "token %d is too old for %s, which was written under token %d: acquire again",
			f.Token, path, old.Token)
	}
	return f.Token, nil
}

// writer returns the holder that writes under a lease that is alive; empty if there is none.
func writer(k kernel.Turn, f kernel.Fence) string {
	if f.Lease == "" {
		return ""
	}
	if claim := k.Claim(f.Lease); claim != nil {
		return claim.Holder
	}
	return ""
}
