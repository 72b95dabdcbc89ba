//go:build !linux

package store

// SystemClock returns the clock of this machine.
func SystemClock() Clock { return newGoClock() }
