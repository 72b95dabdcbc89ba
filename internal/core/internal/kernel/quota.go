package kernel

import (
	"cmp"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/record"
)

// Quotas bound how much one principal, or one namespace, has. Like a cap, a quota refuses what is new and ends nothing;
// no renewal, release, break or hand-over looks at it. A waiter counts for the quota of leases too: it becomes one
// when its turn comes, and nobody asks it again: so a quota of leases is never exceeded by waiting.
//
// What a principal has is counted as it comes and goes, in all namespaces together. Counts are derived from the owners
// of things, and a snapshot does not have them.

// A tally is how much of everything somebody has.
type tally struct {
	leases, waiters, sessions, records int
	bytes                              int // of records and their former versions, large values in full
}

// tallies are what each principal has.
type tallies struct{ of btree.Map[string, tally] }

// add counts more of what an owner has, or less; nil: nobody has it.
func (all *tallies) add(owner *access.Owner, more tally) {
	if owner == nil || more == (tally{}) {
		return
	}
	t := all.get(owner.Principal)
	t = tally{t.leases + more.leases, t.waiters + more.waiters, t.sessions + more.sessions, t.records + more.records,
		t.bytes + more.bytes}
	if t == (tally{}) {
		all.of.Delete(owner.Principal)
		return
	}
	all.of.Set(owner.Principal, t)
}

func (all *tallies) get(principal string) tally {
	t, _ := all.of.Get(principal)
	return t
}

// countClaim counts a claim that came, was granted or went. Either of the two, what it was and what it is, may be nil.
func (t *turn) countClaim(sp *space, before, after *Claim) {
	if sp.claimOwners.Len() == 0 || before != nil && after != nil && before.Waiting() == after.Waiting() {
		return
	}
	var more tally
	for _, one := range [2]struct {
		claim *Claim
		n     int
	}{{before, -1}, {after, 1}} {
		switch {
		case one.claim == nil:
		case one.claim.Waiting():
			more.waiters += one.n
		default:
			more.leases += one.n
		}
	}
	t.tallies.add(sp.claimOwner(cmp.Or(before, after).ID), more)
}

// ownedBytes returns the bytes of a record that somebody may own.
func (sp *space) ownedBytes(path string) int {
	if sp.recordOwners.Len() == 0 {
		return 0
	}
	return sp.records.BytesOf(path)
}

// ownRecord notes whose a new record is, and counts what a write made of it. The owner of a record answers for
// whatever others write to it.
func (t *turn) ownRecord(sp *space, path string, isNew bool, before int) {
	if !isNew {
		t.tallies.add(sp.recordOwner(path), tally{bytes: sp.ownedBytes(path) - before})
		return
	}
	if owner := t.permit.OwnerOf(access.RecordWrite, sp.name, path, ""); owner != nil {
		sp.recordOwners.Set(path, owner)
		// The former versions of a deleted record belong to who makes it anew.
		t.tallies.add(owner, tally{records: 1, bytes: sp.records.BytesOf(path)})
	}
}

// disownRecord counts a record that is about to be deleted, and returns whose it was.
func (t *turn) disownRecord(sp *space, path string) *access.Owner {
	owner, ok := sp.recordOwners.Delete(path)
	if ok {
		t.tallies.add(owner, tally{records: -1, bytes: -sp.records.BytesOf(path)})
	}
	return owner
}

// withinQuotas refuses what would be more than the asker, or a namespace, may have.
func (l *look) withinQuotas(namespace string, more tally) *leasehold.Error {
	if l.permit == nil {
		return nil
	}
	if failure := l.withinOwn(more); failure != nil {
		return failure
	}
	return l.withinNamespace(namespace, more)
}

func (l *look) withinOwn(more tally) *leasehold.Error {
	who := l.permit.Asker.Principal
	if q := l.policy.QuotaOfPrincipal(who); q != nil {
		return within(q, who, l.tallies.get(who), more)
	}
	return nil
}

func (s *State) withinNamespace(namespace string, more tally) *leasehold.Error {
	if q := s.policy.QuotaOfNamespace(namespace); q != nil {
		return within(q, "namespace "+namespace, s.space(namespace).tally(), more)
	}
	return nil
}

// tally counts everything in a namespace, with an owner or without.
func (sp *space) tally() tally {
	if sp == nil {
		return tally{}
	}
	waiters := sp.queue.Len()
	records, bytes := sp.records.Size()
	return tally{sp.claims.Len() - waiters, waiters, sp.sessions.Len(), records, bytes}
}

// Use is how much somebody has of what quotas limit. As for quotas, those who wait count as leases too.
type Use struct{ Leases, Waiters, Sessions, Records, Bytes int }

// UseOf returns how much there is of what a quota limits: what a principal has, or what a namespace has.
func (v *view) UseOf(q *access.Quota) Use {
	t := v.s.tallies.get(q.Principal)
	if q.Namespace != "" {
		t = v.s.space(q.Namespace).tally()
	}
	return Use{t.leases + t.waiters, t.waiters, t.sessions, t.records, t.bytes}
}

