package kernel

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/pattern"
)

// Check recounts everything that the state keeps as a count, an index or a timer, and compares.
// Such copies make commands fast, and are what goes wrong when a change forgets one of them. It
// shares no code with what keeps them, except small predicates such as fits.

// Check returns every way in which the state contradicts itself; nil if there is
// none. It looks at everything, and is therefore for tests and for operators.
func (s *State) Check() error {
	c, reads := &checker{}, s.reader(&work{most: math.MaxInt})
	c.records = s.records.Checker(c.that)
	idle, events := 0, 0
	s.spaces.Scan(func(_ string, sp *space) bool {
		c.space(reads, sp)
		events += sp.history.len()
		sp.resources.Scan(func(_ string, r *Resource) bool {
			if r.Idle != 0 {
				idle++
			}
			return true
		})
		return true
	})
	c.that(idle == s.idle.Len(), "%d resources are idle, %d are listed as idle", idle, s.idle.Len())
	chores := 0
	s.spaces.Scan(func(_ string, sp *space) bool {
		chores += sp.chores.Len()
		return true
	})
	c.that(chores == s.chores.Len(), "%d chores were put off, %d are in order", chores, s.chores.Len())
	c.that(s.totals.historyBytes <= maxHistory, "history has %d bytes", s.totals.historyBytes)
	c.totals(s)
	c.records.All()
	s.alarms.CheckAll(s.totals.alarms, c.that)
	c.restored(s)
	c.access(s)
	c.tallies(s)
	c.revocations(s)
	c.withdrawal(s)
	s.learning.CheckAll(s.totals.kinds, c.that)
	s.reservations.CheckAll(s.totals.reservations, c.that)
	c.heap(s)
	return errors.Join(c.found...)
}

// totals checks what is counted over all namespaces, and that each namespace is in the orders
// by which it loses something. A namespace that is missing from an order would never lose
// anything, and the others would lose too much.
func (c *checker) totals(s *State) {
	var found totals
	var listed [orders]int
	s.spaces.Scan(func(_ string, sp *space) bool {
		found.claims, found.waiters = found.claims+sp.claims.Len(), found.waiters+sp.queue.Len()
		found.sessions += sp.sessions.Len()
		found.kinds += s.learning.Count(sp.name)
		found.alarms += s.alarms.Count(sp.name)
		reserved, _ := s.reservations.Count(sp.name)
		found.reservations += reserved
		found.endings, found.outcomes = found.endings+sp.endings.len(), found.outcomes+sp.answered.len()
		bytes := 0
		for _, e := range sp.history.items {
			bytes += weight(e)
		}
		c.that(bytes == sp.historyBytes, "%s: history has %d bytes, %d are counted", sp.name, bytes, sp.historyBytes)
		found.historyBytes += bytes
		ended := sp.claims.endedLen() + sp.endedSessions.Len()
		c.that(ended == sp.endings.len(), "%s: %d ids ended, %d are listed", sp.name, ended, sp.endings.len())
		c.ids(sp)
		for by := range orders {
			if sp.uses(by) > 0 {
				listed[by]++
			}
			c.that(sp.uses(by) > 0 == (sp.places[by] > 0), "%s has %d in order %d, and the place %d", sp.name,
				sp.uses(by), by, sp.places[by])
		}
		return true
	})
	c.that(found == s.totals, "there are %+v, %+v are counted", found, s.totals)
	for by := range orders {
		r := s.rankings[by]
		c.that(len(r) == listed[by], "%d namespaces stand in order %d, which has %d", listed[by], by, len(r))
		for i, sp := range r {
			c.that(sp.places[by] == i+1, "%s thinks it is at %d of order %d, and is at %d", sp.name, sp.places[by], by,
				i+1)
			c.that(i == 0 || !by.before(sp, r[(i-1)/2]), "%s comes before %s in order %d", sp.name, r[(i-1)/2].name, by)
		}
	}
}

type checker struct {
	found   []error
	records RecordChecker
}

