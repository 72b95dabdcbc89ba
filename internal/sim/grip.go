package sim

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// The holder's side. A grip believes in its lease by its own clock, as a real client does: from
// before the attempt was sent, for what the answer says is left, less a margin for clocks. Each
// of these rules can be broken on purpose (see Holder), and the simulator must notice.

// A grip is what a client holds, or tries to.
type grip struct {
	client   *client
	at       spot
	id       string
	ttl      time.Duration
	session  string
	wait     time.Duration
	grace    time.Duration
	priority int
	slots    int  // 0: all
	inTxn    bool // it is asked for in a transaction
	linked   bool // it is asked for by a record
	stays    bool // that stays after it
	request  core.Request
	subject  subject
	bound    bool // it needs a session
	steady   bool // it says itself when it has done

	asked   time.Duration // real time at which the last try was sent
	gaveUp  time.Duration // when it stops trying
	token   leasehold.Token
	floor   leasehold.Token
	units   []string
	held    bool          // it was granted, and not given back
	count   uint64        // of what others did to the session's leases, when it was confirmed last
	limited bool          // it may not be held for ever, whatever its session says
	until   time.Duration // real time at which the client's own clock says that it is over
	exempt  bool          // an operator meddled: nobody promises that it ends before it is told
	former  bool          // it is from before a restore: nothing but its token protects
}

func (g *grip) mine() bool { return g.client.grip == g }

// drop stops wanting. What there is of it ends by itself.
func (g *grip) drop() {
	if g.mine() {
		g.client.grip = nil
	}
}

// ask tries to acquire, under the same id each time, so that attempts which were lost on their
// way back cannot leave two leases.
func (g *grip) ask() {
	c, w := g.client, g.client.world
	if !g.mine() || g.held || w.quiet {
		return
	}
	if w.now > g.gaveUp {
		g.withdraw()
		return
	}
	g.asked = w.now
	c.call(g.acquire(), reaction{reply: g.answered, silence: func() {
		if w.chance(10) {
			g.withdraw() // its caller no longer wants it
			return
		}
		g.ask()
	}})
}

// acquire is what it asks for: alone, or in a transaction that writes down who did.
func (g *grip) acquire() core.Command {
	if g.linked {
		return g.put()
	}
	a := &core.Acquire{
		Namespace: g.at.space, Resource: g.at.name, ID: g.id, Holder: g.client.name, TTL: g.ttl, Session: g.session,
		Wait: g.wait, Grace: g.grace, Priority: g.priority, Slots: g.slots, Request: g.request,
	}
	if g.subject != nil {
		g.subject.asks(a)
	}
	if !g.inTxn {
		return a
	}
	a.Request = core.Request{}
	return &core.Txn{Namespace: g.at.space, Request: g.request, Then: []core.Op{
		{Do: core.AcquireLease, Acquire: a}, {Do: core.Put, Path: "holder of " + g.at.name, Value: g.id},
	}}
}

// lease finds the lease in an answer; nil: there is none.
func lease(answer core.Answer) *leasehold.Lease {
	if answer.Lease != nil || answer.Txn == nil || len(answer.Txn.Results) == 0 {
		return answer.Lease
	}
	return answer.Txn.Results[0].Lease
}

func (g *grip) answered(a *attempt, answer core.Answer, err error) {
	w, l := g.client.world, lease(answer)
	switch {
	case !g.mine():
	case errors.Is(err, leasehold.ErrUnavailable):
		g.client.later(w.upTo(300*time.Millisecond), g.ask)
	case errors.Is(err, leasehold.ErrLimited):
		g.client.later(w.between(time.Second, 3*time.Second), g.ask)
	case errors.Is(err, leasehold.ErrUndecided):
		g.ask()
	case err != nil:
		g.drop()
	case l != nil:
		first := !g.held
		g.at.name = l.Resource
		g.held, g.token, g.floor, g.units, g.limited = true, l.Token, l.Floor, l.Units, ends(l)
		g.count = l.Interventions
		g.learn(a, l.Remaining)
		if first {
			w.tell("%s holds %s by %s with %d until %d", g.client.name, g.at.name, g.id, g.token, g.until)
			w.count("holds")
			if g.slots > 0 {
				w.count("holds of slots")
			}
			g.client.later(g.period(), g.renew)
			if g.subject != nil {
				g.subject.begun()
			}
		}
	case answer.Waiter != nil:
		w.count("waits")
		g.client.later(w.between(100*time.Millisecond, time.Second), g.ask)
		if g.session != "" {
			g.client.call(&core.RenewSession{Namespace: g.at.space, ID: g.session}, reaction{})
		}
	}
}

// ends reports whether a lease ends although its session is renewed.
func ends(l *leasehold.Lease) bool { return l.HoldLimit != 0 || l.State == leasehold.Breaking }

// learn takes what an answer says is left. The clock started before that very attempt was sent.
// A hold that is over by the client's own clock stays over, whatever an answer says that comes
// late: somebody else may have been granted the resource since.
func (g *grip) learn(a *attempt, remaining time.Duration) {
	w, from := g.client.world, a.sent
	left := remaining - remaining/100
	until := from + real(left, g.client.rate)
	if until <= g.until || until <= w.now || g.until != 0 && g.until <= w.now {
		return
	}
	g.until = until
	w.truth.believed(g)
	w.after(until-w.now, func() {
		if g.until <= w.now {
			g.drop()
		}
	})
}

func (g *grip) believes() bool { return g.held && g.until > g.client.world.now }

