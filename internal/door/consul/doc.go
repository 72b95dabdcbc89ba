// Package consul is the door of Consul's clients: its HTTP API below /v1/, on a port of its own, since our own API has
// other things at the same paths.
//
// A session of Consul is a session of ours, and a key is the record of the same path. ?acquire=SESSION puts the record
// together with a lease on the resource of that path, and the two end together: by ?release, by a DELETE, with the
// session, or when somebody breaks the lease through another door. An index is a revision of the namespace plus one;
// see translate.go.
//
// A request goes through the files in one direction: door.go reads it and finds out who asks, operations.go lists all
// that can be asked, session.go, read.go, write.go, lock.go and txn.go let the engine decide, block.go waits for
// changes, answer.go counts large answers, translate.go turns records and sessions into what clients know, and
// errors.go says what went wrong in Consul's words. agent.go answers what clients ask before they come to the point.
//
// What is kept of Consul, and what differs, is said in docs/doors/consul.md for users.
package consul
