package mcp

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// How a lease or a ticket stands.
const (
	statusHeld    = "held"
	statusWaiting = "waiting"
	statusLost    = "lost"
)

// An entry is one lease, or several that were taken together, or the ticket for them. It is one type for all, since
// an agent meets the same id in each of them.
type entry struct {
	ID     string `json:"id"`
	Status string `json:"status"`

	// While it is held.
	Leases      []held `json:"leases,omitempty"`
	ExpiresIn   int    `json:"expires_in_seconds,omitempty"`
	RenewBefore string `json:"renew_before,omitempty"`

	// While it waits.
	Resources   []string `json:"resources,omitempty"`
	Position    int      `json:"position,omitempty"`
	Forecast    string   `json:"forecast,omitempty"`
	HeldBy      []holder `json:"held_by,omitempty"`
	PlaceKeptIn int      `json:"place_kept_seconds,omitempty"`

	Why      string   `json:"why,omitempty"` // it is lost
	Next     string   `json:"next"`
	Warnings []string `json:"warnings,omitempty"`
}

// A held is one lease that an agent has.
type held struct {
	Resource string          `json:"resource"`
	Token    leasehold.Token `json:"token"`
	Units    []string        `json:"units,omitempty"`
	Task     string          `json:"task,omitempty"` // what is to be done, if it is a task
	Warning  string          `json:"warning,omitempty"`
}

