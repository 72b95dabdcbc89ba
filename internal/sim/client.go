package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/cluster"
	"github.com/leasehold/leasehold/internal/wire"
)

const (
	namespace = "default"
	resources = 3
	registers = 2
)

// Holder are mistakes on the side of the holder, or of the door in front of it.
type Holder struct {
	// CountsFromReply counts what is left from when the answer came.
	CountsFromReply bool
	// CountsFromRetry counts the answer to a first try from when the second was sent.
	CountsFromRetry bool
	// LateDisconnect releases an id that the client proposed when a connection is lost.
	LateDisconnect bool
	// NoGuard counts all of what is left, as if every clock were right.
	NoGuard bool
	// ResumesUnasked lets a watch go on at another server, by what that one happens to have.
	ResumesUnasked bool
}

// An attempt is one command, sent once.
type attempt struct {
	id        string
	client    *client
	sent      time.Duration // real time, before it was sent
	command   core.Command
	applied   uint64 // its place in the log
	appliedAt time.Duration
	refused   bool // somebody was told that it did not happen
}

// A client wants leases, believes in those that it has, and uses them.
type client struct {
	world *World
	name  string
	rate  int64
	at    *server // whom it talks to, until that does not answer
	made  int
	busy  time.Duration // with a register, until then at the longest

	session    string
	sessionTTL time.Duration
	grip       *grip // nil: it holds nothing and wants nothing
}

// A grip is what a client holds, or tries to.
type grip struct {
	client   *client
	resource string
	id       string
	ttl      time.Duration
	session  string
	wait     time.Duration
	grace    time.Duration
	priority int

	asked  time.Duration // real time at which the last try was sent
	gaveUp time.Duration // when it stops trying
	token  leasehold.Token
	held   bool          // it was granted, and not given back
	until  time.Duration // real time at which the client's own clock says that it is over
	exempt bool          // an operator meddled: nobody promises that it ends before it is told
}

func newClient(w *World, n int) *client {
	return &client{world: w, name: fmt.Sprint("c", n), rate: w.rate(), at: w.servers[w.random.IntN(len(w.servers))]}
}

// think decides what to do next.
func (c *client) think() {
	w := c.world
	if w.quiet {
		return
	}
	w.after(w.between(50*time.Millisecond, 400*time.Millisecond), c.think)
	switch n := w.random.IntN(10); {
	case n < 2:
		c.useRegister()
	case c.grip == nil && n < 8:
		c.seek()
	case c.grip != nil && c.grip.believes() && n < 4:
		c.grip.use()
	}
}

func (c *client) newID() string {
	c.made++
	return fmt.Sprint(c.name, "-", c.made)
}

// seek begins to want a resource.
func (c *client) seek() {
	w := c.world
	g := &grip{
		client: c, resource: fmt.Sprint("r", w.random.IntN(resources)), id: c.newID(),
		ttl: w.between(time.Second, 5*time.Second), gaveUp: w.now + 20*time.Second,
	}
	if w.chance(60) {
		g.wait = w.between(time.Second, 10*time.Second)
	}
	if w.chance(20) {
		g.grace = w.upTo(time.Second)
	}
	if w.chance(20) {
		g.priority = 1
	}
	c.grip = g
	if !w.chance(40) {
		g.ask()
		return
	}
	c.session, c.sessionTTL = c.newID(), g.ttl
	g.session, g.ttl = c.session, 0
	c.call(&core.OpenSession{Namespace: namespace, ID: c.session, TTL: c.sessionTTL}, reaction{
		reply: func(_ *attempt, _ core.Answer, err error) {
			if err == nil {
				g.ask()
			} else {
				g.drop()
			}
		},
		silence: g.drop,
	})
}

func (g *grip) mine() bool { return g.client.grip == g }

// drop stops wanting. What there is of it ends by itself.
func (g *grip) drop() {
	if g.mine() {
		g.client.grip = nil
	}
}

