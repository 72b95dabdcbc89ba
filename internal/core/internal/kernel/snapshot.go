package kernel

import (
	"fmt"
	"iter"
	"slices"

	"github.com/leasehold/leasehold"
)

// A snapshot is a sequence of pieces, from which Restore builds the same state again. Each
// piece only refers to pieces before it: sessions come before what is bound to them, and
// resources before the claims on them, so that Restore can refuse a piece that refers to
// nothing. What can be derived (indexes, timers, most counts) is not written, because two
// copies of one fact could differ.

// A Piece is one part of a snapshot. Its Value is one of the types below it, or
// *Session, *Chore, *Claim, *Resource, *reservation.Reservation,
// *reservation.Series, *Calendar, *EndedClaim, *EndedSession, *Outcome,
// *Mark, *Restored, *Totals, *PolicyHead, an item of a policy,
// *Withdrawal, *Revocation, *Loss, *ClaimOwner, *RecordOwner,
// *leasehold.Definition, *leasehold.Task or *leasehold.Event. Those of the subjects
// come beside these. Space is the namespace it belongs to; empty for those of the whole state.
type Piece struct {
	Space string
	Value any
}

// A Head is the first piece: what belongs to no namespace.
type Head struct {
	Now     Time
	Wall    int64
	Lead    Lead
	IdleSeq uint64

	AlarmOrder uint64   // of the newest alarm
	Raised     []uint64 // how often there was reason for an alarm, by kind from the first on, without the last zeros

	Level Level // at which the whole snapshot is
}

// A SpaceHead is the first piece of its namespace.
type SpaceHead struct {
	Token        leasehold.Token
	Revision     leasehold.Revision
	Arrivals     uint64
	LostRevision leasehold.Revision
	LostN        uint32
	Changed      Time
}

// Pieces returns the state piece by piece, in an order that is the same on every
// node. What can be derived from the pieces is not among them.
func (s *State) Pieces() iter.Seq[Piece] {
	return func(yield func(Piece) bool) {
		order, raised := s.alarms.Raised()
		_ = yield(Piece{Value: &Head{s.now, s.wall, s.lead, s.idleSeq, order, raised, s.level}}) &&
			s.restoredPiece(yield) && s.totalsPiece(yield) && s.calendarPiece(yield) && s.policyPieces(yield) &&
			s.revocationPieces(yield) && s.spacePieces(yield) && s.endingPieces(yield) && s.outcomePieces(yield) &&
			s.eventPieces(yield)
	}
}

// restoredPiece comes second, if it comes at all: a state that was never restored is
// written as if there were no such thing.
func (s *State) restoredPiece(yield func(Piece) bool) bool {
	return s.restored == nil || yield(Piece{Value: s.restored})
}

func (s *State) spacePieces(yield func(Piece) bool) (more bool) {
	more = true
	s.spaces.Scan(func(name string, sp *space) bool {
		head := &SpaceHead{sp.token, sp.revision, sp.arrivals, sp.lost.revision, sp.lost.n, sp.changed}
		if more = yield(Piece{name, head}); more {
			sp.definitions.Scan(func(_ string, v *leasehold.Definition) bool {
				more = yield(Piece{name, v})
				return more
			})
		}
		if more {
			sp.sessions.Scan(func(_ string, v *Session) bool {
				more = yield(Piece{name, v}) && sp.markPieces(v, yield)
				return more
			})
		}
		if more {
			sp.chores.Scan(func(_ string, v *Chore) bool { more = yield(Piece{name, v}); return more })
		}
		if more {
			sp.tasks.From("", func(v *leasehold.Task) bool { more = yield(Piece{name, v}); return more })
		}
		if more {
			sp.resources.Scan(func(_ string, v *Resource) bool { more = yield(Piece{name, v}); return more })
		}
		if more {
			piece := func(v any) bool { return yield(Piece{name, v}) }
			more = sp.pools.Pieces(piece) && s.learning.Pieces(name, piece) && s.reservations.Pieces(name, piece)
		}
		if more {
			more = sp.claimPieces(yield) && sp.claimOwnerPieces(yield) &&
				sp.records.Pieces(func(v any) bool { return yield(Piece{name, v}) }) && sp.recordOwnerPieces(yield)
		}
		if more {
			// Only the outcomes of sessions, whose keys begin with "s": they are forgotten with
			// their session, in no particular order. The others come in outcomePieces.
			sp.outcomes.Ascend("s", func(_ string, v *Outcome) bool { more = yield(Piece{name, v}); return more })
		}
		if more {
			more = s.alarms.Pieces(name, func(v any) bool { return yield(Piece{name, v}) })
		}
		return more
	})
	return more
}

