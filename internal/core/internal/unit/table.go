package unit

import (
	"fmt"

	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// pools are those of a namespace. All of it is in every snapshot.
type pools struct {
	units pool.Table
	quiet btree.Map[string, kernel.Time] // until when there is nothing to do in the queues of pools: see QuietQueue
}

// New returns those of a namespace that has none.
func New() kernel.Pools { return &pools{units: pool.NewTable()} }

func (p *pools) Copy() kernel.Pools { return &pools{p.units.Copy(), *p.quiet.Copy()} }

func (p *pools) Has(path string) bool { return p.units.Has(path) }

func (p *pools) Size(path string) int { return p.units.Size(path).Units }

func (p *pools) Unit(path, name string) *pool.Unit { return p.units.Get(path, name) }

func (p *pools) Units(path string, yield func(*pool.Unit) bool) { p.units.Units(path, nil, yield) }

func (p *pools) Plan(path string, ask *pool.Ask, worth func(*pool.Unit) int) []*pool.Unit {
	return p.units.Plan(path, ask, worth)
}

func (p *pools) Most(path string, ask *pool.Ask) int { return p.units.Most(path, ask) }

// Cost is what it costs to look for units in a pool, as its size and its queue tell.
func (p *pools) Cost(n kernel.Namespace, path string) int {
	cost := kernel.LookCost + p.Size(path)/(2*kernel.PerUnit)
	if r := n.Resource(path); r != nil {
		cost += min(r.Waiting, maxLine) / kernel.PerUnit
	}
	return cost
}

// update puts units of a pool in the place of those that have their names, and takes those away that were removed and
// that no lease has any longer. With the last of them the pool is gone, and nobody asks about its queue again.
func (p *pools) update(t kernel.Turn, path string, units []*pool.Unit) {
	before := p.units.Len()
	p.units.Update(units...)
	t.CountUnits(p.units.Len() - before)
	if !p.Has(path) {
		p.Changed(path)
	}
}

// A UnitUse is a piece of a snapshot: how a unit is used, behind the unit.
type UnitUse struct {
	Pool, Unit string
	Use        pool.Use
}

// A QuietQueue is a piece of a snapshot: nobody in the queue of a pool can be granted anything before a moment, unless
// something changes there. It decides when a queue is looked at, and so what is granted by which command: a server that
// did not know it would come to another state.
type QuietQueue struct {
	Pool  string
	Until kernel.Time
}

func (p *pools) Quiet(n kernel.Namespace, path string) bool {
	until, ok := p.quiet.Get(path)
	return ok && n.Now() < until
}

func (p *pools) Changed(path string) { p.quiet.Delete(path) }

// Pieces are the units of all pools, each with its use behind it, and until when queues are quiet.
func (p *pools) Pieces(yield func(piece any) bool) (more bool) {
	more = true
	p.units.Scan(func(u *pool.Unit) bool {
		if u.Use == nil {
			more = yield(u)
			return more
		}
		unused := *u
		unused.Use = nil
		more = yield(&unused) && yield(&UnitUse{u.Pool, u.Name, *u.Use})
		return more
	})
	if more {
		p.quiet.Scan(func(path string, until kernel.Time) bool {
			more = yield(&QuietQueue{path, until})
			return more
		})
	}
	return more
}

func (p *pools) Restore(t kernel.Turn, piece any) (known bool, err error) {
	switch v := piece.(type) {
	case *pool.Unit:
		return true, p.restoreUnit(t, v)
	case *UnitUse:
		return true, p.restoreUse(v)
	case *QuietQueue:
		if _, twice := p.quiet.Set(v.Pool, v.Until); twice {
			return true, fmt.Errorf("snapshot says twice until when the queue of %q is quiet", v.Pool)
		}
		return true, nil
	}
	return false, nil
}

// restoreUnit puts a unit back. Which lease has it is found out when the lease comes.
func (p *pools) restoreUnit(t kernel.Turn, u *pool.Unit) error {
	if p.units.Get(u.Pool, u.Name) != nil {
		return fmt.Errorf("snapshot has unit %q of %q twice", u.Name, u.Pool)
	}
	p.units.Set(u)
	t.CountUnits(1)
	return nil
}

// restoreUse puts the use of a unit back. The unit itself came before it.
func (p *pools) restoreUse(piece *UnitUse) error {
	u := p.units.Get(piece.Pool, piece.Unit)
	if u == nil || u.Use != nil {
		return fmt.Errorf("snapshot has the use of unit %q of %q twice, or of none", piece.Unit, piece.Pool)
	}
	used := *u
	used.Use = &piece.Use
	p.units.Set(&used)
	return nil
}

// RestoreHeld gives a unit of a pool back to the lease that has it, and reports whether there is such a unit. An
// exclusive lease may have units of a definition from before the resource became a pool, and has none of the pool.
func (p *pools) RestoreHeld(c *kernel.Claim, name string) bool {
	u := p.units.Get(c.Resource, name)
	if u == nil || c.Slots == 0 {
		return false
	}
	held := *u
	held.Lease = c.ID
	p.units.Set(&held)
	return true
}
