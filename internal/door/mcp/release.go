package mcp

import (
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
)

// A releasing is the arguments of lease_release.
type releasing struct {
	IDs     []string `json:"ids"`
	Outcome string   `json:"outcome"`
}

// A released is the answer to lease_release.
type released struct {
	Released []ended  `json:"released"`
	Next     string   `json:"next"`
	Warnings []string `json:"warnings,omitempty"`
}

// An ended is what became of one id.
type ended struct {
	ID        string   `json:"id"`
	Resources []string `json:"resources,omitempty"`
	Result    string   `json:"result"`
}

// serve gives back what the agent has, and names it.
func (a *releasing) serve(c *call) (any, error) {
	switch a.Outcome {
	case "", outcomeDone, outcomeFailed, outcomeUnclean:
	default:
		return nil, door.Invalid("outcome %s is unknown: write done, failed or unclean", door.Brief(a.Outcome))
	}
	if err := c.checkIDs(a.IDs); err != nil {
		return nil, err
	}
	answer := released{Next: "Nothing else is needed.", Warnings: c.warnings}
	for _, id := range a.IDs {
		e, err := c.release(id, a.Outcome)
		if err != nil {
			return nil, err
		}
		if answer.Released = append(answer.Released, e); strings.HasPrefix(e.Result, lostBefore) {
			answer.Next = "What was lost before its release may have been somebody else's while you worked: look at it."
		}
	}
	return answer, nil
}

// What an agent says of its work. Done and failed are the states of a task that ends so.
const (
	outcomeDone    = "done"
	outcomeFailed  = "failed"
	outcomeUnclean = "unclean"
)

// lostBefore is how the result begins of a release that came too late.
const lostBefore = "it was lost before"

// release ends one grip. What it was about is read first, since afterwards it is gone.
func (c *call) release(id, outcome string) (e ended, err error) {
	unclean := outcome == outcomeUnclean
	e = ended{ID: id, Result: "released"}
	var g grip
	err = c.look(func(v core.View) { g, e.Resources = c.find(v, id), c.pathsOf(v, id) })
	if err != nil {
		return e, err
	}
	if g.session.ID == "" {
		return c.wasReleased(e)
	}
	if len(e.Resources) > 0 {
		c.resource = e.Resources[0]
	}
	if err := c.finishTask(&g, outcome); err != nil && !gone(err) {
		return e, err
	}
	_, err = c.do(&core.CloseSession{Namespace: c.namespace, ID: id, Abandon: unclean})
	if gone(err) {
		return c.wasReleased(e)
	}
	switch {
	case g.waiter != nil:
		e.Result = "the ticket was given up"
	case unclean:
		e.Result = "released, as left half-way"
	}
	return e, err
}

// wasReleased says what became of something that is not there any more. To an agent that retries a release the first
// answer may have been lost, so this is no error; but that it lost the lease before, it must learn.
func (c *call) wasReleased(e ended) (ended, error) {
	var how leasehold.How
	var failure *leasehold.Error
	err := c.look(func(v core.View) {
		how = v.Ended(c.namespace, e.ID)
		_, failure = v.Session(c.namespace, e.ID)
	})
	switch {
	case how == leasehold.SessionClosed || how == leasehold.Abandoned || how == leasehold.Released ||
		how == leasehold.Withdrawn:
		e.Result = "it was released before"
	case how != 0:
		e.Result = lostBefore + ": " + how.String()
	case failure != nil && failure.Code == leasehold.Lost:
		e.Result = "it has ended: " + failure.Message
	default:
		e.Result = "there is no such lease or ticket, or it ended more than 10 minutes ago"
	}
	return e, err
}

// pathsOf returns the resources of a grip, also of one that ended lately.
func (c *call) pathsOf(v core.View, id string) (paths []string) {
	for n := range maxResources {
		path := v.PathOfClaim(c.namespace, leaseID(id, n))
		if path == "" {
			break
		}
		paths = append(paths, path)
	}
	return paths
}
