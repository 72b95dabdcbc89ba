// Package doortest is the contract of a door: what every one of them keeps, whatever it
// speaks. A door runs it with an Adapter, which is a client of its protocol and a few words
// about it:
//
//	func TestContract(t *testing.T) { doortest.Run(t, adapter) }
//
// Each check has a server of its own, in a bubble of virtual time: an engine in memory that
// can be broken, a backend, the door, a port, and connections in memory. At the end of each the
// server drains, nothing may still wait or watch, and no goroutine may be left.
//
// What is not in it, a door does not promise.
package doortest
