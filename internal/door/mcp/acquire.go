package mcp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/id"
)

const (
	maxResources = 16
	maxWait      = 20 * time.Second // inside a call
	minAsked     = 10 * time.Second // ttl that may be asked for
	beat         = 5 * time.Second  // between two notices of progress
)

// An acquiring is the arguments of lease_acquire.
type acquiring struct {
	Resources []string `json:"resources"`
	Reason    string   `json:"reason"`
	Wait      int      `json:"wait_seconds"`
	TTL       int      `json:"ttl_seconds"`
	Slots     int      `json:"slots"`
	RequestID string   `json:"request_id"`
}

// check says what is wrong with the arguments, whatever the state is. The schema says most of it too, but nobody
// makes a client look at that.
func (a *acquiring) check() error {
	if n := len(a.Resources); n == 0 || n > maxResources {
		return door.Invalid("resources has %d names: give 1 to %d", n, maxResources)
	}
	if err := a.checkNames(); err != nil {
		return err
	}
	for i, name := range a.Resources {
		if slices.Contains(a.Resources[:i], name) {
			return door.Invalid("resources has %s twice: name it once", door.Brief(name))
		}
	}
	if a.TTL != 0 && (a.TTL < int(minAsked.Seconds()) || a.TTL > int(mostTTL.Seconds())) {
		return door.Invalid("ttl_seconds is %d: %d to %d are allowed, or none for what is usual", a.TTL,
			int(minAsked.Seconds()), int(mostTTL.Seconds()))
	}
	if a.Slots < 0 || a.Slots > leasehold.MaxCapacity {
		return door.Invalid("slots is %d: 1 to %d are allowed, or none for all of them", a.Slots, leasehold.MaxCapacity)
	}
	return door.First(checkWait(a.Wait), door.CheckName("reason", a.Reason, leasehold.MaxName),
		door.CheckText("request_id", a.RequestID, leasehold.MaxName))
}

// checkWait refuses a wait that is too long for a call, since clients would cut it off.
func checkWait(seconds int) error {
	if seconds < 0 || seconds > int(maxWait.Seconds()) {
		return door.Invalid("wait_seconds is %d: 0 to %d are allowed; a ticket keeps your place beyond that", seconds,
			int(maxWait.Seconds()))
	}
	return nil
}

// wanted is the same text for the same resources, in whatever order they are named.
func (a *acquiring) wanted() string {
	return digest(append(slices.Sorted(slices.Values(a.Resources)), strconv.Itoa(a.Slots))...)[:26]
}

// serve takes leases, or a place in the queues for them.
func (a *acquiring) serve(c *call) (any, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	c.resource = a.Resources[0]
	name, err := a.name(c)
	if err != nil {
		return nil, err
	}
	if err := a.begin(c, name); err != nil {
		return nil, err
	}
	granted, err := a.take(c, a.command(c, name))
	if err != nil {
		return nil, a.refused(c, name, err)
	}
	if !granted {
		c.refusal = leasehold.ErrHeld
	}
	return c.tellOne(name)
}

// name returns the id of what the request gets. An agent that gives its request no name, and asks for what it has, is
// told that it has it: else it would wait for itself.
func (a *acquiring) name(c *call) (string, error) {
	if a.RequestID != "" {
		return c.agent.id(a.RequestID), nil
	}
	all, err := c.mine()
	for i := range all {
		if g := &all[i]; g.lost == nil && labelled(g.session.Labels, labelFor) == a.wanted() {
			return g.id, err
		}
	}
	return c.agent.id(id.New()), err
}

