// Package door is the frame of all doors: what each of them gives, and what it gets.
//
// A door speaks one protocol. It gives a Kind, which is a line in the table of package node:
// a name, what can be set, and a function that opens it. What it opens is a Door: routes on
// the port that all share, a protocol there that is told by its first bytes, or a port of its
// own. It gets a Backend, which is all that it may use: the engine, large values, the cluster,
// the journal, who is asking, waiting and its limits, draining, log and metrics. It never sees
// an engine's type, a listener, or another door.
//
// The other files have what every door needs and none should write again: decide.go runs
// steps that read, decide and write until one decides; query.go reads queries; pace.go reads
// and writes bodies at a pace; limit.go counts what there may be many of; errors.go has the
// errors that HTTP has a status of its own for.
//
// Package doortest is the contract of a door.
package door
