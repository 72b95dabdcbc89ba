package kernel

import "github.com/leasehold/leasehold"

// A PoolQuery says what to show of a pool.
type PoolQuery struct {
	After   string // the unit that the page before ended with, as PoolStatus.Next has it
	Most    int    // units
	Waiters int
}

// Pool shows units of a pool by host and name, and the first of those who wait for some, with what each of them waits
// for. ok is whether there is such a pool.
func (v *view) Pool(namespace, path string, q PoolQuery) (status leasehold.PoolStatus, ok bool) {
	sp := v.s.space(namespace)
	if sp == nil || !sp.isPool(path) {
		return status, false
	}
	return sp.pools.Show(v.s.readIn(sp), path, q), true
}

// Pools lists pools by path, with how many units they have but without the units. A page may be short and still have a
// next one.
func (v *view) Pools(namespace, prefix, after string, most int) (list []leasehold.PoolStatus, next string) {
	sp := v.s.space(namespace)
	if sp == nil || sp.units == 0 {
		return nil, ""
	}
	return sp.pools.List(v.s.readIn(sp), prefix, after, most)
}
