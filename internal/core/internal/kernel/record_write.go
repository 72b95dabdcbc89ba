package kernel

import (
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
)

// Records are written under a fence, within the limits of a session and of the store, and with
// the events that let a watch follow them.

// liveRecord returns a record; nil if there is none. If its session is over at the stamp, the
// session ends first and the record with it.
func (t *turn) liveRecord(sp *space, path string) *leasehold.Record {
	if sp == nil {
		return nil
	}
	r, _ := sp.records.Get(path)
	if r != nil && r.Lease != "" {
		t.touch(sp, r.Lease) // if the claim is over it ends here, and the record follows
		r, _ = sp.records.Get(path)
		return r
	}
	if r == nil || r.Session == "" || t.liveSession(sp, r.Session) != nil {
		return r
	}
	// The session has more than one entry may collect. The record that was asked for is over
	// all the same, and goes now.
	if r, still := sp.records.Get(path); still { // there is too much bound to its session
		t.dropRecord(sp, r, sp.left(r.Session).How)
	}
	return nil
}

// recordOver reports whether the session of a record, or the claim that it is the face of, is over at the stamp: then
// the record no longer exists, collected or not. One that stays after its claim is shown as it was until the log has
// the end of that.
func (s *State) recordOver(sp *space, r *leasehold.Record) bool {
	claim := sp.faceOf(r)
	switch {
	case claim == nil:
		return s.sessionOver(sp, r)
	case claim.face().Stay:
		return false
	}
	_, _, over := s.isOverByTime(sp, claim)
	return over
}

func (s *State) sessionOver(sp *space, r *leasehold.Record) bool {
	if r.Session == "" {
		return false
	}
	session, ok := sp.sessions.Get(r.Session)
	return !ok || session.Expires <= s.now
}

// A writing is who writes a record: under which token, 0 if it has none, and why.
type writing struct {
	token      leasehold.Token
	by, reason string
	made       bool   // for a claim that was made without the record: it is nobody's
	holder     string // whom it stands for from now on, if that did not write it
}

// setRecord creates a record or changes it.
func (t *turn) setRecord(sp *space, w record.Write, from writing) *leasehold.Record {
	t.work.take(RecordCost)
	was, _ := sp.records.Get(w.Path)
	stamp := record.Stamp{Revision: t.reviseRecord(sp, was), Token: from.token, Wall: t.wall}
	before := sp.ownedBytes(w.Path)
	bound := sp.records.Binds(was)
	r, old := t.records.Put(&sp.records, w, stamp)
	if bound {
		t.countRecord(sp, old.Session, -1)
	}
	if r.Session != "" && !w.Loose {
		t.countRecord(sp, r.Session, 1)
	}
	if !from.made {
		t.ownRecord(sp, r.Path, old == nil, before)
	}
	t.timeShelf(sp, r.Path)
	if w.Lease == "" {
		t.holderChanged(sp, r.Path)
	}
	t.emit(sp, &leasehold.Event{
		Kind: leasehold.RecordPut, Resource: r.Path, Token: from.token, Session: r.Session, Record: r, Previous: old,
		Holder: from.holder, By: from.by, Reason: from.reason, Owner: sp.recordOwner(r.Path),
	})
	return r
}

// dropRecord deletes a record. how is zero unless the end of its session does it.
func (t *turn) dropRecord(sp *space, r *leasehold.Record, how leasehold.How) {
	t.reviseRecord(sp, r)
	shown := "" // by a record that its own door did not put
	if c := sp.faceOf(r); c.standing() {
		shown = c.Holder
	}
	owner, bound := t.disownRecord(sp, r.Path), sp.records.Binds(r)
	t.records.Drop(&sp.records, r, t.now)
	sp.tasks.Drop(t.in(sp), r.Path)
	sp.standDown(r.Path)
	if bound {
		t.countRecord(sp, r.Session, -1)
	}
	t.timeShelf(sp, r.Path)
	t.emit(sp, &leasehold.Event{
		Kind: leasehold.RecordDeleted, How: how, Resource: r.Path, Session: r.Session, Previous: r, Holder: shown,
		Owner: owner,
	})
}

// timeShelf keeps the timer that takes the former versions of a deleted record away. Most
// namespaces have none, and the first comparison makes that cheap.
func (t *turn) timeShelf(sp *space, path string) {
	if sp.records.Shelves() == 0 && sp.shelfTimers.Len() == 0 {
		return
	}
	at := Time(0)
	if shelf, ok := sp.records.Shelf(path); ok {
		at = shelf.Due()
	}
	due, timed := sp.shelfTimers.Get(path)
	switch {
	case at == 0 && timed:
		t.due.Set(due, 0)
		sp.shelfTimers.Delete(path)
	case at != 0 && !timed:
		due = newTimer(dueShelf, sp, path)
		sp.shelfTimers.Set(path, due)
		t.due.Set(due, at)
	case at != 0:
		t.due.Set(due, at)
	}
}

