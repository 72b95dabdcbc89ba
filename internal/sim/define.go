package sim

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// define is an operator, who says what resources are like, and now and then says so anew
// while they are held and waited for.
func (w *World) define() {
	if w.quiet {
		return
	}
	w.after(w.between(2*time.Second, 8*time.Second), w.define)
	operator := newClient(w, 98)
	space := w.space()
	switch n := w.random.IntN(10); {
	case n < 2:
		operator.insist(&core.Undefine{Namespace: space, Path: w.defines()}, 3)
	case n < 4:
		w.acknowledge(operator)
	default:
		operator.insist(&core.Define{Namespace: space, Definition: w.definition()}, 3)
	}
}

// defines picks a path that something may be defined for.
func (w *World) defines() string {
	if w.chance(40) {
		return "pool/"
	}
	if w.chance(60) {
		return fmt.Sprint("pool/", w.random.IntN(pools))
	}
	return fmt.Sprint("r", w.random.IntN(resources))
}

// definition makes one up. Capacities are small, so that they often change below what is held
// or waited for: that is where mistakes are likely.
func (w *World) definition() leasehold.Definition {
	d := leasehold.Definition{Path: w.defines()}
	switch w.random.IntN(4) {
	case 0:
		for i := range 1 + w.random.IntN(4) {
			d.Units = append(d.Units, fmt.Sprint("unit", i))
		}
	case 1, 2:
		d.Capacity = 1 + w.random.IntN(4)
	}
	if w.chance(20) {
		d.Grace = w.upTo(time.Second)
	}
	if w.chance(10) {
		d.HoldLimit = w.between(2*time.Second, 8*time.Second)
	}
	if w.chance(10) {
		d.LargestTTL = w.between(2*time.Second, 5*time.Second)
	}
	if w.chance(10) {
		d.Unclean = leasehold.AwaitAcknowledgement
	}
	return d
}

// acknowledge acknowledges the unclean ends that wait for it; else more and more of the world
// would be at rest and a run would test less and less.
func (w *World) acknowledge(operator *client) {
	for _, at := range sortedSpots(w.truth.witness.places) {
		if p := w.truth.witness.places[at]; len(p.rests) > 0 && p.rests[0].until == forever {
			operator.insist(&core.Acknowledge{Namespace: at.space, Resource: at.name,
				Token: w.truth.witness.tokens[at.space]}, 3)
		}
	}
}
