package kernel

import (
	"math"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/access"
)

// openSession begins a session. The client proposes the id, so that a retry finds the session
// that the first try opened instead of leaving two.
func (t *turn) openSession(c *OpenSession) Answer {
	sp, failure := t.makeSpace(c.Namespace)
	if failure != nil {
		return Answer{Err: failure}
	}
	if session := t.liveSession(sp, c.ID); session != nil {
		if session.TTL != c.TTL {
			return refuse(leasehold.Refused, "session %q is open already with ttl %v: choose another id", c.ID,
				session.TTL)
		}
		return t.sessionAnswer(sp, session)
	}
	// An id that has ended is not used again while anybody may still remember it: a late
	// renewal must not extend somebody else's session.
	if _, ended := sp.endedSessions.Get(c.ID); ended || sp.left(c.ID) != nil {
		return t.noSession(sp, c.ID)
	}
	if failure := t.roomForSession(); failure != nil {
		return Answer{Err: failure}
	}
	if failure := t.withinQuotas(c.Namespace, tally{sessions: 1}); failure != nil {
		return Answer{Err: failure}
	}
	session := &Session{ID: c.ID, TTL: c.TTL, Labels: c.Labels, OpenedWall: t.wall, Expires: t.now.Add(c.TTL),
		Owner: t.permit.OwnerOf(access.Acquire, c.Namespace, "", "")}
	session.timer = newTimer(dueSession, sp, c.ID)
	t.putSession(sp, session)
	t.emit(sp, &leasehold.Event{Kind: leasehold.SessionOpened, Session: c.ID, Until: t.moment(session.Expires),
		Owner: session.Owner})
	return t.sessionAnswer(sp, session)
}

// renewSession extends a session. Like a renewal of a lease it leaves no event and no revision.
func (t *turn) renewSession(c *RenewSession) Answer {
	sp := t.space(c.Namespace)
	session := t.liveSession(sp, c.ID)
	if session == nil {
		return t.noSession(sp, c.ID)
	}
	return t.sessionAnswer(sp, t.extend(sp, session))
}

// extend makes a live session last for its TTL from now. Nothing that is bound to it has to be
// touched, however much that is: each claim asks its session when it ends.
func (t *turn) extend(sp *space, session *Session) *Session {
	longer := *session
	longer.Gap = max(longer.Gap, t.gap(session.TTL, session.Expires))
	longer.Expires = t.now.Add(session.TTL)
	t.putSession(sp, &longer)
	sp.moveSessionEnd(session.ID, session.end(), longer.end())
	t.lateSession(sp, session, &longer)
	return &longer
}

func (t *turn) putSession(sp *space, session *Session) {
	t.due.Set(session.timer, session.Expires)
	if _, known := sp.sessions.Set(session.ID, session); !known {
		t.totals.sessions++
		t.tallies.add(session.Owner, tally{sessions: 1})
	}
}

// closeSession ends a session at the wish of its client: a clean end for all its leases, unless
// the client speaks for a holder that died without one.
func (t *turn) closeSession(c *CloseSession) Answer {
	sp := t.space(c.Namespace)
	how := leasehold.SessionClosed
	if c.Abandon {
		how = leasehold.Abandoned
	}
	session := t.liveSession(sp, c.ID)
	if session == nil {
		if sp != nil {
			if ended, ok := sp.endedSessions.Get(c.ID); ok && ended.How == how {
				return Answer{} // closed by an earlier try
			}
		}
		return t.noSession(sp, c.ID)
	}
	t.endSession(sp, session, how)
	return Answer{}
}

// liveSession returns a session that is not over at the stamp. One that is over
// ends here and now.
func (t *turn) liveSession(sp *space, id string) *Session {
	if sp == nil {
		return nil
	}
	session, ok := sp.sessions.Get(id)
	if ok && session.Expires <= t.now {
		t.endSession(sp, session, leasehold.SessionExpired)
		return nil
	}
	return session
}

// noSession answers a request that names a session that is not there.
func (s *State) noSession(sp *space, id string) Answer {
	if sp != nil {
		if ended, ok := sp.endedSessions.Get(id); ok {
			return lostSession(id, ended.How)
		}
		if left := sp.left(id); left != nil {
			return lostSession(id, left.How)
		}
	}
	return refuse(leasehold.NotFound, "session %q is unknown: open it first", id)
}

func lostSession(id string, how leasehold.How) Answer {
	return refuse(leasehold.Lost, "session %q has ended (%v): open a new one under another id", id, how)
}

// endSession ends a session, and with it all that is bound to it, at the same moment. It
// collects as much of that as the entry may do and leaves the rest as a chore; what is not
// collected yet is over nevertheless, and every command sees it so.
func (t *turn) endSession(sp *space, session *Session, how leasehold.How) {
	at := t.now
	if how == leasehold.SessionExpired {
		at = session.Expires
	}
	t.work.take(EndCost)
	sp.sessions.Delete(session.ID)
	sp.moveSessionEnd(session.ID, session.end(), 0)
	t.totals.sessions--
	t.tallies.add(session.Owner, tally{sessions: -1})
	t.due.Set(session.timer, 0)
	t.tombstoneSession(sp, &EndedSession{ID: session.ID, How: how, At: t.now, Owner: session.Owner})
	t.forgetRequests(sp, session.ID)
	t.emit(sp, &leasehold.Event{Kind: leasehold.SessionEnded, How: how, Session: session.ID, Owner: session.Owner})
	// The chore comes first, because from here on it is what knows how the session ended:
	// see left.
	t.looked = btree.Set[string]{}
	t.putOff(sp, &Chore{Kind: CollectSession, Name: session.ID,
		Left: &Left{TTL: session.TTL, Gap: session.Gap, How: how, At: at}})
	t.collect(sp, session.ID, math.MaxInt)
}

// firstBound returns the first of what is bound to a session; empty if there is nothing.
func firstBound(bound *btree.Tree[binding], session string) (id string) {
	bound.Ascend(binding{session: session}, func(b binding) bool {
		if b.session == session {
			id = b.id
		}
		return false
	})
	return id
}