// that records a contradiction. One mistake can show in a million places; a hundred of them
// tell enough.
func (c *checker) that(ok bool, format string, args ...any) {
	if !ok && len(c.found) < 100 {
		c.found = append(c.found, fmt.Errorf(format, args...))
	}
}

// A census is what a checker counts in a namespace in one pass, to compare it with the counts
// that sessions and resources keep themselves.
type census struct {
	waiting map[string]int    // by resource
	taken   map[string]Shares // by resource
	bound   map[string]int    // what each session would take with it
	records map[string]int    // the records among that
}

// space checks one namespace. Claims come first, because they fill the census.
func (c *checker) space(s *look, sp *space) {
	n := census{map[string]int{}, map[string]Shares{}, map[string]int{}, map[string]int{}}
	c.claims(s, sp, n)
	c.records.Space(Namespace{s.State, sp}, sp.records, func(session string) {
		n.bound[session]++
		n.records[session]++
	})
	c.sessions(sp, n)
	c.chores(s, sp)
	c.resources(s, sp, n.waiting)
	c.shares(s, sp, n.taken)
	sp.pools.Check(Namespace{s.State, sp}, sp.units, c.that)
	sp.areas.Check(Namespace{s.State, sp}, c.that)
	s.learning.Check(Namespace{s.State, sp}, c.that)
	sp.tasks.Check(Namespace{s.State, sp}, c.that)
	s.alarms.Check(Namespace{s.State, sp}, c.that)
	s.reservations.Check(Namespace{s.State, sp}, c.that)
	c.history(sp)
}

// ids checks what is known of lease ids, and the order in which they are forgotten.
func (c *checker) ids(sp *space) {
	alive := 0
	sp.claims.known.Scan(func(_ uint64, k knownID) bool {
		c.that((k.claim == nil) != (k.ended == nil), "%s/%s has ended and is alive, or neither", sp.name, k.id())
		found, _ := sp.claims.find(k.id())
		c.that(found == k, "%s/%s is not found by its id", sp.name, k.id())
		if k.claim != nil {
			alive++
		}
		return true
	})
	written := 0
	sp.claimPieces(func(Piece) bool { written++; return true })
	c.that(written == alive, "%s: there are %d claims, and %d are in a snapshot", sp.name, alive, written)
	c.that(alive == sp.claims.alive, "%s: there are %d claims, and %d are counted", sp.name, alive, sp.claims.alive)
	for i := 1; i < sp.endings.len(); i++ {
		c.that(sp.endings.at(i-1).order < sp.endings.at(i).order, "%s: ended id %d of the list comes after the next",
			sp.name, i)
	}
}

// claims checks leases and waiters, and counts them. Two leases with one token would be the
// worst that can be found here: no guard could tell them apart.
func (c *checker) claims(s *look, sp *space, n census) {
	bound, tokens := 0, map[leasehold.Token]string{}
	sp.claims.Scan(func(id string, claim *Claim) bool {
		r, ok := sp.resources.Get(claim.Resource)
		if c.that(ok, "%s/%s: its resource %q is unknown", sp.name, id, claim.Resource); !ok {
			r = &Resource{}
		}
		foreign := claim.terms().Foreign
		c.that(len(foreign) <= leasehold.MaxForeign, "%s/%s has the foreign id %q", sp.name, id, foreign)
		if claim.Session != "" {
			bound++
			n.bound[claim.Session]++
			_, alive := sp.sessions.Get(claim.Session)
			c.that(alive || sp.left(claim.Session) != nil, "%s/%s is bound to session %q, which is not there", sp.name,
				id, claim.Session)
			_, ok := sp.bound.Get(binding{claim.Session, id})
			c.that(ok, "%s/%s would not end with its session", sp.name, id)
		}
		if claim.Waiting() {
			n.waiting[claim.Resource]++
			same, ok := sp.queue.Get(claim)
			c.that(ok && same == claim, "%s/%s waits, but stands in no queue", sp.name, id)
			c.together(sp, claim)
			c.that(claim.terms().Note == "", "%s/%s waits, and has a note", sp.name, id)
			return true
		}
		c.lease(s, sp, r, claim)
		shares := n.taken[claim.Resource]
		shares.used, shares.holders = shares.used+int(claim.Slots), shares.holders+1
		n.taken[claim.Resource] = shares
		c.that(claim.Token <= sp.token, "%s/%s has token %d above %d", sp.name, id, claim.Token, sp.token)
		other, twice := tokens[claim.Token]
		c.that(!twice, "%s/%s has the token %d of %s", sp.name, id, claim.Token, other)
		tokens[claim.Token] = id
		return true
	})
	c.that(bound == sp.bound.Len(), "%s: %d claims have sessions, %d bindings exist", sp.name, bound, sp.bound.Len())
}

