package area

import (
	"strings"

	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/pattern"
)

// Check checks that the names that are in use are known, and that no two leases on names that overlap exclude each
// other.
func (a *areas) Check(n kernel.Namespace, that func(ok bool, format string, args ...any)) {
	var used []*kernel.Resource
	n.ResourcesFrom(pattern.Areas, func(r *kernel.Resource) bool {
		if p := parse(r.Path); p != nil {
			that(a.names.Has(p) == r.InUse(), "%s/%s is in use: %v, its area says otherwise", n.Name(), r.Path,
				r.InUse())
			if r.InUse() {
				used = append(used, r)
			}
		}
		return strings.HasPrefix(r.Path, pattern.Areas)
	})
	that(len(used) == a.names.Len(), "%s: %d names of areas are in use, %d are known", n.Name(), len(used),
		a.names.Len())
	for i, r := range used {
		for _, other := range used[:i] {
			exclusive := r.Claim != "" || other.Claim != ""
			if r.Held() && other.Held() && exclusive && a.Overlap(r.Path, other.Path) {
				one, two := n.Junior(r), n.Junior(other)
				that(false, "%s: %s holds %s and %s holds %s, which overlap", n.Name(), one.Holder, one.Resource,
					two.Holder, two.Resource)
			}
		}
	}
}

func (a *areas) MayBeInTheWay(n kernel.Namespace, c *kernel.Claim) (is bool) {
	a.Overlapping(n, c.Resource, func(r *kernel.Resource) bool {
		is = excludes(n, r, c.Slots != 0) || r.Resting() || n.Unresumed(r.Path)
		if !is {
			n.Waiters(r.Path, func(first *kernel.Claim) bool {
				is = kernel.ComesBefore(first, c)
				return false
			})
		}
		return !is
	})
	return is
}