// begin opens the session of a request, unless an earlier try did. What was learned may have changed since that
// try, so that the TTL of a session that is there is used again.
func (a *acquiring) begin(c *call, name string) error {
	return door.Decide(c.ctx, engine.Unavailable("this request is made several times at once: call again"),
		func(bool) (done bool, err error) {
			var known leasehold.Session
			var ttl time.Duration
			var has int
			err = c.look(func(v core.View) {
				var failure *leasehold.Error
				if known, failure = v.Session(c.namespace, name); failure == nil {
					ttl = known.TTL
					return
				}
				mine, _ := v.Sessions(c.namespace, c.agent.prefix, "", maxGrips)
				has, ttl = len(mine), a.ttl(v, c)
			})
			if err != nil {
				return false, err
			}
			if has == maxGrips {
				return false, &leasehold.Error{Code: leasehold.Limited, Message: "you have " + strconv.Itoa(maxGrips) +
					" leases and tickets, which is as many as an agent can have"}
			}
			_, err = c.do(&core.OpenSession{Namespace: c.namespace, ID: name, TTL: ttl, Labels: a.sessionLabels(c)})
			if errors.Is(err, leasehold.ErrRefused) && known.ID == "" {
				return false, nil // another try of it was faster, and had learned another ttl
			}
			return err == nil, a.ended(err)
		})
}

// ended says that a request was made before, and what it got has ended.
func (a *acquiring) ended(err error) error {
	if !errors.Is(err, leasehold.ErrLost) {
		return err
	}
	return &leasehold.Error{Code: leasehold.Lost, Message: "what this request_id got on " +
		strings.Join(a.Resources, ", ") + " has ended, and is not revived: " + err.Error()}
}

// sessionLabels are how the session of a request is known again, sorted by key.
func (a *acquiring) sessionLabels(c *call) leasehold.Labels {
	return leasehold.Labels{{Key: labelAgent, Value: c.agent.holder}, {Key: labelFor, Value: a.wanted()},
		{Key: labelCount, Value: strconv.Itoa(len(a.Resources))}}
}

// command asks for all resources at once, without a wait. The party is the agent, so that agents who wait for each
// other through several requests are found out.
func (a *acquiring) command(c *call, name string) *core.Acquire {
	command := &core.Acquire{Namespace: c.namespace, Resource: a.Resources[0], ID: name, Slots: a.Slots,
		Holder: c.agent.holder, Reason: a.Reason, Session: name, Party: c.agent.prefix + c.agent.holder,
		Task: leasehold.IsTaskFolder(a.Resources[0]), Labels: kindLabels}
	for n, resource := range a.Resources[1:] {
		command.Also = append(command.Also, core.Item{Resource: resource, ID: leaseID(name, n+1), Slots: a.Slots})
	}
	return command
}

// take asks at once, and if somebody is in the way asks for a place in the queue. Only who got one has to be told of
// the grant later, so that only that is marked.
func (a *acquiring) take(c *call, command *core.Acquire) (granted bool, err error) {
	if _, err = c.do(command); !errors.Is(err, leasehold.ErrHeld) {
		return err == nil, err
	}
	if err := a.notMine(c, command.ID); err != nil {
		return false, err
	}
	command.Wait = leasehold.MaxWait
	command.Labels = append(slices.Clip(kindLabels), leasehold.Label{Key: labelTicket, Value: "true"})
	answer, err := c.do(command)
	if err != nil || answer.Waiter == nil {
		return err == nil, err
	}
	return c.await(command, time.Duration(a.Wait)*time.Second)
}

// notMine refuses to let an agent wait for itself.
func (a *acquiring) notMine(c *call, name string) error {
	all, err := c.mine()
	for i := range all {
		for _, l := range all[i].leases {
			if all[i].id != name && slices.Contains(a.Resources, l.Resource) && (a.Slots == 0 || l.Slots == 0) {
				return &leasehold.Error{Code: leasehold.Refused, Message: "you hold " + l.Resource + " already, as " +
					all[i].id + ": go on with that, or release it first"}
			}
		}
	}
	return err
}

