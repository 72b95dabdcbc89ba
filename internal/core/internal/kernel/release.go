package kernel

import "github.com/leasehold/leasehold"

// release gives a lease back, or takes a waiter out of the queue. Releasing what was released
// before is a success: the first answer may have been lost on its way.
func (t *turn) release(c *Release) Answer {
	sp := t.space(c.Namespace)
	claim := t.touch(sp, c.ID)
	if claim != nil {
		// Only a release that the session sends itself needs no notice in its next renewal.
		// From anybody else it is an intervention, which the holder must learn of.
		t.giveBack(sp, claim, c.Session == claim.Session && t.uses(c.Namespace, c.Session))
		return Answer{}
	}
	if t.wasReleased(sp, c.ID) {
		return Answer{} // by an earlier try
	}
	if c.Withdraw {
		return t.withdraw(c)
	}
	return t.noClaim(sp, c.ID)
}

// giveBack ends a lease as its holder does, or a wait. own reports whether its own session does.
func (t *turn) giveBack(sp *space, claim *Claim, own bool) {
	how := leasehold.Released
	if claim.Waiting() {
		how = leasehold.Withdrawn
	}
	t.finish(sp, claim, end{how: how, at: t.now, own: own})
}

func (s *State) wasReleased(sp *space, id string) bool {
	if sp == nil {
		return false
	}
	ended, ok := sp.claims.Ended(id)
	return ok && (ended.How == leasehold.Released || ended.How == leasehold.Withdrawn)
}

// withdraw takes back an id that nobody knows: the acquire of it may still be on its way, and
// must not be granted when it comes. What ended otherwise needs no mark.
func (t *turn) withdraw(c *Release) Answer {
	if sp := t.space(c.Namespace); sp != nil {
		if _, ended := sp.claims.Ended(c.ID); ended {
			return t.noClaim(sp, c.ID)
		}
	}
	if c.Session != "" {
		return t.withdrawFrom(c)
	}
	sp, failure := t.makeSpace(c.Namespace)
	if failure != nil {
		// There are as many namespaces as there may be. A release is never refused for that,
		// and the acquire is, for as long as it lasts.
		return t.noClaim(nil, c.ID)
	}
	t.endClaim(sp, &EndedClaim{ID: c.ID, How: leasehold.Withdrawn, At: t.now, Owner: t.permit.Self()})
	return Answer{}
}

// uses reports whether the asker may use a session. To name another's is as to name one that does not exist.
func (l *look) uses(namespace, session string) bool {
	return l.permit == nil || l.allowUse(namespace, session) == nil
}

// withdrawFrom leaves a mark in a session. Where there is none, none is needed: the acquire
// would be refused with the session.
func (t *turn) withdrawFrom(c *Release) Answer {
	sp := t.space(c.Namespace)
	session := t.liveSession(sp, c.Session)
	if session == nil || session.marks.has(c.ID) || !t.uses(c.Namespace, c.Session) {
		return Answer{}
	}
	if session.used() >= leasehold.MaxClaimsPerSession {
		return refuse(leasehold.Limited, "session %q has %d leases, waiters, records and withdrawn ids, which is as "+
			"many as it can have: close it, and open another",
			c.Session, session.used())
	}
	marked := *session
	marked.marks = session.marks.with(c.ID)
	sp.sessions.Set(marked.ID, &marked)
	return Answer{}
}
