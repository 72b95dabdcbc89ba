package kernel

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
)

// An answer that was remembered tells what its asker could see then. Given again, it tells what the asker may see now.

// screened returns an answer that is given again as the asker may know it.
func (l *look) screened(sp *space, c Command, a Answer) Answer {
	if l.permit == nil {
		return a
	}
	ask, isAsk := c.(*Ask)
	switch {
	case isAsk && a.Err == nil && !l.permit.May(access.Read, sp.name, ask.Resource, nil):
		return Answer{} // as to those who could never see whom they asked
	case a.Err == nil:
		return a
	case a.Err.Cycle != nil:
		return Answer{Err: l.cycleSeen(sp, slices.Clone(a.Err.Cycle))}
	case a.Err.Code == leasehold.Held:
		return l.heldScreened(sp, a)
	case l.knowsWhy(sp, c):
		return a
	}
	return refuse(a.Err.Code, "this request was refused when it first came, for a reason that %s may not see now: "+
		"use a new request key to try again", l.permit.Asker.Principal)
}

// heldScreened is heldUnseen for an answer that is given again, if the asker may not know what it told.
func (l *look) heldScreened(sp *space, a Answer) Answer {
	shown := a.Err.Lease
	switch {
	case shown == nil || shown.ID == "" || l.permit.May(access.Read, sp.name, shown.Resource, nil):
		return a // it names nobody, or nobody unknown
	case shown.Slots == 0 && a.Err.Waiting == 0 && l.sees(sp, shown.ID, shown.Resource):
		return a // it is the asker's own
	}
	failure := &leasehold.Error{Code: leasehold.Held, Position: a.Err.Position,
		Message: shown.Resource + " is not free"}
	if shown.State == leasehold.Leased || shown.State == leasehold.Breaking {
		failure.Lease = &leasehold.Lease{Namespace: sp.name, Resource: shown.Resource, Holder: somebody,
			State: shown.State, Remaining: shown.Remaining, Expires: shown.Expires}
		failure.Message = fmt.Sprintf("%s is held by %s", shown.Resource, somebody)
		if !shown.Expires.IsZero() {
			failure.Message += " for another " + left(Time(shown.Remaining))
		}
	}
	return Answer{Err: failure}
}

// knowsWhy reports whether the asker may see all holders that a refusal of a command can name.
func (l *look) knowsWhy(sp *space, c Command) bool {
	path, id := command.Refusable(c)
	if id != "" {
		path, _, _ = l.claimOwner(sp.name, id)
	}
	return path == "" && id == "" || path != "" && l.permit.May(access.Read, sp.name, path, nil)
}
