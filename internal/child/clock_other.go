//go:build !linux && !darwin

package child

import "time"

// now: there is no such clock.
func now() time.Duration { return 0 }
