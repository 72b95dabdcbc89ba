package kernel

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
func (s *State) vacant(sp *space) bool {
	return (sp.changed == 0 || sp.changed.Add(memory) <= s.now) && sp.claims.Len() == 0 && sp.sessions.Len() == 0 &&
		sp.records.Empty() &&
		sp.definitions.Len() == 0 && (s.totals.alarms == 0 || s.alarms.Count(sp.name) == 0) &&
		sp.endings.len() == 0 && sp.outcomes.Len() == 0 &&
		sp.chores.Len() == 0 && sp.units == 0 && s.plansNothing(sp)
}

// plansNothing reports whether nothing is reserved in a namespace, and nothing will be by a series.
func (s *State) plansNothing(sp *space) bool {
	reservations, series := s.reservations.Count(sp.name)
	return reservations+series == 0
}

// sweep looks at a few namespaces after the one that it looked at last, and forgets those that
// are vacant. How far it has come is part of the state and of snapshots: replicas must forget
// at the same place in the log, since that decides where a namespace begins again.
func (t *turn) sweep() {
	idle := maxSweptIdle
	for _, sp := range t.nextSpaces(min(maxSwept, t.spaces.Len())) {
		if !t.vacant(sp) || t.rests(sp, &idle) {
			t.swept = sp.name
			continue
		}
		// The namespace may still have resources, which were not all looked at.
		if idle == 0 {
			return // the next entry goes on with it
		}
		t.swept = sp.name
		t.forgetSpace(sp)
	}
}

// nextSpaces returns the given number of namespaces, which must exist, beginning after the one
// that was swept last. After the last of all comes the first.
func (t *turn) nextSpaces(most int) []*space {
	if most == 0 {
		return nil
	}
	t.sweeping = t.sweeping[:0]
	t.spaces.Ascend(t.swept, func(name string, sp *space) bool {
		if name != t.swept {
			t.sweeping = append(t.sweeping, sp)
		}
		return len(t.sweeping) < most
	})
	if len(t.sweeping) < most {
		t.spaces.Scan(func(_ string, sp *space) bool {
			t.sweeping = append(t.sweeping, sp)
			return len(t.sweeping) < most
		})
	}
	return t.sweeping
}

// rests reports whether a grace runs in a vacant namespace. It drops the resources on which
// none does, until it finds one or left is used up.
func (t *turn) rests(sp *space, left *int) bool {
	for ; *left > 0; *left-- {
		_, r, ok := sp.resources.Min()
		if !ok {
			return false
		}
		if len(r.more().resting(t.now)) > 0 {
			return true
		}
		t.dropResource(sp, r)
		t.idle.Delete(r.Idle)
	}
	return false
}

// forgetSpace drops a namespace and keeps the largest token and revision of all that were
// dropped. One maximum for all is enough, and bounded; to remember each would be to forget
// nothing.
func (t *turn) forgetSpace(sp *space) {
	t.forgotten.token = max(t.forgotten.token, sp.token)
	t.forgotten.revision = max(t.forgotten.revision, sp.revision)
	t.weigh(sp, -sp.historyBytes)
	if t.totals.kinds > 0 {
		t.learning.Forget(t.in(sp))
	}
	t.spaces.Delete(sp.name)
	t.forgot = append(t.forgot, sp.name)
}

// Forgot returns the namespaces that the last entry forgot.
func (v *view) Forgot() []string { return v.s.last.forgot }

// start lets a namespace begin above all that were forgotten. A watch on one of them that
// resumes is told that history is gone, and not that nothing has happened since.
func (t *turn) start(sp *space) {
	sp.token = max(sp.token, t.forgotten.token)
	sp.revision = max(sp.revision, t.forgotten.revision)
	sp.lost = t.lostBefore()
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

func (t *turn) restoreTotals(totals *Totals) error {
	c := SetCaps{Caps: totals.Caps}
	if t.spaces.Len() > 0 || totals.Caps != (leasehold.Caps{}) && c.Validate() != nil ||
		totals.Set == (totals.Caps == leasehold.Caps{}) {
		return fmt.Errorf("snapshot has caps %+v that cannot be, or in the wrong place", totals.Caps)
	}
	t.caps, t.capsSet, t.swept = totals.Caps, totals.Set, totals.Swept
	t.forgotten.token, t.forgotten.revision = totals.Token, totals.Revision
	return nil
}
