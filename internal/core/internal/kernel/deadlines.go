package kernel

import (
	"time"

	"github.com/leasehold/leasehold/internal/core/timeline"
)

// A timer says when one thing is due. Timers are the only part of the state that is changed in
// place, which makes a renewal cheap. That is safe because no snapshot looks at them: they are
// made again from the deadlines of what is restored.
type timer = timeline.Timer[dueThing]

// A dueThing names something that time alone changes. It has a key and not a pointer, because
// values are replaced whenever they change.
type dueThing struct {
	kind  dueKind
	space *space
	key   string
}

type dueKind uint8

const (
	dueClaim      dueKind = iota + 1
	dueSession            // a session that is not renewed
	dueResource           // the end of a grace that somebody waits for
	dueQuarantine         // the end of a quarantine, and the queues that wait for it
	dueShelf              // the versions of a record that was deleted long ago
)

func newTimer(kind dueKind, sp *space, key string) *timer {
	return &timer{Of: dueThing{kind, sp, key}}
}

// maxTimers is how many timers are kept to be used again.
const maxTimers = 4096

// claimTimer returns the timer of a new claim.
func (t *turn) claimTimer(sp *space, id string) *timer {
	last := len(t.spares) - 1
	if last < 0 {
		return newTimer(dueClaim, sp, id)
	}
	due := t.spares[last]
	t.spares = t.spares[:last]
	*due = timer{Of: dueThing{dueClaim, sp, id}}
	return due
}

// reuse keeps the timer of a claim that ended for another. Those of a frozen state are not its own.
func (t *turn) reuse(due *timer) {
	if len(t.spares) < maxTimers && !t.frozen {
		due.Of = dueThing{}
		t.spares = append(t.spares, due)
	}
}

// newDeadlines returns a heap in which things that are due at the same moment have a total
// order, so that all nodes end them in the same order and write the same events.
func newDeadlines() timeline.Heap[dueThing] {
	return timeline.NewHeap(func(a, b dueThing) bool {
		switch {
		case a.kind != b.kind:
			return a.kind < b.kind
		case a.space != b.space && a.space.name != b.space.name:
			return a.space.name < b.space.name
		}
		return a.key < b.key
	})
}

// How far ahead DueBy corrects deadlines, so that it rarely has to, and how many at once, so
// that nobody waits for it.
const (
	lookAhead = Time(50 * time.Millisecond)
	maxRight  = 1024
)

// Due returns a moment before which time alone changes nothing, and false if it never does.
// What was put off is due at once. The moment may be too early, because a renewal does not move
// its timer in the heap until the old deadline comes: DueBy gives the exact answer.
func (s *State) Due() (Time, bool) {
	if s.busy() {
		return s.now, true
	}
	at, ok := s.due.Next()
	if date, dated := s.dueDate(); dated && (!ok || date < at) {
		return date, true
	}
	return at, ok
}

// DueBy reports whether time alone would change something at a moment. It looks at a bounded
// number of deadlines; if there are more, it returns false, and Due is still before the moment:
// ask again. It changes nothing that belongs to the state, so nodes may call it as often as
// they like and still agree.
func (s *State) DueBy(now Time) bool {
	s.due.Correct(now+lookAhead, maxRight)
	date, dated := s.dueDate()
	return s.busy() || s.due.DueBy(now) || dated && date <= now
}

// busy reports whether something was put off.
func (s *State) busy() bool {
	return s.chores.Len() > 0 || s.revocations.Len() > 0 || s.withdrawal != nil
}

// maxLate is how many deadlines nothingDue looks at.
const maxLate = 256

// nothingDue reports whether nothing is over at the stamp, or due in another way, that was not
// collected. It looks at a bounded number of deadlines and may therefore return false although
// nothing is, which costs its caller a look; it never returns true wrongly. A frozen state has
// no timers to look at.
func (s *State) nothingDue() bool { return !s.frozen && s.due.NoneDue(s.now, maxLate) }
