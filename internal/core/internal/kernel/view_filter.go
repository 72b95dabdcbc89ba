package kernel

import (
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
)

// A Filter picks leases, and with them the resources that a list shows. The zero Filter picks
// all. A resource that nobody holds is picked by its state and its last holder alone: nothing
// else of that lease is remembered.
type Filter struct {
	Holder  Pattern
	Session Pattern
	Door    Pattern
	Labels  []LabelPattern // all of them have to be there
	State   leasehold.State
}

// A LabelPattern picks leases with a label.
type LabelPattern struct {
	Key   string
	Value Pattern
}

// A Pattern is a text in which each * stands for any bytes, also none. The zero Pattern matches
// everything.
type Pattern struct {
	parts []string // between the stars; nil: no pattern
}

// NewPattern returns the pattern that a text says.
func NewPattern(text string) Pattern { return Pattern{strings.Split(text, "*")} }

// Match reports whether a text matches. Each part is looked for once, behind the one before it, so
// that no pattern costs more than the length of the text: many leases are looked at in one read.
func (p Pattern) Match(text string) bool {
	if p.parts == nil {
		return true
	}
	first, rest := p.parts[0], p.parts[1:]
	text, found := strings.CutPrefix(text, first)
	if !found || len(rest) == 0 {
		return found && text == ""
	}
	last := rest[len(rest)-1]
	for _, part := range rest[:len(rest)-1] {
		if _, text, found = strings.Cut(text, part); !found {
			return false
		}
	}
	return strings.HasSuffix(text, last)
}

// none reports whether a filter picks everything.
func (f *Filter) none() bool { return f.State == 0 && !f.byLease() }

// byLease reports whether a filter asks for something that only a lease has, or had.
func (f *Filter) byLease() bool { return f.Holder.parts != nil || f.onlyHeld() }

// onlyHeld reports whether a filter asks for something that is not known of a lease that ended.
func (f *Filter) onlyHeld() bool {
	return f.Session.parts != nil || f.Door.parts != nil || len(f.Labels) > 0
}

// picks reports whether a filter picks a lease that is held.
func picks(f *Filter, c *Claim) bool {
	if f.State != 0 && f.State != c.state() || !f.Holder.Match(c.Holder) ||
		f.Session.parts != nil && (c.Session == "" || !f.Session.Match(c.Session)) ||
		f.Door.parts != nil && !f.Door.Match(c.door()) {
		return false
	}
	for _, want := range f.Labels {
		if !want.in(c.terms().Labels) {
			return false
		}
	}
	return true
}

// in reports whether labels, which are sorted by key, have one that the pattern picks.
func (p *LabelPattern) in(labels leasehold.Labels) bool {
	i, found := slices.BinarySearchFunc(labels, p.Key, func(l leasehold.Label, key string) int {
		return strings.Compare(l.Key, key)
	})
	return found && p.Value.Match(labels[i].Value)
}

// picksIdle reports whether a filter picks a resource that nobody holds.
func (f *Filter) picksIdle(status *leasehold.Status) bool {
	if f.onlyHeld() || f.State != 0 && f.State != status.State {
		return false
	}
	return f.Holder.parts == nil || status.State != leasehold.Available && f.Holder.Match(status.Last.Holder)
}

// maxFiltered is how many holders of one resource a filter looks at, those with the oldest leases
// first: as many as are shown of a resource, and fewer if they have very long labels.
const maxFiltered = maxHolders

// bytesPerLook is how many bytes of labels are searched in a unit of work.
const bytesPerLook = 400

// bytes returns how much a filter searches in a lease that it picks.
func filterBytes(f *Filter, c *Claim) (n int) {
	if len(f.Labels) == 0 {
		return 0
	}
	for _, l := range c.terms().Labels {
		n += len(l.Value)
	}
	return n
}

// mayShow reports whether a filter may pick a resource, with little work: most are passed over. To pass
// over one is work as well, since there may be very many that nobody holds.
func (v *view) mayShow(sp *space, r *Resource, f *Filter) (found bool) {
	v.work.take(LookCost)
	if !r.Held() {
		return !f.onlyHeld() && (f.State == 0 || f.State != leasehold.Leased && f.State != leasehold.Breaking)
	}
	if f.State != 0 && f.State != leasehold.Leased && f.State != leasehold.Breaking {
		return true // its leases may be over already, and not collected
	}
	looked := 0
	sp.holders(r, func(c *Claim) bool {
		looked++
		found = picks(f, c)
		return !found && looked < maxFiltered && v.work.take(LookCost+filterBytes(f, c)/bytesPerLook)
	})
	// A lease that is over shows in the status as the last one, by its holder.
	return found || !f.onlyHeld() && !v.collected(sp, r)
}

// filtered shows a resource as far as a filter picks it; false if it does not.
func (v *view) filtered(sp *space, r *Resource, f *Filter) (leasehold.Status, bool) {
	status := v.statusOf(sp, r, maxHoldersOne, f)
	if status.Holding == 0 {
		return status, f.picksIdle(&status)
	}
	return status, f.none() || len(status.Holders) > 0
}
