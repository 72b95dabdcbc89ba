package replica

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// The settings of the server that leads first are the caps of a cluster. Those of others, and
// of later leaders, say nothing.
func TestTheFirstLeaderSaysTheCaps(t *testing.T) {
	x := newTrio(t)
	for i, m := range x.members {
		m.node.config.Caps = leasehold.Caps{Leases: i + 1}
	}
	x.ticks(5)
	x.members[0].node.giveLead(2)
	x.ticks(30)
	if x.leader() != x.members[1] {
		t.Fatal("node 2 does not lead")
	}
	for _, m := range x.members {
		if allowed, _ := m.node.state.View(0).Caps(); allowed.Leases != 1 || allowed.Sessions != leasehold.DefaultCaps().Sessions {
			t.Errorf("node %d allows %+v", m.id, allowed)
		}
	}
	first, second := x.members[1].call(lease("a", time.Minute)), x.members[1].call(lease("b", time.Minute))
	x.ticks(5)
	if first.err != nil || !errors.Is(second.err, leasehold.ErrLimited) {
		t.Errorf("the first lease: %v; the second: %+v", first.err, second)
	}
	set := x.members[1].call(&core.SetCaps{Caps: leasehold.Caps{Leases: 2}})
	x.ticks(5)
	again := x.members[2].call(lease("b", time.Minute))
	x.ticks(5)
	if set.err != nil || again.err != nil {
		t.Errorf("after the cap was raised (%v): %v", set.err, again.err)
	}
}
