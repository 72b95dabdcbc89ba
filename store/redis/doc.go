// Package redis keeps leases in Redis 7.0 or later: one server, a primary with replicas under
// Sentinel, or a Cluster. Import it for the URL schemes redis, rediss, redis+sentinel and
// redis+cluster, or call [Open].
//
// Each verb is one script, so it is one atomic step on the primary. Replicas are never asked.
//
// # Time
//
// A lease ends when the clock of the primary reaches its deadline, which is a field that the
// scripts compare. The expiry of the keys only cleans up, ten minutes later. Redis judges by a wall
// clock: if somebody sets it forward, leases end early. Nobody can prevent that, but the store
// notices and logs it.
//
// # What it may forget
//
// A failover loses what the promoted replica had not received, and a restart without the append-only
// file loses everything since the last save. The store then must not grant what somebody may still
// hold. It keeps the identity of the server (run_id) beside the last token of the namespace. If that
// differs, or is missing, it grants nothing for [Config.MaxTTL]; renewals go on. First use looks the
// same as lost memory, and [Config.Init] skips the wait then. [Config.Strict] loses nothing that was
// confirmed.
//
// # What is written where
//
// All keys of a namespace have one hash tag, its escaped name, so that in a Cluster they share a
// slot and a script may touch them together:
//
//	leasehold:{NAMESPACE}:record          hash: last token, run_id, until when nothing is granted
//	leasehold:{NAMESPACE}:lease:RESOURCE  hash: the newest lease
//	leasehold:{NAMESPACE}:id:ID           string: that an id was used, and how it ended
//	leasehold:{NAMESPACE}:queue:RESOURCE  sorted set: waiters by arrival
//	leasehold:{NAMESPACE}:alive:RESOURCE  sorted set: waiters by their deadline
//	leasehold:{NAMESPACE}:notes:RESOURCE  hash: who waits
//	leasehold:{NAMESPACE}:index           sorted set: resources that are held or waited for
//	leasehold:{NAMESPACE}:wake            channel: the id of a waiter that should ask again
//
// Only the record and the index have no expiry.
package redis
