package sim

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/wire"
)

// spaces are the namespaces. Most is done in the first.
var spaces = []string{"default", "other"}

const (
	resources = 3
	pools     = 2
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
	// IgnoresCount extends a hold by a renewal of its session, whatever others did to it.
	IgnoresCount bool
	// EncodesAbove sends what the cluster's level does not have yet.
	EncodesAbove bool
	// StoppedClock counts by a clock that stops while the machine sleeps.
	StoppedClock bool
	// ResumesUnasked lets a watch go on at another server, by what that one happens to have.
	ResumesUnasked bool
}

// An attempt is one command, sent once.
type attempt struct {
	epoch     int
	id        string
	client    *client
	sent      time.Duration // real time, before it was sent
	slept     time.Duration // how long the client's machine had slept by then
	command   core.Command
	applied   uint64 // its place in the log
	appliedAt time.Duration
	swapped   bool // it was a transaction whose comparisons held
	refused   bool // somebody was told that it did not happen
	turned    bool // the edge of a server refused it, and its node never saw it
}

// A client wants leases, believes in those that it has, and uses them.
type client struct {
	world *World
	name  string
	rate  int64
	at    *server // whom it talks to, until that does not answer
	made  int
	busy  time.Duration // with a register, until then at the longest
	saw   [registers]string

	level  core.Level    // of the cluster, as the last answer said
	asleep time.Duration // until then its machine sleeps
	slept  time.Duration // how long it has slept so far

	session    string
	sessionTTL time.Duration
	sequence   uint64 // of its last request in the session
	grip       *grip  // nil: it holds nothing and wants nothing
}

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
	request  core.Request

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

func newClient(w *World, n int) *client {
	return &client{world: w, name: fmt.Sprint("c", n), rate: w.rate(), at: w.servers[w.random.IntN(len(w.servers))]}
}

// later has the client do something, when its machine does not sleep.
func (c *client) later(d time.Duration, do func()) {
	w := c.world
	w.after(d, func() {
		if left := c.asleep - w.now; left > 0 {
			c.later(left, do)
			return
		}
		do()
	})
}

// sleep suspends the client's machine. What is sent to it waits.
func (c *client) sleep(d time.Duration) {
	w := c.world
	if c.asleep > w.now {
		return
	}
	w.tell("%s sleeps for %v", c.name, d)
	c.asleep = w.now + d
	c.slept += d
	if w.Holder.StoppedClock && c.grip != nil && c.grip.believes() {
		c.grip.until += d
	}
}

