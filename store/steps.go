package store

import (
	"sync"
	"time"
)

// Steps notices when the wall clock of a store steps. A store that judges by a wall clock gives a
// lease away too early if that clock is set forward; nobody can prevent it, but it can be reported.
type Steps struct {
	mu          sync.Mutex // guards what follows
	known       bool
	least, most time.Duration // bounds of how far the store's clock is ahead of ours
	seen        time.Duration // when the last reading was answered
}

// stepsAllowed is what is no step: clocks are corrected by some milliseconds all the time. In
// addition, each second may be wrong by 1 %.
const stepsAllowed = 100 * time.Millisecond

// Observe takes a reading of the store's clock by a request that was sent and answered at moments
// of our own clock. It returns by how much the store's clock has stepped since the reading before;
// 0 if it has not.
func (s *Steps) Observe(reading time.Time, sent, answered time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	wall := time.Duration(reading.UnixNano())
	least, most := wall-answered, wall-sent
	slack := stepsAllowed + max(0, answered-s.seen)/100
	step := time.Duration(0)
	switch {
	case !s.known || sent < s.seen: // answers can overtake each other
	case least > s.most+slack:
		step = least - s.most
	case most < s.least-slack:
		step = most - s.least
	}
	if !s.known || answered >= s.seen {
		s.known, s.least, s.most, s.seen = true, least, most, answered
	}
	return step
}
