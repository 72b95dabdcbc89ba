// Package learn remembers how leases of each kind went on each resource, and says by that when those who wait will have
// their turn (forecast.go). What a kind is, and what follows from how its last leases went, is in package usage. The
// kernel notes what is usual of a resource, whatever the kind, with the resource itself.
package learn

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/usage"
)

// A Kind is what was learned of one kind of leases on a resource. It is never changed in place.
type Kind struct {
	Resource string
	Name     string
	Recent   usage.Recent

	order uint64 // larger for those that were learned of later
}

// How many kinds are kept. Beyond it, the one of the namespace that was not heard of for longest makes room.
const (
	maxKinds    = 65536 // in all namespaces
	maxKindsOne = 1024  // in one
)

// learned is what was, in all namespaces.
type learned struct {
	// What is in every snapshot.

	of btree.Map[string, *table] // by namespace, of those in which anything was learned

	// What follows from that.

	order uint64 // of the kind that was learned of last
}

// A table has the kinds of one namespace.
type table struct {
	byName *btree.Tree[*Kind]       // by resource, then name
	byAge  btree.Map[uint64, *Kind] // by order
}

// New returns what a state has that has learned nothing.
func New() kernel.Learning { return &learned{} }

func newTable() *table {
	return &table{byName: btree.New(func(a, b *Kind) bool {
		if a.Resource != b.Resource {
			return a.Resource < b.Resource
		}
		return a.Name < b.Name
	})}
}

func (s *learned) Copy() kernel.Learning {
	f := &learned{order: s.order}
	s.of.Scan(func(namespace string, t *table) bool {
		f.of.Set(namespace, &table{t.byName.Copy(), *t.byAge.Copy()})
		return true
	})
	return f
}

// nothing is the table of each namespace that has none. It is only read.
var nothing = newTable()

func (s *learned) table(namespace string) *table {
	if t, ok := s.of.Get(namespace); ok {
		return t
	}
	return nothing
}

func (s *learned) Count(namespace string) int { return s.table(namespace).byAge.Len() }

func (s *learned) Has(n kernel.Namespace, path string) (has bool) {
	s.table(n.Name()).byName.Ascend(&Kind{Resource: path}, func(k *Kind) bool {
		has = k.Resource == path
		return false
	})
	return has
}

func (s *learned) Recent(n kernel.Namespace, path, name string) usage.Recent {
	kind, ok := s.table(n.Name()).byName.Get(&Kind{Resource: path, Name: name})
	if !ok {
		return ""
	}
	return kind.Recent
}

// Learn notes how a lease of a kind went that ended at some moment.
func (s *learned) Learn(t kernel.Turn, c *kernel.Claim, name string, how leasehold.How, at kernel.Time) {
	ttl, gap := t.Pulse(c)
	recent := s.Recent(t.Namespace, c.LearnedOn(), name)
	if recent == "" && !s.makeRoom(t) {
		return
	}
	recent = recent.Add(time.Duration(at-c.Since), how, ttl, gap)
	s.set(t, &Kind{Resource: c.LearnedOn(), Name: name, Recent: recent})
}

// set stores a kind as the newest.
func (s *learned) set(t kernel.Turn, kind *Kind) {
	of, ok := s.of.Get(t.Name())
	if !ok {
		of = newTable()
		s.of.Set(t.Name(), of)
	}
	s.order++
	kind.order = s.order
	if before, known := of.byName.Set(kind); known {
		of.byAge.Delete(before.order)
	} else {
		t.CountKinds(1)
	}
	of.byAge.Set(kind.order, kind)
}

// makeRoom makes room for a kind that is new, and reports whether there is any. Nobody's are forgotten for those of
// another namespace.
func (s *learned) makeRoom(t kernel.Turn) bool {
	of := s.table(t.Name())
	if of.byAge.Len() < maxKindsOne && t.Kinds() < maxKinds {
		return true
	}
	_, oldest, ok := of.byAge.PopMin()
	if ok {
		of.byName.Delete(oldest)
		t.CountKinds(-1)
	}
	return ok
}

// Forget forgets a namespace.
func (s *learned) Forget(t kernel.Turn) {
	t.CountKinds(-s.Count(t.Name()))
	s.of.Delete(t.Name())
}

// Show shows the kinds of a resource by name. If a name is given, that is the only one, be it known or not.
func (s *learned) Show(l kernel.Look, path, name string) (list []leasehold.LearnedKind) {
	d := l.Definition(path)
	show := func(name string, recent usage.Recent) {
		list = append(list, leasehold.LearnedKind{Name: name, TTL: usage.AdviseKind(recent, d).TTL,
			Unattended: recent.Unattended(d), Usual: recent.Shown()})
	}
	if name != "" {
		show(name, s.Recent(l.Namespace, path, name))
		return list
	}
	s.table(l.Name()).byName.Ascend(&Kind{Resource: path}, func(k *Kind) bool {
		if k.Resource != path {
			return false
		}
		show(k.Name, k.Recent)
		return l.Take(kernel.LeaseCost)
	})
	return list
}

// Pieces are the kinds of a namespace, oldest first: the order decides which is forgotten next.
func (s *learned) Pieces(namespace string, yield func(piece any) bool) (more bool) {
	more = true
	s.table(namespace).byAge.Scan(func(_ uint64, k *Kind) bool {
		more = yield(k)
		return more
	})
	return more
}

// Restore takes a piece over that Pieces made. The order of the pieces is that of forgetting.
func (s *learned) Restore(t kernel.Turn, piece any) (known bool, err error) {
	k, ok := piece.(*Kind)
	if !ok {
		return false, nil
	}
	if _, twice := s.table(t.Name()).byName.Get(k); twice || k.Name == "" || len(k.Name) > usage.MaxKindName {
		return true, fmt.Errorf("snapshot has kind %q of %q twice, or without a name that it can have", k.Name,
			k.Resource)
	}
	if err := k.Recent.WellFormed(); err != nil {
		return true, fmt.Errorf("snapshot has kind %q of %q with what was never learned: %w", k.Name, k.Resource, err)
	}
	s.set(t, k)
	return true, nil
}

// Check checks that each kind of a namespace is in both orders, and that there are not too many.
func (s *learned) Check(n kernel.Namespace, that func(ok bool, format string, args ...any)) {
	t := s.table(n.Name())
	that(t.byName.Len() == t.byAge.Len() && t.byName.Len() <= maxKindsOne, "%s: %d kinds by name, %d by age", n.Name(),
		t.byName.Len(), t.byAge.Len())
	t.byAge.Scan(func(order uint64, k *Kind) bool {
		same, _ := t.byName.Get(k)
		that(same == k && k.order == order && order <= s.order, "%s: kind %q of %q is not where it belongs", n.Name(),
			k.Name, k.Resource)
		return true
	})
}

// CheckAll checks that the kinds of all namespaces are counted.
func (s *learned) CheckAll(counted int, that func(ok bool, format string, args ...any)) {
	all := 0
	s.of.Scan(func(_ string, t *table) bool {
		all += t.byAge.Len()
		return true
	})
	that(all == counted && all <= maxKinds, "%d kinds are known, %d are counted", all, counted)
}
