package kernel

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
)

// ask passes a message on to the holders of a resource. It names no lease, since a message that
// reaches the next holder does no harm.
func (t *turn) ask(c *Ask) Answer {
	sp := t.space(c.Namespace)
	if sp != nil {
		if r := t.settle(sp, c.Resource); r != nil && r.Held() {
			return t.askHolders(sp, r, c)
		}
	}
	return nobodyToAsk(c)
}

func nobodyToAsk(c *Ask) Answer {
	return refuse(leasehold.NotFound, "%s is not held: there is nobody to ask", c.Resource)
}

// maxAsked is how many of those who share a resource one message reaches: the ones
// that have had it longest.
const maxAsked = 64

func (t *turn) askHolders(sp *space, r *Resource, c *Ask) Answer {
	var asked []*Claim
	sp.holders(r, func(claim *Claim) bool {
		asked = append(asked, claim)
		return len(asked) < maxAsked
	})
	asked, missing := t.allowedOf(access.Ask, sp, asked)
	switch {
	case len(asked) == 0 && missing != nil:
		return Answer{Err: missing}
	case len(asked) == 0:
		return nobodyToAsk(c)
	}
	for _, claim := range asked {
		event := t.event(sp, claim, leasehold.Asked)
		event.By, event.Reason = c.By, c.Message
		t.emit(sp, event)
	}
	if !t.seesAll(sp, r) {
		return Answer{}
	}
	return t.leasesAnswer(sp, asked)
}
