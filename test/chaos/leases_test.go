//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/client"
)

// A grip is what a client that speaks the protocol itself holds, or tries to.
type grip struct {
	*party
	resource string
	id       string
	session  string // instead of a TTL of its own
	ttl      time.Duration
	wait     time.Duration
	token    uint64
	belief   *belief
	record   string // that is bound to the session
}

// useLease does something with a resource.
func (p *party) useLease(ctx context.Context) {
	p.think(ctx, 100*time.Millisecond)
	g := &grip{party: p, resource: fmt.Sprint("lease/", p.random.IntN(resources)), id: p.newID(), ttl: p.between(time.Second, 4*time.Second)}
	if p.random.IntN(4) == 0 {
		g.look()
		return
	}
	if p.random.IntN(2) == 0 {
		g.wait = p.between(100*time.Millisecond, 3*time.Second)
	}
	if p.random.IntN(4) == 0 && !g.openSession() {
		return
	}
	if g.acquire(ctx) {
		g.hold(ctx)
	}
}

// look reads who holds a resource.
func (g *grip) look() {
	caller := g.caller()
	c := &leaseCall{resource: g.resource, verb: look, called: g.load.clock()}
	r, err := caller.Resource(context.Background(), g.resource, 0)
	if g.ended("look", err) != answered {
		return
	}
	if len(r.Holders) > 1 {
		g.load.report.violated(twoHolders, "%s is held by %v", g.resource, r.Holders)
	}
	if len(r.Holders) == 1 {
		c.seen, c.other = r.Holders[0].ID, r.Holders[0].Token
	}
	c.outcome, c.returned = saw, g.load.clock()
	g.load.history.addLease(c)
}

func (g *grip) openSession() bool {
	g.session = g.id + ".session"
	_, err := g.caller().OpenSession(context.Background(), v1.SessionRequest{ID: g.session, TTL: v1.TTL{Duration: v1.Duration(g.ttl)}})
	return g.ended("open session", err) == answered && err == nil
}

// acquire asks, under the same id each time, and reports whether it was granted.
func (g *grip) acquire(ctx context.Context) bool {
	for range 4 {
		request := v1.AcquireRequest{Resource: g.resource, Holder: g.id, ID: g.id, Session: g.session, Wait: v1.Duration(g.wait)}
		if g.session == "" {
			request.TTL = v1.TTL{Duration: v1.Duration(g.ttl)}
		}
		caller := g.caller()
		sent := g.load.clock()
		lease, err := caller.Acquire(context.Background(), request)
		c := &leaseCall{resource: g.resource, verb: acquire, id: g.id, ttl: g.ttl, called: sent, returned: g.load.clock()}
		if g.session != "" {
			c.ttl = 0 // the session counts from its own last renewal
		}
		if e := g.ended("acquire", err); e != answered {
			// A waiter may be told to ask again while it stands in the queue.
			if e == unknown || g.wait > 0 {
				c.returned = never
				g.load.history.addLease(c)
			}
			if g.session != "" {
				g.renewSession()
			}
			g.think(ctx, 200*time.Millisecond)
			continue
		}
		if err == nil {
			g.granted(c, lease, sent)
			return true
		}
		g.notGranted(c, err)
		return false
	}
	g.giveBack()
	return false
}

func (g *grip) granted(c *leaseCall, lease v1.Lease, sent time.Duration) {
	c.outcome, c.token = yes, lease.Token
	g.load.history.addLease(c)
	g.token = lease.Token
	if lease.WaitedMS > 0 || lease.RemainingMS == nil {
		g.renew() // a grant that was waited for starts no clock
		return
	}
	g.believe(sent, time.Duration(*lease.RemainingMS)*time.Millisecond)
}

func (g *grip) notGranted(c *leaseCall, err error) {
	var known *leasehold.Error
	errors.As(err, &known)
	switch {
	case known.Code == leasehold.Held && known.Lease != nil && known.Lease.ID != "":
		c.outcome, c.seen, c.other = held, known.Lease.ID, uint64(known.Lease.Token)
	case known.Code == leasehold.Lost, known.Code == leasehold.NotFound:
		c.outcome = lost
	default:
		return
	}
	g.load.history.addLease(c)
}

