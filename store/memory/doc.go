// Package memory is a store in the memory of this process. It is the core of the Leasehold server
// itself, and not an imitation: it decides exactly as a server of the newest level does, and has
// every power that a server has. What is missing is the server: nothing is durable, and nobody
// outside the process sees it.
//
// It is for tests, for programs on one machine, and for a first try:
//
//	s, err := memory.Open(memory.Config{})
//
// By URL, "memory:" is a store of its own, and "memory://jobs" is the store that everybody in this
// process gets who opens it by that name. Import the package for its side effect to use a URL:
//
//	import _ "github.com/leasehold/leasehold/store/memory"
//
// In a testing/synctest bubble it lives in the bubble's virtual time: hours take milliseconds, and
// time.Sleep ends a lease.
package memory
