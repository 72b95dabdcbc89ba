package kernel

import (
	"strings"

	"github.com/leasehold/leasehold/internal/pattern"
)

// areas checks that the names of areas that are in use are known, and that no two leases on names that overlap exclude
// each other.
func (c *checker) areas(s *look, sp *space) {
	var used []*Resource
	sp.resources.Ascend(pattern.Areas, func(path string, r *Resource) bool {
		if p := s.pattern(path); p != nil {
			c.that(sp.patterns.Has(p) == inUse(r), "%s/%s is in use: %v, its area says otherwise", sp.name, path,
				inUse(r))
			if inUse(r) {
				used = append(used, r)
			}
		}
		return strings.HasPrefix(path, pattern.Areas)
	})
	c.that(len(used) == sp.patterns.Len(), "%s: %d names of areas are in use, %d are known", sp.name, len(used),
		sp.patterns.Len())
	for i, a := range used {
		for _, b := range used[:i] {
			exclusive := a.Claim != "" || b.Claim != ""
			if a.held() && b.held() && exclusive && s.pattern(a.Path).Overlaps(s.pattern(b.Path)) {
				one, other := sp.junior(a), sp.junior(b)
				c.that(false, "%s: %s holds %s and %s holds %s, which overlap", sp.name, one.Holder, one.Resource,
					other.Holder, other.Resource)
			}
		}
	}
}

// overlapped reports whether another name is in the way of a waiter, or may be until a tick has come to it.
func (c *checker) overlapped(s *look, sp *space, w *Claim) (is bool) {
	p := s.pattern(w.Resource)
	if p == nil {
		return false
	}
	sp.chores.Scan(func(_ string, chore *Chore) bool {
		is = is || chore.Kind == HandOver && strings.HasPrefix(chore.Name, p.Area+":") || chore.Kind == CollectSession
		return true
	})
	s.overlapping(sp, w.Resource, func(r *Resource) bool {
		head := first(sp, r.Path)
		is = is || s.excludes(r, w) || len(r.more().Rests) > 0 || s.unresumed(sp, r.Path) ||
			head != nil && comesBefore(head, w)
		return !is
	})
	return is
}
