//go:build linux

package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// never is when a call returned that got no answer.
const never = time.Duration(1) << 60

// A recordCall is what one client did to one record.
type recordCall struct {
	key      string
	write    string // the value that it puts; empty: it reads
	swap     bool   // it puts only if expect is there
	expect   string
	seen     string // what it read, or what was there instead of expect
	swapped  bool
	revision uint64 // of what it wrote or read; 0: unknown
	final    bool   // it reads after all the trouble

	called, returned time.Duration
}

func (c *recordCall) open() bool { return c.returned == never }

// wrote reports whether it surely wrote.
func (c *recordCall) wrote() bool { return c.write != "" && !c.open() && (!c.swap || c.swapped) }

// saw reports whether it surely saw something, which is in seen or expect.
func (c *recordCall) saw() (string, bool) {
	switch {
	case c.open():
		return "", false
	case c.swap && c.swapped:
		return c.expect, true
	case c.swap, c.write == "":
		return c.seen, true
	}
	return "", false
}

// A leaseCall is what one client did to one resource.
type leaseCall struct {
	resource string
	verb     verb
	id       string
	ttl      time.Duration
	outcome  outcome
	token    uint64 // of its own lease
	seen     string // the id of the lease that was there; empty: none
	other    uint64 // its token

	began            time.Duration // an acquire: when the id was first asked for, which may be what was granted
	called, returned time.Duration
}

type verb string

const (
	acquire verb = "acquire"
	renew   verb = "renew"
	release verb = "release"
	look    verb = "look"
)

type outcome string

const (
	yes     outcome = "yes"
	held    outcome = "held"
	lost    outcome = "lost"
	saw     outcome = "saw"
	nothing outcome = "" // no answer
)

// A belief is a time in which a client took a resource for its own.
type belief struct {
	resource, id string
	token        uint64
	from, to     time.Duration
}

// A history is what all clients did in one namespace.
type history struct {
	mu      sync.Mutex // guards what follows
	records []*recordCall
	leases  []*leaseCall
	beliefs []*belief
}

func (h *history) addRecord(c *recordCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = append(h.records, c)
}

func (h *history) addLease(c *leaseCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = append(h.leases, c)
}

func (h *history) addBelief(b *belief) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beliefs = append(h.beliefs, b)
}

// check judges everything. Nothing may be added afterwards.
func (h *history) check(r *report) {
	h.checkBeliefs(r)
	h.checkTokens(r)
	for key, calls := range groupBy(h.records, func(c *recordCall) string { return c.key }) {
		calls = settleRecords(calls)
		checkStale(key, calls, r)
		judge(r, "record "+key, recordModel, operationsOf(calls, func(c *recordCall) (time.Duration, time.Duration) { return c.called, c.returned }))
	}
	for key, calls := range groupBy(h.leases, func(c *leaseCall) string { return c.resource }) {
		calls = settleLeases(calls)
		judge(r, "resource "+key, leaseModel, operationsOf(calls, func(c *leaseCall) (time.Duration, time.Duration) { return c.called, c.returned }))
	}
}

func groupBy[T any](all []T, key func(T) string) map[string][]T {
	groups := map[string][]T{}
	for _, one := range all {
		groups[key(one)] = append(groups[key(one)], one)
	}
	return groups
}

func operationsOf[T any](calls []T, span func(T) (time.Duration, time.Duration)) (operations []porcupine.Operation) {
	for i, c := range calls {
		called, returned := span(c)
		operations = append(operations, porcupine.Operation{ClientId: i, Input: c, Call: int64(called), Return: int64(returned)})
	}
	return operations
}

func judge(r *report, what string, model porcupine.Model, operations []porcupine.Operation) {
	result := porcupine.CheckOperationsTimeout(model, operations, r.patience)
	r.judged(len(operations), result == porcupine.Unknown)
	if result == porcupine.Illegal {
		r.violated(notLinearizable, "%s: no order explains its %d calls", what, len(operations))
		r.keep(what, model, operations)
	}
}

