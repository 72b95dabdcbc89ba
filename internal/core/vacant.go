package core

import (
	"fmt"

	"github.com/leasehold/leasehold"
)

// A namespace that is empty, and of which nothing need be remembered, is forgotten, or names
// that are used once would fill the memory. Tokens and revisions must still only grow: a
// namespace that begins does so above those of all that were forgotten, since it may be one of
// them.

// Totals is what a snapshot keeps of all namespaces together.
type Totals struct {
	Caps leasehold.Caps // those that were set; 0: as they are by default
	Set  bool           // a command did

	// The largest token and revision of all namespaces that were forgotten.
	Token    leasehold.Token
	Revision leasehold.Revision

	Swept string // the namespace that was looked at last
}

// How much one entry does to forget namespaces: how many it looks at, and how many idle
// resources it drops in those that are otherwise empty.
const (
	maxSwept     = 16
	maxSweptIdle = 256
)

// vacant reports whether nothing is in a namespace but resources that nobody has or wants,
// and nothing has happened there for as long as things are remembered: a watcher of it
// has had the time to see the last of it.
func (sp *space) vacant(now Time) bool {
	return (sp.changed == 0 || sp.changed.Add(memory) <= now) && sp.claims.Len() == 0 && sp.sessions.Len() == 0 &&
		sp.records.Empty() &&
		sp.definitions.Len() == 0 && sp.alarms.Len() == 0 && sp.endings.Len() == 0 && sp.outcomes.Len() == 0 &&
		sp.chores.Len() == 0 && sp.pools.Len() == 0 &&
		sp.reservations.Len() == 0 && sp.reservations.Recurring() == 0
}

// sweep looks at a few namespaces after the one that it looked at last, and forgets those that
// are vacant. How far it has come is part of the state and of snapshots: replicas must forget
// at the same place in the log, since that decides where a namespace begins again.
func (s *State) sweep() {
	idle := maxSweptIdle
	for _, sp := range s.nextSpaces(min(maxSwept, s.spaces.Len())) {
		if !sp.vacant(s.now) || s.rests(sp, &idle) {
			s.swept = sp.name
			continue
		}
		// The namespace may still have resources, which were not all looked at.
		if idle == 0 {
			return // the next entry goes on with it
		}
		s.swept = sp.name
		s.forgetSpace(sp)
	}
}

// nextSpaces returns the given number of namespaces, which must exist, beginning after the one
// that was swept last. After the last of all comes the first.
func (s *State) nextSpaces(most int) []*space {
	if most == 0 {
		return nil
	}
	s.sweeping = s.sweeping[:0]
	s.spaces.Ascend(s.swept, func(name string, sp *space) bool {
		if name != s.swept {
			s.sweeping = append(s.sweeping, sp)
		}
		return len(s.sweeping) < most
	})
	if len(s.sweeping) < most {
		s.spaces.Scan(func(_ string, sp *space) bool {
			s.sweeping = append(s.sweeping, sp)
			return len(s.sweeping) < most
		})
	}
	return s.sweeping
}

// rests reports whether a grace runs in a vacant namespace. It drops the resources on which
// none does, until it finds one or left is used up.
func (s *State) rests(sp *space, left *int) bool {
	for ; *left > 0; *left-- {
		_, r, ok := sp.resources.Min()
		if !ok {
			return false
		}
		if len(r.more().resting(s.now)) > 0 {
			return true
		}
		s.dropResource(sp, r)
		s.idle.Delete(r.Idle)
	}
	return false
}

// forgetSpace drops a namespace and keeps the largest token and revision of all that were
// dropped. One maximum for all is enough, and bounded; to remember each would be to forget
// nothing.
func (s *State) forgetSpace(sp *space) {
	if !s.plants(ForgetTokens) {
		s.forgotten.token = max(s.forgotten.token, sp.token)
	}
	s.forgotten.revision = max(s.forgotten.revision, sp.revision)
	s.weigh(sp, -sp.historyBytes)
	s.totals.kinds -= sp.kinds.byAge.Len()
	s.spaces.Delete(sp.name)
	s.forgot = append(s.forgot, sp.name)
}

// Forgot returns the namespaces that the last entry forgot.
func (v *view) Forgot() []string { return v.s.forgot }

// start lets a namespace begin above all that were forgotten. A watch on one of them that
// resumes is told that history is gone, and not that nothing has happened since.
func (s *State) start(sp *space) {
	sp.token = max(sp.token, s.forgotten.token)
	sp.revision = max(sp.revision, s.forgotten.revision)
	sp.lost = s.lostBefore()
}

// lostBefore is the newest position that may have been one of a namespace that was forgotten.
func (s *State) lostBefore() position {
	if s.forgotten.revision == 0 {
		return position{}
	}
	return position{s.forgotten.revision, AllOf}
}

// revisionOf returns the newest revision of a namespace: if there is none, that from which it
// would begin.
func (s *State) revisionOf(sp *space) leasehold.Revision {
	if sp == nil {
		return s.forgotten.revision
	}
	return sp.revision
}

// totalsPiece comes after what a state remembers of a backup.
func (s *State) totalsPiece(yield func(Piece) bool) bool {
	return yield(Piece{Value: &Totals{s.caps, s.capsSet, s.forgotten.token, s.forgotten.revision, s.swept}})
}

func (s *State) restoreTotals(t *Totals) error {
	c := SetCaps{Caps: t.Caps}
	if s.spaces.Len() > 0 || t.Caps != (leasehold.Caps{}) && c.Validate() != nil ||
		t.Set == (t.Caps == leasehold.Caps{}) {
		return fmt.Errorf("snapshot has caps %+v that cannot be, or in the wrong place", t.Caps)
	}
	s.caps, s.capsSet, s.swept = t.Caps, t.Set, t.Swept
	s.forgotten.token, s.forgotten.revision = t.Token, t.Revision
	return nil
}
