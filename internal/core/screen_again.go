package core

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
)

// An answer that was remembered tells what its asker could see then. Given again, it tells what the asker may see now.

// screened returns an answer that is given again as the asker may know it.
func (s *State) screened(sp *space, c Command, a Answer) Answer {
	if s.permit == nil {
		return a
	}
	ask, isAsk := c.(*Ask)
	switch {
	case isAsk && a.Err == nil && !s.permit.May(access.Read, sp.name, ask.Resource, nil):
		return Answer{} // as to those who could never see whom they asked
	case a.Err == nil:
		return a
	case a.Err.Cycle != nil:
		return Answer{Err: s.cycleSeen(sp, slices.Clone(a.Err.Cycle))}
	case a.Err.Code == leasehold.Held:
		return s.heldScreened(sp, a)
	case s.knowsWhy(sp, c):
		return a
	}
	return refuse(a.Err.Code, "this request was refused when it first came, for a reason that %s may not see now: "+
		"use a new request key to try again", s.permit.Asker.Principal)
}

// heldScreened is heldUnseen for an answer that is given again, if the asker may not know what it told.
func (s *State) heldScreened(sp *space, a Answer) Answer {
	l := a.Err.Lease
	switch {
	case l == nil || l.ID == "" || s.permit.May(access.Read, sp.name, l.Resource, nil):
		return a // it names nobody, or nobody unknown
	case l.Slots == 0 && a.Err.Waiting == 0 && s.sees(sp, l.ID, l.Resource):
		return a // it is the asker's own
	}
	failure := &leasehold.Error{Code: leasehold.Held, Position: a.Err.Position, Message: l.Resource + " is not free"}
	if l.State == leasehold.Leased || l.State == leasehold.Breaking {
		failure.Lease = &leasehold.Lease{Namespace: sp.name, Resource: l.Resource, Holder: somebody, State: l.State,
			Remaining: l.Remaining, Expires: l.Expires}
		failure.Message = fmt.Sprintf("%s is held by %s", l.Resource, somebody)
		if !l.Expires.IsZero() {
			failure.Message += " for another " + left(Time(l.Remaining))
		}
	}
	return Answer{Err: failure}
}

// knowsWhy reports whether the asker may see all holders that a refusal of a command can name.
func (s *State) knowsWhy(sp *space, c Command) bool {
	path, id := "", ""
	switch c := c.(type) {
	case *Break:
		path, id = c.Resource, c.ID
	case *PutRecord:
		id = c.Fence.Lease
	case *DeleteRecord:
		id = c.Fence.Lease
	case *Define:
		path = c.Definition.Path
	}
	if id != "" {
		path, _, _ = s.claimOwner(sp.name, id)
	}
	return path == "" && id == "" || path != "" && s.permit.May(access.Read, sp.name, path, nil)
}