// settleRecords closes calls that got no answer. One whose value somebody saw had
// happened by then; one whose value nobody saw may as well not have happened.
func settleRecords(calls []*recordCall) (settled []*recordCall) {
	seenBy := map[string]time.Duration{}
	note := func(value string, at time.Duration) bool {
		before, known := seenBy[value]
		if known && before <= at {
			return false
		}
		seenBy[value] = at
		return true
	}
	for _, c := range calls {
		if value, ok := c.saw(); ok {
			note(value, c.returned)
		}
	}
	for again := true; again; {
		again = false
		for _, c := range calls {
			// Somebody saw what this swap wrote, so it saw what it expected.
			if at, happened := seenBy[c.write]; c.open() && c.swap && happened && note(c.expect, at) {
				again = true
			}
		}
	}
	for _, c := range calls {
		if c.open() {
			at, happened := seenBy[c.write]
			if c.write == "" || !happened {
				continue
			}
			closed := *c
			closed.returned, closed.revision = max(at, c.called), 0
			closed.swapped = c.swap
			c = &closed
		}
		settled = append(settled, c)
	}
	return settled
}

// checkStale looks for reads of what had been replaced before they began. Porcupine finds
// them too; this says what they are.
func checkStale(key string, calls []*recordCall, r *report) {
	wrote := map[string]*recordCall{}
	for _, c := range calls {
		if c.write != "" {
			wrote[c.write] = c
		}
	}
	for _, c := range calls {
		value, ok := c.saw()
		if !ok {
			continue
		}
		ended := time.Duration(-1) // the initial value was there before all
		if value != "" {
			w := wrote[value]
			if w == nil {
				r.violated(notLinearizable, "record %s: %q was read, and nobody wrote it", key, value)
				continue
			}
			ended = w.returned
		}
		for _, w := range calls {
			if w.wrote() && w.returned < c.called && ended < w.called {
				kind := staleRead
				if c.final {
					kind = lostWrite
				}
				r.violated(kind, "record %s: %q was acknowledged at %v, and at %v %q is read, which is older", key, w.write, w.returned, c.called, value)
				break
			}
		}
	}
}

// A register is what a record holds: a value, and a revision that is not smaller than
// any that was seen.
type register struct {
	value string
	least uint64
}

var recordModel = porcupine.Model{
	Init: func() any { return register{} },
	Step: func(state, input, _ any) (bool, any) {
		s, c := state.(register), input.(*recordCall)
		next := register{s.value, max(s.least, c.revision)}
		switch {
		case c.write != "" && !c.swap, c.swap && c.swapped:
			next.value = c.write
			fits := !c.swap || s.value == c.expect
			return fits && (c.revision == 0 || c.revision > s.least), next
		default:
			return s.value == c.seen && (c.revision == 0 || c.revision >= s.least), next
		}
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, _ any) string {
		return fmt.Sprintf("%+v", *input.(*recordCall))
	},
}

// settleLeases closes calls that got no answer, as settleRecords does. A renewal only
// makes a lease last, so it may as well not have happened.
func settleLeases(calls []*leaseCall) (settled []*leaseCall) {
	seenBy, next, began := map[string]time.Duration{}, map[string]time.Duration{}, map[string]time.Duration{}
	var grants []*leaseCall
	open := map[string]bool{} // ids of which a try got no answer
	for _, c := range calls {
		if at, known := began[c.id]; c.verb == acquire && (!known || c.called < at) {
			began[c.id] = c.called
		}
		open[c.id] = open[c.id] || c.verb == acquire && c.outcome == nothing
		id := c.seen
		if c.verb == renew && c.outcome == yes {
			id = c.id
		}
		if at, known := seenBy[id]; id != "" && (!known || c.returned < at) {
			seenBy[id] = c.returned
		}
		if c.verb == acquire && c.outcome == yes {
			grants = append(grants, c)
		}
	}
	slices.SortFunc(grants, func(a, b *leaseCall) int { return cmp.Compare(a.token, b.token) })
	for i, g := range grants {
		for _, later := range grants[i+1:] {
			if at, known := next[g.id]; later.id != g.id && (!known || later.returned < at) {
				next[g.id] = later.returned
			}
		}
	}
	for _, c := range calls {
		closed := *c
		if closed.began = c.called; c.verb == acquire {
			closed.began = began[c.id]
		}
		at, happened := seenBy[c.id]
		happened = happened && at >= c.called // else an earlier try is what was seen
		if c.outcome != nothing {
			settled = append(settled, &closed)
			if c.verb == acquire && c.outcome == lost && happened && !open[c.id] {
				// It waited, was granted, and lost that with its session before it was told.
				granted := closed
				granted.outcome, granted.returned = nothing, at
				settled = append(settled, &granted)
			}
			continue
		}
		switch {
		case c.verb == acquire && happened:
			closed.returned = at
		case c.verb == release:
			// By the next grant the lease had ended, in this way or another.
			if at, known := next[c.id]; known {
				closed.returned = max(at, c.called)
			}
		default:
			continue
		}
		settled = append(settled, &closed)
	}
	return settled
}

