package kernel

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/access"
)

// What lives for how long. A State is what lasts from one entry of the log to the next. An entry is what one call of
// Apply comes to, a turn one command of it, and a look what a decision may read: those who decide and those who only
// read ask the same questions, each by their own rights and on their own budget.

// A look is what may be read, by whom and at what cost.
type look struct {
	*State
	permit   *access.Permit // what the one who asks may do; nil: everything
	work     *work
	claiming string // the reservation that is being claimed: what is kept for it is kept from others
}

// An entry is what applying one entry of the log has come to so far.
type entry struct {
	budget work
	events []*leasehold.Event
	shares PoolShares        // of the holds that ended
	fresh  *Session          // that was put last: see freshSession
	forgot []string          // namespaces
	looked btree.Set[string] // resources whose leases on slots were all looked at: see settled
}

// A turn is one command that is carried out, or what an entry does beside its commands.
type turn struct {
	look
	*entry
	door      string        // that the command came through; empty: nobody says
	asker     *access.Asker // who asks for it; nil: nobody was proven to
	unsettled bool          // it looked at something of which not all that is over was collected
	*lists
}

// The lists of a turn. Their memory is used again by the next one.
type lists struct {
	asked   []*Claim    // what it asks for
	picked  []picked    // units, by what it grants
	lasts   []lastEvent // events that come after all others; empty when it is done
	woken   []wakeup    // resources of which something may be free; empty when it is done
	unshown []wakeup    // resources whose records may have to show another holder; empty when it is done
}

// begin returns the turn of the next command, or of what an entry does beside its commands.
func (s *State) begin() *turn {
	l := &s.lists
	l.picked, l.lasts, l.woken, l.unshown = l.picked[:0], l.lasts[:0], l.woken[:0], l.unshown[:0]
	s.hand = turn{look: look{State: s, work: &s.last.budget}, entry: &s.last, lists: l}
	return &s.hand
}

// reader returns a look for those who only read, on a budget of their own.
func (s *State) reader(w *work) *look { return &look{State: s, work: w} }