// sessions checks that each session counts what is bound to it. A count that is too low would
// let a session have more than it may; one that is too high would refuse it for nothing.
func (c *checker) sessions(sp *space, n census) {
	sp.sessions.Scan(func(id string, session *Session) bool {
		c.that(session.Claims == n.bound[id], "%s: session %s counts %d claims and has %d", sp.name, id, session.Claims,
			n.bound[id])
		c.that(int(session.records) == n.records[id], "%s: session %s counts %d records and has %d", sp.name, id,
			session.records, n.records[id])
		return true
	})
}

// together checks that the waiters of one request agree with each other. If one of them had
// another place in its queue, the request could wait forever.
func (c *checker) together(sp *space, claim *Claim) {
	_, listed := sp.parties.Get(binding{claim.party(), claim.ID})
	c.that(listed, "%s/%s waits, and its party does not know", sp.name, claim.ID)
	same, joint := sp.joint.Get(claim)
	c.that(joint == (claim.Wait.With != nil) && (!joint || same == claim),
		"%s/%s: waits with %d others, listed among such: %v", sp.name, claim.ID, len(claim.Wait.With), joint)
	for _, id := range claim.Wait.With {
		other, ok := sp.claims.Get(id)
		c.that(ok && other.Waiting() && slices.Equal(other.Wait.With, claim.Wait.With) &&
			other.Wait.Order == claim.Wait.Order && other.Wait.Priority == claim.Wait.Priority,
			"%s/%s waits together with %s, which does not", sp.name, claim.ID, id)
	}
}

// lease checks that a resource knows of a lease on it, and that nobody assumes that the lease
// ends later than it does.
func (c *checker) lease(s *look, sp *space, r *Resource, claim *Claim) {
	if claim.Slots == 0 {
		c.that(r.Claim == claim.ID, "%s/%s is held, but %q is held by %q", sp.name, claim.ID, claim.Resource, r.Claim)
	} else {
		_, ok := sp.sharers.Get(sharer{claim.Resource, claim.Token, claim.ID})
		c.that(ok && r.Claim == "", "%s/%s has slots of %q, which is held by %q", sp.name, claim.ID, claim.Resource,
			r.Claim)
		soonest, end := r.more().shares().soonest, s.deadlineOf(sp, claim)
		_, alive := sp.sessions.Get(claim.Session)
		// While the session is collected, collected does not rely on soonest.
		c.that(end == 0 || !alive && claim.Session != "" || soonest != 0 && soonest <= end,
			"%s/%s ends at %d, before %d, when somebody looks", sp.name, claim.ID, end, soonest)
	}
	if sp.isPart(claim.Resource, claim.Slots) {
		sp.pools.CheckLease(Namespace{s.State, sp}, claim, c.that)
		return
	}
	for _, name := range claim.terms().Units {
		i := slices.IndexFunc(r.more().shares().Units, func(u Unit) bool {
			return u.Name == name && u.lease == claim.ID
		})
		c.that(i >= 0, "%s/%s has unit %q, which does not know", sp.name, claim.ID, name)
	}
}