// think decides what to do next.
func (c *client) think() {
	w := c.world
	if w.quiet {
		return
	}
	c.later(w.between(50*time.Millisecond, 400*time.Millisecond), c.think)
	switch n := w.random.IntN(10); {
	case n < 2:
		c.useRegister()
	case n == 2 && w.chance(20):
		c.putLarge()
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

// newRequest names a request, or not: then it may happen twice if it is sent twice.
func (c *client) newRequest(session string) core.Request {
	w := c.world
	switch {
	case !w.chance(30):
		return core.Request{}
	case session != "":
		c.sequence++
		return core.Request{Session: session, Sequence: c.sequence}
	}
	return core.Request{Key: "key of " + c.newID()}
}

// space picks a namespace.
func (w *World) space() string {
	if w.chance(80) {
		return spaces[0]
	}
	return spaces[1]
}

// seek begins to want a resource.
func (c *client) seek() {
	w := c.world
	g := &grip{
		client: c, at: spot{w.space(), fmt.Sprint("r", w.random.IntN(resources))}, id: c.newID(),
		ttl: w.between(time.Second, 5*time.Second), gaveUp: w.now + 20*time.Second,
	}
	if w.chance(cmp.Or(w.Faults.Pools, 15)) {
		g.at.name, g.slots = fmt.Sprint("pool/", w.random.IntN(pools)), w.random.IntN(4)
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
	g.inTxn = g.wait == 0 && w.chance(30)
	c.grip = g
	if !w.chance(40) {
		g.request = c.newRequest("")
		g.ask()
		return
	}
	c.session, c.sessionTTL, c.sequence = c.newID(), g.ttl, 0
	g.session, g.ttl = c.session, 0
	g.request = c.newRequest(g.session)
	c.call(&core.OpenSession{Namespace: g.at.space, ID: c.session, TTL: c.sessionTTL}, reaction{
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
		g.withdraw()
		return
	}
	g.asked = w.now
	c.call(g.acquire(), reaction{reply: g.answered, silence: func() {
		if w.chance(10) {
			g.withdraw() // its caller does not want it any more
			return
		}
		if w.Holder.LateDisconnect {
			w.after(w.upTo(3*time.Second), func() { c.call(&core.Release{Namespace: g.at.space, ID: g.id}, reaction{}) })
		}
		g.ask()
	}})
}

// acquire is what it asks for: alone, or in a transaction that writes down who did.
func (g *grip) acquire() core.Command {
	a := &core.Acquire{
		Namespace: g.at.space, Resource: g.at.name, ID: g.id, Holder: g.client.name, TTL: g.ttl, Session: g.session,
		Wait: g.wait, Grace: g.grace, Priority: g.priority, Slots: g.slots, Request: g.request,
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

// learn takes what an answer says is left. The clock started before that very try was
// sent; and what is over by the client's own clock is over.
func (g *grip) learn(a *attempt, remaining time.Duration) {
	w, from := g.client.world, a.sent
	switch {
	case w.Holder.CountsFromReply:
		from = w.now
	case w.Holder.CountsFromRetry:
		from = max(from, g.asked)
	case w.Holder.StoppedClock:
		from += g.client.slept - a.slept
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
	g.client.later(g.period(), g.renew)
	g.renewOnce()
}

func (g *grip) renewOnce() {
	c, w := g.client, g.client.world
	if w.quiet {
		return
	}
	// A server that does not count what others did says nothing of a lease with its session.
	command := core.Command(&core.Renew{Namespace: g.at.space, ID: g.id})
	if g.session != "" && !g.limited && c.level >= core.Level4 && w.chance(70) {
		command = &core.RenewSession{Namespace: g.at.space, ID: g.session}
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
		case answer.Session != nil && (answer.Session.Interventions != g.count && !w.Holder.IgnoresCount || g.limited):
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

// giveBack stops believing, and only then tells the server.
func (g *grip) giveBack() {
	c, w := g.client, g.client.world
	g.held = false
	g.drop()
	switch n := w.random.IntN(10); {
	case g.session != "" && n < 5:
		c.insist(&core.CloseSession{Namespace: g.at.space, ID: g.session}, 5)
	case n < 7:
		c.insist(&core.Txn{Namespace: g.at.space, Request: c.newRequest(""), Then: []core.Op{
			{Do: core.ReleaseLease, ID: g.id}, {Do: core.Delete, Path: "holder of " + g.at.name},
		}}, 5)
	default:
		c.insist(&core.Release{Namespace: g.at.space, ID: g.id, Request: c.newRequest("")}, 5)
	}
}

// withdraw takes back what may never have arrived. If it comes late, it must be refused.
func (g *grip) withdraw() {
	g.held = false
	g.drop()
	g.client.world.count("withdrawn")
	release := &core.Release{Namespace: g.at.space, ID: g.id}
	if g.client.level >= core.Level4 || g.client.world.Holder.EncodesAbove {
		release.Session, release.Withdraw = g.session, true
	}
	g.client.insist(release, 5)
}

// rename goes on under another id, with the same token.
func (g *grip) rename() {
	c, to := g.client, g.client.newID()
	from := g.id
	c.call(&core.Change{Namespace: g.at.space, ID: from, NewID: to}, reaction{reply: func(a *attempt, answer core.Answer, err error) {
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
			c.later(c.world.upTo(500*time.Millisecond), again)
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
		level := to.level()
		c.later(w.delay(), func() {
			answered, c.level = true, max(c.level, level)
			w.tell("%s is told of %s: %v", c.name, a.id, err)
			w.truth.heard(a, err)
			if a.epoch != w.epoch && c.grip != nil {
				c.grip.former = true // it hears of a cluster that is lost
			}
			if errors.Is(err, leasehold.ErrUnavailable) {
				c.elsewhere(to)
			}
			if r.reply != nil {
				r.reply(a, answer, err)
			}
		})
	}
	w.after(max(0, w.lull-w.now)+w.delay(), func() {
		if to.turnsAway(a, done) {
			return
		}
		to.deliver(c.name, replica.Commands{{Bytes: bytes, Done: done}})
	})
	c.later(w.between(400*time.Millisecond, 2*time.Second), func() {
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

// seldom is a namespace in which nothing happens for so long that it may be forgotten.
const seldom = "seldom"

// visit takes a lease there, and gives it back.
func (w *World) visit() {
	if w.quiet {
		return
	}
	w.after(w.between(w.Visits/2, 3*w.Visits/2), w.visit)
	visitor := newClient(w, 97)
	id := fmt.Sprint("visit ", w.now)
	visitor.insist(&core.Acquire{Namespace: seldom, Resource: "r0", ID: id, Holder: visitor.name, TTL: 5 * time.Second}, 3)
	w.after(2*time.Second, func() { visitor.insist(&core.Release{Namespace: seldom, ID: id}, 3) })
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
	operator := newClient(w, 99)
	c := &core.Break{Namespace: g.at.space, ID: g.id, By: "operator"}
	switch w.random.IntN(3) {
	case 0:
		c.Remains = true
	case 1:
		c.Period = w.upTo(2 * time.Second)
	}
	// Only a break that leaves the holder less than it has is one that it cannot know of.
	g.exempt = g.exempt || !c.Remains
	operator.insist(c, 3)
}
