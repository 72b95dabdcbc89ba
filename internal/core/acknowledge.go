package core

import "github.com/leasehold/leasehold"

// Acknowledge says that the unclean ends of leases on a resource have been looked at:
// it need not rest any longer. It names the newest token that the caller saw, so that a
// retry can never acknowledge an end that nobody has looked at.
type Acknowledge struct {
	Namespace string
	Resource  string
	Token     leasehold.Token
	By        string
	Reason    string
	Request   Request
}

func (c *Acknowledge) space() string    { return c.Namespace }
func (c *Acknowledge) request() Request { return c.Request }
func (c *Acknowledge) subject() string  { return "acknowledge " + c.Resource }

func (c *Acknowledge) Validate() error {
	if c.Token == 0 {
		return invalid("acknowledge names the token of the lease that ended")
	}
	return firstError(name("namespace", c.Namespace), name("resource", c.Resource), text("by", c.By), text("reason", c.Reason), c.Request.validate())
}

func (s *State) acknowledge(c *Acknowledge) Answer {
	sp := s.space(c.Namespace)
	var r *Resource
	if sp != nil {
		r = s.settle(sp, c.Resource)
	}
	if r == nil {
		return refuse(leasehold.NotFound, "%s has no unclean end to acknowledge", c.Resource)
	}
	rested, more := *r, r.more()
	more.Rests = nil
	for _, rest := range r.more().resting(s.now) {
		if rest.After.Token > c.Token {
			more.Rests = append(more.Rests, rest)
			continue
		}
		s.emit(sp, &leasehold.Event{
			Kind: leasehold.Acknowledged, Resource: r.Path, ID: rest.After.ID, Holder: rest.After.Holder, Token: rest.After.Token, By: c.By, Reason: c.Reason,
		})
	}
	s.clearAlarm(sp, &Alarm{Kind: leasehold.UncleanEnd, Resource: r.Path})
	rested.setMore(more)
	s.setResource(sp, &rested)
	s.stir(sp, r.Path)
	return Answer{} // also if an earlier try did it
}
