package mcp

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// maxIDs is how many leases and tickets one call names.
const maxIDs = maxGrips

// A checking is the arguments of lease_check.
type checking struct {
	IDs  []string `json:"ids"`
	Wait int      `json:"wait_seconds"`
}

// serve renews what the agent has, and says how it stands. Unlike other calls it also keeps tickets, since an agent
// that checks all of its ids means all of them.
func (a *checking) serve(c *call) (any, error) {
	if err := checkWait(a.Wait); err != nil {
		return nil, err
	}
	ids, err := a.which(c)
	if err != nil {
		return nil, err
	}
	if a.Wait > 0 && len(ids) == 1 {
		if err := c.awaitTurn(ids[0], time.Duration(a.Wait)*time.Second); err != nil {
			return nil, err
		}
	}
	answer := checked{Leases: []entry{}}
	for _, id := range ids {
		e, err := c.renew(id)
		if err != nil {
			return nil, err
		}
		answer.Leases = append(answer.Leases, e)
	}
	answer.Messages, err = c.messages(answer.Leases)
	answer.Warnings, answer.Next = c.warnings, nextOfAll(answer.Leases)
	return answer, err
}

// which returns the ids that are asked about: all of the agent's, if none are named.
func (a *checking) which(c *call) (ids []string, err error) {
	if len(a.IDs) > 0 {
		return a.IDs, c.checkIDs(a.IDs)
	}
	all, err := c.mine()
	for i := range all {
		ids = append(ids, all[i].id)
	}
	return ids, err
}

// checkIDs refuses ids that are not the agent's. It says no more of them: whose they are, lease_list knows.
func (c *call) checkIDs(ids []string) error {
	if len(ids) == 0 || len(ids) > maxIDs {
		return door.Invalid("ids has %d of them: name 1 to %d", len(ids), maxIDs)
	}
	for _, id := range ids {
		if !c.agent.owns(id) {
			return &leasehold.Error{Code: leasehold.NotFound, Message: door.Brief(id) +
				" is no lease or ticket of yours: use an id that lease_acquire gave you"}
		}
	}
	return nil
}

// renew renews one grip, and says how it stands. The renewal comes first: what ended before it is told as lost.
func (c *call) renew(id string) (entry, error) {
	if _, err := c.do(&core.RenewSession{Namespace: c.namespace, ID: id}); err != nil && !gone(err) {
		return entry{}, err
	}
	return c.tellOne(id)
}

// awaitTurn waits for the turn of a ticket.
func (c *call) awaitTurn(id string, wait time.Duration) error {
	var g grip
	err := c.look(func(v core.View) { g = c.find(v, id) })
	if err != nil || g.waiter == nil {
		return err
	}
	if _, err := c.do(&core.RenewSession{Namespace: c.namespace, ID: id}); err != nil {
		if gone(err) {
			return nil // it is told as lost
		}
		return err
	}
	_, err = c.await(&core.Acquire{Namespace: c.namespace, Resource: g.waiter.Resource, ID: id, Session: id,
		Holder: c.agent.holder, Wait: leasehold.MaxWait}, wait)
	if gone(err) {
		return nil
	}
	return err
}

// takeUp notes that the agent knows of what its ticket got.
func (c *call) takeUp(g *grip) error {
	if !g.held() || g.told() {
		return nil
	}
	_, err := c.do(&core.Renew{Namespace: c.namespace, ID: g.id, Note: new(takenUp)})
	if gone(err) {
		return nil
	}
	return err
}

// What is shown of messages: those that came last, of what happened lately.
const (
	maxMessages = 5
	maxLook     = 2000
)

// messages returns what people and agents said to the holder of leases. They are told again with every check while
// the lease lasts: an agent that lost an answer must not miss one.
func (c *call) messages(of []entry) (list []message, err error) {
	mine := map[string]bool{}
	for i := range of {
		for n := range of[i].Leases {
			mine[leaseID(of[i].ID, n)] = of[i].Status == statusHeld
		}
	}
	err = c.look(func(v core.View) {
		list = nil
		h := v.History(c.namespace)
		found, _, _ := h.Last(0, 0, maxMessages, maxLook, func(e *leasehold.Event) bool {
			return e.Kind == leasehold.Asked && mine[e.ID]
		})
		for _, e := range found {
			list = append(list, message{Resource: e.Resource, From: e.By, Text: e.Reason, At: clock(e.At)})
		}
	})
	return list, err
}
