package usage

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/timeline"
)

// The TTL of a lease is a bargain, which Gray and Cheriton were the first to write down
// (Leases, 1989): a short one costs renewals, and is lost to an ordinary pause; a long
// one keeps everybody waiting for a holder that is gone.
//
// With k renewals in a TTL of T, a holder sends 2k/T messages a second. It goes away m
// times a second, in the middle between two renewals on average, and is missed until
// its lease ends, for T(1 - 1/2k). If a second without a holder costs as much as c
// messages, all of it costs least at
//
//	T = sqrt( 2k / (c m (1 - 1/2k)) )
//
// which is bounded from below by the pauses that were seen, and from above by patience.
// It is reckoned in Whole milliseconds: see usual.go.

// What is taken for granted by the model.
const (
	usualRenewals = 3                      // in a TTL, where nobody has seen any
	messageTime   = 100 * time.Millisecond // from a holder to the log and back, at worst
	clockPercent  = 1                      // of a TTL, which a holder leaves for clocks that run differently
	secondCosts   = 100                    // messages are worth a second without a holder
	pauseFactor   = 2                      // a few leases do not show the worst pause there can be
	patience      = 10 * time.Minute       // with a holder that is gone, where nobody knows of which kind

	// Holders are taken to go away once a day until something else is known, with the
	// weight of a tenth of what one did.
	priorTime = 24 * time.Hour / 10
)

// An advisor makes up an advice, step by step.
type advisor struct {
	leasehold.Advice
	u        *Usual
	d        leasehold.Definition
	least    time.Duration // that is never gone below
	patience time.Duration // that those who wait have with a holder that is gone
}

// Advise returns the TTL that suits a resource: fallback, unless enough is known.
func Advise(u *Usual, d leasehold.Definition, fallback time.Duration) leasehold.Advice {
	if u == nil {
		u = &Usual{}
	}
	return advise(advisor{u: u, d: d, least: leasehold.ShortTTL, patience: patience}, u.Shown(), fallback)
}

func advise(a advisor, usual *leasehold.Usual, fallback time.Duration) leasehold.Advice {
	a.Grace, a.Usual = a.d.Grace, usual
	if a.Learned = usual != nil && len(a.u.Holds) >= minLearned*holdBytes; a.Learned {
		a.fromPauses()
		a.fromLosses()
		a.fromPatience()
	} else {
		a.fromNothing(fallback)
	}
	a.takeOver()
	return a.Advice
}

func (a *advisor) say(format string, args ...any) {
	a.Reasons = append(a.Reasons, fmt.Sprintf(format, args...))
}

func leases(n int) string {
	if n == 1 {
		return "1 lease"
	}
	return fmt.Sprintf("%d leases", n)
}

// fromNothing falls back on what was set, or on the default.
func (a *advisor) fromNothing(fallback time.Duration) {
	a.Renewals, a.TTL = usualRenewals, fallback
	if a.d.LargestTTL != 0 {
		a.TTL = min(a.TTL, a.d.LargestTTL)
	}
	a.say("too little is known: %s ended here, and %d have to before they say anything; until then the TTL is the "+
		"default, %s",
		leases(len(a.u.Holds)/holdBytes), minLearned, timeline.Text(a.TTL))
}

// fromPauses finds the least TTL: a renewal is due after one part of it, and the worst
// pause must fit in what is left then.
func (a *advisor) fromPauses() {
	a.say("%s ended here lately: half were held for at most %s, nineteen of twenty for at most %s",
		leases(a.Usual.Holds), timeline.Text(a.Usual.HoldP50), timeline.Text(a.Usual.HoldP95))
	renewed, pause := a.pauses()
	if renewed == 0 {
		a.say("none of them was renewed: %d renewals in a TTL are taken for granted", a.Renewals)
	} else {
		a.say("%d of them were renewed, %d times in a TTL; the longest pause beyond that took %s", renewed, a.Renewals,
			timeline.Text(scale[nearest(pause)]))
	}
	k := time.Duration(a.Renewals)
	least := (pauseFactor*pause + messageTime) * k / (k - 1) * 100 / (100 - clockPercent)
	a.Least = max(inSeconds(least), a.least)
	a.say("at least %s: twice the longest pause, and %s for messages, have to fit in what is left when a renewal "+
		"is due; %d %% more is for clocks, and less than %s is never advised",
		timeline.Text(a.Least), timeline.Text(messageTime), clockPercent, timeline.Text(a.least))
}

