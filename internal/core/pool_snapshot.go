package core

import (
	"fmt"

	"github.com/leasehold/leasehold/internal/core/pool"
)

// A UnitUse is a piece of a snapshot: how a unit is used, behind the unit.
type UnitUse struct {
	Pool, Unit string
	Use        pool.Use
}

// unitPieces writes the units of all pools, before the leases that have them.
func (sp *space) unitPieces(yield func(Piece) bool) (more bool) {
	more = true
	sp.pools.Scan(func(u *pool.Unit) bool {
		if u.Use == nil {
			more = yield(Piece{sp.name, u})
			return more
		}
		unused := *u
		unused.Use = nil
		more = yield(Piece{sp.name, &unused}) && yield(Piece{sp.name, &UnitUse{u.Pool, u.Name, *u.Use}})
		return more
	})
	return more
}

// restorePool takes a piece over that unitPieces made.
func restorePool(sp *space, piece any) error {
	if use, ok := piece.(*UnitUse); ok {
		return restoreUse(sp, use)
	}
	return restoreUnit(sp, piece.(*pool.Unit))
}

// restoreUse puts the use of a unit back. The unit itself came before it.
func restoreUse(sp *space, piece *UnitUse) error {
	u := sp.pools.Get(piece.Pool, piece.Unit)
	if u == nil || u.Use != nil {
		return fmt.Errorf("snapshot has the use of unit %q of %q twice, or of none", piece.Unit, piece.Pool)
	}
	used := *u
	used.Use = &piece.Use
	sp.pools.Set(&used)
	return nil
}

// restoreUnit puts a unit back. Which lease has it is found out when the lease comes.
func restoreUnit(sp *space, u *pool.Unit) error {
	if sp.pools.Get(u.Pool, u.Name) != nil {
		return fmt.Errorf("snapshot has unit %q of %q twice", u.Name, u.Pool)
	}
	sp.pools.Set(u)
	return nil
}

// restoreUnitOf gives a unit of a pool back to the lease that has it, and reports whether there is such a unit. An
// exclusive lease may have units of a definition from before the resource became a pool, and has none of the pool.
func restoreUnitOf(sp *space, c *Claim, name string) bool {
	u := sp.pools.Get(c.Resource, name)
	if u == nil || c.Slots == 0 {
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
		if c.Terms.ask, err = compileAsk(int(c.Slots), sel, c.terms().Labels); err != nil {
			return fmt.Errorf("snapshot has lease %q that selects what cannot be read: %w", c.ID, err)
		}
	}
	return nil
}
