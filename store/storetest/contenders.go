package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

func contenderTests() []test {
	return []test{
		{name: "contenders/fenced register", run: func(k *kit) { contend(k, nil, nil) }},
		{name: "contenders/bad network", run: func(k *kit) { contend(k, badNetwork, nil) }},
		{name: "contenders/store is killed", alone: true, run: func(k *kit) { contend(k, nil, k.Kill) },
			lacks: longOnly(func(c *Config) string { return unless(c.Kill != nil, "kill") })},
		{name: "contenders/a standby is promoted", own: true, run: contendOverAFailover,
			lacks: longOnly(func(c *Config) string { return unless(c.Standby != nil, "promote a standby of") })},
		{name: "contenders/clock steps back", own: true, run: contendOverSteps,
			lacks: longOnly(func(c *Config) string { return unless(c.Clock != nil, "set the clock of") })},
		{name: "contenders/paused holders", run: pausedHolders},
	}
}

// long is why a case is left out that takes longer than all others together.
const long = "only in the long form"

// short reports whether time is scarce.
func (c *Config) short() bool { return c.brief || !c.Full && !c.Virtual }

func longOnly(lacks func(*Config) string) func(*Config) string {
	return func(c *Config) string {
		if c.short() {
			return long
		}
		return lacks(c)
	}
}

// contendOverAFailover lets contenders go on while a standby that lags is promoted.
func contendOverAFailover(k *kit) {
	s := k.Standby(k.TB)
	contend(k.at(s.Open), nil, func(testing.TB) {
		s.Lag()
		k.sleep(k.TTL / 2)
		s.Promote()
	})
}

// contendOverSteps lets contenders go on while the store's clock steps back, which ends nothing early.
func contendOverSteps(k *kit) {
	k, step := k.clocked()
	contend(k, nil, func(testing.TB) {
		for range 5 {
			step(-k.TTL / 2)
			k.sleep(k.TTL)
		}
	})
}

// badNetwork is the fate of messages of which one in four is hit.
func badNetwork() fate {
	if rand.N(4) > 0 {
		return delivered
	}
	return 1 + rand.N(delayed)
}

// A belief is the time for which a holder took a resource for its own.
type belief struct {
	from, to time.Time
	token    leasehold.Token
}

// A register is what holders write to, behind a guard. It checks what the guard lets in.
type register struct {
	guard *fence.Memory

	mu      sync.Mutex // guards what follows
	last    leasehold.Token
	turn    int   // how many holders there were
	order   []int // of the ways in which four of them let go
	writes  int
	late    int // that were refused
	beliefs []belief
}

// ways is in how many ways a holder lets go of a resource.
const ways = 4

// way returns in which way the next holder lets go of the resource: all of them come, in some order.
func (g *register) way() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turn%ways == 0 {
		g.order = rand.Perm(ways)
	}
	g.turn++
	return g.order[(g.turn-1)%ways]
}

func (g *register) believe(b belief) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.beliefs = append(g.beliefs, b)
}

