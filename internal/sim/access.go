package sim

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/sim/rights"
)

// Who may do what: each client is a principal of its own, in one of two groups, and operators are root. Roles are bound
// and taken away, tokens revoked and given back, and quotas set, while commands are on their way and servers fail.
// Clients try what they may not do, too. A client always says that it is in the same group, as a server says that knows
// an old policy; by the policy its token may be in the other one.

// Access says how often the policy changes.
type Access struct {
	Every time.Duration // on average; 0: there is none, and nobody says who asks
}

var groups = []string{"even", "odd"}

// asker is who a client is proven to be; nil: nobody asks.
func (c *client) asker() *access.Asker {
	switch {
	case c.world.Access.Every == 0:
		return nil
	case c.group == "":
		return &access.Asker{Principal: rights.Root, Token: tokenOf(rights.Root)}
	}
	return &access.Asker{Principal: c.name, Groups: []string{c.group}, Token: tokenOf(c.name)}
}

func tokenOf(principal string) string { return "token of " + principal }

func (w *World) token(principal string, groups ...string) *access.Token {
	id := tokenOf(principal)
	return &access.Token{ID: id, Hash: fmt.Sprintf("%032s", id), Principal: principal, Groups: groups}
}

// base is a binding that lets a group do its work. Without it its members may do little, or nothing.
func base(group string) *access.Binding {
	return &access.Binding{Name: "base of " + group, Role: "worker", Group: group, Namespace: access.AllNamespaces}
}

// beginAccess begins with a policy by which everybody may work. Until it is there everybody may do everything.
func (w *World) beginAccess() {
	put := access.Items{
		Roles:  rights.Roles,
		Tokens: []*access.Token{w.token(rights.Root)},
		Bindings: []*access.Binding{base(groups[0]), base(groups[1]),
			{Name: rights.Root, Role: "admin", Principal: rights.Root, Namespace: access.AllNamespaces}},
		Quotas: []*access.Quota{{Principal: rights.Root}}, // or that of everybody would be root's
	}
	for _, c := range w.clients {
		put.Tokens = append(put.Tokens, w.token(c.name, c.group))
	}
	w.change(&core.ChangeAccess{IfNone: true, Put: put}, 100)
	w.after(2*time.Second, w.govern)
}

func (w *World) change(c *core.ChangeAccess, times int) { newClient(w, operatorsFrom).insist(c, times) }

// govern changes one thing about who may do what.
func (w *World) govern() {
	if w.quiet {
		return
	}
	w.after(w.upTo(2*w.Access.Every), w.govern)
	change, who := &core.ChangeAccess{}, w.clients[w.random.IntN(len(w.clients))].name
	put, remove := &change.Put, &change.Remove
	switch n := w.random.IntN(13); {
	case n < 3:
		put.Bindings = []*access.Binding{w.binding()}
	case n == 3:
		remove.Bindings = []string{w.slot()}
	case n == 4:
		remove.Bindings = []string{base(groups[w.random.IntN(len(groups))]).Name}
	case n < 7:
		put.Bindings = []*access.Binding{base(groups[0]), base(groups[1])}
	case n == 7:
		remove.Tokens = []string{tokenOf(who)}
	case n < 10:
		for _, c := range w.clients {
			put.Tokens = append(put.Tokens, w.token(c.name, c.group))
		}
	case n == 10:
		put.Quotas = []*access.Quota{w.quota(who)}
	case n == 11:
		put.Tokens = []*access.Token{w.token(who, groups[w.random.IntN(len(groups))])}
	default:
		remove.Quotas = []string{"p" + access.Everybody, "n" + spaces[1], "p" + who}
	}
	w.change(change, 5)
}

// slot names one of a few bindings, which replace each other.
func (w *World) slot() string { return fmt.Sprint("binding ", w.random.IntN(6)) }

// binding makes one up.
func (w *World) binding() *access.Binding {
	b := &access.Binding{Name: w.slot(), Role: rights.Roles[w.random.IntN(len(rights.Roles))].Name,
		Namespace: []string{access.AllNamespaces, spaces[0], spaces[1]}[w.random.IntN(3)],
		Prefix:    []string{"", "", "r0", "pool", "register0", "holder of r1"}[w.random.IntN(6)]}
	c := w.clients[w.random.IntN(len(w.clients))]
	if b.Principal = c.name; w.chance(40) {
		b.Principal, b.Group = "", c.group
	}
	if w.chance(20) {
		b.Holders = c.name
	}
	return b
}

// quota makes one up: of a client, of each of them, or of the namespace in which less is done.
func (w *World) quota(who string) *access.Quota {
	q := &access.Quota{Leases: w.random.Int64N(3), Sessions: w.random.Int64N(3), Waiters: w.random.Int64N(2),
		Records: w.random.Int64N(6)}
	switch w.random.IntN(3) {
	case 0:
		q.Principal = who
	case 1:
		q.Principal = access.Everybody
	default:
		q.Namespace = spaces[1]
	}
	return q
}

// pry tries what is somebody else's, or an operator's. If it may, the holder need not know in time.
func (c *client) pry() {
	w := c.world
	g := w.clients[w.random.IntN(len(w.clients))].grip
	if g == nil || g.client == c {
		return
	}
	space := g.at.space
	tries := []core.Command{
		&core.Release{Namespace: space, ID: g.id}, &core.Break{Namespace: space, ID: g.id, By: c.name},
		&core.Renew{Namespace: space, ID: g.id}, &core.Change{Namespace: space, ID: g.id, Holder: c.name},
		&core.Txn{Namespace: space, Then: []core.Op{{Do: core.ReleaseLease, ID: g.id}}},
		&core.ChangeAccess{Put: access.Items{Bindings: []*access.Binding{
			{Name: "grab", Role: "admin", Principal: c.name, Namespace: access.AllNamespaces}}}},
		&core.Define{Namespace: space, Definition: w.definition()},
	}
	if g.session != "" {
		tries = append(tries, &core.CloseSession{Namespace: space, ID: g.session},
			&core.RenewSession{Namespace: space, ID: g.session})
	}
	g.exempt = true
	w.count("tries of what is another's")
	c.call(tries[w.random.IntN(len(tries))], reaction{})
}
