//go:build !linux

package doctor

import "time"

var started = time.Now()

// leaseClock is Go's own clock, which is what the Go client has here too.
func leaseClock() time.Duration { return time.Since(started) }

// readKernelClock knows nothing: only Linux tells.
func readKernelClock() kernelClock { return kernelClock{} }
