package core

import (
	"fmt"

	"github.com/leasehold/leasehold/internal/core/pool"
)

// unitPieces writes the units of all pools, before the leases that have them.
func (sp *space) unitPieces(yield func(Piece) bool) (more bool) {
	more = true
	sp.pools.Scan(func(u *pool.Unit) bool {
		more = yield(Piece{sp.name, u})
		return more
	})
	return more
}

// restoreUnit takes a piece over that Pieces made.
func (s *State) restoreUnit(sp *space, u *pool.Unit) error {
	if sp.pools.Get(u.Pool, u.Name) != nil {
		return fmt.Errorf("snapshot has unit %q of %q twice", u.Name, u.Pool)
	}
	sp.pools.Set(u)
	return nil
}

// restoreUnitOf gives a unit of a pool back to the lease that has it, and reports whether there is such a unit.
func restoreUnitOf(sp *space, c *Claim, name string) bool {
	u := sp.pools.Get(c.Resource, name)
	if u == nil {
		return false
	}
	held := *u
	held.Lease = c.ID
	sp.pools.Set(&held)
	return true
}

// restoreAsk reads what a claim selects, which snapshots have as text.
func restoreAsk(c *Claim) (err error) {
	if sel := c.terms().Select; sel != nil {
		if c.Terms.ask, err = compileAsk(int(c.Slots), sel); err != nil {
			return fmt.Errorf("snapshot has lease %q that selects what cannot be read: %w", c.ID, err)
		}
	}
	return nil
}
