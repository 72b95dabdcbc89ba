// Package etcd keeps leases in etcd. A program that imports it can give the client an address such
// as etcd://host1:2379,host2:2379/prefix.
//
// # What is promised
//
// Every decision is one transaction of etcd, so it survives what etcd's own data survives, and a
// failover loses nothing. Time is judged by etcd's leader: a lease ends when its TTL has passed since
// its last renewal, usually within half a second. After a failover or a restart of etcd it starts
// again with its full TTL. Waiters are granted in the order of their arrival. The token of a grant is
// the revision of its transaction: it grows with each grant in the whole cluster, but not over
// the restore of an older snapshot, unless that was bumped (etcdutl snapshot restore
// --bump-revision --mark-compacted). A client that has seen a larger token notices, and is refused.
//
// # What is written
//
// Below PREFIX/NAMESPACE/ there are four kinds of keys; docs/stores/etcd.md shows them.
//
//	l/RESOURCE##h     the lease; its value is the id, its create revision the token
//	l/RESOURCE##w/ID  a waiter, with a note of who it is; the smallest create revision is next
//	e/RESOURCE        a note of who holds the resource, or held it last
//	m/ID              a mark: the id was used, and how its lease ended
//
// Each lease and each waiter is bound to an etcd lease of its own. After a release that is used for the
// next one, because ending an etcd lease is expensive. A grant is made only if its id has no mark, and
// writes the mark in the same transaction. So a message that arrives late, or twice, changes nothing.
// Marks and notes are bound to etcd leases that many of them share, and outlive the lease by ten
// minutes or more.
package etcd