// within refuses what would be more than a quota allows.
func within(q *access.Quota, whose string, used, more tally) *leasehold.Error {
	for _, kind := range [...]struct {
		name, do   string
		used, more int
		most       int64
		waiting    int
	}{
		{"leases", "release some", used.leases + used.waiters, more.leases + more.waiters, q.Leases, used.waiters},
		{"waiters", "wait for fewer", used.waiters, more.waiters, q.Waiters, 0},
		{"sessions", "close some", used.sessions, more.sessions, q.Sessions, 0},
		{"records", "delete some", used.records, more.records, q.Records, 0},
		{"bytes", "delete some records", used.bytes, more.bytes, q.Bytes, 0},
	} {
		if kind.most == 0 || kind.more <= 0 || int64(kind.used+kind.more) <= kind.most {
			continue
		}
		detail := ""
		if kind.waiting > 0 {
			detail = fmt.Sprintf(" (%d of them still waiting)", kind.waiting)
		}
		if int64(kind.used) < kind.most {
			detail += fmt.Sprintf(", and %d more were asked for", kind.more)
		}
		return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf(
			"%s has %d of %d %s%s: %s, or ask an admin to raise the quota with leasehold access quota", whose,
			kind.used, kind.most, kind.name, detail, kind.do)}
	}
	return nil
}

// claimsWithinQuotas is withinQuotas for leases, or for those who wait for them.
func (l *look) claimsWithinQuotas(namespace string, n int, wait bool) *leasehold.Error {
	if wait {
		return l.withinQuotas(namespace, tally{waiters: n})
	}
	return l.withinQuotas(namespace, tally{leases: n})
}

// writesWithinQuotas is withinQuotas for writes, to different paths. What makes a record of somebody else larger counts
// for its owner.
func (l *look) writesWithinQuotas(namespace string, writes []record.Write) *leasehold.Error {
	if l.permit == nil {
		return nil
	}
	sp := l.space(namespace)
	var all, own tally
	var others btree.Map[string, int] // bytes
	for i := range writes {
		w := &writes[i]
		g := growth(sp, w)
		all.records, all.bytes = all.records+g.Records, all.bytes+g.Bytes
		if g.Records > 0 {
			own.records, own.bytes = own.records+1, own.bytes+g.Bytes+g.Former
			continue
		}
		owner := sp.recordOwner(w.Path)
		switch {
		case owner == nil:
		case owner.Principal == l.permit.Asker.Principal:
			own.bytes += g.Bytes
		default:
			grown, _ := others.Get(owner.Principal)
			if grown += g.Bytes; !l.mayGrow(owner, grown) {
				return refuse(leasehold.Limited, "the owner of %s has used up its quota of bytes: delete some of its "+
					"records, or ask an admin to raise the quota with leasehold access quota", w.Path).Err
			}
			others.Set(owner.Principal, grown)
		}
	}
	if failure := l.withinOwn(own); failure != nil {
		return failure
	}
	return l.withinNamespace(namespace, all)
}

// growth is how much more there would be after a write. The namespace may be nil.
func growth(sp *space, w *record.Write) record.Growth {
	if sp == nil {
		return (*record.Table)(nil).Growth(w)
	}
	return sp.records.Growth(*w)
}

// mayGrow reports whether the records of somebody may have more bytes. The asker may not know how many they have.
func (s *State) mayGrow(owner *access.Owner, bytes int) bool {
	q := s.policy.QuotaOfPrincipal(owner.Principal)
	return q == nil || within(q, "", s.tallies.get(owner.Principal), tally{bytes: bytes}) == nil
}

// tallies recounts what everybody has.
func (c *checker) tallies(s *State) {
	var found tallies
	s.spaces.Scan(func(_ string, sp *space) bool {
		sp.claimOwners.Scan(func(id string, owner *access.Owner) bool {
			if claim, ok := sp.claims.Get(id); ok && claim.Waiting() {
				found.add(owner, tally{waiters: 1})
			} else {
				found.add(owner, tally{leases: 1})
			}
			return true
		})
		sp.sessions.Scan(func(_ string, session *Session) bool {
			found.add(session.Owner, tally{sessions: 1})
			return true
		})
		sp.recordOwners.Scan(func(path string, owner *access.Owner) bool {
			found.add(owner, tally{records: 1, bytes: sp.records.BytesOf(path)})
			return true
		})
		return true
	})
	c.that(found.of.Len() == s.tallies.of.Len(), "%d principals have something, %d are counted",
		found.of.Len(), s.tallies.of.Len())
	found.of.Scan(func(principal string, t tally) bool {
		counted := s.tallies.get(principal)
		c.that(t == counted, "%s has %+v, and %+v are counted", principal, t, counted)
		return true
	})
}
