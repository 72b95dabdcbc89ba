package cli

import "github.com/leasehold/leasehold"

// AlarmKinds returns the names of the kinds of alarms, for completion.
func AlarmKinds() (names []string) {
	for _, kind := range leasehold.AlarmKinds {
		names = append(names, kind.String())
	}
	return names
}
