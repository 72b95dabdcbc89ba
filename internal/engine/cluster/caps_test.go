package cluster

import (
	"testing"

	"github.com/leasehold/leasehold"
)

// Settings that say what holds anyway cost no entry.
func TestDefaultSettingsSetNoCaps(t *testing.T) {
	for settings, want := range map[leasehold.Caps]leasehold.Caps{
		{}:                            {},
		leasehold.DefaultCaps():       {},
		{Leases: 7}:                   {Leases: 7},
		{Leases: 4000000, Waiters: 7}: {Leases: 4000000, Waiters: 7},
	} {
		if got := firstCaps(settings); got != want {
			t.Errorf("of %+v, %+v is proposed", settings, got)
		}
	}
}
