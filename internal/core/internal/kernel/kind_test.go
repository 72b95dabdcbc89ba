package kernel_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// holdsKind lets somebody have a resource for a while.
func (d *desk) holdsKind(kind string, held time.Duration) {
	d.Helper()
	id := fmt.Sprint("id", d.now, kind, held)
	d.must(&core.Acquire{Namespace: ns, Resource: "gpu", ID: id, Holder: "ann", TTL: leasehold.MaxTTL,
		Labels: leasehold.Labels{{Key: "kind", Value: kind}}})
	d.at(d.now + held).must(&core.Release{Namespace: ns, ID: id})
}

// TestReplicasLearnTheSame: one that was restored in the middle goes on as the other does.
func TestReplicasLearnTheSame(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 2000 {
		d.holdsKind(fmt.Sprint(i*i%1500), time.Duration(i%7)*time.Minute)
	}
	other := &desk{TB: t, state: reread(t, d.state), now: d.now}
	for i := range 500 {
		d.holdsKind(fmt.Sprint("b", i), time.Minute)
		other.holdsKind(fmt.Sprint("b", i), time.Minute)
	}
	if !bytes.Equal(written(t, d.state), written(t, other.state)) {
		t.Error("they differ")
	}
	mustBeSound(t, other.state)
	frozen := d.state.Freeze()
	before := written(t, frozen)
	d.holdsKind("later", time.Minute)
	if !bytes.Equal(before, written(t, frozen)) {
		t.Error("a copy learned something")
	}
}
