package core

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
)

func (s *State) acquire(c *Acquire) Answer {
	if c.Session != "" && s.space(c.Namespace) == nil {
		return s.noSession(nil, c.Session) // a refusal must not begin a namespace
	}
	sp, failure := s.makeSpace(c.Namespace)
	if failure != nil {
		return Answer{Err: failure}
	}
	if claim := s.touch(sp, c.ID); claim != nil {
		return s.acquireAgain(sp, claim, c)
	}
	if _, ended := sp.ended.Get(c.ID); ended {
		return s.noClaim(sp, c.ID)
	}
	if c.Session != "" {
		session := s.liveSession(sp, c.Session)
		if session == nil {
			return s.noSession(sp, c.Session)
		}
		if session.Claims >= leasehold.MaxClaimsPerSession {
			return refuse(leasehold.Limited, "session %q has %d leases, waiters and records already, which is as many as it can have", c.Session, session.Claims)
		}
	}
	r := s.settle(sp, c.Resource)
	claim := &Claim{
		ID: c.ID, Resource: c.Resource, Holder: c.Holder, Reason: c.Reason, Session: c.Session, Labels: c.Labels,
		TTL: c.TTL, Since: s.now, SinceWall: s.wall, Priority: c.Priority,
	}
	claim.setTerms(Terms{Grace: c.Grace, HoldLimit: c.HoldLimit})
	switch {
	case s.free(r):
		s.bind(sp, claim)
		taken := Resource{Path: c.Resource}
		if r != nil {
			taken = *r
		}
		return s.leaseAnswer(sp, s.grant(sp, taken, claim))
	case c.Wait == 0:
		return s.held(sp, r, 0)
	case r.Waiting >= leasehold.MaxQueue:
		return refuse(leasehold.Limited, "%s has %d waiters already, which is as many as it can have", c.Resource, r.Waiting)
	}
	s.bind(sp, claim)
	return s.waiterAnswer(sp, s.enqueue(sp, r, claim, s.now.add(c.Wait)))
}

// acquireAgain answers an acquire whose id is in use: the same request once more
// gets what there is by now, counted at this stamp and not renewed.
func (s *State) acquireAgain(sp *space, claim *Claim, c *Acquire) Answer {
	if claim.Resource != c.Resource || claim.Holder != c.Holder {
		return refuse(leasehold.Refused, "lease id %q belongs to %s on %s: choose another id", c.ID, claim.Holder, claim.Resource)
	}
	if !claim.waiting() {
		return s.leaseAnswer(sp, claim)
	}
	if c.Wait > 0 {
		return s.waiterAnswer(sp, s.stillWanted(sp, claim))
	}
	r, _ := sp.resources.Get(claim.Resource)
	return s.held(sp, r, s.position(sp, claim))
}

// free tells whether a settled resource can be granted. Those who wait go first.
func (s *State) free(r *Resource) bool {
	return r == nil || r.Claim == "" && r.Waiting == 0 && r.AvailableAt <= s.now
}

// grant gives the resource to a claim, which must not be in the queue any more.
func (s *State) grant(sp *space, taken Resource, claim *Claim) *Claim {
	sp.token++
	granted := *claim
	granted.Token, granted.Priority, granted.Order = sp.token, 0, 0
	granted.Since, granted.SinceWall = s.now, s.wall
	granted.Expires = 0
	if granted.TTL != 0 {
		granted.Expires = s.now.add(granted.TTL)
	}
	if t := granted.terms(); t.WaitUntil != 0 {
		t.WaitUntil, t.Waited = 0, time.Duration(s.now-claim.Since)
		granted.setTerms(t)
	}

	taken.Claim, taken.AvailableAt = claim.ID, 0
	s.setResource(sp, &taken)

	granted.Revision = s.revise(sp)
	s.put(sp, &granted)
	event := s.event(sp, &granted, leasehold.Acquired)
	event.Reason, event.Until = granted.Reason, s.moment(s.deadlineOf(sp, &granted))
	s.emit(sp, event)
	return &granted
}

// held is the answer to whoever finds the resource taken, queued for, or at rest.
// position is the place in the queue of the one who asks, 0 if it has none.
func (s *State) held(sp *space, r *Resource, position int) Answer {
	failure := &leasehold.Error{Code: leasehold.Held, Waiting: r.Waiting, Position: position}
	claim, ok := sp.claims.Get(r.Claim)
	switch {
	case ok:
		lease := s.lease(sp, claim)
		failure.Lease = &lease
		failure.Message = fmt.Sprintf("%s is held by %s%s", r.Path, lease.Holder, because(lease.Reason))
		if !lease.Expires.IsZero() {
			failure.Message += fmt.Sprintf(" for another %s", left(Time(lease.Remaining)))
		}
	default:
		failure.Message = fmt.Sprintf("%s rests after the unclean end of %s's lease for another %s", r.Path, r.Last.Holder, left(r.AvailableAt-s.now))
		failure.Lease = s.lastLease(sp, r)
	}
	if r.Waiting > 0 {
		failure.Message += fmt.Sprintf("; %d waiting", r.Waiting)
	}
	return Answer{Err: failure}
}

// left writes a duration as people do: 5m, not 5m0s.
func left(t Time) string {
	d := time.Duration(t).Round(time.Millisecond)
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}
