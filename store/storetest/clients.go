package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// What a user gets: the client on the store.

func clientTests() []test {
	return []test{
		{name: "client/keeps a lease", run: clientKeeps},
		{name: "client/cut off", run: clientCutOff},
		{name: "client/broken", run: clientBroken},
		{name: "client/suspended", run: clientSuspended},
		{name: "client/contenders", run: func(k *kit) { clientsContend(k, true) }},
		{name: "client/contenders without sessions", run: func(k *kit) { clientsContend(k, false) },
			needs: []store.Power{store.SessionPower}}, // without that power it would be the same again
	}
}

// A clock is that of a client. In a bubble that of the machine would be too real.
type clock struct {
	start time.Time
	slept atomic.Int64 // for how long the machine was suspended
}

func (c *clock) Now() time.Duration {
	return time.Since(c.start) + time.Second + time.Duration(c.slept.Load())
}

// client opens a client on a store.
func (k *kit) client(s store.Store) *client.Client {
	k.Helper()
	return k.clientBy(s, &clock{start: time.Now()})
}

func (k *kit) clientBy(s store.Store, clock *clock) *client.Client {
	k.Helper()
	c, err := client.Open(k.Context(), s, client.Config{Holder: "test", TTL: k.TTL, Clock: clock})
	if err != nil {
		k.Fatalf("a client was not opened: %v", err)
	}
	k.Cleanup(func() { _ = c.Close() })
	return c
}

// A cable is the way to a store. While it is cut, nothing arrives.
type cable struct {
	*lossy
	cut atomic.Bool
}

// cabled returns a store behind a cable, and of which one in some number of messages is lost; 0: none.
// What it shows of the powers of the store are sessions alone.
func (k *kit) cabled(oneIn int) (store.Store, *cable) {
	c := &cable{}
	c.lossy = k.network(k.second(), func() fate {
		switch {
		case c.cut.Load():
			return lostWhole
		case oneIn > 0 && rand.N(oneIn) == 0:
			return 1 + rand.N(delayed)
		}
		return delivered
	})
	if sessions, ok := c.Store.(store.Sessions); ok {
		return cabledSessions{c, sessions}, c
	}
	return c, c
}

// cabledSessions is a cable to a store that has sessions.
type cabledSessions struct {
	*cable
	sessions store.Sessions
}

func (c cabledSessions) OpenSession(
	ctx context.Context, id string, ttl time.Duration, labels leasehold.Labels,
) (store.SessionAnswer, error) {
	return send(ctx, c.lossy, func(ctx context.Context) (store.SessionAnswer, error) {
		return c.sessions.OpenSession(ctx, id, ttl, labels)
	})
}

func (c cabledSessions) RenewSession(ctx context.Context, id string, seen uint64) (store.SessionAnswer, error) {
	return send(ctx, c.lossy, func(ctx context.Context) (store.SessionAnswer, error) {
		return c.sessions.RenewSession(ctx, id, seen)
	})
}

func (c cabledSessions) CloseSession(ctx context.Context, id string) error {
	_, err := send(ctx, c.lossy, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.sessions.CloseSession(ctx, id)
	})
	return err
}

// A client renews in time, also if one in eight messages is lost.
func clientKeeps(k *kit) {
	s, _ := k.cabled(8)
	h, err := k.client(s).Acquire(k.Context(), k.res("r"))
	if err != nil {
		k.Fatalf("acquire: %v", err)
	}
	for began := time.Now(); time.Since(began) < k.some(4); k.sleep(k.TTL / 5) {
		k.denied(k.request(k.ref("r", "other")), leasehold.Held)
		if !h.Valid() {
			k.Fatalf("the hold was lost after %v: %v", time.Since(began), h.Err())
		}
	}
	for h.Release(k.Context()) != nil && !k.Failed() { // also that may be lost
		k.sleep(k.TTL / 10)
	}
}

// A holder that cannot reach the store stops before anybody else gets the resource.
func clientCutOff(k *kit) {
	s, wire := k.cabled(0)
	h, err := k.client(s).Acquire(k.Context(), k.res("r"))
	if err != nil {
		k.Fatalf("acquire: %v", err)
	}
	token := h.Token()
	k.sleep(k.TTL / 2)
	wire.cut.Store(true)
	lost := make(chan time.Time, 1)
	go func() { <-h.Lost(); lost <- time.Now() }()
	_, got := k.takeOver(k.res("r"), k.id("next"), 3*k.TTL+k.Late+k.Slack)
	if h.Valid() || h.Token() != 0 {
		k.Errorf("it holds the resource, which was granted to somebody else")
	}
	select {
	case at := <-lost:
		// The moment at which it was noticed may be late; what Valid says is not.
		if late := at.Sub(got); late > k.Slack {
			k.Errorf("its context ended %v after the resource was granted to somebody else", late)
		}
	case <-time.After(k.TTL + limit):
		k.Errorf("its context did not end")
	}
	if next := k.look(k.res("r")); len(next.Holders) != 1 || next.Holders[0].Token <= token {
		k.Errorf("after token %d the resource is held with %+v", token, next.Holders)
	}
	wire.cut.Store(false)
}

