package records

import (
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
)

// A checker looks for contradictions in the records of a state.
type checker struct {
	store  *store
	tables record.Checker
	that   func(ok bool, format string, args ...any)
}

func (st *store) Checker(that func(ok bool, format string, args ...any)) kernel.RecordChecker {
	return &checker{store: st, tables: record.Checker{That: that}, that: that}
}

// All checks what is counted over all namespaces, after these.
func (c *checker) All() {
	c.tables.Store(&c.store.Store)
	c.that(len(c.store.hand.reserved) == 0, "a command is over, and has reserved %q", c.store.hand.reserved)
}

// Space checks the records of a namespace, and calls bound with the session of each that ends with one.
func (c *checker) Space(n kernel.Namespace, r kernel.Records, bound func(session string)) {
	s, ends := r.(*records), map[ending]bool{}
	c.tables.Table(&s.table, record.Scope{
		Name: n.Name(), Revision: n.Revision(), Token: n.Token(),
		Session: func(id string) bool { return n.Session(id) != nil || n.Left(id) != nil },
		Bound: func(id string) {
			bound(id)
			if session := n.Session(id); session != nil {
				ends[ending{session.Expires, id}] = true
			}
		},
		Loose: func(r *leasehold.Record) bool { return loose(n, r) },
	})
	for l := range ends {
		_, ok := s.sessionEnds.Get(l)
		c.that(ok, "%s: session %s has records and ends at %d, which is not noted", n.Name(), l.id, l.at)
	}
	c.that(len(ends) == s.sessionEnds.Len(), "%s: %d sessions have records, %d are noted", n.Name(), len(ends),
		s.sessionEnds.Len())
	c.links(n, s)
}

// links checks that claims and their records know each other, and the order of mirrored resources.
func (c *checker) links(n kernel.Namespace, s *records) {
	shown := 0
	n.Claims(func(claim *kernel.Claim) bool {
		id, f := claim.ID, claim.Linked()
		if f == nil {
			return true
		}
		shown++
		r, ok := s.table.Get(f.Path)
		c.that(ok && r.Lease == id, "%s/%s shows as record %q, which does not stand for it", n.Name(), id, f.Path)
		may := !f.Stay || !f.Made || f.Path == claim.Resource
		c.that(may, "%s/%s shows as record %q that cannot be", n.Name(), id, f.Path)
		if at := recordEnd(claim); at.at != 0 {
			_, ok := s.claimEnds.Get(at)
			c.that(ok, "%s/%s ends at %d, and its record is not noted", n.Name(), id, at.at)
		}
		return true
	})
	s.table.Ascend("", "", func(r *leasehold.Record) bool {
		claim := claimOf(n, r)
		c.that(r.Lease == "" || claim != nil && claim.Linked() != nil && claim.Linked().Path == r.Path,
			"%s: record %q stands for lease %q, which does not show as it", n.Name(), r.Path, r.Lease)
		return true
	})
	c.that(shown == s.shown && shown == s.table.Linked(), "%s: %d claims have records, %d are counted, %d records "+
		"are linked", n.Name(), shown, s.shown, s.table.Linked())
	s.mirrors.Scan(func(path, prefix string) bool {
		c.mirror(n, s, path, prefix)
		return true
	})
	c.that(n.Mirrors() == s.mirrors.Len(), "%s: %d resources are mirrored, %d are counted", n.Name(), s.mirrors.Len(),
		n.Mirrors())
}

// mirror checks that every claim on a mirrored resource has a record, in the order of the queue.
func (c *checker) mirror(n kernel.Namespace, s *records, path, prefix string) {
	if s.ShowsHolder(path) {
		_, ok := s.table.Get(path)
		c.that(ok, "%s/%s has a record that stands for its holders, and is not there", n.Name(), path)
		c.that(s.unshownHolder(n, path) == nil, "%s/%s has a record that does not show its holder", n.Name(), path)
		return
	}
	r := n.Resource(path)
	if r == nil || !r.Held() && r.Waiting == 0 {
		c.that(false, "%s/%s is mirrored below %q, and nobody has or wants it", n.Name(), path, prefix)
		return
	}
	last := leasehold.Revision(0)
	claimsOn(n, r, func(claim *kernel.Claim) bool {
		f := claim.Linked()
		ok := f != nil && strings.HasPrefix(f.Path, prefix)
		c.that(ok, "%s/%s has no record below %q, where %s is mirrored", n.Name(), claim.ID, prefix, path)
		if !ok {
			return true
		}
		shown, ok := s.table.Get(f.Path)
		c.that(ok && shown.Create > last, "%s/%s shows as record %q, which was created out of the order of the queue",
			n.Name(), claim.ID, f.Path)
		if ok {
			last = shown.Create
		}
		return true
	})
	c.that(r.Sharers() == 0, "%s/%s is mirrored and shared", n.Name(), path)
}