// await stays in the call until the turn has come, or the time is up. The place is kept either way.
func (c *call) await(command *core.Acquire, wait time.Duration) (granted bool, err error) {
	if wait == 0 {
		return false, nil
	}
	leave, err := c.door.backend.Stay(c.ctx)
	if err != nil {
		return false, nil // the ticket is there: that nobody else can wait here is no failure
	}
	defer leave()
	staying, cancel := c.door.backend.Staying(c.ctx, c.proof)
	defer cancel()
	ctx, end := context.WithTimeout(staying, wait)
	defer end()
	c.waited = true
	go c.report(ctx, command.Resource)
	_, err = engine.Acquire(ctx, c.engine, command, true)
	switch {
	case err == nil:
		return true, nil
	case c.door.backend.Ended(staying, c.proof, err) != nil:
		return false, c.door.backend.Ended(staying, c.proof, err)
	case ctx.Err() != nil && errors.Is(err, leasehold.ErrUndecided):
		return false, nil
	}
	return false, c.inTime(err)
}

// report tells a client that waits how long it has waited.
func (c *call) report(ctx context.Context, resource string) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for began := time.Now(); ; {
		select {
		case <-ticker.C:
			c.progress(time.Since(began), "waiting for "+resource)
		case <-ctx.Done():
			return
		}
	}
}

// refused takes back the session of a request that got nothing, since nobody would come for it.
func (a *acquiring) refused(c *call, name string, err error) error {
	if door.Unsure(err) {
		return err
	}
	var empty bool
	read := c.look(func(v core.View) {
		s, failure := v.Session(c.namespace, name)
		empty = failure == nil && s.Claims == 0
	})
	if read == nil && empty {
		_, _ = c.do(&core.CloseSession{Namespace: c.namespace, ID: name}) // else it ends by itself
	}
	return a.ended(err)
}

// What a lease lasts for without a sign of life. Agents do not renew in the middle of a long command, so it has to be
// longer than what they do at a time.
const (
	leastTTL   = 2 * time.Minute
	defaultTTL = 10 * time.Minute // while nothing is known
	mostTTL    = 4 * time.Hour
)

// kindLabels are on all leases of agents. With the agent's name, less the number at its end, they make a kind: how long
// reviewers have a file says nothing about builders, nor about the people who use the same resource.
var kindLabels = leasehold.Labels{{Key: "command", Value: doorName}}

// ttl returns how long silence may last: as was asked for, or twice what nineteen of twenty holders needed.
func (a *acquiring) ttl(v core.View, c *call) time.Duration {
	longest, allowed := time.Duration(0), mostTTL
	for _, path := range a.Resources {
		d, _ := v.Definition(c.namespace, path)
		if d.LargestTTL != 0 {
			allowed = min(allowed, d.LargestTTL)
		}
		otherwise := learned(v.Status(c.namespace, path, 0).Usual, cmp.Or(d.DefaultTTL, defaultTTL))
		longest = max(longest, learned(c.usualKind(v, path), otherwise))
	}
	if a.TTL != 0 {
		return time.Duration(a.TTL) * time.Second // if that is more than is allowed, the engine says so
	}
	return min(max(longest, leastTTL), allowed)
}

// usualKind returns how long agents of this kind have a resource; nil if nobody knows. A task is had once, so that this
// is known for those of its folder.
func (c *call) usualKind(v core.View, path string) *leasehold.Usual {
	kinds := v.Kinds(c.namespace, path, core.KindName(kindLabels, c.agent.holder))
	if len(kinds) == 0 || kinds[0].Usual == nil {
		return nil
	}
	usual := *kinds[0].Usual
	usual.Unclean = 0 // those are not among the times of a kind
	return &usual
}

// learned returns a TTL from how long leases on a resource were held. Those that ended uncleanly lasted for as long
// as their TTL: to learn from them that work takes so long would double the TTL with every holder that dies.
func learned(u *leasehold.Usual, otherwise time.Duration) time.Duration {
	switch {
	case u == nil || u.Holds < 3 || u.Unclean*2 > u.Holds:
		return otherwise
	case u.Unclean*20 > u.Holds:
		return 2 * u.HoldP50
	}
	return 2 * u.HoldP95
}