// A place is who has a resource.
type place struct {
	holder string
	token  uint64        // 0: unknown
	least  time.Duration // it cannot end by time before
	newest uint64        // the largest token that was granted
}

// clockSlack is by how much two readings of one clock may differ after they were rounded.
const clockSlack = 2 * time.Millisecond

var leaseModel = porcupine.Model{
	Init: func() any { return place{} },
	Step: func(state, input, _ any) (bool, any) {
		s, c := state.(place), input.(*leaseCall)
		return s.step(c)
	},
	Equal: func(a, b any) bool { return a == b },
	DescribeOperation: func(input, _ any) string {
		return fmt.Sprintf("%+v", *input.(*leaseCall))
	},
}

// step reports whether a call fits to who has the resource, and who has it then.
func (s place) step(c *leaseCall) (bool, any) {
	free := place{newest: s.newest}
	over := s.holder == "" || s.least <= c.returned+clockSlack // it may have ended by time
	granted := place{c.id, c.token, c.began + c.ttl - clockSlack, max(s.newest, c.token)}
	switch {
	case c.outcome == held || c.outcome == saw:
		return s.sees(c, over)
	case c.outcome == lost:
		if s.holder == c.id {
			return over, free
		}
		return true, s
	case c.verb == acquire && c.outcome == nothing:
		if s.holder == "" || s.holder != c.id && over {
			return true, granted
		}
		return true, s
	case c.verb == acquire && s.holder == c.id:
		again := s
		again.token, again.newest = c.token, granted.newest
		return s.token == 0 || s.token == c.token, again
	case c.verb == acquire:
		return over && c.token > s.newest, granted
	case c.verb == renew:
		longer := s
		longer.least = max(s.least, granted.least)
		return s.holder == c.id, longer
	}
	if s.holder == c.id { // a release
		return true, free
	}
	return true, s
}

// sees reports whether somebody can see what a call saw.
func (s place) sees(c *leaseCall, over bool) (bool, any) {
	if c.seen == "" {
		return over, place{newest: s.newest}
	}
	known := s
	known.token, known.newest = c.other, max(s.newest, c.other)
	return s.holder == c.seen && (s.token == 0 || s.token == c.other), known
}

// checkTokens wants a grant that came after another was told of to have a
// larger token.
func (h *history) checkTokens(r *report) {
	first := map[string]*leaseCall{}
	for _, c := range h.leases {
		if c.verb != acquire {
			continue
		}
		f := first[c.id]
		if f == nil {
			copied := *c
			first[c.id] = &copied
			continue
		}
		// It may have been the first try that was granted.
		f.called, f.returned = min(f.called, c.called), min(f.returned, c.returned)
		f.token = max(f.token, c.token)
	}
	grants := slices.DeleteFunc(slices.Collect(maps.Values(first)), func(c *leaseCall) bool { return c.token == 0 })
	byCall := slices.SortedFunc(slices.Values(grants), func(a, b *leaseCall) int { return cmp.Compare(a.called, b.called) })
	byReturn := slices.SortedFunc(slices.Values(grants), func(a, b *leaseCall) int { return cmp.Compare(a.returned, b.returned) })
	var largest *leaseCall
	for _, c := range byCall {
		for len(byReturn) > 0 && byReturn[0].returned < c.called {
			if largest == nil || byReturn[0].token > largest.token {
				largest = byReturn[0]
			}
			byReturn = byReturn[1:]
		}
		if largest != nil && c.token <= largest.token {
			r.violated(tokenBack, "%s got token %d for %s after %s had got %d", c.id, c.token, c.resource, largest.id, largest.token)
		}
	}
}

// checkBeliefs wants that no two clients believe in a resource at once.
func (h *history) checkBeliefs(r *report) {
	for resource, all := range groupBy(h.beliefs, func(b *belief) string { return b.resource }) {
		slices.SortFunc(all, func(a, b *belief) int { return cmp.Compare(a.from, b.from) })
		last := &belief{to: -1}
		for _, b := range all {
			if b.from < last.to && b.id != last.id {
				r.violated(twoHolders, "%s: %s believes from %v and %s until %v", resource, b.id, b.from, last.id, last.to)
			}
			if b.to > last.to {
				last = b
			}
		}
	}
}
