// Package zookeeper keeps leases in ZooKeeper. A program that imports it can give the client an address
// such as zookeeper://host1:2181,host2:2181/prefix.
//
// # What is promised
//
// A lease is an ephemeral sequential node, and the oldest one of a resource holds it; the others wait, in
// the order of their arrival. Its token is the zxid of its creation, which grows with every change in
// the whole ensemble, also over deletes, crashes and failovers, but not over the restore of an older
// copy. A client that has seen a larger token notices, and is refused.
//
// Time is judged by ZooKeeper's leader, which ends a session that it has not heard of for the TTL. There
// is one session for each TTL that a program uses, and a new one now and then. What a holder may rely
// on is less than the TTL after a renewal: see evidence.go. With the client's renewals at a third of
// the TTL it is about two thirds. A lease that is not renewed while its program runs on is deleted by
// the program itself; one whose program has died, by ZooKeeper.
//
// A lease belongs to the session of the process that acquired it. Others can break and release it, and
// only that process can renew it.
//
// # What is written
//
//	PREFIX/NAMESPACE/l/RESOURCE/ID#SEQUENCE  a lease or a waiter, with a note of who it is
//	PREFIX/NAMESPACE/m/SHARD/ID              a mark: the id was broken or withdrawn, and cannot be used
//
// RESOURCE is a container, which ZooKeeper deletes when it is empty. Marks are cleaned after 15 minutes,
// whenever others are written.
package zookeeper