// A holder whose lease is broken learns of it when it renews, at the latest.
func clientBroken(k *kit) {
	h, err := k.client(k.second()).Acquire(k.Context(), k.res("r"))
	if err != nil {
		k.Fatalf("acquire: %v", err)
	}
	if _, err := k.breakLease(store.Ref{Resource: k.res("r"), ID: h.ID()}); err != nil {
		k.Fatalf("break: %v", err)
	}
	select {
	case <-h.Lost():
	case <-time.After(k.TTL + k.Slack):
		k.Fatalf("the holder does not know that its lease was broken")
	}
	why := (*client.LostError)(nil)
	if !errors.As(h.Err(), &why) {
		k.Fatalf("the hold ended with %v", h.Err())
	}
	if k.ForgetsHow == "" && (why.How != leasehold.ByBreak || why.By != "operator" || why.Reason != "maintenance") {
		k.Errorf("the hold ended as %v by %q because of %q", why.How, why.By, why.Reason)
	}
	k.free(k.res("r"))
}

// A machine that wakes up from suspend has lost its lease, before any timer fires.
func clientSuspended(k *kit) {
	clock := &clock{start: time.Now()}
	s, wire := k.cabled(0)
	h, err := k.clientBy(s, clock).Acquire(k.Context(), k.res("r"))
	if err != nil {
		k.Fatalf("acquire: %v", err)
	}
	if !h.Valid() || h.Token() == 0 {
		k.Fatalf("a new hold is not valid: %v", h.Err())
	}
	wire.cut.Store(true) // nothing was renewed in its sleep
	clock.slept.Store(int64(k.TTL))
	if h.Valid() || h.Token() != 0 || h.Context().Err() == nil {
		k.Errorf("after a sleep of a TTL the hold is still valid")
	}
	wire.cut.Store(false)
}

// clientsContend is contend with real clients: their network is cut off again and again, and one in
// sixteen messages is lost, repeated or delayed.
func clientsContend(k *kit, sessions bool) {
	const n = 8
	g := &register{guard: fence.NewMemory()}
	end := time.Now().Add(k.rounds())
	k.together(n, func(i int) {
		s, wire := k.cabled(16)
		if !sessions {
			s = wire
		}
		c := k.client(s)
		for time.Now().Before(end) && !k.Failed() {
			h, err := c.Acquire(k.Context(), k.res("r"), client.Wait(k.TTL))
			if err == nil {
				k.hold(g, h, wire)
				continue
			}
			if !errors.Is(err, leasehold.ErrHeld) && !store.Transient(err) && !errors.Is(err, client.ErrLost) {
				k.Errorf("acquire: %s", describe(err))
			}
			k.sleep(k.TTL / 20)
		}
		wire.cut.Store(false)
	})
	k.checkBeliefs(g)
	k.Logf("%d grants, %d writes, %d late writes were refused", len(g.beliefs), g.writes, g.late)
}

// hold writes for a while, perhaps cut off, and notes for how long the hold was believed in.
func (k *kit) hold(g *register, h *client.Hold, wire *cable) {
	token := h.Token()
	if token == 0 {
		return
	}
	b := belief{from: time.Now(), token: token}
	b.to = b.from
	writes := 1 + rand.N(4)
	if rand.N(4) == 0 {
		wire.cut.Store(true)
		writes = 30 // more than there is time for
	}
	for range writes {
		at := time.Now() // before Valid looks: what comes after it may be late
		if !h.Valid() {
			break
		}
		b.to = at
		k.write(g, k.res("r"), token)
		k.sleep(k.TTL / 20)
	}
	if rand.N(3) == 0 { // it does not look, and writes once more
		k.write(g, k.res("r"), token)
	}
	if at := time.Now(); h.Valid() {
		b.to = at
	}
	g.believe(b)
	wire.cut.Store(false)
	ctx, cancel := context.WithTimeout(k.Context(), k.TTL)
	defer cancel()
	_ = h.Release(ctx) // the client goes on with it
}
