package kernel

import (
	"strconv"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/pattern"
)

// A lease is over from the moment that ends it, whether or not a tick has collected it: see
// over. Every command therefore settles first what it touches, so that nothing is decided by a
// lease that is over: settle does so for a resource, touch for the claim of an id, liveSession
// for a session and liveRecord for a record. A tick does the same for what nobody touches.
// Because all of them ask isOver, it makes no difference to any answer whether a tick came before
// the command or after it.

// deadlineOf returns when a claim ends if nothing is done, its session included;
// 0 if it never does.
func (s *State) deadlineOf(sp *space, c *Claim) Time {
	at, _ := c.End()
	if c.Session == "" {
		return at
	}
	session, ok := sp.sessions.Get(c.Session)
	if ok && (at == 0 || session.Expires < at) {
		return session.Expires
	}
	// The session has ended, and its claims are collected bit by bit: each of them was over
	// when the session was, not when its turn comes.
	if left := sp.left(c.Session); !ok && left != nil && (at == 0 || left.At < at) {
		return left.At
	}
	return at
}

// isOver reports whether a claim is over at the stamp, collected or not; and if so,
// when and by what it ended. A session that ends at the very moment of the claim's
// own end is not the reason: a break that was promised is called a break. A waiter is over, too, from the
// moment that its right was taken away.
func (s *State) isOver(sp *space, claim *Claim) (Time, leasehold.How, bool) {
	at, how, over := s.isOverByTime(sp, claim)
	if w := s.withdrawal; w != nil && claim.Waiting() && (!over || w.At < at) && s.withdrawn(sp, claim) {
		return w.At, leasehold.ByBreak, true
	}
	return at, how, over
}

func (s *State) isOverByTime(sp *space, claim *Claim) (Time, leasehold.How, bool) {
	at, how := claim.End()
	over := at != 0 && at <= s.now
	if claim.Session == "" {
		return at, how, over
	}
	session, ok := sp.sessions.Get(claim.Session)
	if ok && session.Expires <= s.now && (!over || session.Expires < at) {
		return session.Expires, leasehold.SessionExpired, true
	}
	if left := sp.left(claim.Session); !ok && left != nil && (!over || left.At < at) {
		return left.At, left.How, true
	}
	return at, how, over
}

// settleClaim ends a claim that is over at the stamp, by whatever ended it first,
// and reports whether it did.
func (t *turn) settleClaim(sp *space, claim *Claim) bool {
	at, how, over := t.isOver(sp, claim)
	if !over {
		return false
	}
	session, alive := sp.sessions.Get(claim.Session)
	switch {
	// The claim is only the first that anybody looked at. The session ends as a whole, in one
	// entry, or a reader could see half of it.
	case how == leasehold.SessionExpired && alive:
		t.endSession(sp, session, how)
		if still, ok := sp.claims.Get(claim.ID); ok { // there is too much bound to the session
			t.endLeft(sp, still)
		}
	case !alive && sp.left(claim.Session) != nil:
		t.endLeft(sp, claim)
	default:
		t.finish(sp, t.dismissed(claim, how), end{how: how, at: at})
	}
	return true
}

// settle ends what is over on a resource at the stamp, grants what is free then to the first
// live waiters, and returns the resource; nil if nothing is known of it.
func (t *turn) settle(sp *space, path string) *Resource {
	inArea := pattern.In(path)
	if inArea {
		t.settleArea(sp, path)
	}
	r, ok := sp.resources.Get(path)
	if !ok {
		return nil
	}
	if sp.waitsForTasks(path) {
		t.passTime()
	}
	if claim, ok := sp.claims.Get(r.Claim); ok {
		t.settleClaim(sp, claim)
	} else if !t.settleSharers(sp, r) && !t.isQuiet(sp, path) && !inArea {
		// Where a lease ended, its end has woken the queue already. Where none did, a rest may
		// still have run out by time, and no claim says so: look at the queue anyway. In an area, time
		// has done all that was due.
		t.wake(wakeup{space: sp, path: path, byTime: true})
	}
	r, _ = sp.resources.Get(path)
	return r
}

// settleSharers ends the leases on slots of a resource that are over at the stamp, and reports
// whether there were any. Thousands may share a resource, so it does not look before the first
// of them can be over, nor while nothing at all is; a lease that is renewed is looked at once
// in a TTL. Looking is not counted as work, since when it happens depends on what this node
// happens to have in memory, and all nodes must count the same; what it ends is counted. If
// that would be too much for the entry, it ends a part and sets unsettled. While a session is
// collected all nodes look, once in an entry, and it is counted.
func (t *turn) settleSharers(sp *space, r *Resource) bool {
	if r.Sharers() == 0 || t.collected(sp, r) {
		return false
	}
	var over []*Claim
	var soonest Shares
	all, most := true, t.work.left()/EndCost
	sp.holders(r, func(c *Claim) bool {
		// A lease that is over is only listed here: ending it changes the very tree that is
		// being walked.
		if _, _, ended := t.isOver(sp, c); ended {
			if all = len(over) < most; !all {
				return false
			}
			over = append(over, c)
		} else {
			soonest.hasten(t.deadlineOf(sp, c))
		}
		return true
	})
	// The soonest end is stored before the leases end, not after: each end may let a waiter in,
	// whose grant makes it sooner again, and that must not be overwritten.
	if all {
		later, more, shares := *r, *r.More, *r.More.Shares
		shares.soonest = soonest.soonest
		more.Shares = &shares
		later.More = &more
		sp.resources.Set(r.Path, &later)
	}
	if sp.leaving() {
		t.work.take(r.Sharers() / sharersPerUnit)
		if all {
			t.settled(sp, r.Path)
		}
	}
	for _, c := range over {
		if _, still := sp.claims.Get(c.ID); still { // another's session may have taken it
			t.settleClaim(sp, c)
		}
	}
	t.unsettled = t.unsettled || !all
	return len(over) > 0
}

// sharersPerUnit is how many of those who share a resource are looked at in a unit of work.
const sharersPerUnit = 8

// settled notes that of those who share a resource nobody is over whom this entry has not ended, until another session
// leaves something behind.
func (t *turn) settled(sp *space, path string) {
	t.looked.Insert(lookedKey(sp, path))
}

func lookedKey(sp *space, path string) string {
	return strconv.Itoa(len(sp.name)) + ":" + sp.name + path
}

// collected reports whether none of those who share a resource can be over at the stamp. A
// session that is still being collected is a reason to look, whatever the deadlines say.
func (t *turn) collected(sp *space, r *Resource) bool {
	soonest := r.more().shares().soonest
	return (soonest == 0 || soonest > t.now || t.nothingDue()) &&
		(!sp.leaving() || t.looked.Contains(lookedKey(sp, r.Path)))
}

// touch returns the claim of an id after what is over at the stamp has ended, and
// nil if it is gone.
func (t *turn) touch(sp *space, id string) *Claim {
	if sp == nil {
		return nil
	}
	claim, ok := sp.claims.Get(id)
	if !ok {
		return nil
	}
	if claim.Waiting() {
		// Its turn may have come: only the resource tells.
		for _, c := range t.together(sp, claim) {
			t.settle(sp, c.Resource)
		}
		claim, ok = sp.claims.Get(id)
		if !ok {
			return nil
		}
	}
	if t.settleClaim(sp, claim) {
		return nil
	}
	return claim
}