func (g *grip) period() time.Duration { return g.lasts() / 3 }

func (g *grip) lasts() time.Duration {
	if g.session != "" {
		return g.client.sessionTTL
	}
	return g.ttl
}

// renew goes on holding; or does something else with what it holds, or nothing.
func (g *grip) renew() {
	w := g.client.world
	if !g.mine() || !g.believes() || w.quiet {
		return
	}
	switch n := w.random.IntN(100); {
	case g.steady && n > 2:
	case n < 12:
		g.giveBack()
		return
	case n < 20: // and lets it expire
		return
	case n < 24:
		g.rename()
		return
	case n < 27:
		g.handTo(w.clients[w.random.IntN(len(w.clients))].name)
		return
	}
	g.client.later(g.period(), g.renew)
	g.renewOnce()
}

// renewOnce renews the lease or its session, whichever a real client could use.
func (g *grip) renewOnce() {
	w := g.client.world
	if w.quiet {
		return
	}
	command := core.Command(&core.Renew{Namespace: g.at.space, ID: g.id})
	if g.session != "" && !g.limited && w.chance(70) {
		command = &core.RenewSession{Namespace: g.at.space, ID: g.session}
	}
	if g.linked && g.session == "" && w.chance(70) {
		command = g.put()
	}
	g.renewBy(command)
}

// renewBy renews by a command, until there is an answer or nothing left.
func (g *grip) renewBy(command core.Command) {
	c, w := g.client, g.client.world
	g.asked = w.now
	c.call(command, reaction{reply: func(a *attempt, answer core.Answer, err error) {
		switch {
		case !g.mine():
		case answer.Lease != nil:
			g.floor, g.count = max(g.floor, answer.Lease.Floor), answer.Lease.Interventions
			g.limited = g.limited || ends(answer.Lease)
			g.learn(a, answer.Lease.Remaining)
		case answer.Session != nil && (answer.Session.Interventions != g.count || g.limited):
			// Somebody did something, maybe to this very lease, or it ends before its session:
			// only a command about it tells.
			g.renewBy(&core.Renew{Namespace: g.at.space, ID: g.id})
		case answer.Session != nil:
			g.learn(a, answer.Session.Remaining)
		case errors.Is(err, leasehold.ErrUnavailable), errors.Is(err, leasehold.ErrUndecided):
			c.later(w.upTo(300*time.Millisecond), func() {
				if g.mine() && g.believes() {
					g.renewOnce()
				}
			})
		default:
			g.drop()
		}
	}, silence: func() {
		if g.mine() && g.believes() {
			g.renewOnce()
		}
	}})
}

// giveBack stops believing first, and only then tells the server: the next holder may be
// granted the resource before the answer comes.
func (g *grip) giveBack() {
	c, w := g.client, g.client.world
	c.publish(g.at.space)
	g.held = false
	g.drop()
	if g.subject != nil && g.subject.end() {
		return
	}
	switch n := w.random.IntN(10); {
	case g.linked && n < 4:
		c.insist(g.putAway(), 5)
	case g.session != "" && n < 5:
		// Some are ended by a guard, for a holder that died.
		c.insist(&core.CloseSession{Namespace: g.at.space, ID: g.session,
			Abandon: n < 1}, 5)
	case n < 7:
		c.insist(&core.Txn{Namespace: g.at.space, Request: c.newRequest(""), Then: []core.Op{
			{Do: core.ReleaseLease, ID: g.id}, {Do: core.Delete, Path: "holder of " + g.at.name},
		}}, 5)
	default:
		c.insist(&core.Release{Namespace: g.at.space, ID: g.id, Request: c.newRequest("")}, 5)
	}
}

// withdraw takes back a request that may never have arrived. If it arrives later, it must be
// refused.
func (g *grip) withdraw() {
	g.held = false
	g.drop()
	g.client.world.count("withdrawn")
	release := &core.Release{Namespace: g.at.space, ID: g.id, Session: g.session, Withdraw: true}
	g.client.insist(release, 5)
}

// rename goes on under another id, with the same token.
func (g *grip) rename() {
	c, to := g.client, g.client.newID()
	from := g.id
	c.call(&core.Change{Namespace: g.at.space, ID: from, NewID: to},
		reaction{reply: func(a *attempt, answer core.Answer, err error) {
			if g.mine() && err == nil && answer.Lease != nil {
				g.id, g.linked = to, false
				g.learn(a, answer.Lease.Remaining)
				g.renew()
			}
		}})
}

// handTo gives what it holds to somebody else.
func (g *grip) handTo(other string) {
	g.held = false
	g.drop()
	g.client.insist(&core.Change{Namespace: g.at.space, ID: g.id, Holder: other, Request: g.client.newRequest("")}, 3)
}

// use writes to something that is guarded: it refuses tokens below the largest that it
// saw. While a holder believes, it must not be refused. Or it writes to a record, in a
// transaction that asks for its lease.
func (g *grip) use() {
	w := g.client.world
	if g.slots > 0 || !w.chance(20) {
		w.after(w.delay(), func() { w.truth.guard(g) })
		return
	}
	g.client.insist(&core.Txn{
		Namespace: g.at.space, Request: g.client.newRequest(""),
		If:   []core.Compare{{What: core.LeaseToken, Is: core.Equal, Path: g.at.name, Number: uint64(g.token)}},
		Then: []core.Op{{Do: core.Put, Path: "work on " + g.at.name, Value: g.client.newID()}},
	}, 2)
}
