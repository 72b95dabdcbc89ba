package usage

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
)

// Recent is what the last leases of one kind were like, oldest first, as Usual has them. Unlike a resource, which
// counts all of its last leases alike, a kind forgets by and by: a lease counts half as much for every sixteen that
// came after it, so that work which takes ten times as long from some day on is known anew after sixteen leases. Only
// leases that were given back say how long the work takes: a holder that died had not finished, and what its lease
// lasted is what its TTL was.
type Recent string

const (
	halving = 16 // leases, after which one counts half as much
	heavy   = 8  // what the newest count

	// How far the tenth of all that takes least, and the tenth that takes most, are apart: half of it is the error of a
	// forecast.
	lowPercent, highPercent = 10, 90
)

// What a TTL may be that is reckoned from learned times.
const (
	// RenewedTTL is the most for a holder that renews: it is only how long it takes to notice that it died. It is
	// at least a minute, whatever pauses were seen so far: a few leases do not show the worst that there can be,
	// and to cut a job off costs more than to wait for it.
	RenewedTTL   = 2 * time.Minute
	leastRenewed = time.Minute
	// Twice what nineteen of twenty need is for a holder that does not renew, and at least and at most:
	leastUnattended = 10 * time.Minute
	mostUnattended  = 24 * time.Hour
)

// Recent returns what a resource learned of all its leases, as if they were of one kind.
func (u *Usual) Recent() Recent {
	if u == nil {
		return ""
	}
	return Recent(u.Holds)
}

// Add returns what is known after one more lease.
func (r Recent) Add(held time.Duration, how leasehold.How, ttl time.Duration, gap uint8) Recent {
	u := Usual{Holds: string(r)}
	u.AddHold(held, how, ttl, gap, 0)
	return Recent(u.Holds)
}

// finished counts the leases that were given back and took longer than something, each by its weight.
func (r Recent) finished(longer time.Duration) (t tally, n int) {
	for i, age := len(r)-holdBytes, 0; i >= 0; i, age = i-holdBytes, age+1 {
		if !leasehold.How(r[i+1]).Clean() || scale[r[i]] <= longer {
			continue
		}
		weight := heavy >> (age / halving)
		t.of[r[i]] += uint8(weight)
		t.n += weight
		n++
	}
	return t, n
}

// Known reports whether enough leases were given back to speak of what is usual.
func (r Recent) Known() bool {
	_, n := r.finished(-1)
	return n >= minShown
}

// At returns what so many percent of the leases were not held longer than; 0 if too little is known.
func (r Recent) At(percent int) time.Duration {
	t, n := r.finished(-1)
	if n < minShown {
		return 0
	}
	return t.at(percent)
}

// A Guess is a time that is likely, and how far it may be off: four of five are within it.
type Guess struct{ Time, Error time.Duration }

// Then returns the time of what follows another. Errors add up as squares do: they seldom all go the same way.
func (g Guess) Then(next Guess) Guess {
	a, b := min(g.Error.Milliseconds(), maxError), min(next.Error.Milliseconds(), maxError)
	return Guess{min(g.Time+next.Time, leasehold.MaxHold), time.Duration(root(a*a+b*b)) * time.Millisecond}
}

// maxError is an error whose square can be added to another's, in milliseconds: twelve days.
const maxError = 1 << 30

// Hold returns how long a lease will be held; false if too little is known.
func (r Recent) Hold() (Guess, bool) { return r.Left(0) }

// Left returns how much longer a lease will be held that has been for so long, by those that were held at least that
// long; false if there is none, or too little is known.
func (r Recent) Left(held time.Duration) (Guess, bool) {
	t, n := r.finished(held)
	if n == 0 || !r.Known() {
		return Guess{}, false
	}
	return Guess{t.at(50) - held, (t.at(highPercent) - t.at(lowPercent)) / 2}, true
}

// AtLeast returns how much longer a lease will be held at least that has been for so long: nine of ten are; 0 if nobody
// knows.
func (r Recent) AtLeast(held time.Duration) time.Duration {
	t, n := r.finished(held)
	if n == 0 || !r.Known() {
		return 0
	}
	return max(0, t.at(lowPercent)-held)
}

// AtMost returns how long a lease will be held at most: nineteen of twenty are not held longer; 0 if too little is
// known to rely on.
func (r Recent) AtMost() time.Duration {
	t, n := r.finished(-1)
	if n < minLearned {
		return 0
	}
	return t.at(95)
}

// Long returns the step of the scale above which a lease is held for unusually long; 0 if nobody knows.
func (r Recent) Long() byte {
	t, n := r.finished(-1)
	if n < minLearned {
		return 0
	}
	return atLeast(max(minLong, longFactor*t.at(95)))
}

// Unattended returns the TTL of a lease that nobody renews. While too little is known it is the definition's default,
// else the most: to be cut off is worse than to be waited for.
func (r Recent) Unattended(d leasehold.Definition) time.Duration {
	ttl := mostUnattended
	switch _, n := r.finished(-1); {
	case n >= minLearned:
		ttl = min(max(2*r.At(95), leastUnattended), mostUnattended)
	case d.DefaultTTL != 0:
		ttl = d.DefaultTTL
	}
	if d.LargestTTL != 0 {
		ttl = min(ttl, d.LargestTTL)
	}
	return ttl
}

// Shown returns what was learned, for people to read; nil if that is too little.
func (r Recent) Shown() *leasehold.Usual {
	if !r.Known() {
		return nil
	}
	shown := &leasehold.Usual{Holds: len(r) / holdBytes, HoldP50: r.At(50), HoldP95: r.At(95)}
	for i := 1; i < len(r); i += holdBytes {
		if !leasehold.How(r[i]).Clean() {
			shown.Unclean++
		}
	}
	return shown
}

// WellFormed refuses what was never learned.
func (r Recent) WellFormed() error {
	if r == "" {
		return fmt.Errorf("it has no holds")
	}
	u := Usual{Holds: string(r)}
	return u.WellFormed()
}

// AdviseKind returns the TTL that suits holders of a kind who renew. While too little is known it is the most, unless
// the definition has a default.
func AdviseKind(r Recent, d leasehold.Definition) leasehold.Advice {
	fallback := RenewedTTL
	if d.DefaultTTL != 0 {
		fallback = d.DefaultTTL
	}
	return advise(advisor{u: &Usual{Holds: string(r)}, d: d, least: leastRenewed, patience: RenewedTTL}, r.Shown(),
		fallback)
}