// ask tries to acquire, under the same id each time.
func (g *grip) ask() {
	c, w := g.client, g.client.world
	if !g.mine() || g.held || w.quiet {
		return
	}
	if w.now > g.gaveUp {
		g.giveBack()
		return
	}
	g.asked = w.now
	c.call(&core.Acquire{
		Namespace: namespace, Resource: g.resource, ID: g.id, Holder: c.name, TTL: g.ttl, Session: g.session,
		Wait: g.wait, Grace: g.grace, Priority: g.priority,
	}, reaction{reply: g.answered, silence: func() {
		if w.Holder.LateDisconnect {
			w.after(w.upTo(3*time.Second), func() { c.call(&core.Release{Namespace: namespace, ID: g.id}, reaction{}) })
		}
		g.ask()
	}})
}

func (g *grip) answered(a *attempt, answer core.Answer, err error) {
	w := g.client.world
	switch {
	case !g.mine():
	case errors.Is(err, leasehold.ErrUnavailable):
		w.after(w.upTo(300*time.Millisecond), g.ask)
	case errors.Is(err, leasehold.ErrUndecided):
		g.ask()
	case err != nil:
		g.drop()
	case answer.Lease != nil:
		first := !g.held
		g.held, g.token = true, answer.Lease.Token
		g.learn(a, answer.Lease.Remaining)
		if first {
			w.tell("%s holds %s by %s with %d until %d", g.client.name, g.resource, g.id, g.token, g.until)
			w.count("holds")
			w.after(g.period(), g.renew)
		}
	case answer.Waiter != nil:
		w.count("waits")
		w.after(w.between(100*time.Millisecond, time.Second), g.ask)
		if g.session != "" {
			g.client.call(&core.RenewSession{Namespace: namespace, ID: g.session}, reaction{})
		}
	}
}

// learn takes what an answer says is left. The clock started before that very try was
// sent; and what is over by the client's own clock is over.
func (g *grip) learn(a *attempt, remaining time.Duration) {
	w, from := g.client.world, a.sent
	switch {
	case w.Holder.CountsFromReply:
		from = w.now
	case w.Holder.CountsFromRetry:
		from = max(from, g.asked)
	}
	left := remaining - remaining/100
	if w.Holder.NoGuard {
		left = remaining
	}
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
	w.after(g.period(), g.renew)
	g.renewOnce()
}

