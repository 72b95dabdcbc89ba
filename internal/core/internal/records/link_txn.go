package records

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

// The claims of a transaction are judged one by one, each as if it were alone. What follows judges them together.

// taking is what the claims of a transaction come to, beside those that its records stand for already.
type taking struct {
	leases  int             // that are new
	gained  int             // leases that are taken from others
	links   int             // claims that come with records
	waiters []*kernel.Claim // those of them that wait
}

func takings(k kernel.Turn, todo *plan) (t taking) {
	t.leases = len(todo.claims)
	for i := range todo.puts {
		p := &todo.puts[i]
		switch claim := k.Claim(p.takes); {
		case p.claim == nil:
			continue
		case claim != nil && k.Gains(claim):
			t.gained++
		case claim != nil:
		case p.blocked != nil:
			t.waiters = append(t.waiters, p.claim)
		default:
			t.leases++
		}
		t.links++
	}
	return t
}

// allowedLinks refuses the claims of a transaction that cannot be had together.
func allowedLinks(k kernel.Turn, todo *plan) *leasehold.Error {
	t := takings(k, todo)
	if t.links == 0 && todo.ends == 0 {
		return nil
	}
	for _, c := range t.waiters {
		if !c.SameParty(t.waiters[0]) {
			return refuse(leasehold.Refused, "a transaction would wait for %s and for %s, as two that might then wait "+
				"for each other: ask for them one after the other", t.waiters[0].Resource, c.Resource)
		}
	}
	if failure := overtakes(k, todo, &t); failure != nil {
		return failure
	}
	for i := range todo.puts {
		if p := &todo.puts[i]; p.claim != nil { // as if all were of this session: few transactions are so large
			if failure := k.RoomIn(p.write.Session, 2*t.links+len(todo.claims)); failure != nil {
				return failure
			}
		}
	}
	return k.RoomForClaims(t.leases, len(t.waiters), t.gained)
}

// overtakes refuses to take through a record what others wait for with a lower priority, if the transaction does
// anything else to claims: when that ends one, it may be all that the others were waiting for, and they have the
// resource first. They wait for the very resource, since no record stands for a lease on a path of an area. What the
// transaction acquires is granted before all that: see acquireFirst.
func overtakes(k kernel.Turn, todo *plan, t *taking) *leasehold.Error {
	if todo.ends == 0 && len(todo.released) == 0 && len(t.waiters) == 0 {
		return nil
	}
	for i := range todo.puts {
		p := &todo.puts[i]
		if p.claim == nil || p.takes != "" || p.blocked != nil {
			continue
		}
		if r := k.Resource(p.claim.Resource); r != nil && r.Waiting > 0 {
			return refuse(leasehold.Refused, "others wait for %s with a lower priority, and might have it before this "+
				"transaction has, which also ends leases or waits: do that one after the other", r.Path)
		}
	}
	return nil
}
