// Package store is the contract between the client and the system that keeps its leases: a
// Leasehold server, Redis, PostgreSQL, or any other. Package client runs on every [Store] with
// the same code, so a store decides who holds what and until when, and nothing else. It does not
// renew by itself, start goroutines for a lease, or tell a holder that it lost.
//
// # What a store promises
//
//   - One holder. A resource is granted only if nobody holds it, judged at the store by one
//     atomic step. What a store cannot do atomically it refuses.
//   - Time. A lease ends when its TTL has passed since its last renewal: never earlier, and by
//     itself. A holder counts from before it sent its request, so a store counts from any later
//     moment: when it received the request, never from a time that the client sends.
//   - Once. The caller makes the id of a lease. Acquire with the same id again answers with the
//     same lease: a lost answer is found, not granted twice. An id that was released or has
//     ended is never granted again, not even to a request that was sent before the release and
//     arrives after it. Renew, Release and Break name the id, so they never touch the lease of
//     somebody else.
//   - Tokens. Each grant has a larger token than every grant before it on that resource (or in
//     the namespace: see [Features]), also after the resource was deleted. Tokens stay below 2^53.
//   - Plain failure. An error that is Unavailable means that nothing happened; Undecided, or any
//     error that is not a *leasehold.Error, that it may have. Every other code is a decision.
//
// # What the client does
//
// It repeats what may be repeated, renews in time, computes deadlines, and ends holds before the
// store could grant the resource to anybody else. It never reads the clock of a store.
//
// # How to write one
//
// Implement the methods of [Store]. Where the system offers more, implement further interfaces
// ([Sessions], [Watcher], [Records], …) and list them in [Features.Powers]. Then run package
// storetest on it: it tests each verb in each state, lost, late and repeated messages, pauses and
// contenders. [Await] is the waiting of a store that has to poll, and [Register] gives it a URL
// scheme.
package store
