//go:build race

package kernel_test

// The race detector slows everything down tenfold, and the core has no goroutines for
// it to watch.
const defaultSeeds = 30
