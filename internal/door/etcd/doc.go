// Package etcd is the door of clients of etcd v3: gRPC, on the port that all doors share and on one of its own, and the
// same calls as JSON below /v3/.
//
// One keyspace of etcd is one namespace of ours. A key is a record, a lease is a session, and a key P/LEASE that is
// attached to that very lease, which is how etcd's clients write a lock or a candidate, is also a claim on the
// resource P: see lock.go. The order of the create revisions below P/ is the queue.
//
// A call goes through the files in one direction: serve.go takes it from the wire, gateway.go from JSON; call.go finds
// out who asks and accounts for it; operations.go lists all that can be asked; lease.go, range.go, write.go, txn.go,
// watch.go, lock.go and election.go translate it, by translate.go, and let the engine decide; errors.go says what went
// wrong in the words that clients know.
//
// What etcd has and this door has not is refused, with a sentence that says what to do instead.
package etcd
