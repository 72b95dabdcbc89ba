package core

import (
	"time"

	"github.com/leasehold/leasehold/internal/core/timeline"
)

// A timer is when one thing is due. Timers are the only part of the state that is
// changed in place, and no snapshot looks at them.
type timer = timeline.Timer[dueThing]

// A dueThing is what time alone changes.
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

func newDeadlines() timeline.Heap[dueThing] {
	return timeline.NewHeap(func(a, b dueThing) bool {
		switch {
		case a.kind != b.kind:
			return a.kind < b.kind
		case a.space.name != b.space.name:
			return a.space.name < b.space.name
		}
		return a.key < b.key
	})
}

// How far ahead, and how many deadlines at once, are corrected by DueBy: the first makes
// it rarely necessary to look, the second makes nobody wait while one looks.
const (
	lookAhead = Time(50 * time.Millisecond)
	maxRight  = 1024
)

// Due returns a moment before which time alone changes nothing, and false if it never
// does. What was put off is due at once. It may be too early, since what was renewed is not
// looked at until then: DueBy tells.
func (s *State) Due() (Time, bool) {
	if s.chores.Len() > 0 {
		return s.now, true
	}
	return s.due.Next()
}

// DueBy reports whether time alone would change something at a moment. It looks at a bounded
// number of deadlines; if there are more, it returns false, and Due still lies before the
// moment: ask again. What it does is no part of the state.
func (s *State) DueBy(now Time) bool {
	s.due.Correct(now+lookAhead, maxRight)
	return s.chores.Len() > 0 || s.due.DueBy(now)
}

// maxLate is how many deadlines are looked at to find whether one has passed.
const maxLate = 256

// calm reports whether nothing is over at the stamp, or due in another way, that was not
// collected. It may return false although that is so: it looks at a bounded number of
// deadlines. A frozen state has none to look at.
func (s *State) calm() bool { return !s.frozen && s.due.NoneDue(s.now, maxLate) }
