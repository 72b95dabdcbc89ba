// Package usage learns how long a resource is usually held and waited for, and makes forecasts
// and advice of that.
package usage

import (
	"fmt"
	"sort"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/timeline"
)

// A resource learns from what happens on it how long it is usually held and waited
// for. What it learns decides forecasts, alarms and TTLs, and so it is the same on
// every node: all of it is counted in whole numbers. There are no fractions in the
// core, since processors differ in how they round them (some multiply and add in one
// step, some in two).

// Usual is what a resource learned. It is never changed in place.
type Usual struct {
	// Of the last leases that ended, oldest first, holdBytes each: how long it was held,
	// how it ended, what its TTL was, and how much of that passed at most without a
	// renewal.
	Holds string

	// Of the last waiters that were granted, oldest first, waitBytes each: how long it
	// waited, and how many waited then, itself among them.
	Waits string

	// When holders went away, the last two times; 0: never.
	Lost       timeline.Time
	LostBefore timeline.Time
}

const (
	maxLearned = 64 // leases, and waits, of one resource
	holdBytes  = 4
	waitBytes  = 2

	// How many have to be known before they are spoken of, and before anything is
	// decided by them.
	minShown   = 3
	minLearned = 8
)

// steps are the numbers that a decade of the scale tells apart. None is more than an
// eighth above the one before it, and they are those that people use for times: a
// minute, a quarter of an hour and an hour are among them.
var steps = [...]time.Duration{
	100, 110, 120, 135, 150, 165, 180, 200, 220, 240, 270, 300, 330, 360, 400, 440, 480, 540, 600, 660, 720, 800, 900,
}

// scale are the times that are told apart, from a millisecond to almost four years.
var scale = func() (scale [256]time.Duration) {
	decade := 10 * time.Microsecond
	for i := range scale {
		if i > 0 && i%len(steps) == 0 {
			decade *= 10
		}
		scale[i] = steps[i%len(steps)] * decade
	}
	return scale
}()

// atLeast returns the first step of the scale that is not below a time.
func atLeast(d time.Duration) byte {
	return byte(min(sort.Search(len(scale), func(i int) bool { return scale[i] >= d }), len(scale)-1))
}

// Time returns the time of a step of the scale.
func Time(step byte) time.Duration { return scale[step] }

// nearest returns the step of the scale that is next to a time.
func nearest(d time.Duration) byte {
	above := atLeast(d)
	if above > 0 && d-scale[above-1] < scale[above]-d {
		return above - 1
	}
	return above
}

// A tally counts steps of the scale.
type tally struct {
	n  int
	of [256]uint8
}

// tallied counts every so many bytes of what was learned, from one on.
func tallied(learned string, from, size int) (t tally) {
	for i := from; i < len(learned); i += size {
		t.of[learned[i]]++
		t.n++
	}
	return t
}

// step returns the first step that so many percent are not above; 0 if nothing was
// counted.
func (t *tally) step(percent int) int {
	wanted, seen := (t.n*percent+99)/100, 0
	for step, n := range t.of {
		if seen += int(n); n > 0 && seen >= wanted {
			return step
		}
	}
	return 0
}

// at returns the time of a step; 0 if nothing was counted.
func (t *tally) at(percent int) time.Duration {
	if t.n == 0 {
		return 0
	}
	return scale[t.step(percent)]
}

func (u *Usual) holds() tally { return tallied(u.Holds, 0, holdBytes) }
func (u *Usual) waits() tally { return tallied(u.Waits, 0, waitBytes) }

// queues counts how long the queue was: one waiter is the scale's first step.
func (u *Usual) queues() tally { return tallied(u.Waits, 1, waitBytes) }

// waiters reads a length of the queue off the scale.
func waiters(d time.Duration) int { return int((d + time.Millisecond - 1) / time.Millisecond) }

