package kernel

import (
	"slices"

	"github.com/leasehold/leasehold"
)

// A rest is what follows an unclean end: for a while, or until somebody acknowledges it, the
// slots of the lease stay free. A holder that lost its lease without noticing may still be at
// work, and the pause gives it the time to notice.

// A Rest keeps slots free after an unclean end.
type Rest struct {
	Slots uint32 // 0: all
	Units []string
	Until Time // 0: until somebody acknowledges the end
	After *Ending
}

// resting returns the rests that are not over at a moment, in a slice of its own.
func (m More) resting(now Time) (rests []Rest) {
	for _, rest := range m.Rests {
		if rest.Until == 0 || rest.Until > now {
			rests = append(rests, rest)
		}
	}
	return rests
}

// maxRests bounds how many rests of one resource are told apart, and with it the size of a
// resource that thousands share.
const maxRests = 128

// merged makes one of the two oldest rests if there are too many. Units of a pool may rest that are no longer there: if
// they all have too many bytes of names, one rest of all slots stands for them.
func merged(rests []Rest) []Rest {
	if namesIn(rests) > leasehold.MaxPoolNames {
		all := rests[0]
		for _, rest := range rests[1:] {
			all = all.with(rest)
		}
		all.Slots, all.Units = 0, nil
		return []Rest{all}
	}
	if len(rests) <= maxRests {
		return rests
	}
	return append([]Rest{rests[0].with(rests[1])}, rests[2:]...)
}

func namesIn(rests []Rest) (bytes int) {
	for _, rest := range rests {
		for _, name := range rest.Units {
			bytes += len(name)
		}
	}
	return bytes
}

// with makes one rest of two. It lasts as long as the longer of them, which is late for some slots and early for none.
func (a Rest) with(b Rest) Rest {
	both := Rest{Slots: a.Slots + b.Slots, Units: slices.Concat(a.Units, b.Units), Until: max(a.Until, b.Until),
		After: a.After}
	if a.Slots == 0 || b.Slots == 0 {
		both.Slots = 0
	}
	if a.Until == 0 || b.Until == 0 {
		both.Until = 0
	}
	if b.After.Token > a.After.Token {
		both.After = b.After
	}
	return both
}

// Rests returns how many slots rest at a moment, and whether all do.
func (r *Resource) Rests(now Time) (slots int, all bool) {
	if r.More == nil {
		return 0, false
	}
	for _, rest := range r.More.Rests {
		if rest.Until != 0 && rest.Until <= now {
			continue
		}
		slots += int(rest.Slots)
		all = all || rest.Slots == 0
	}
	return slots, all
}

// resumes returns when the first of the rests that end by time does; 0 if there is none.
func (r *Resource) resumes() (at Time) {
	if r.More == nil {
		return 0
	}
	for _, rest := range r.More.Rests {
		if rest.Until != 0 && (at == 0 || rest.Until < at) {
			at = rest.Until
		}
	}
	return at
}

// longestRest returns the rest that keeps slots longest at a moment; nil if none does.
func (r *Resource) longestRest(now Time) *Rest {
	var longest *Rest
	for _, rest := range r.more().resting(now) {
		if longest == nil || longest.Until != 0 && (rest.Until == 0 || rest.Until > longest.Until) {
			longest = &rest
		}
	}
	return longest
}

// warn tells a new holder that the lease before its own ended uncleanly, if the definition asks
// for that: the resource may be in a state that only a look can tell.
func (s *State) warn(sp *space, r *Resource, c *Claim) {
	last := r.more().Last
	if last == nil || last.How.Clean() || sp.definition(r.Path).Unclean != leasehold.WarnNext {
		return
	}
	t := c.terms()
	t.After = last
	c.setTerms(t)
}
