package kernel

import (
	"cmp"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// Pools lists pools by path, with how many units they have but without the units. A page may be short and still have a
// next one: each pool may have thousands of units to count.
func (v *view) Pools(namespace, prefix, after string, most int) (list []leasehold.PoolStatus, next string) {
	sp := v.s.space(namespace)
	if sp == nil {
		return nil, ""
	}
	sp.pools.Pools(max(prefix, after), func(path string, size pool.Size) bool {
		switch {
		case path == after:
			return true
		case !strings.HasPrefix(path, prefix):
			return false
		case len(list) == most || len(list) > 0 && v.work.spent():
			next = list[len(list)-1].Resource
			return false
		}
		r, known := sp.resources.Get(path)
		if !known {
			r = &Resource{Path: path}
		}
		status := leasehold.PoolStatus{Namespace: namespace, Resource: path, Total: size.Units, Waiting: r.Waiting}
		sp.pools.Hosts(path, func(*pool.Host) bool {
			status.Hosts++
			return true
		})
		v.countUnits(sp, r, &status)
		list = append(list, status)
		return true
	})
	return list, next
}

// countUnits counts the units of a pool by what they are. All of them are looked at, since which of them rest after an
// unclean end depends on the time and is counted nowhere.
func (v *view) countUnits(sp *space, r *Resource, status *leasehold.PoolStatus) {
	resting := restingUnits(r.more().resting(v.s.now))
	sp.pools.Units(r.Path, nil, func(u *pool.Unit) bool {
		switch {
		case u.Lease != "" || r.Claim != "":
			status.Held++
		case u.Fit() && !resting.Contains(u.Name):
			status.Free++
		default:
			status.Out++
		}
		return true
	})
	v.work.take(status.Total / PerUnit)
}

// unitLease shows since when and until when somebody has a unit, and why. After a change of holder it is since the
// change, as in the journal: what came before was somebody else's.
func (v *view) unitLease(sp *space, u *leasehold.PoolUnit) {
	c, held := sp.claims.Get(u.Lease)
	if !held {
		return
	}
	t := c.terms()
	u.Since, u.Until = calendar(cmp.Or(t.ChangedWall, c.SinceWall)), v.s.moment(v.s.deadlineOf(sp, c))
	u.Reason = t.Reason
}