// learned appends a sample, and forgets the oldest if there are too many.
func learned(samples string, sample ...byte) string {
	var room [(maxLearned + 1) * holdBytes]byte
	b := append(append(room[:0], samples...), sample...)
	return string(b[max(0, len(b)-maxLearned*len(sample)):])
}

// How long a lease is held that is worth an alarm, if nothing was defined.
const (
	longFactor = 3 // times what nineteen of twenty are not above
	minLong    = time.Minute
)

// Long returns the step of the scale above which a lease is held for unusually long; 0
// if nobody knows.
func (u *Usual) Long() byte {
	if u == nil || len(u.Holds) < minLearned*holdBytes {
		return 0
	}
	holds := u.holds()
	return atLeast(max(minLong, longFactor*holds.at(95)))
}

// Shown returns what was learned, for people to read; nil if that is too little.
func (u *Usual) Shown() *leasehold.Usual {
	if u == nil {
		return nil
	}
	holds, waits, queues := u.holds(), u.waits(), u.queues()
	if max(holds.n, waits.n) < minShown {
		return nil
	}
	shown := &leasehold.Usual{
		Holds: holds.n, HoldP50: holds.at(50), HoldP95: holds.at(95),
		Waits: waits.n, WaitP50: waits.at(50), WaitP95: waits.at(95), Queue: waiters(queues.at(50)),
	}
	for i := 1; i < len(u.Holds); i += holdBytes {
		if !leasehold.How(u.Holds[i]).Clean() {
			shown.Unclean++
		}
	}
	return shown
}

// WellFormed refuses what was never learned.
func (u *Usual) WellFormed() error {
	if len(u.Holds)%holdBytes != 0 || len(u.Holds) > maxLearned*holdBytes || len(u.Waits)%waitBytes != 0 ||
		len(u.Waits) > maxLearned*waitBytes {
		return fmt.Errorf("it has %d bytes of holds and %d of waits", len(u.Holds), len(u.Waits))
	}
	for i := 0; i < len(u.Holds); i += holdBytes {
		if how := leasehold.How(u.Holds[i+1]); how == 0 || how > leasehold.Abandoned || u.Holds[i+3] > Whole ||
			scale[u.Holds[i+2]] > 2*leasehold.MaxTTL {
			return fmt.Errorf("a hold of it ended in no way that there is, or had more than its ttl")
		}
	}
	return nil
}

// AddHold notes how a lease went that ended at some moment.
func (u *Usual) AddHold(held time.Duration, how leasehold.How, ttl time.Duration, gap uint8, at timeline.Time) {
	term := byte(0) // which is no TTL: the smallest stands higher
	if ttl != 0 {
		term = nearest(ttl)
	}
	u.Holds = learned(u.Holds, nearest(held), byte(how), term, gap)
	if WentAway(how) {
		u.Lost, u.LostBefore = at, u.Lost
	}
}

// AddWait notes that a waiter got its turn, and how many waited then, itself among them.
func (u *Usual) AddWait(waited time.Duration, waiting int) {
	u.Waits = learned(u.Waits, nearest(waited), nearest(time.Duration(waiting)*time.Millisecond))
}

// Queue returns how many usually wait; 0 if nobody knows.
func (u *Usual) Queue() int {
	if len(u.Waits) < minLearned*waitBytes {
		return 0
	}
	queues := u.queues()
	return waiters(queues.at(50))
}

// WentAway reports whether a lease ended because its holder was not heard of any longer.
func WentAway(how leasehold.How) bool {
	return how == leasehold.ByTTL || how == leasehold.SessionExpired
}

// Whole is what a gap is a part of: so many parts are one TTL.
const Whole = 250

// Gap returns how much of a TTL has passed, rounded up, since the sign of life after which so
// much of it is left.
func Gap(ttl, left time.Duration) uint8 {
	passed := ttl - left
	return uint8(max(0, min(Whole, (passed*Whole+ttl-1)/ttl)))
}