// shares checks how many slots of each resource are taken, that an exclusive lease is alone,
// and that each unit and the lease that has it know of each other.
func (c *checker) shares(s *look, sp *space, taken map[string]Shares) {
	sharers := 0
	sp.resources.Scan(func(path string, r *Resource) bool {
		shares, found := r.more().shares(), taken[path]
		sharers += shares.holders
		if r.Claim != "" {
			c.that(found.holders == 1 && shares.holders == 0, "%s/%s is exclusive and has %d holders", sp.name, path,
				found.holders)
			return true
		}
		c.that(shares.used == found.used && shares.holders == found.holders,
			"%s/%s counts %d slots of %d holders, and has %d of %d",
			sp.name, path, shares.used, shares.holders, found.used, found.holders)
		c.that(shares.holders == 0 || shares.Capacity > 0, "%s/%s is shared, and nobody said by how many", sp.name,
			path)
		for _, unit := range shares.Units {
			claim, ok := sp.claims.Get(unit.lease)
			c.that(unit.lease == "" || ok && slices.Contains(claim.terms().Units, unit.Name),
				"%s/%s: unit %q is of %q, which does not know", sp.name, path, unit.Name, unit.lease)
		}
		return true
	})
	c.that(sharers == sp.sharers.Len(), "%s: resources count %d leases on slots, %d are listed", sp.name, sharers,
		sp.sharers.Len())
	waiters := sp.queue.Len()
	c.that(waiters == sp.parties.Len(), "%s: %d wait, parties have %d", sp.name, waiters, sp.parties.Len())
	c.that(len(s.State.hand.woken) == 0, "%s: hand-over is not finished", sp.name)
}

// free reports whether the first waiter of a resource should have been granted. Whatever is
// still allowed to stand in its way is excluded: a rest that is over but that no tick has ended
// yet, the queues after a quarantine, and a chore that has not come to this queue.
func (c *checker) free(s *look, sp *space, r *Resource) bool {
	if sp.isPool(r.Path) {
		return c.freeOfPool(s, sp, r)
	}
	head := first(sp, r.Path)
	if head == nil {
		return false // which is found elsewhere
	}
	if head.OnTask() {
		return c.freeTask(s, sp, head)
	}
	return c.freeFor(s, sp, head)
}

// freeFor reports whether a waiter, and those with it, should have been granted.
func (c *checker) freeFor(s *look, sp *space, head *Claim) bool {
	with := head.Wait.With
	if with == nil {
		with = []string{head.ID}
	}
	pools := poolsAmong(sp, s.together(sp, head))
	for _, id := range with {
		w, ok := sp.claims.Get(id)
		if ok && sp.isPart(w.Resource, w.Slots) {
			if !c.freeUnits(s, sp, w, pools) {
				return false
			}
			continue
		}
		if !ok || w.Early() || first(sp, w.Resource) != w || s.unresumed(sp, w.Resource) || sp.handsOver(w.Resource) {
			return false
		}
		if c.overlapped(s, sp, w) {
			return false
		}
		at, ok := sp.resources.Get(w.Resource)
		if !ok || len(at.more().Rests) > 0 || !s.fits(sp, at, w.Slots, leasehold.MaxCapacity) {
			return false
		}
	}
	return true
}

// resources checks what each resource says about itself; above all that none is free while
// somebody waits for it.
func (c *checker) resources(s *look, sp *space, waiting map[string]int) {
	queued := 0
	sp.resources.Scan(func(path string, r *Resource) bool {
		queued += r.Waiting
		c.that(r.Waiting == waiting[path], "%s/%s counts %d waiters and has %d", sp.name, path, r.Waiting,
			waiting[path])
		_, ok := sp.claims.Get(r.Claim)
		c.that(ok || r.Claim == "", "%s/%s is held by %q, which is not there", sp.name, path, r.Claim)
		if u := r.more().Usual; u != nil {
			err := u.WellFormed()
			c.that(err == nil, "%s/%s learned what cannot be: %v", sp.name, path, err)
		}
		idle := !r.Held() && r.Waiting == 0
		at, listed := s.idle.Get(r.Idle)
		c.that(idle == (r.Idle != 0), "%s/%s: idle is %v, its mark is %d", sp.name, path, idle, r.Idle)
		c.that(!idle || listed && at == place{sp.name, path}, "%s/%s is idle and not listed", sp.name, path)
		c.that(r.Waiting == 0 || !c.free(s, sp, r), "%s/%s is free although %d wait for it", sp.name, path, r.Waiting)
		return true
	})
	c.that(queued == sp.queue.Len(), "%s: resources count %d waiters, queues have %d", sp.name, queued, sp.queue.Len())
}

