package kernel

// A budget bounds what is kept for all namespaces together: events, ended ids, and the answers
// of requests. When it is exceeded, the namespace that uses most of it loses its oldest, so one
// that is flooded pushes out its own past and nobody else's. Which one that is comes from an
// order that is kept up to date, so it costs the same however many namespaces there are.

// An orderBy is one order of the namespaces. Only those that have some of the thing are in it.
type orderBy int

const (
	mostHistory   orderBy = iota // by the bytes of their events, the most first
	mostEndings                  // by how many ended ids they have
	mostOutcomes                 // by how many answers of requests outside sessions they have
	oldestEnding                 // by when their oldest ended id ended
	oldestOutcome                // by when their oldest answer was given
	orders
)

// uses returns how much of the thing a namespace has.
func (sp *space) uses(by orderBy) int {
	switch by {
	case mostHistory:
		return sp.historyBytes
	case mostEndings, oldestEnding:
		return sp.endings.len()
	}
	return sp.answered.len()
}

// before is a total order, so that every node agrees on the first namespace, in whatever order
// it came to know them: where two have equally much, the name decides.
func (by orderBy) before(a, b *space) bool {
	switch by {
	case oldestEnding:
		return a.endings.front().order < b.endings.front().order
	case oldestOutcome:
		return a.answered.front().order < b.answered.front().order
	}
	if x, y := a.uses(by), b.uses(by); x != y {
		return x > y
	}
	return a.name < b.name
}

// A ranking is a binary heap of namespaces. Each namespace knows its own position in it,
// counted from 1 so that 0 can mean "not in it"; without that, finding a namespace that changed
// would mean a search.
type ranking []*space

func (r ranking) first() *space {
	if len(r) == 0 {
		return nil
	}
	return r[0]
}

// ranked puts a namespace where it belongs in an order, after the amount that it is ordered by
// has changed. It must be called after every such change: a heap with one stale key gives a
// wrong first.
func (t *turn) ranked(sp *space, by orderBy) {
	r := &t.rankings[by]
	here := sp.places[by]
	switch used := sp.uses(by) > 0; {
	case !used && here == 0:
	case !used:
		r.remove(sp, by)
	case here == 0:
		*r = append(*r, sp)
		r.rise(len(*r)-1, sp, by)
	default:
		r.move(here-1, sp, by)
	}
}

// remove closes the gap with the last one, which may have to go either way from there.
func (r *ranking) remove(sp *space, by orderBy) {
	q := *r
	i, last := sp.places[by]-1, len(q)-1
	moved := q[last]
	q[last] = nil
	*r = q[:last]
	sp.places[by] = 0
	if i != last {
		r.move(i, moved, by)
	}
}

func (r ranking) move(i int, sp *space, by orderBy) {
	if i > 0 && by.before(sp, r[(i-1)/2]) {
		r.rise(i, sp, by)
	} else {
		r.sink(i, sp, by)
	}
}

func (r ranking) rise(i int, sp *space, by orderBy) {
	for i > 0 && by.before(sp, r[(i-1)/2]) {
		r.store(i, r[(i-1)/2], by)
		i = (i - 1) / 2
	}
	r.store(i, sp, by)
}

func (r ranking) sink(i int, sp *space, by orderBy) {
	for {
		child := 2*i + 1
		if child >= len(r) {
			break
		}
		if child+1 < len(r) && by.before(r[child+1], r[child]) {
			child++
		}
		if !by.before(r[child], sp) {
			break
		}
		r.store(i, r[child], by)
		i = child
	}
	r.store(i, sp, by)
}

// store is the only place that writes a position, so that the heap and the namespaces agree.
func (r ranking) store(i int, sp *space, by orderBy) {
	r[i] = sp
	sp.places[by] = i + 1
}

// totals is how much there is of what has a cap or a budget, in all namespaces together.
type totals struct {
	claims   int // leases and waiters
	waiters  int
	sessions int

	historyBytes int
	endings      int // ended ids
	outcomes     int // answers of requests outside sessions
	kinds        int
	alarms       int // that are active or were lately
	reservations int // those that are over and still remembered among them
}

func (t *totals) leases() int { return t.claims - t.waiters }

// merge calls yield with what several sources have, in one order over all of them, until yield
// returns false. Each source is in that order itself; a heap of their heads finds the next one,
// so that a thousand namespaces cost little more than one.
func merge(sources []func() (uint64, Piece, bool), yield func(Piece) bool) bool {
	type head struct {
		order uint64
		piece Piece
		next  func() (uint64, Piece, bool)
	}
	var heads []head
	sink := func(i int) {
		for child := 2*i + 1; child < len(heads); child = 2*i + 1 {
			if child+1 < len(heads) && heads[child+1].order < heads[child].order {
				child++
			}
			if heads[i].order <= heads[child].order {
				return
			}
			heads[i], heads[child] = heads[child], heads[i]
			i = child
		}
	}
	for _, next := range sources {
		if order, piece, ok := next(); ok {
			heads = append(heads, head{order, piece, next})
		}
	}
	for i := len(heads)/2 - 1; i >= 0; i-- {
		sink(i)
	}
	for len(heads) > 0 {
		if !yield(heads[0].piece) {
			return false
		}
		order, piece, ok := heads[0].next()
		if ok {
			heads[0].order, heads[0].piece = order, piece
		} else {
			last := len(heads) - 1
			heads[0] = heads[last]
			heads = heads[:last]
		}
		sink(0)
	}
	return true
}