// roomFor refuses writes, to different paths, of which not all can be made: because a session
// has ended or has too much, or because there would be too many records, in all or of one owner or namespace.
func (t *turn) roomFor(sp *space, namespace string, writes []record.Write) *leasehold.Error {
	bound := 0
	for i := range writes {
		w := &writes[i]
		if w.Session == "" || w.Loose {
			continue
		}
		session := t.liveSession(sp, w.Session)
		if session == nil {
			return t.noSession(sp, w.Session).Err
		}
		if old, ok := sp.records.Get(w.Path); !ok || w.Session != old.Session {
			bound++ // as if all were of this session: few transactions are so large
		}
		if session.Claims+bound > leasehold.MaxClaimsPerSession {
			return refuse(leasehold.Limited, "session %q has %d leases, waiters and records already, "+
				"which is as many as it can have", w.Session, session.Claims).Err
		}
	}
	if failure := t.records.Room(sp.table(), writes); failure != nil {
		return failure
	}
	return t.writesWithinQuotas(namespace, writes)
}

// table returns the records of a namespace; nil if that does not exist.
func (sp *space) table() *record.Table {
	if sp == nil {
		return nil
	}
	return &sp.records
}

// unlessAsExpected refuses a write to a record that is not as its writer saw it.
func unlessAsExpected(old *leasehold.Record, path string, revision leasehold.Revision, absent bool) *leasehold.Error {
	switch {
	case absent && old != nil:
		return refuse(leasehold.Refused, "%s is there already, at revision %d", path, old.Mod).Err
	case revision == 0:
		return nil
	case old == nil:
		return refuse(leasehold.Refused, "%s is not there, and was expected at revision %d: read it again", path,
			revision).Err
	case old.Mod != revision:
		return refuse(leasehold.Refused, "%s is at revision %d, and was expected at %d: read it again", path, old.Mod,
			revision).Err
	}
	return nil
}

// passFence returns the token that a write is made under, 0 without a fence; or why the writer
// may no longer write. A lease is judged by the state. A token alone is judged by the record,
// which remembers the largest it was written under; a token that was never granted is refused,
// or one typing error would lock every real holder out.
func (t *turn) passFence(sp *space, old *leasehold.Record, path string, f Fence) (leasehold.Token, *leasehold.Error) {
	switch {
	case f == Fence{}:
		return 0, nil
	case f.Lease != "":
		return t.leaseFence(sp, f)
	case sp == nil || f.Token > sp.token:
		return 0, refuse(leasehold.Refused, "token %d was never granted in this namespace", f.Token).Err
	case old != nil && f.Token < old.Token:
		return 0, refuse(leasehold.Lost, "token %d is too old for %s, which was written under token %d: acquire again",
			f.Token, path, old.Token).Err
	}
	return f.Token, nil
}

func (t *turn) leaseFence(sp *space, f Fence) (leasehold.Token, *leasehold.Error) {
	claim := t.touch(sp, f.Lease)
	switch {
	case claim != nil && !t.sees(sp, claim.ID, claim.Resource):
		return 0, unknownFence(sp, f)
	case claim == nil:
		return 0, t.lostFence(sp, f)
	case claim.Waiting():
		return 0, refuse(leasehold.Lost, "lease %q still waits for %s: it protects nothing yet", f.Lease,
			claim.Resource).Err
	case f.Token != 0 && f.Token != claim.Token:
		return 0, refuse(leasehold.Lost, "lease %q on %s has token %d and not %d: acquire again", f.Lease,
			claim.Resource, claim.Token, f.Token).Err
	}
	return claim.Token, nil
}

// lostFence explains to a writer under a lease that is over what it had, and who has it now.
// However long ago the lease ended, the answer is that it is lost.
func (t *turn) lostFence(sp *space, f Fence) *leasehold.Error {
	had := hadToken(f)
	if sp == nil {
		return refuse(leasehold.Lost, "lease %q%s is not held: it never was, or it ended long ago", f.Lease, had).Err
	}
	ended, ok := sp.claims.Ended(f.Lease)
	if !ok || !t.sees(sp, ended.ID, ended.Resource) || t.permit != nil && ended.Resource == "" {
		return unknownFence(sp, f)
	}
	if ended.Token != 0 {
		had = fmt.Sprintf(" with token %d", ended.Token)
	}
	message := fmt.Sprintf("lease %q%s on %s has ended (%v)", f.Lease, had, ended.Resource, ended.How)
	if r := t.settle(sp, ended.Resource); r != nil && r.Claim != "" {
		next, _ := sp.claims.Get(r.Claim)
		message += fmt.Sprintf(", and %s holds it with token %d", t.nameOf(sp, next), next.Token)
	}
	return refuse(leasehold.Lost, "%s: acquire again under another id", message).Err
}

// unknownFence is lostFence for an id that nobody knows, or that the asker may not know.
func unknownFence(sp *space, f Fence) *leasehold.Error {
	return refuse(leasehold.Lost, "lease %q%s is not held: it never was, or it ended long ago; the newest token is %d",
		f.Lease, hadToken(f), sp.token).Err
}

func hadToken(f Fence) string {
	if f.Token == 0 {
		return ""
	}
	return fmt.Sprintf(" with token %d", f.Token)
}
