package core

import (
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
)

// A write is what a record is to become.
type write struct {
	path, value, session string
	large                *leasehold.Large
	keep                 int    // as in PutRecord
	holder               string // who writes, if that is known
}

func (w *write) bytes() int { return len(w.path) + record.ValueBytes(w.value, w.large) }

// liveRecord returns a record after its session has ended if that is over at the
// stamp; nil if there is none.
func (s *State) liveRecord(sp *space, path string) *leasehold.Record {
	if sp == nil {
		return nil
	}
	r, _ := sp.records.Get(path)
	if r == nil || r.Session == "" || s.liveSession(sp, r.Session) != nil {
		return r
	}
	if r, still := sp.records.Get(path); still { // there is too much bound to its session
		s.ends++
		s.dropRecord(sp, r, sp.left(r.Session).How)
	}
	return nil
}

// recordOver reports whether the session of a record is over at the stamp: the record is
// not there any more, collected or not.
func (s *State) recordOver(sp *space, r *leasehold.Record) bool {
	if r.Session == "" {
		return false
	}
	session, ok := sp.sessions.Get(r.Session)
	return !ok || session.Expires <= s.now
}

// setRecord makes a record, or changes it, under the token of its writer; 0 if it
// has none.
func (s *State) setRecord(sp *space, w write, token leasehold.Token) *leasehold.Record {
	s.work.take(recordCost)
	old, _ := sp.records.Get(w.path)
	r := &leasehold.Record{Path: w.path, Value: w.value, Large: w.large, Session: w.session, Mod: s.revise(sp), Version: 1, Token: token}
	r.Create = r.Mod
	// What is named anew comes before what is given up: a value that is in both is never
	// without a name.
	s.name(r.Large)
	if old != nil {
		r.Create, r.Version, r.Token = old.Create, old.Version+1, max(old.Token, token)
	}
	s.shelve(sp, old, w)
	if old != nil {
		s.uncount(sp, old)
	}
	sp.records.Set(r.Path, r)
	s.records++
	s.recordBytes += recordBytes(r)
	if r.Session != "" {
		sp.boundRecords.Set(binding{r.Session, r.Path})
		countRecord(sp, r.Session, 1)
	}
	s.emit(sp, &leasehold.Event{Kind: leasehold.RecordPut, Resource: r.Path, Token: token, Session: r.Session, Record: r, Previous: old})
	return r
}

// dropRecord deletes a record. how is zero unless the end of its session does it.
func (s *State) dropRecord(sp *space, r *leasehold.Record, how leasehold.How) {
	sp.records.Delete(r.Path)
	s.shelveLast(sp, r)
	s.uncount(sp, r)
	s.emit(sp, &leasehold.Event{Kind: leasehold.RecordDeleted, How: how, Resource: r.Path, Session: r.Session, Previous: r})
}

// uncount takes a record out of all accounts.
func (s *State) uncount(sp *space, r *leasehold.Record) {
	s.records--
	s.recordBytes -= recordBytes(r)
	s.unname(r.Large)
	if r.Session != "" {
		sp.boundRecords.Delete(binding{r.Session, r.Path})
		countRecord(sp, r.Session, -1)
	}
}

func recordBytes(r *leasehold.Record) int { return len(r.Path) + record.ValueBytes(r.Value, r.Large) }

// withoutValue is a record as answers show it whose receiver has the value: they are
// remembered for ten minutes, and a hundred thousand values would be too much. The name
// of a large value stays.
func withoutValue(r *leasehold.Record) *leasehold.Record {
	shown := *r
	shown.Value = ""
	return &shown
}

