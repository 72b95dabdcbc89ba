package storage

import (
	"testing"

	"github.com/leasehold/leasehold/internal/core"
)

// What adds to the state is refused when a disk is nearly full. Who renews by putting its record goes on; who takes
// something by it does not.
func TestRenewalsNeedNoRoom(t *testing.T) {
	link := &core.Link{Resource: "r", ID: "l"}
	for _, c := range []struct {
		command core.Command
		needs   bool
	}{
		{&core.Renew{}, false}, {&core.Release{}, false}, {&core.Acquire{}, true}, {&core.PutRecord{}, true},
		{&core.PutRecord{Link: link}, true}, {&core.PutRecord{Link: link, Fence: core.Fence{Lease: "other"}}, true},
		{&core.PutRecord{Link: link, Fence: core.Fence{Lease: "l"}}, false},
		{&core.PutTask{}, true}, {&core.FinishTask{}, false}, {&core.Reserve{}, true}, {&core.CancelReservation{}, false},
		{&core.Define{}, true}, {&core.Undefine{}, false}, {&core.SetUnits{}, false}, // which may say that a unit is unfit
	} {
		if NeedsRoom(c.command) != c.needs {
			t.Errorf("%+v needs room: %v", c.command, !c.needs)
		}
	}
}
