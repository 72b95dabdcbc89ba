package leasehold_test

import (
	"testing"

	"github.com/leasehold/leasehold"
)

// "Held by ann for another 29s" was read as a promise: people waited 29 seconds for a holder who
// had renewed long before.
func TestOutlook(t *testing.T) {
	for want, o := range map[string]leasehold.Outlook{
		"ends in 29s unless renewed":                         {Left: "29s"},
		"ends in 29s unless renewed; usually held for 4m":    {Left: "29s", Usual: "4m"},
		"ends in 29s at the latest":                          {Left: "29s", Final: true},
		"has no TTL, and ends when it is released or broken": {},
	} {
		if got := o.String(); got != want {
			t.Errorf("%+v is %q, want %q", o, got, want)
		}
	}
}