// pauses returns how many leases were renewed, and the longest time that one of them
// was late with it. It sets how often they are renewed in a TTL: as half of them are.
func (a *advisor) pauses() (renewed int, pause time.Duration) {
	var gaps tally
	for i := 0; i < len(a.u.Holds); i += holdBytes {
		if gap := a.u.Holds[i+3]; gap > 0 && a.u.Holds[i+2] > 0 {
			gaps.of[gap]++
			gaps.n++
		}
	}
	a.Renewals = usualRenewals
	if gaps.n == 0 {
		return 0, 0
	}
	half := time.Duration(gaps.step(50))
	a.Renewals = int(min(max((Whole+half/2)/half, 2), 10))
	for i := 0; i < len(a.u.Holds); i += holdBytes {
		ttl, gap := scale[a.u.Holds[i+2]], time.Duration(a.u.Holds[i+3])
		if gap > 0 && a.u.Holds[i+2] > 0 {
			pause = max(pause, ttl*gap/Whole-ttl/time.Duration(a.Renewals))
		}
	}
	return gaps.n, pause
}

// fromLosses finds the TTL that costs least, by how often holders go away.
func (a *advisor) fromLosses() {
	lost, held := 0, time.Duration(0)
	for i := 0; i < len(a.u.Holds); i += holdBytes {
		held = min(held+scale[a.u.Holds[i]], leasehold.MaxHold)
		if WentAway(leasehold.How(a.u.Holds[i+1])) {
			lost++
		}
	}
	once := (held + priorTime) * 10 / time.Duration(10*lost+1)
	k := int64(a.Renewals)
	square := once.Milliseconds() * 2 * k * (1000 / secondCosts) * 2 * k / (2*k - 1)
	a.Cheapest = inSeconds(time.Duration(root(square)) * time.Millisecond)
	a.say("%d of them ended because the holder went away, in %s of holding: that is taken as once in %s", lost,
		timeline.Text(held), timeline.Text(roughly(once)))
	a.say("cheapest at %s: there renewals, and time without a holder, of which a second is taken to cost as much "+
		"as %d messages, cost the least together", timeline.Text(a.Cheapest), secondCosts)
}

// fromPatience finds the largest TTL, and the one between all three.
func (a *advisor) fromPatience() {
	a.Most = a.patience
	why := "nobody should wait longer for a holder that is gone"
	if a.d.LargestTTL != 0 && a.d.LargestTTL < a.patience {
		a.Most, why = a.d.LargestTTL, "the definition of "+a.d.Path+" says so"
	}
	a.say("at most %s: %s", timeline.Text(a.Most), why)
	a.TTL = min(max(a.Cheapest, a.Least), a.Most)
	if a.Least > a.Most {
		a.say("the most is below the least: with pauses as they were seen, leases will be lost by live holders")
	}
}

// takeOver says what follows from the TTL.
func (a *advisor) takeOver() {
	k := time.Duration(a.Renewals)
	a.Interval, a.TakeOver = (a.TTL / k).Round(time.Millisecond), (a.TTL * (2*k - 1) / (2 * k)).Round(time.Millisecond)
	grace := ""
	if a.Grace != 0 {
		grace = fmt.Sprintf(", and then rests for %s", timeline.Text(a.Grace))
	}
	a.say("with %s a holder renews every %s; the resource of one that went away is free after %s on average, %s at "+
		"worst%s",
		timeline.Text(a.TTL), timeline.Text(a.Interval), timeline.Text(a.TakeOver), timeline.Text(a.TTL), grace)
}

// roughly leaves out what nobody reads of a long time.
func roughly(d time.Duration) time.Duration {
	if d > time.Hour {
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}

// inSeconds rounds up: nobody needs a TTL to the millisecond.
func inSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// root is the Whole part of a square root.
func root(n int64) int64 {
	if n < 2 {
		return max(n, 0)
	}
	x := n/2 + 1 // not below the root
	for {
		next := (x + n/x) / 2
		if next >= x {
			return x
		}
		x = next
	}
}
