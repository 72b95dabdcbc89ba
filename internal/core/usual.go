package core

import (
	"fmt"
	"sort"
	"time"

	"github.com/leasehold/leasehold"
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
	Lost       Time
	LostBefore Time
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

func (m More) usual() Usual {
	if m.Usual == nil {
		return Usual{}
	}
	return *m.Usual
}

// learnHold notes on a resource how a lease on it went, which ended at some moment.
func (s *State) learnHold(sp *space, more *More, c *Claim, how leasehold.How, at Time) {
	u := more.usual()
	ttl, gap := s.pulse(sp, c)
	term := byte(0) // which is no TTL: the smallest stands higher
	if ttl != 0 {
		term = nearest(ttl)
	}
	u.Holds = learned(u.Holds, nearest(time.Duration(at-c.Since)), byte(how), term, gap)
	if wentAway(how) {
		u.Lost, u.LostBefore = at, u.Lost
	}
	more.Usual = &u
}

// wentAway tells whether a lease ended because its holder was not heard of any more.
func wentAway(how leasehold.How) bool {
	return how == leasehold.ByTTL || how == leasehold.SessionExpired
}

// pulse returns the TTL that a lease lives by, its session's if it has one, and the
// largest part of it that passed without a sign of life.
func (s *State) pulse(sp *space, c *Claim) (time.Duration, uint8) {
	if c.Session == "" {
		return c.TTL, c.Gap
	}
	session, ok := sp.sessions.Get(c.Session)
	if left := sp.left(c.Session); !ok && left != nil {
		return left.TTL, left.Gap
	}
	if !ok {
		session = s.closing
	}
	return session.TTL, session.Gap
}

// learnWait notes on a resource that a waiter gets its turn.
func (s *State) learnWait(r *Resource, c *Claim) {
	more := r.more()
	u := more.usual()
	queue := time.Duration(r.Waiting+1) * time.Millisecond
	u.Waits = learned(u.Waits, nearest(time.Duration(s.now-c.Since)), nearest(queue))
	more.Usual = &u
	r.setMore(more)
}

// whole is what a gap is a part of: so many parts are one TTL.
const whole = 250

// gap returns how much of a TTL has passed since the sign of life by which it ends at
// some moment, rounded up.
func (s *State) gap(ttl time.Duration, expires Time) uint8 {
	passed := ttl - time.Duration(expires-s.now)
	return uint8(max(0, min(whole, (passed*whole+ttl-1)/ttl)))
}

// How long a lease is held that is worth an alarm, if nothing was defined.
const (
	longFactor = 3 // times what nineteen of twenty are not above
	minLong    = time.Minute
)

// long returns the step of the scale above which a lease is held for unusually long; 0
// if nobody knows.
func (u *Usual) long() byte {
	if u == nil || len(u.Holds) < minLearned*holdBytes {
		return 0
	}
	holds := u.holds()
	return atLeast(max(minLong, longFactor*holds.at(95)))
}

// shown is what was learned, for people to read; nil if that is too little.
func (u *Usual) shown() *leasehold.Usual {
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

// usual returns what a resource learned; nil if nothing is known of it.
func (sp *space) usual(path string) *Usual {
	if r, ok := sp.resources.Get(path); ok {
		return r.more().Usual
	}
	return nil
}

// wellFormed refuses what was never learned.
func (u *Usual) wellFormed() error {
	if len(u.Holds)%holdBytes != 0 || len(u.Holds) > maxLearned*holdBytes || len(u.Waits)%waitBytes != 0 || len(u.Waits) > maxLearned*waitBytes {
		return fmt.Errorf("it has %d bytes of holds and %d of waits", len(u.Holds), len(u.Waits))
	}
	for i := 0; i < len(u.Holds); i += holdBytes {
		if how := leasehold.How(u.Holds[i+1]); how == 0 || how > leasehold.WaitOver || u.Holds[i+3] > whole || scale[u.Holds[i+2]] > 2*leasehold.MaxTTL {
			return fmt.Errorf("a hold of it ended in no way that there is, or had more than its ttl")
		}
	}
	return nil
}

// A forecast is when a resource usually is free: for the first who wants it, and how
// much later for each who comes after that. The zero forecast knows nothing.
type forecast struct {
	known bool
	late  bool // it is held for longer than is usual, and nobody can tell
	first time.Duration
	each  time.Duration
}

// forecast tells when a resource will usually be free.
func (s *State) forecast(sp *space, r *Resource) (f forecast) {
	if r.More == nil || r.More.Usual == nil {
		return f
	}
	holds := r.More.Usual.holds()
	if holds.n < minShown {
		return f
	}
	p50, p95 := holds.at(50), holds.at(95)
	f = forecast{known: true, each: p50 / time.Duration(max(1, r.sharers()))}
	senior := sp.senior(r)
	rest := r.longestRest(s.now)
	switch {
	case senior != nil:
		held := time.Duration(s.now - senior.Since)
		f.first = p50 - held
		if held >= p50 {
			f.first = p95 - held
		}
		if t := senior.terms(); t.BreakAt != 0 {
			f.first = min(max(f.first, 0), time.Duration(t.BreakAt-s.now))
		} else if held >= p95 {
			f.known, f.late = false, true
		}
	case rest != nil && rest.Until == 0:
		f.known = false
	case rest != nil:
		f.first = time.Duration(rest.Until - s.now)
	}
	if at := s.availableAfter(); at != 0 {
		f.first = max(f.first, time.Duration(at-s.now))
	}
	return f
}

// after is in how long somebody usually has its turn who has so many before it; 0 if
// nobody can tell. It is as exact as the scale.
func (f forecast) after(ahead int) time.Duration {
	if !f.known {
		return 0
	}
	d := leasehold.MaxHold
	if f.each == 0 || time.Duration(ahead) < leasehold.MaxHold/f.each {
		d = min(d, f.first+time.Duration(ahead)*f.each)
	}
	if d <= 0 {
		return 0
	}
	return scale[nearest(d)]
}

// told says it in a held answer, as the end of the sentence.
func (f forecast) told(ahead int) string {
	d := f.after(ahead)
	switch {
	case f.late:
		return "; it has been held for longer than usual"
	case d == 0:
		return ""
	case ahead == 0:
		return fmt.Sprintf("; usually free in about %s", told(d))
	}
	return fmt.Sprintf("; a turn usually comes in about %s", told(d))
}

// waiterForecast is in how long a waiter usually has its turn: in all queues that it
// stands in.
func (s *State) waiterForecast(sp *space, c *Claim) (longest time.Duration) {
	for _, one := range s.together(sp, c) {
		r, _ := sp.resources.Get(one.Resource)
		ahead := rank(sp, one) - rank(sp, beforeAll(one.Resource))
		d := s.forecast(sp, r).after(ahead)
		if d == 0 {
			return 0
		}
		longest = max(longest, d)
	}
	return longest
}