// believe moves on the moment until which the client takes the resource for its own:
// counted from before that try was sent, less one per cent. What is over stays over.
func (g *grip) believe(sent, remaining time.Duration) {
	now, until := g.load.clock(), sent+remaining-remaining/100
	h := &g.load.history
	if g.belief == nil {
		if until > now {
			g.belief = &belief{resource: g.resource, id: g.id, token: g.token, from: now, to: until}
			h.addBelief(g.belief)
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now < g.belief.to && until > g.belief.to {
		g.belief.to = until
	}
}

func (g *grip) believes() bool {
	h := &g.load.history
	h.mu.Lock()
	defer h.mu.Unlock()
	return g.belief != nil && g.load.clock() < g.belief.to
}

// hold uses what is held, renews it for a while, and gives it back; or forgets it.
func (g *grip) hold(ctx context.Context) {
	if g.session != "" {
		g.bindRecord()
	}
	for range g.random.IntN(5) {
		g.load.guard(g.resource, g.token, g.believes)
		pause(ctx, g.between(g.ttl/20, g.ttl/4))
		if ctx.Err() != nil || !g.believes() {
			break
		}
		g.renew()
	}
	if g.random.IntN(5) > 0 {
		g.giveBack()
	}
}

// renew goes on holding.
func (g *grip) renew() {
	if g.session != "" {
		g.renewSession()
		return
	}
	caller := g.caller()
	sent := g.load.clock()
	lease, err := caller.Renew(context.Background(), v1.RenewRequest{ID: g.id})
	c := &leaseCall{resource: g.resource, verb: renew, id: g.id, ttl: g.ttl, called: sent, returned: g.load.clock()}
	switch {
	case g.ended("renew", err) != answered:
		return
	case err == nil:
		c.outcome = yes
		g.believe(sent, time.Duration(*lease.RemainingMS)*time.Millisecond)
	case errors.Is(err, leasehold.ErrHeld):
		return // it still waits
	default:
		c.outcome = lost
	}
	g.load.history.addLease(c)
}

func (g *grip) renewSession() {
	caller := g.caller()
	sent := g.load.clock()
	session, err := caller.RenewSession(context.Background(), g.session)
	if g.ended("renew session", err) != answered || g.token == 0 {
		return
	}
	c := &leaseCall{resource: g.resource, verb: renew, id: g.id, ttl: g.ttl, called: sent, returned: g.load.clock(), outcome: yes}
	if err != nil {
		c.outcome = lost
	} else {
		g.believe(sent, time.Duration(session.RemainingMS)*time.Millisecond)
	}
	g.load.history.addLease(c)
}

// bindRecord puts a record that is to end with the session.
func (g *grip) bindRecord() {
	path := "bound/" + g.session
	_, err := g.caller().PutRecord(context.Background(), v1.PutRequest{Path: path, Value: []byte(g.id), Session: g.session})
	if errors.Is(err, leasehold.ErrRefused) || errors.Is(err, leasehold.ErrInvalid) {
		return // the session is over
	}
	if g.ended("put bound", err) == answered && err == nil {
		g.record = path
	}
}

// giveBack stops believing, and only then tells a server.
func (g *grip) giveBack() {
	h := &g.load.history
	h.mu.Lock()
	if g.belief != nil {
		g.belief.to = min(g.belief.to, g.load.clock())
	}
	h.mu.Unlock()
	for range 3 {
		caller := g.caller()
		c := &leaseCall{resource: g.resource, verb: release, id: g.id, called: g.load.clock()}
		var err error
		if g.session != "" {
			err = caller.CloseSession(context.Background(), g.session)
		} else {
			err = caller.Release(context.Background(), v1.ReleaseRequest{ID: g.id})
		}
		c.returned = g.load.clock()
		switch e := g.ended("release", err); {
		case e == refused:
			continue
		case e == unknown:
			c.returned = never
			g.load.history.addLease(c)
			continue
		case err == nil:
			c.outcome = yes
		default:
			c.outcome = lost
		}
		g.load.history.addLease(c)
		g.nothingIsLeft()
		return
	}
}

// nothingIsLeft looks whether a record outlived its session.
func (g *grip) nothingIsLeft() {
	if g.record == "" {
		return
	}
	record, err := g.caller().Record(context.Background(), g.record, 0)
	if g.ended("read bound", err) == answered && err == nil {
		g.load.report.violated(outlived, "%s is there, and its session was closed: %+v", g.record, record)
	}
}

// holdOn is a client as programs use it: it holds, works while it believes, and releases.
func (p *party) holdOn(ctx context.Context) {
	var c *client.Client
	for c == nil {
		var err error
		c, err = client.Dial(ctx, client.Config{
			Servers: p.load.cluster.addresses(p.group), Namespace: p.load.namespace, Holder: p.name, TTL: p.between(2*time.Second, 6*time.Second),
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.think(ctx, time.Second)
		}
	}
	for ctx.Err() == nil {
		p.holdOnce(ctx, c)
		p.think(ctx, 200*time.Millisecond)
	}
	if err := c.Close(); err != nil {
		p.load.report.called("close client", "not told")
	}
}

func (p *party) holdOnce(ctx context.Context, c *client.Client) {
	resource := fmt.Sprint("election/", p.random.IntN(elections))
	waiting, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	h, err := c.Acquire(waiting, resource)
	if err != nil {
		p.load.report.called("hold", "not granted")
		return
	}
	p.load.report.called("hold", "granted")
	p.load.enter(resource, h)
	defer p.load.leave(resource, h)
	for range 1 + p.random.IntN(30) {
		token := uint64(h.Token())
		if token == 0 || ctx.Err() != nil {
			break
		}
		p.load.guard(resource, token, h.Valid)
		p.load.alone(resource, h)
		p.think(ctx, 100*time.Millisecond)
	}
	if !h.Valid() {
		p.load.report.called("hold", "lost")
	}
	releasing, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	if err := h.Release(releasing); err != nil {
		p.load.report.called("hold", "not released")
	}
}

func (l *load) enter(resource string, h *client.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds[resource] == nil {
		l.holds[resource] = map[*client.Hold]bool{}
	}
	l.holds[resource][h] = true
}

func (l *load) leave(resource string, h *client.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.holds[resource], h)
}

// alone looks whether anybody else believes at the same time: in between, if h does
// before and after.
func (l *load) alone(resource string, h *client.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other := range l.holds[resource] {
		if other != h && h.Valid() && other.Valid() && h.Valid() {
			l.report.violated(twoHolders, "%s: %d and %d are valid at the same time", resource, h.Token(), other.Token())
		}
	}
}
