package server

import (
	"testing"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// Every end, state and kind is told by its name.
func TestNames(t *testing.T) {
	for how := leasehold.Released; how.String() != "unknown"; how++ {
		if got := howOf(how.String()); got != how {
			t.Errorf("%q is read as %v", how, got)
		}
	}
	for state := leasehold.Available; state.String() != "unknown"; state++ {
		if got := stateOf(state.String()); got != state {
			t.Errorf("%q is read as %v", state, got)
		}
	}
	for kind := leasehold.Queued; kind.String() != "unknown"; kind++ {
		if got := kindOf(kind.String()); got != kind {
			t.Errorf("%q is read as %v", kind, got)
		}
	}
	if how := howOf("by magic"); how != 0 {
		t.Errorf("an unknown end is read as %v", how)
	}
}

// A lease in its last millisecond ends by time, unlike one without a TTL.
func TestTheLastMillisecond(t *testing.T) {
	last := int64(0)
	if left := lease(v1.Lease{RemainingMS: &last}).Remaining; left <= 0 {
		t.Errorf("%v are left", left)
	}
	if left := lease(v1.Lease{}).Remaining; left != 0 {
		t.Errorf("without an end, %v are left", left)
	}
}