func (g *grip) renewOnce() {
	c, w := g.client, g.client.world
	if w.quiet {
		return
	}
	g.asked = w.now
	reply := reaction{reply: func(a *attempt, answer core.Answer, err error) {
		switch {
		case !g.mine():
		case answer.Lease != nil:
			g.learn(a, answer.Lease.Remaining)
		case answer.Session != nil:
			g.learn(a, answer.Session.Remaining)
		case errors.Is(err, leasehold.ErrUnavailable), errors.Is(err, leasehold.ErrUndecided):
			w.after(w.upTo(300*time.Millisecond), func() {
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
	}}
	if g.session != "" && !g.exempt && w.chance(50) {
		c.call(&core.RenewSession{Namespace: namespace, ID: g.session}, reply)
		return
	}
	c.call(&core.Renew{Namespace: namespace, ID: g.id}, reply)
}

// giveBack stops believing, and only then tells the server.
func (g *grip) giveBack() {
	g.held = false
	g.drop()
	if g.session != "" && g.client.world.chance(50) {
		g.client.insist(&core.CloseSession{Namespace: namespace, ID: g.session}, 5)
		return
	}
	g.client.insist(&core.Release{Namespace: namespace, ID: g.id}, 5)
}

// rename goes on under another id, with the same token.
func (g *grip) rename() {
	c, to := g.client, g.client.newID()
	from := g.id
	c.call(&core.Change{Namespace: namespace, ID: from, NewID: to}, reaction{reply: func(a *attempt, answer core.Answer, err error) {
		if g.mine() && err == nil && answer.Lease != nil {
			g.id = to
			g.learn(a, answer.Lease.Remaining)
			g.renew()
		}
	}})
}

// handTo gives what it holds to somebody else.
func (g *grip) handTo(other string) {
	g.held = false
	g.drop()
	g.client.insist(&core.Change{Namespace: namespace, ID: g.id, Holder: other}, 3)
}

// use writes to something that is guarded: it refuses tokens below the largest that it
// saw. While a holder believes, it must not be refused.
func (g *grip) use() {
	w := g.client.world
	w.after(w.delay(), func() { w.truth.guard(g) })
}

// insist sends a command until there is an answer, or so many times.
func (c *client) insist(command core.Command, times int) {
	if times == 0 {
		return
	}
	asked := false
	again := func() {
		if !asked { // an answer may come after all, when it was asked for again already
			asked = true
			c.insist(command, times-1)
		}
	}
	c.call(command, reaction{silence: again, reply: func(_ *attempt, _ core.Answer, err error) {
		if errors.Is(err, leasehold.ErrUnavailable) || errors.Is(err, leasehold.ErrUndecided) {
			c.world.after(c.world.upTo(500*time.Millisecond), again)
		}
	}})
}

// A reaction is to an answer, which may come late, and to the lack of one in time.
type reaction struct {
	reply   func(*attempt, core.Answer, error)
	silence func()
}

// call sends a command to the server that the client talks to.
func (c *client) call(command core.Command, r reaction) {
	w := c.world
	a := w.truth.attempted(c, command)
	bytes, err := wire.AppendCommand(wire.AppendOrigin(nil, leasehold.Origin{Address: a.id}), command)
	if err != nil {
		w.violated("%T can not be encoded: %v", command, err)
		return
	}
	to, answered := c.at, false
	w.tell("%s %s to %d: %T", c.name, a.id, to.id, command)
	done := func(answer core.Answer, err error) {
		w.truth.told(a, err)
		if w.network.loses() {
			return
		}
		w.after(w.delay(), func() {
			answered = true
			w.tell("%s is told of %s: %v", c.name, a.id, err)
			w.truth.heard(a, err)
			if errors.Is(err, leasehold.ErrUnavailable) {
				c.elsewhere(to)
			}
			if r.reply != nil {
				r.reply(a, answer, err)
			}
		})
	}
	w.after(max(0, w.lull-w.now)+w.delay(), func() {
		to.deliver(c.name, cluster.Commands{{Bytes: bytes, Done: done}})
	})
	w.after(w.between(400*time.Millisecond, 2*time.Second), func() {
		if answered {
			return
		}
		c.elsewhere(to)
		if r.silence != nil {
			r.silence()
		}
	})
}

// elsewhere goes to another server, if it has not already.
func (c *client) elsewhere(from *server) {
	if c.at == from {
		c.at = c.world.servers[c.world.random.IntN(len(c.world.servers))]
	}
}

// delay is how long something takes between a client and a server.
func (w *World) delay() time.Duration {
	if w.random.IntN(50) == 0 && !w.quiet {
		return w.upTo(2 * time.Second)
	}
	return w.between(200*time.Microsecond, 5*time.Millisecond)
}

// meddle is an operator, who breaks leases.
func (w *World) meddle() {
	if w.quiet {
		return
	}
	w.after(w.between(time.Second, 5*time.Second), w.meddle)
	g := w.clients[w.random.IntN(len(w.clients))].grip
	if g == nil || !g.believes() {
		return
	}
	g.exempt = true
	operator := newClient(w, 99)
	c := &core.Break{Namespace: namespace, ID: g.id, By: "operator"}
	switch w.random.IntN(3) {
	case 0:
		c.Remains = true
	case 1:
		c.Period = w.upTo(2 * time.Second)
	}
	operator.insist(c, 3)
}