// write writes as the holder of a token. It reports whether the guard let it in.
func (k *kit) write(g *register, resource string, token leasehold.Token) bool {
	pass := fence.Pass{Token: token}
	err := g.guard.Do(k.Context(), resource, pass, func(context.Context) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if token < g.last {
			k.Errorf("a write with token %d got in after one with %d", token, g.last)
		}
		g.last, g.writes = token, g.writes+1
		return nil
	})
	if err == nil {
		return true
	}
	if late := (*fence.LateError)(nil); !errors.As(err, &late) || late.Floor <= token {
		k.Errorf("a write with token %d was refused: %v", token, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.late++
	return false
}

// contend lets holders fight for two resources, eight for each, and checks that none of them ever believed in
// its lease while another one did. Something may happen to the store in the meantime.
func contend(k *kit, network func() fate, disrupt func(testing.TB)) {
	const n, resources = 8, 2
	var registers [resources]*register
	for i := range registers {
		registers[i] = &register{guard: fence.NewMemory()}
	}
	rounds := k.rounds()
	if disrupt != nil && k.Full { // it happens once
		rounds = 15 * k.TTL
	}
	end := time.Now().Add(rounds)
	compete := func(i int, s store.Store, resource int) {
		c := &contender{k: k, store: s, register: registers[resource], ref: k.ref("r"+strconv.Itoa(resource), "")}
		for j := 0; time.Now().Before(end) && !k.Failed(); j++ {
			c.ref.ID = k.id(strings.Join([]string{strconv.Itoa(i), strconv.Itoa(resource), strconv.Itoa(j)}, "-"))
			c.round(end)
		}
	}
	k.together(n+1, func(i int) {
		if i == n {
			if disrupt != nil {
				k.sleep(rounds / 3)
				disrupt(k.TB)
			}
			return
		}
		s := k.second()
		if network != nil {
			s = k.network(s, network)
		}
		k.together(resources, func(resource int) { compete(i, s, resource) })
	})
	for _, g := range registers {
		k.checkBeliefs(g)
		k.Logf("%d grants, %d writes, %d late writes were refused", len(g.beliefs), g.writes, g.late)
	}
}

// some returns how long to go on: for some number of TTLs, or half of that if time is scarce.
func (k *kit) some(ttls int) time.Duration {
	if k.short() {
		return time.Duration(ttls) * k.TTL / 2
	}
	return time.Duration(ttls) * k.TTL
}

// rounds is how long contenders go on. A holder that is paused or dies takes one to two TTLs.
func (k *kit) rounds() time.Duration {
	if k.short() {
		return 5 * k.TTL / 2
	}
	return 50 * k.TTL
}

// checkBeliefs fails if two beliefs overlap, or if tokens do not grow with them.
func (k *kit) checkBeliefs(g *register) {
	k.Helper()
	if len(g.beliefs) == 0 {
		k.Fatalf("nobody was granted anything")
	}
	slices.SortFunc(g.beliefs, func(a, b belief) int { return a.from.Compare(b.from) })
	for i, b := range g.beliefs[1:] {
		before := g.beliefs[i]
		if overlap := before.to.Sub(b.from); overlap > 0 {
			k.Errorf("the holder of token %d believed in it for %v after token %d was granted", before.token, overlap,
				b.token)
		}
		if b.token <= before.token {
			k.Errorf("token %d was granted after %d", b.token, before.token)
		}
	}
}

// A contender is one who wants a resource.
type contender struct {
	k        *kit
	store    store.Store
	register *register
	ref      store.Ref
}

// round acquires the resource, writes, and lets go of it in one of some ways. After the end it is released.
func (c *contender) round(end time.Time) {
	k := c.k
	grant, deadline, ok := c.acquire(end)
	if !ok {
		c.release()
		k.sleep(k.TTL / 20)
		return
	}
	b := belief{from: time.Now(), to: deadline, token: grant.Token}
	for range 3 {
		if time.Now().Before(deadline) {
			k.write(c.register, c.ref.Resource, grant.Token)
			k.sleep(k.TTL / 50)
		}
	}
	how := ways
	if time.Now().Before(end) {
		how = c.register.way()
	}
	switch how {
	case 0: // it is paused for longer than its lease, and writes then
		k.sleep(k.TTL + k.TTL/4)
		k.write(c.register, c.ref.Resource, grant.Token)
	case 1: // it is renewed first
		if later, alive := c.renew(); alive {
			b.to = later
		}
	case 2: // it dies
		c.register.believe(b)
		return
	}
	if now := time.Now(); now.Before(b.to) {
		b.to = now
	}
	c.register.believe(b)
	c.release()
}

// acquire returns a lease, and until when its holder may believe in it.
func (c *contender) acquire(end time.Time) (grant store.Grant, deadline time.Time, ok bool) {
	k := c.k
	r := k.request(c.ref)
	if rand.N(2) > 0 {
		r.Wait = min(k.TTL, max(0, time.Until(end)))
	}
	for range 5 {
		sent := time.Now()
		var err error
		grant, err = k.askOf(c.store, r)
		if err == nil {
			deadline, ok = sent.Add(grant.Remaining*99/100), true
			break
		}
		if !store.Transient(err) {
			if !errors.Is(err, leasehold.ErrHeld) && !errors.Is(err, leasehold.ErrLost) {
				k.Errorf("acquire: %s", describe(err))
			}
			return grant, deadline, false
		}
	}
	if ok && grant.Waited {
		deadline, ok = c.renew()
	}
	return grant, deadline, ok && time.Now().Before(deadline)
}

// renew renews the lease, and returns until when it is good then.
func (c *contender) renew() (deadline time.Time, ok bool) {
	ctx, cancel := c.k.within(0)
	defer cancel()
	sent := time.Now()
	list, err := c.store.Renew(ctx, c.ref)
	if err != nil || len(list) != 1 || list[0].Ended != nil || list[0].Err != nil {
		return deadline, false
	}
	return sent.Add(list[0].Remaining * 99 / 100), true
}

func (c *contender) release() {
	ctx, cancel := c.k.within(0)
	defer cancel()
	release := store.ReleaseRequest{Leases: []store.Ref{c.ref}, Withdraw: true}
	err := c.k.retry(func() error { return c.store.Release(ctx, release) })
	if err != nil && !store.Transient(err) {
		c.k.Errorf("release: %v", err)
	}
}

// Twenty holders are paused at once, others take over, and every late write is refused.
func pausedHolders(k *kit) {
	const n = 20
	g := make([]*register, n)
	tokens := make([]leasehold.Token, n)
	name := strconv.Itoa
	k.together(n, func(i int) {
		g[i] = &register{guard: fence.NewMemory()}
		tokens[i] = k.acquire(k.ref(name(i), "paused-"+name(i))).Token
		if !k.write(g[i], name(i), tokens[i]) {
			k.Errorf("a holder was refused before anybody else came")
		}
	})
	k.sleep(k.TTL + k.MassLate + k.Slack + time.Millisecond) // the pause
	k.together(n, func(i int) {
		next := k.acquire(k.ref(name(i), "next-"+name(i)))
		k.write(g[i], name(i), next.Token)
	})
	refused := 0
	for i := range n {
		if !k.write(g[i], name(i), tokens[i]) {
			refused++
		}
		k.over(k.ref(name(i), "paused-"+name(i)), leasehold.ByTTL)
	}
	if refused != n {
		k.Errorf("%d of %d late writes were refused", refused, n)
	}
}