// A holder is who has what, as others see it.
type holder struct {
	Resource string `json:"resource"`
	Holder   string `json:"holder,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Since    string `json:"since,omitempty"`
	Ends     string `json:"ends,omitempty"`
	Waiting  int    `json:"waiting,omitempty"`
	Usually  string `json:"usually_held_for,omitempty"`
}

// A message is what somebody said to the holder of a lease.
type message struct {
	Resource string `json:"resource"`
	From     string `json:"from"`
	Text     string `json:"text"`
	At       string `json:"at"`
}

// A checked is the answer to lease_check.
type checked struct {
	Leases   []entry   `json:"leases"`
	Messages []message `json:"messages,omitempty"`
	Next     string    `json:"next"`
	Warnings []string  `json:"warnings,omitempty"`
}

// tellOne says how one grip stands, and notes that the agent was told.
func (c *call) tellOne(id string) (entry, error) {
	var g grip
	var inTheWay []leasehold.Status
	var how leasehold.How
	var was string
	err := c.look(func(v core.View) {
		g = c.find(v, id)
		inTheWay, was = nil, v.PathOfClaim(c.namespace, id)
		how = v.Ended(c.namespace, id)
		if g.waiter == nil {
			return
		}
		for n := 0; n < maxResources; n++ {
			path := v.PathOfClaim(c.namespace, leaseID(id, n))
			if path == "" {
				break
			}
			inTheWay = append(inTheWay, v.Status(c.namespace, path, 0))
		}
	})
	if err == nil {
		err = c.takeUp(&g)
	}
	if err != nil {
		return entry{}, err
	}
	switch {
	case g.lost != nil:
		return c.lost(&g, was, how), nil
	case g.waiter != nil:
		return c.waiting(&g, inTheWay), nil
	}
	return c.holds(&g), nil
}

// holds tells of leases that the agent has. What it should do before is said with a fifth of the time in reserve,
// since an agent that has something in hand comes late.
func (c *call) holds(g *grip) entry {
	e := entry{ID: g.id, Status: statusHeld, ExpiresIn: seconds(g.left()), Warnings: c.warnings}
	breaking := false
	for i := range g.leases {
		l := &g.leases[i]
		h := held{Resource: l.Resource, Token: l.Token, Units: l.Units, Task: c.taskOf(l)}
		if l.After != nil {
			h.Warning = fmt.Sprintf("the lease of %s before yours ended uncleanly (%v): look at what it left",
				l.After.Holder, l.After.How)
		}
		breaking = breaking || l.State == leasehold.Breaking
		e.Leases = append(e.Leases, h)
	}
	soon := g.left() - g.session.TTL/5
	e.RenewBefore = clock(time.Now().Add(max(0, soon)))
	e.Next = fmt.Sprintf("Work. Call lease_check within %s, as often as you like; lease_release when done. Give the "+
		"token to what you write to, if it checks tokens.", short(max(time.Second, soon)))
	if breaking {
		e.Next = fmt.Sprintf("Somebody ends this lease: save your work, call lease_release within %s.", short(g.left()))
	}
	return e
}

// waiting tells of a ticket: when to come back depends on when the turn is expected, and on how long the place is
// kept.
func (c *call) waiting(g *grip, inTheWay []leasehold.Status) entry {
	w := g.waiter
	e := entry{ID: g.id, Status: statusWaiting, Position: w.Position, PlaceKeptIn: seconds(g.session.Remaining),
		Forecast: "unknown", Warnings: c.warnings}
	pause := 30 * time.Second
	if w.Forecast > 0 {
		e.Forecast = "usually in about " + short(w.Forecast)
		pause = min(max(w.Forecast/2, 5*time.Second), 5*time.Minute)
	}
	pause = min(pause, g.session.TTL/3)
	for i := range inTheWay {
		s := &inTheWay[i]
		e.Resources = append(e.Resources, s.Resource)
		if s.Holding > 0 || s.Waiting > 1 {
			e.HeldBy = append(e.HeldBy, holderOf(s))
		}
		for i := range s.Overlapping { // on other names, which each holder says
			l := &s.Overlapping[i]
			e.HeldBy = append(e.HeldBy, holderOf(&leasehold.Status{Resource: l.Resource, Holding: 1,
				Holders: []leasehold.Lease{*l}}))
		}
	}
	e.Next = fmt.Sprintf("Do not touch it yet. Call lease_check with this id in about %s, or at once with "+
		"wait_seconds; do other work meanwhile. lease_ask asks the holder; lease_release gives up your place.",
		short(pause))
	return e
}

// lost says how a grip ended. One that its agent gave back is no loss.
func (c *call) lost(g *grip, resource string, how leasehold.How) entry {
	e := entry{ID: g.id, Status: statusLost, Why: g.lost.Message, Warnings: c.warnings}
	if how != 0 {
		e.Why = resource + ": " + how.String()
	}
	if how == leasehold.SessionClosed {
		e.Why = resource + ": you released it"
	}
	_, e.Next = advice(leasehold.ErrLost)
	if len(g.leases) > 0 {
		e.Next = "Not all of it is left, so none of it may be worked on: call lease_release with this id. " + e.Next
	}
	return e
}

// holderOf says who has a resource. Of several who share it, the one that has had it longest stands for all.
func holderOf(s *leasehold.Status) holder {
	h := holder{Resource: s.Resource, Waiting: s.Waiting}
	if s.Usual != nil {
		h.Usually = short(s.Usual.HoldP50)
	}
	if len(s.Holders) == 0 {
		return h
	}
	l := &s.Holders[0]
	h.Holder, h.Reason, h.Since = l.Holder, l.Reason, clock(l.Acquired)
	if more := s.Holding - 1; more > 0 {
		h.Holder += fmt.Sprintf(" and %d more", more)
	}
	o := leasehold.Outlook{Final: l.State == leasehold.Breaking}
	if !l.Expires.IsZero() {
		o.Left = short(l.Remaining)
	}
	h.Ends = o.When()
	return h
}

// nextOfAll says what to do first, of all that was checked: what is lost comes before what waits.
func nextOfAll(of []entry) string {
	var waits, lost []string
	for i := range of {
		switch of[i].Status {
		case statusWaiting:
			waits = append(waits, of[i].ID)
		case statusLost:
			lost = append(lost, of[i].ID)
		}
	}
	switch {
	case len(of) == 0:
		return "You hold nothing and wait for nothing."
	case len(lost) > 0:
		return "Stop work on what " + strings.Join(lost, ", ") + " was for."
	case len(waits) > 0:
		return "Check the tickets " + strings.Join(waits, ", ") + " again, as each says."
	}
	return "All is held: go on."
}

// seconds cuts a time off, so that nobody believes in more than there is.
func seconds(d time.Duration) int { return int(d / time.Second) }

// clock writes a moment as agents and people read it.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// short writes a time without more digits than anybody needs.
func short(d time.Duration) string {
	if d < time.Second {
		return "under 1s"
	}
	unit := time.Second
	if d >= time.Hour {
		unit = time.Minute
	}
	text := d.Round(unit).String()
	for _, nothing := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, nothing) {
			text = text[:len(text)-2]
		}
	}
	return text
}
