package storage

import (
	"testing"

	"github.com/leasehold/leasehold/internal/core"
)

// Who renews by putting its record goes on when a disk is nearly full; who takes something by it does not.
func TestRenewalsNeedNoRoom(t *testing.T) {
	link := &core.Link{Resource: "r", ID: "l"}
	for _, c := range []struct {
		command core.Command
		needs   bool
	}{
		{&core.Renew{}, false}, {&core.Release{}, false}, {&core.Acquire{}, true}, {&core.PutRecord{}, true},
		{&core.PutRecord{Link: link}, true}, {&core.PutRecord{Link: link, Fence: core.Fence{Lease: "other"}}, true},
		{&core.PutRecord{Link: link, Fence: core.Fence{Lease: "l"}}, false},
	} {
		if NeedsRoom(c.command) != c.needs {
			t.Errorf("%+v needs room: %v", c.command, !c.needs)
		}
	}
}
