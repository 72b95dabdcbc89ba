package sim

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/wire"
)

// spaces are the namespaces. Most is done in the first.
var spaces = []string{"default", "other"}

const (
	resources = 3
	pools     = 2
)

// An attempt is one command, sent once.
type attempt struct {
	epoch     int
	id        string
	client    *client
	asker     *access.Asker // who sent it; nil: nobody is asked
	sent      time.Duration // real time, before it was sent
	slept     time.Duration // how long the client's machine had slept by then
	command   core.Command
	applied   uint64 // its place in the log
	appliedAt time.Duration
	failed    bool // by the log: it changed nothing
	swapped   bool // it was a transaction whose comparisons held
	refused   bool // somebody was told that it did not happen
	turned    bool // the edge of a server refused it, and its node never saw it
}

// A client wants leases, believes in those that it has, and uses them.
type client struct {
	world *World
	name  string
	group string // empty: it is an operator
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

func newClient(w *World, n int) *client {
	c := &client{world: w, name: fmt.Sprint("c", n), rate: w.rate(), at: w.servers[w.random.IntN(len(w.servers))]}
	if n < operatorsFrom {
		c.group = groups[n%len(groups)]
	}
	return c
}

// operatorsFrom is the number from which on clients are operators.
const operatorsFrom = 90

// later schedules something for the client. If its machine sleeps then, it happens when it
// wakes.
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
	case n == 3 && w.Access.Every > 0 && w.chance(50):
		c.pry()
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
	if w.Links > 0 && w.chance(w.Links) {
		g.byRecord()
	}
	w.pickSubject(g)
	c.grip = g
	if !g.bound && !w.chance(40) {
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

// insist sends a command until there is an answer, at most a number of times.
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

// A reaction is what a client does when it gets an answer, which may come late, and when it
// gets none in time. Both may happen.
type reaction struct {
	reply   func(*attempt, core.Answer, error)
	silence func()
}

// call sends a command to the server that the client talks to. The answer can be lost, and can
// come after the client has given up on it and sent the command again elsewhere.
func (c *client) call(command core.Command, r reaction) {
	w := c.world
	a := w.truth.attempted(c, command)
	origin := leasehold.Origin{Address: a.id}
	bytes, same, err := wire.Encode(wire.AppendAsker(wire.AppendOrigin(nil, origin), a.asker), command)
	if err != nil {
		w.violated("%T cannot be encoded: %v", command, err)
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
		call := replica.Call{Bytes: bytes, Done: done}
		if same {
			call.Command, call.Origin = command, &origin // as an engine does
		}
		to.deliver(c.name, replica.Commands{call})
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

// visit takes a lease in that namespace and gives it back. Between two visits the namespace may
// be forgotten; its tokens must go on all the same.
func (w *World) visit() {
	if w.quiet {
		return
	}
	w.after(w.between(w.Visits/2, 3*w.Visits/2), w.visit)
	visitor := newClient(w, 97)
	id := fmt.Sprint("visit ", w.now)
	visitor.insist(&core.Acquire{Namespace: seldom, Resource: "r0", ID: id, Holder: visitor.name, TTL: 5 * time.Second},
		3)
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
	if w.meddleByRecord(g) {
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
