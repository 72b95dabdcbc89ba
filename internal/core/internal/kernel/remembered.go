package kernel

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
)

// What ended is remembered for as long as a client may still ask about it, in tables that are
// bounded. Forgetting is done a little in every entry and decided by the state alone, so that
// all replicas remember the same things.

// An EndedClaim remembers how the claim of an id ended.
type EndedClaim struct {
	ID       string
	Resource string
	Holder   string
	Token    leasehold.Token // 0: it never was a lease
	How      leasehold.How
	At       Time
	Next     string // with IDChanged: the id it goes on under
	Said     uint64 // what was said of the task as it ended, in short; 0: nothing
	Owner    *access.Owner
}

// An EndedSession remembers how a session ended.
type EndedSession struct {
	ID  string
	How leasehold.How
	At  Time

	Owner *access.Owner
}

// An endingRef is one ended id in the order in which they are forgotten. The order spans all namespaces, since the
// limit does.
type endingRef struct {
	id      string
	at      Time
	order   uint64
	session bool
}

// endClaim replaces the claim of an id by how it ended, and returns whose it was.
func (t *turn) endClaim(sp *space, e *EndedClaim) *access.Owner {
	if before := sp.claims.End(e); before != nil {
		t.totals.claims--
		t.countClaim(sp, before, nil)
		sp.moveClaimEnd(before, nil)
		e.Owner, _ = sp.claimOwners.Delete(e.ID)
	}
	t.pushEnding(sp, endingRef{id: e.ID, at: e.At})
	return e.Owner
}

func (t *turn) tombstoneSession(sp *space, e *EndedSession) {
	sp.endedSessions.Set(e.ID, e)
	t.pushEnding(sp, endingRef{id: e.ID, at: e.At, session: true})
}

// pushEnding adds an id to those that ended, as the newest.
func (t *turn) pushEnding(sp *space, ref endingRef) {
	t.endingSeq++
	ref.order = t.endingSeq
	sp.endings.push(ref)
	t.totals.endings++
	if sp.endings.len() == 1 {
		t.ranked(sp, oldestEnding)
	}
	t.ranked(sp, mostEndings)
}

// forgetEnding forgets the oldest ended id of a namespace.
func (t *turn) forgetEnding(sp *space) {
	if ref := sp.endings.front(); ref.session {
		sp.endedSessions.Delete(ref.id)
	} else {
		sp.claims.forget(ref.id)
	}
	sp.endings.pop()
	t.totals.endings--
	t.ranked(sp, oldestEnding)
	t.ranked(sp, mostEndings)
}

// forget drops what need no longer be remembered, at most the given number of things, so that
// no command pays for a long silence before it.
func (t *turn) forget(most int) {
	for ; most > 0 && t.forgetOne(); most-- {
	}
}

func (t *turn) forgetOne() bool {
	forgot := false
	if sp := t.mayForgetEnding(); sp != nil {
		t.forgetEnding(sp)
		forgot = true
	}
	if sp := t.mayForgetOutcome(); sp != nil {
		t.forgetOutcome(sp)
		forgot = true
	}
	if t.idle.Len() > maxIdle {
		t.forgetIdle()
		forgot = true
	}
	return t.forgetAlarm() || forgot
}

// mayForgetEnding returns the namespace whose oldest ended id may be forgotten: it is old
// enough, or there are too many. Without one it returns nil.
func (s *State) mayForgetEnding() *space {
	sp := s.rankings[oldestEnding].first()
	if sp == nil {
		return nil
	}
	return s.mayForget(sp, sp.endings.front().at, s.totals.endings > maxEnded, mostEndings)
}

// mayForgetOutcome is mayForgetEnding for answers.
func (s *State) mayForgetOutcome() *space {
	sp := s.rankings[oldestOutcome].first()
	if sp == nil {
		return nil
	}
	return s.mayForget(sp, sp.answered.front().at, s.totals.outcomes > maxOutcomes, mostOutcomes)
}

// mayForget returns the namespace that loses its oldest of something; nil if none does. What is
// old enough goes first, wherever it is. If there is too much, the namespace that has most
// loses some.
func (s *State) mayForget(oldest *space, at Time, tooMuch bool, most orderBy) *space {
	switch {
	case at.Add(memory) <= s.now:
		return oldest
	case tooMuch:
		return s.rankings[most].first()
	}
	return nil
}

// forgetIdle drops the resource that has been idle longest. If it rests after an unclean end it
// goes to the back of the list instead: to forget the rest would be to grant the resource too
// early. So does one whose rest is over if a task, or a waiter for a name that overlaps it, waits
// for the tick that says so.
func (t *turn) forgetIdle() {
	_, oldest, _ := t.idle.PopMin()
	sp := t.space(oldest.namespace)
	r, _ := sp.resources.Delete(oldest.path) // mostly for good: the longest idle one is searched for once
	if more := r.more(); len(more.resting(t.now)) == 0 && r.timer == nil {
		t.dropped(sp, r)
		return
	}
	resting := *r
	resting.Idle = 0
	t.setResource(sp, &resting)
}
