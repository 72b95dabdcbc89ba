package mcp

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// AgentHeader is the header by which an agent says its name, if several share a token, or if access is off.
const AgentHeader = "Leasehold-Agent"

const (
	maxAgent = 128 // bytes of a name
	// maxGrips is how much one agent can have: each of its calls looks at all of it.
	maxGrips = 64
)

// An agent is who calls: a principal, and the name that it gives itself.
type agent struct {
	holder string // as others see it; empty: nobody knows
	prefix string // of the ids of all that it has
}

// newAgent returns who calls. The name alone decides nothing where access is on: another principal that gives
// itself the same name is another agent.
func newAgent(principal, name string) agent {
	a := agent{holder: name, prefix: "mcp-" + digest("agent", principal, name)[:13] + "-"}
	if name == "" {
		a.holder = principal
	}
	return a
}

// digest returns a name for texts that no other texts have.
func digest(texts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", texts))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// id returns the id of what a request gets: the same for the same request of the same agent. It is what makes a call
// that is sent twice harmless, also to another server, and long after the first try.
func (a agent) id(request string) string { return a.prefix + digest("request", request)[:13] }

// owns reports whether an id is one of the agent's.
func (a agent) owns(id string) bool { return strings.HasPrefix(id, a.prefix) }

// The labels by which a grip is known again. That of leases says which of them were granted to a ticket: until the
// agent was told, only a look at the ticket keeps them, and not whatever else the agent does.
const (
	labelAgent  = "agent"
	labelCount  = "mcp-leases"
	labelFor    = "mcp-for"
	labelTicket = "mcp-ticket"
)

// takenUp is the note on a lease that was granted to a ticket and that the agent knows of.
const takenUp = "taken up"

// labelled returns the value of a label; empty: there is none.
func labelled(labels leasehold.Labels, key string) string {
	for _, l := range labels {
		if l.Key == key {
			return l.Value
		}
	}
	return ""
}

// A grip is what one request of an agent has: leases, or places in the queues for them.
type grip struct {
	id      string
	session leasehold.Session
	leases  []leasehold.Lease
	waiter  *leasehold.Waiter
	lost    *leasehold.Error // why there is nothing of it; or not all of it
}

// leaseID returns the id of the nth lease of a grip.
func leaseID(grip string, n int) string {
	if n == 0 {
		return grip
	}
	return grip + "." + strconv.Itoa(n+1)
}

// held reports whether the agent has all that it asked for.
func (g *grip) held() bool { return g.lost == nil && g.waiter == nil && len(g.leases) > 0 }

// told reports whether the agent knows that it holds this.
func (g *grip) told() bool {
	first := &g.leases[0]
	return labelled(first.Labels, labelTicket) == "" || first.Note != ""
}

// left is how long the grip lasts without another sign of life.
func (g *grip) left() time.Duration {
	left := g.session.Remaining
	for i := range g.leases {
		if l := &g.leases[i]; !l.Expires.IsZero() {
			left = min(left, l.Remaining)
		}
	}
	return left
}

// late reports whether four fifths of its time have passed.
func (g *grip) late() bool { return g.left() < g.session.TTL/5 }

// resources names what the grip is about.
func (g *grip) resources() (names []string) {
	for i := range g.leases {
		names = append(names, g.leases[i].Resource)
	}
	if g.waiter != nil {
		names = append(names, g.waiter.Resource)
	}
	return names
}

// read reads a grip of which the session is known.
func (c *call) read(v core.View, s leasehold.Session) grip {
	g := grip{id: s.ID, session: s}
	count, _ := strconv.Atoi(labelled(s.Labels, labelCount))
	for n := range max(1, min(count, maxResources)) {
		answer := v.Claim(c.namespace, leaseID(s.ID, n))
		switch {
		case answer.Err != nil:
			g.lost = answer.Err
		case answer.Waiter != nil && g.waiter == nil:
			g.waiter = answer.Waiter
		case answer.Lease != nil:
			g.leases = append(g.leases, *answer.Lease)
		}
	}
	return g
}

// find reads one grip of the agent. Of one that ended, lost says how.
func (c *call) find(v core.View, id string) grip {
	s, failure := v.Session(c.namespace, id)
	if failure != nil {
		return grip{id: id, lost: failure}
	}
	return c.read(v, s)
}

// mine reads all that the agent has.
func (c *call) mine() (all []grip, err error) {
	err = c.look(func(v core.View) {
		all = nil
		sessions, _ := v.Sessions(c.namespace, c.agent.prefix, "", maxGrips)
		for _, s := range sessions {
			all = append(all, c.read(v, s))
		}
	})
	return all, err
}

// signOfLife renews what the agent holds, and warns of what it nearly lost. A ticket is not renewed: one that its
// agent forgot would get its turn, and keep it from others for as long as the agent does something else.
func (c *call) signOfLife() error {
	all, err := c.mine()
	if err != nil {
		return err
	}
	for i := range all {
		g := &all[i]
		switch {
		case g.lost != nil:
		case g.waiter != nil || !g.told():
			if g.late() {
				c.warn("ticket %s for %s ends in %s: call lease_check with it now, or it loses its place", g.id,
					strings.Join(g.resources(), ", "), short(g.left()))
			}
		default:
			if g.late() {
				c.warn("%s (%s) had only %s of its %s left before this call: call something more often, or ask for "+
					"a longer ttl_seconds", g.id, strings.Join(g.resources(), ", "), short(g.left()),
					short(g.session.TTL))
			}
			if err := c.keep(g); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep renews a grip that has used up a good part of its time. One that ends meanwhile is no error: who asks about it
// is told.
func (c *call) keep(g *grip) error {
	if g.session.Remaining > g.session.TTL*3/4 {
		return nil
	}
	_, err := c.do(&core.RenewSession{Namespace: c.namespace, ID: g.id})
	if gone(err) {
		return nil
	}
	return err
}

// warn notes something for the agent, which goes with whatever it is answered.
func (c *call) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}
