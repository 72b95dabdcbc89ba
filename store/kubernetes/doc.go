// Package kubernetes keeps leases in the Lease objects of Kubernetes (coordination.k8s.io/v1). A
// program that imports it can give the client an address such as kubernetes:///my-namespace, and needs
// nothing but an API server and a role.
//
// # What is promised
//
// Every decision is one PUT of a whole Lease, conditioned on its uid and resourceVersion, so it survives
// what Kubernetes' own data survives. The API server does not judge time, so everybody who wants a Lease
// does: it has ended when this process has watched it for one TTL, on its own clock, without a renewal.
// Timestamps are never compared. A process that starts while a dead holder's Lease is there waits for a
// whole TTL. Waiters are not granted in any order.
//
// The token of a grant is the resourceVersion that its PUT was conditioned on, or one more than the token
// before it, whichever is larger. It grows with each grant on the resource, also after the Lease was
// deleted, but not over a restore of an older copy of etcd.
//
// # Beside leader election
//
// A name that Kubernetes allows is the name of its Lease, so a Lease can be shared with an elector of
// client-go: one holds it, or the other. Electors see renewals by whole seconds, so the duration in the
// Lease is one second longer than the TTL that its holder counts on.
//
// # What is written
//
// A Lease has the fields that an elector writes, a label with the namespace of Leasehold, and annotations:
//
//	leasehold/resource  the name of the resource
//	leasehold/token     the last token
//	leasehold/lease     who holds the resource or held it last, in JSON
//	leasehold/marks     ids that must not be granted again, for ten minutes or more
//	leasehold/broken    who broke which lease and why, as long
//
// A release adds a mark, and so changes the version: a PUT that was sent before it fails. Leases are
// never deleted. docs/stores/kubernetes.md has the role that is needed.
package kubernetes
