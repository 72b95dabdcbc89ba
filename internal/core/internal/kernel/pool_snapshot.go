package kernel

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

// A Calm is a piece of a snapshot: nobody in the queue of a pool can be granted anything before a moment, unless
// something changes there. It decides when a queue is looked at, and so what is granted by which command: a server that
// did not know it would come to another state.
type Calm struct {
	Pool  string
	Until Time
}

// calmPieces writes until when there is nothing to do in the queues of pools.
func (sp *space) calmPieces(yield func(Piece) bool) (more bool) {
	more = true
	sp.quiet.Scan(func(path string, until Time) bool {
		more = yield(Piece{sp.name, &Calm{path, until}})
		return more
	})
	return more
}

// restorePool takes a piece over that unitPieces or calmPieces made.
func restorePool(sp *space, piece any) error {
	switch v := piece.(type) {
	case *UnitUse:
		return restoreUse(sp, v)
	case *Calm:
		return restoreCalm(sp, v)
	}
	return restoreUnit(sp, piece.(*pool.Unit))
}

func restoreCalm(sp *space, piece *Calm) error {
	if _, twice := sp.quiet.Set(piece.Pool, piece.Until); twice {
		return fmt.Errorf("snapshot says twice until when the queue of %q is calm", piece.Pool)
	}
	return nil
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
		if c.Terms.ask, err = CompileAsk(int(c.Slots), sel, c.terms().Labels); err != nil {
			return fmt.Errorf("snapshot has lease %q that selects what cannot be read: %w", c.ID, err)
		}
	}
	return nil
}
