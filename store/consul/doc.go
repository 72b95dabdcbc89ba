// Package consul keeps leases in the key/value store of Consul. A program that imports it can give the
// client an address such as consul://127.0.0.1:8500/prefix.
//
// # What is promised
//
// Every decision is one transaction of Consul, so a failover loses nothing. A lease is a key that is
// locked by a Consul session of its own. Consul ends a session twice its TTL after the last renewal,
// never earlier; a failover or restart of Consul starts that time again. The token of a grant is the
// index of its transaction: it grows with each grant in the datacenter, also over the restore of a
// snapshot in place, but not in a new cluster. A client that has seen a larger token notices, and is refused.
// There is no queue: those who wait are woken at the same moment, and any of them gets the lease.
//
// # What is written
//
// Below PREFIX/NAMESPACE/ there are three kinds of keys; docs/stores/consul.md shows them.
//
//	l/RESOURCE  the lease: a JSON note of who holds it and why, locked by the lease's session
//	e/RESOURCE  who held the resource last
//	m/ID        a mark: the id was used, and how its lease ended
//
// A grant is made only if its id has no mark, and creates the mark in the same transaction. So a message
// that arrives late, or twice, changes nothing. The key of a lease is written once, unless a renewal that is
// late, or by another process, gives it another session. Marks are locked by sessions that many of them
// share, which delete them ten minutes or more after the lease has ended.
package consul