// claimPieces writes the leases of each resource in turn, and then those who wait, in the order of the queues. A
// resource that was just read from a snapshot may name a lease that was not in it.
func (sp *space) claimPieces(yield func(Piece) bool) (more bool) {
	more = true
	one := func(c *Claim) bool {
		more = c == nil || yield(Piece{sp.name, c})
		return more
	}
	sp.resources.Scan(func(_ string, r *Resource) bool { sp.holders(r, one); return more })
	if more {
		sp.queue.Scan(one)
	}
	return more
}

// endingPieces writes the ended ids of all namespaces in one order, oldest first. The numbers
// of that order are not written: they are counted anew when the pieces are read, and only the
// order decides what is forgotten next.
func (s *State) endingPieces(yield func(Piece) bool) bool {
	var sources []func() (uint64, Piece, bool)
	s.spaces.Scan(func(_ string, sp *space) bool {
		if sp.endings.len() > 0 {
			sources = append(sources, sp.endingPieces())
		}
		return true
	})
	return merge(sources, yield)
}

// endingPieces returns the ended ids of a namespace one by one, each with its place in the
// order of all.
func (sp *space) endingPieces() func() (uint64, Piece, bool) {
	i := 0
	return func() (uint64, Piece, bool) {
		if i == sp.endings.len() {
			return 0, Piece{}, false
		}
		ref, piece := sp.endings.at(i), Piece{Space: sp.name}
		i++
		if ref.session {
			piece.Value, _ = sp.endedSessions.Get(ref.id)
		} else {
			piece.Value, _ = sp.claims.Ended(ref.id)
		}
		return ref.order, piece, true
	}
}

func (s *State) outcomePieces(yield func(Piece) bool) bool {
	var sources []func() (uint64, Piece, bool)
	s.spaces.Scan(func(_ string, sp *space) bool {
		if sp.answered.len() > 0 {
			sources = append(sources, sp.outcomePieces())
		}
		return true
	})
	return merge(sources, yield)
}

// outcomePieces is endingPieces for the answers of requests outside sessions.
func (sp *space) outcomePieces() func() (uint64, Piece, bool) {
	rest := sp.answered.items
	return func() (uint64, Piece, bool) {
		if len(rest) == 0 {
			return 0, Piece{}, false
		}
		ref := rest[0]
		rest = rest[1:]
		o, _ := sp.outcomes.Get(ref.key)
		return ref.order, Piece{sp.name, o}, true
	}
}

// eventPieces writes history, of which each namespace has only an order of its own.
func (s *State) eventPieces(yield func(Piece) bool) (more bool) {
	more = true
	s.spaces.Scan(func(name string, sp *space) bool {
		for _, e := range sp.history.items {
			if more = yield(Piece{name, e}); !more {
				return false
			}
		}
		return true
	})
	return more
}

