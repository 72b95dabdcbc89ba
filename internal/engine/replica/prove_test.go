package replica

import "testing"

// A leader whose state is not compared asks again and again, but not at each turn: every comparison keeps a state in
// memory until it is summed up.
func TestALeaderAsksForAFewComparisons(t *testing.T) {
	x := newTrio(t)
	n := x.members[0].node
	before := n.Applied()
	n.config.Compare = true
	n.lead.serving, n.lead.fixed = false, false
	n.beginProof(1)
	x.ticks(600)
	if asked := n.Applied() - before; asked < 6 || asked > 9 {
		t.Errorf("it asked %d times in a minute", asked)
	}
	n.Step(Compared{Index: n.Applied()})
	if n.Unproven() {
		t.Error("it never serves")
	}
	x.ticks(2)
	if !n.Serving() {
		t.Error("it does not lead")
	}
}