// history checks that the events of a namespace are in order and do not go beyond its revision.
func (c *checker) history(sp *space) {
	last := sp.lost
	for i, e := range sp.history.items {
		at := position{e.Revision, e.N}
		c.that(e.Namespace == sp.name, "%s: event %d.%d is of namespace %q", sp.name, e.Revision, e.N, e.Namespace)
		after := at.revision > last.revision || at.revision == last.revision && at.n > last.n
		c.that(after || i == 0 && last == position{}, "%s: event %d.%d comes after %d.%d", sp.name, at.revision, at.n,
			last.revision, last.n)
		c.that(e.Revision <= sp.revision, "%s: event %d.%d is beyond revision %d", sp.name, e.Revision, e.N,
			sp.revision)
		last = at
	}
}

// restored checks that a state that was restored from a backup gives out nothing that the other
// cluster may have given out: tokens and revisions are above the base, and nothing was granted
// before the quarantine ended.
func (c *checker) restored(s *State) {
	r := s.restored
	if r == nil {
		return
	}
	c.that(!r.Over || r.Until != 0 && r.Until <= s.now, "the quarantine is over at %d, and ends at %d", s.now, r.Until)
	c.that(r.Space == "" || r.Until != 0 && r.Until <= s.now,
		"the queues after the quarantine have come to %s/%s before its end", r.Space, r.Path)
	s.spaces.Scan(func(_ string, sp *space) bool {
		c.that(uint64(sp.token) >= r.Base && uint64(sp.revision) >= r.Base,
			"%s has token %d and revision %d, below %d from which it went on after a restore",
			sp.name, sp.token, sp.revision, r.Base)
		sp.claims.Scan(func(id string, claim *Claim) bool {
			c.that(uint64(claim.Token) < r.Base || r.Until != 0 && claim.Since >= r.Until ||
				claim.terms().ChangedWall != 0,
				"%s/%s was granted at %d, before the quarantine's end at %d", sp.name, id, claim.Since, r.Until)
			return true
		})
		return true
	})
}

// heap checks that everything that ends by time has a timer at exactly that moment, and that
// nothing else has one. A lease without its timer would never expire unless somebody touched
// it.
func (c *checker) heap(s *State) {
	s.due.Check(c.that)
	timed := 0
	see := func(t *timer, at Time, what string) {
		if at == 0 {
			c.that(t == nil || !t.Scheduled(), "%s has no end and stands in time", what)
			return
		}
		timed++
		c.that(t != nil && t.Scheduled() && t.At == at, "%s ends at %d, and time does not know", what, at)
	}
	s.spaces.Scan(func(_ string, sp *space) bool {
		sp.claims.Scan(func(id string, claim *Claim) bool {
			see(claim.timer, claim.next(), id)
			return true
		})
		sp.sessions.Scan(func(id string, session *Session) bool {
			see(session.timer, session.Expires, id)
			return true
		})
		sp.records.Timers(func(path string, t *Timer, at Time) { see(t, at, path) })
		sp.resources.Scan(func(path string, r *Resource) bool {
			if r.Waiting > 0 || sp.isTodo(path) || pattern.In(path) {
				see(r.timer, r.resumes(), path)
			}
			return true
		})
		return true
	})
	if r := s.restored; r != nil && !r.Over {
		see(s.quarantine, r.Until, "the quarantine")
	}
	c.that(timed == s.due.Len(), "%d things end by time, %d deadlines exist", timed, s.due.Len())
}