// Restore builds the state that the pieces were taken from. It takes them over:
// they must not be changed afterwards.
func Restore(pieces iter.Seq2[Piece, error], subjects *Subjects) (*State, error) {
	s := NewAt(OldestLevel, subjects)
	t := s.begin()
	begun := false
	for r, err := range pieces {
		if err != nil {
			return nil, err
		}
		// Exactly the first piece is a head: it is an error if another one is, or if the first
		// is none.
		if _, head := r.Value.(*Head); head == begun {
			return nil, fmt.Errorf("snapshot has its head in the wrong place")
		}
		begun = true
		if err := t.restore(r); err != nil {
			return nil, err
		}
	}
	if !begun {
		return nil, fmt.Errorf("snapshot is empty")
	}
	t.indexAreas()
	return s, s.allRestored()
}

// restore takes over one piece: those of the whole state itself, the others by restoreIn.
func (t *turn) restore(r Piece) error {
	switch v := r.Value.(type) {
	case *Head:
		t.now, t.wall, t.lead, t.idleSeq, t.level = v.Now, v.Wall, v.Lead, v.IdleSeq, v.Level
		return t.alarms.RestoreRaised(v.AlarmOrder, v.Raised)
	case *Restored:
		return t.restoreRestored(v)
	case *Totals:
		return t.restoreTotals(v)
	case *Calendar:
		return t.restoreCalendar(v)
	case *Revocation:
		return t.restoreRevocation(v)
	case *Withdrawal:
		return t.restoreWithdrawal(v)
	case *Loss:
		return t.restoreLoss(v)
	case *SpaceHead:
		sp := t.newSpace(r.Space)
		sp.token, sp.revision, sp.arrivals = v.Token, v.Revision, v.Arrivals
		sp.lost, sp.changed = position{v.LostRevision, v.LostN}, v.Changed
		t.spaces.Set(r.Space, sp)
		return nil
	}
	if t.restorePolicy(r.Value) {
		return nil
	}
	sp := t.space(r.Space)
	if sp == nil {
		return fmt.Errorf("snapshot names namespace %q before its head", r.Space)
	}
	return t.restoreIn(sp, r.Value)
}

// restoreIn takes over what belongs to a namespace.
func (t *turn) restoreIn(sp *space, value any) error {
	switch v := value.(type) {
	case *leasehold.Definition:
		if _, twice := sp.definitions.Get(v.Path); twice {
			return fmt.Errorf("snapshot has the definition of %q twice", v.Path)
		}
		t.setDefinition(sp, v)
	case *Session:
		// They are counted again as the claims and records come.
		v.Claims, v.records = 0, 0
		v.timer = newTimer(dueSession, sp, v.ID)
		t.putSession(sp, v)
	case *Mark:
		return t.restoreMark(sp, v)
	case *Chore:
		return t.restoreChore(sp, v)
	case *Resource:
		return t.restoreResource(sp, v)
	case *Claim:
		return t.restoreClaim(sp, v)
	case *ClaimOwner:
		return t.restoreClaimOwner(sp, v)
	case *RecordOwner:
		return t.restoreRecordOwner(sp, v)
	// The order of the pieces is the order of forgetting: tombstone counts it anew.
	case *EndedClaim:
		if k, _ := sp.claims.find(v.ID); k != (knownID{}) {
			return fmt.Errorf("snapshot has the end of lease %q twice", v.ID)
		}
		t.endClaim(sp, v)
	case *EndedSession:
		if _, twice := sp.endedSessions.Get(v.ID); twice {
			return fmt.Errorf("snapshot has the end of session %q twice", v.ID)
		}
		t.tombstoneSession(sp, v)
	case *Outcome:
		if _, twice := sp.outcomes.Get(v.Key); twice || v.Key == "" {
			return fmt.Errorf("snapshot has the outcome %q twice, or without a key", v.Key)
		}
		sp.outcomes.Set(v.Key, v)
		if v.Key[0] == 'k' || v.Key[0] == keyOfPrincipal {
			t.pushOutcome(sp, v.Key, v.At)
		}
	case *leasehold.Event:
		t.record(sp, v)
	case *leasehold.Task:
		return sp.tasks.Restore(t.in(sp), v)
	default:
		return t.restoreSubject(sp, value)
	}
	return nil
}

