//go:build !linux && !darwin

package store

// SystemClock returns the clock of this machine.
func SystemClock() Clock { return newGoClock() }