// roomFor tells why writes, to different paths, can not all be made: because of their
// sessions, or because there would be too much.
func (s *State) roomFor(sp *space, writes []write) *leasehold.Error {
	records, size, bound, kept := s.records, s.recordBytes, 0, s.kept()
	for i := range writes {
		w := &writes[i]
		old := &leasehold.Record{}
		records++
		if sp != nil {
			if found, ok := sp.records.Get(w.path); ok {
				old = found
				records--
			}
		}
		more, bytes := s.shelving(sp, old, w)
		kept += more
		size += w.bytes() - recordBytes(old) + bytes
		if w.session == "" {
			continue
		}
		session := s.liveSession(sp, w.session)
		if session == nil {
			return s.noSession(sp, w.session).Err
		}
		if w.session != old.Session {
			bound++ // as if all were of this session: few transactions are so large
		}
		if session.Claims+bound > leasehold.MaxClaimsPerSession {
			return refuse(leasehold.Limited, "session %q has %d leases, waiters and records already, which is as many as it can have", w.session, session.Claims).Err
		}
	}
	switch {
	case records > leasehold.MaxRecords && records > s.records:
		return refuse(leasehold.Limited, "there are %d records already, which is as many as there can be: delete some", s.records).Err
	case size > leasehold.MaxRecordBytes && size > s.recordBytes:
		return refuse(leasehold.Limited, "records have %d bytes already, and can have %d: delete some", s.recordBytes, leasehold.MaxRecordBytes).Err
	case kept > leasehold.MaxVersions && kept > s.kept():
		return refuse(leasehold.Limited, "there are %d former versions of records already, which is as many as there can be: let records keep fewer", s.versions).Err
	}
	return nil
}

// unlessAsExpected refuses a write to a record that is not as its writer saw it.
func unlessAsExpected(old *leasehold.Record, path string, revision leasehold.Revision, absent bool) *leasehold.Error {
	switch {
	case absent && old != nil:
		return refuse(leasehold.Refused, "%s is there already, at revision %d", path, old.Mod).Err
	case revision == 0:
		return nil
	case old == nil:
		return refuse(leasehold.Refused, "%s is not there, and was expected at revision %d: read it again", path, revision).Err
	case old.Mod != revision:
		return refuse(leasehold.Refused, "%s is at revision %d, and was expected at %d: read it again", path, old.Mod, revision).Err
	}
	return nil
}

// passFence returns the token that a write is made under, 0 without a fence; or why
// the writer may not write any more.
func (s *State) passFence(sp *space, old *leasehold.Record, path string, f Fence) (leasehold.Token, *leasehold.Error) {
	switch {
	case f == Fence{}:
		return 0, nil
	case f.Lease != "":
		return s.leaseFence(sp, f)
	case sp == nil || f.Token > sp.token:
		return 0, refuse(leasehold.Refused, "token %d was never granted in this namespace", f.Token).Err
	case old != nil && f.Token < old.Token:
		return 0, refuse(leasehold.Lost, "token %d is too old for %s, which was written under token %d: acquire again", f.Token, path, old.Token).Err
	}
	return f.Token, nil
}

func (s *State) leaseFence(sp *space, f Fence) (leasehold.Token, *leasehold.Error) {
	claim := s.touch(sp, f.Lease)
	switch {
	case claim == nil:
		return 0, s.lostFence(sp, f)
	case claim.waiting():
		return 0, refuse(leasehold.Lost, "lease %q still waits for %s: it protects nothing yet", f.Lease, claim.Resource).Err
	case f.Token != 0 && f.Token != claim.Token:
		return 0, refuse(leasehold.Lost, "lease %q on %s has token %d and not %d: acquire again", f.Lease, claim.Resource, claim.Token, f.Token).Err
	}
	return claim.Token, nil
}

// lostFence tells who writes under a lease that is over what it had, and who has it
// now. However long ago it ended, the writer is late.
func (s *State) lostFence(sp *space, f Fence) *leasehold.Error {
	had := ""
	if f.Token != 0 {
		had = fmt.Sprintf(" with token %d", f.Token)
	}
	if sp == nil {
		return refuse(leasehold.Lost, "lease %q%s is not held: it never was, or it ended long ago", f.Lease, had).Err
	}
	ended, ok := sp.ended.Get(f.Lease)
	if !ok {
		return refuse(leasehold.Lost, "lease %q%s is not held: it never was, or it ended long ago; the newest token is %d", f.Lease, had, sp.token).Err
	}
	if ended.Token != 0 {
		had = fmt.Sprintf(" with token %d", ended.Token)
	}
	message := fmt.Sprintf("lease %q%s on %s has ended (%v)", f.Lease, had, ended.Resource, ended.How)
	if r := s.settle(sp, ended.Resource); r != nil && r.Claim != "" {
		next, _ := sp.claims.Get(r.Claim)
		message += fmt.Sprintf(", and %s holds it with token %d", next.Holder, next.Token)
	}
	return refuse(leasehold.Lost, "%s: acquire again under another id", message).Err
}
