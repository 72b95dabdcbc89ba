package storetest

import (
	"strconv"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// What holds when the wall clock of a store steps. A store that judges by it gives a lease away too early if it
// steps forward, which nobody can prevent, and too late if it steps back. Tokens make the first harmless.

func clockTests() []test {
	return []test{{name: "clock/steps", own: true, run: clockSteps,
		lacks: func(c *Config) string { return unless(c.Clock != nil, "set the clock of") }}}
}

func clockSteps(k *kit) {
	k, step := k.clocked()
	tokensOverSteps(k, step)
	stepsForward(k, step)
	stepsBack(k, step)
}

// at returns a kit for the same case on another store.
func (k *kit) at(open func(testing.TB) store.Store) *kit {
	c := k.Config
	c.Open = open
	return newKit(k.TB, c)
}

// clocked returns a kit on a store whose clock can be set.
func (k *kit) clocked() (*kit, func(time.Duration)) {
	c := k.Clock(k.TB)
	return k.at(c.Open), c.Step
}

func tokensOverSteps(k *kit, step func(time.Duration)) {
	var last leasehold.Token
	for i, by := range []time.Duration{0, time.Hour, -2 * time.Hour, time.Hour} {
		step(by)
		r := k.ref("r", strconv.Itoa(i))
		last = k.larger(k.get(k.longer(r)), last, "a step of "+by.String())
		k.release(r)
		if k.features.Tokens.Scope == store.PerNamespace {
			last = k.larger(k.free(k.res("new-"+strconv.Itoa(i))), last, "a step, on another resource")
		}
	}
}

// A lease that a step ends has ended, for good: its holder is told so, and what it writes late is refused.
func stepsForward(k *kit, step func(time.Duration)) {
	a, b := k.ref("forward", "f-a"), k.ref("forward", "f-b")
	first := k.get(k.longer(a))
	g := &register{guard: fence.NewMemory()}
	k.write(g, a.Resource, first.Token)
	const by = 5 * time.Minute // more than any TTL here, and less than marks last
	step(by)
	next := k.get(k.longer(b))
	k.write(g, a.Resource, k.larger(next, first.Token, "a step"))
	k.over(a, leasehold.ByTTL)
	k.denied(k.request(a), leasehold.Lost)
	if k.write(g, a.Resource, first.Token) {
		k.Errorf("the holder that lost it to a step writes on")
	}
	step(-by)
	k.over(a, 0)
	if now := k.alive(b); now.Token != next.Token || now.Remaining > next.TTL {
		k.Errorf("after a step back it has token %d and %v left", now.Token, now.Remaining)
	}
}

// A lease may last for longer after a step back, but nobody is told so: the clock may be set right again.
// The next renewal counts from the new time.
func stepsBack(k *kit, step func(time.Duration)) {
	r := k.ref("back", "b-a")
	first := k.acquire(r)
	step(-time.Hour)
	if again := k.acquire(r); again.Token != first.Token || again.Remaining > k.TTL {
		k.Errorf("asked again after a step back, it has token %d and %v left", again.Token, again.Remaining)
	}
	e := k.denied(k.request(k.ref("back", "b-b")), leasehold.Held)
	if e.Lease != nil && e.Lease.Remaining > k.TTL {
		k.Errorf("others are told that %v are left of a TTL of %v", e.Lease.Remaining, k.TTL)
	}
	sent := time.Now()
	if now := k.alive(r); now.Token != first.Token || now.Remaining > k.TTL {
		k.Errorf("renewed after a step back, it has token %d and %v left", now.Token, now.Remaining)
	}
	_, got := k.takeOver(r.Resource, k.id("b-c"), 2*k.TTL+k.Late+k.Slack)
	if early := sent.Add(k.TTL).Sub(got); early > 0 {
		k.Errorf("it was granted to somebody else %v before the TTL was over", early)
	}
}
