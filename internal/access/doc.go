// Package access stands between the doors and the engine, and is an engine itself: a Guard. By the policy in the state
// (package core/access) it lets somebody see only what it may see. What somebody may do is decided where commands are
// applied; the Guard only sees to it that somebody asks.
//
//   - view.go, view_list.go and view_records.go filter what is read: every method of core.View has its rule there, and
//     one that is new does not compile without.
//   - watch.go filters events and ends the watches and waits of those who lost their right.
//   - journal.go, values.go and cluster.go have what an engine is beside: the journal, large values, the servers.
//   - rate.go counts requests and watches against quotas.
//
// What somebody may not read does not exist for it: an id that it may not see is answered as one that nobody knows. A
// read that names a path is denied, whether something is there or not, so that nobody takes "hidden" for "free".
//
// Without a policy everything passes as it is.
package access