// restoreSubject takes over what one of the subjects has written.
func (t *turn) restoreSubject(sp *space, value any) error {
	if known, err := sp.pools.Restore(t.in(sp), value); known {
		return err
	}
	if known, err := t.learning.Restore(t.in(sp), value); known {
		return err
	}
	if known, err := sp.records.Restore(t.in(sp), value); known {
		return err
	}
	if known, err := t.reservations.Restore(t.in(sp), value); known {
		return err
	}
	if known, err := t.alarms.Restore(t.in(sp), value); known {
		return err
	}
	return fmt.Errorf("snapshot has a %T, which is unknown here", value)
}

// restoreResource takes over a resource with the accounts that setResource keeps. It does not
// call setResource: the claims come later, so a resource that is shared would be taken for
// idle.
func (t *turn) restoreResource(sp *space, r *Resource) error {
	if u := r.more().Usual; u != nil {
		if err := u.WellFormed(); err != nil {
			return fmt.Errorf("snapshot has resource %q with what was never learned: %w", r.Path, err)
		}
	}
	if r.Idle != 0 {
		t.idle.Set(r.Idle, place{sp.name, r.Path})
	}
	if at := r.resumes(); at != 0 && (r.Waiting > 0 || sp.isTodo(r.Path)) {
		r.timer = newTimer(dueResource, sp, r.Path)
		t.due.Set(r.timer, at)
	}
	sp.resources.Set(r.Path, r)
	sp.tasks.Place(Namespace{t.State, sp}, r.Path)
	return nil
}

// restoreClaim takes over a lease or a waiter, and refuses one that contradicts what was read
// before it.
func (t *turn) restoreClaim(sp *space, c *Claim) error {
	r, ok := sp.resources.Get(c.Resource)
	if !ok {
		return fmt.Errorf("snapshot has lease %q on %q, which is not there", c.ID, c.Resource)
	}
	if c.Waiting() != (c.Wait != nil) {
		return fmt.Errorf("snapshot has lease %q with a token and in the queue, or neither", c.ID)
	}
	if err := restoreAsk(c); err != nil {
		return err
	}
	if c.Session != "" {
		session, ok := sp.sessions.Get(c.Session)
		if !ok && sp.left(c.Session) == nil {
			return fmt.Errorf("snapshot has lease %q of session %q, which is not there", c.ID, c.Session)
		}
		if ok {
			session.Claims++ // nobody else has seen it yet
		}
		sp.bound.Set(binding{c.Session, c.ID})
	}
	if err := t.restoreShare(sp, r, c); err != nil {
		return err
	}
	sp.tasks.Place(Namespace{t.State, sp}, c.Resource)
	t.put(sp, c)
	return nil
}

// restoreShare counts a lease on slots, and gives units back to the lease that has
// them. Nobody else has seen the resource yet.
func (t *turn) restoreShare(sp *space, r *Resource, c *Claim) error {
	if c.Waiting() {
		return nil
	}
	shared := r.More != nil && r.More.Shares != nil
	if c.Slots != 0 {
		if !shared {
			return fmt.Errorf("snapshot has lease %q on slots of %q, which has none", c.ID, c.Resource)
		}
		t.join(sp, r.More.Shares, c)
	}
	for _, name := range c.terms().Units {
		if sp.isPool(c.Resource) && sp.pools.RestoreHeld(c, name) {
			continue
		}
		i := -1
		if shared {
			i = slices.IndexFunc(r.More.Shares.Units, func(u Unit) bool { return u.Name == name })
		}
		if i < 0 {
			return fmt.Errorf("snapshot has lease %q on unit %q, which is not there", c.ID, name)
		}
		r.More.Shares.Units[i].lease = c.ID
	}
	return nil
}
