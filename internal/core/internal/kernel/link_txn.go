package kernel

import "github.com/leasehold/leasehold"

// The claims of a transaction are judged one by one, each as if it were alone. What follows judges them together.

// taking is what the claims of a transaction come to, beside those that its records stand for already.
type taking struct {
	tally
	gained  int      // leases that are taken from others
	links   int      // claims that come with records
	waiters []*Claim // those of them that wait
}

func (l *look) taking(sp *space, todo *plan) (t taking) {
	t.leases = len(todo.claims)
	for i := range todo.puts {
		p := &todo.puts[i]
		switch claim, _ := sp.claims.Get(p.takes); {
		case p.claim == nil:
			continue
		case claim != nil && l.gains(sp, claim):
			t.gained++
		case claim != nil:
		case p.blocked != nil:
			t.tally.waiters++
			t.waiters = append(t.waiters, p.claim)
		default:
			t.leases++
		}
		t.links++
	}
	return t
}

// allowedLinks refuses the claims of a transaction that cannot be had together.
func (l *look) allowedLinks(sp *space, todo *plan) *leasehold.Error {
	t := l.taking(sp, todo)
	if t.links == 0 && todo.ends == 0 {
		return nil
	}
	for _, c := range t.waiters {
		if c.party() != t.waiters[0].party() {
			return refuse(leasehold.Refused, "a transaction would wait for %s and for %s, as two that might then wait "+
				"for each other: ask for them one after the other", t.waiters[0].Resource, c.Resource).Err
		}
	}
	if failure := l.overtakes(sp, todo, &t); failure != nil {
		return failure
	}
	for i := range todo.puts {
		if p := &todo.puts[i]; p.claim != nil { // as if all were of this session: few transactions are so large
			if failure := sp.roomIn(p.write.Session, 2*t.links+len(todo.claims)); failure != nil {
				return failure
			}
		}
	}
	return l.roomForTaking(sp, &t)
}

// overtakes refuses to take through a record what others wait for with a lower priority, if the transaction does
// anything else to claims: when that ends one, it may be all that the others were waiting for, and they have the
// resource first. They wait for the very resource, since no record stands for a lease on a path of an area. What the
// transaction acquires is granted before all that: see acquireFirst.
func (s *State) overtakes(sp *space, todo *plan, t *taking) *leasehold.Error {
	if todo.ends == 0 && len(todo.released) == 0 && len(t.waiters) == 0 {
		return nil
	}
	for i := range todo.puts {
		p := &todo.puts[i]
		if p.claim == nil || p.takes != "" || p.blocked != nil {
			continue
		}
		if r, ok := sp.resources.Get(p.claim.Resource); ok && r.Waiting > 0 {
			return refuse(leasehold.Refused, "others wait for %s with a lower priority, and might have it before this "+
				"transaction has, which also ends leases or waits: do that one after the other", r.Path).Err
		}
	}
	return nil
}

// roomForTaking refuses more than there is room for.
func (l *look) roomForTaking(sp *space, t *taking) *leasehold.Error {
	if t.leases > 0 {
		if failure := l.claimsWithinCaps(t.leases, false); failure != nil {
			return failure
		}
	}
	if t.tally.waiters > 0 {
		if failure := l.claimsWithinCaps(t.tally.waiters, true); failure != nil {
			return failure
		}
	}
	if failure := l.withinQuotas(sp.name, t.tally); failure != nil || l.permit == nil {
		return failure
	}
	t.leases += t.gained
	return l.withinOwn(t.tally)
}
