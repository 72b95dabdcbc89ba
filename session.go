package leasehold

import "time"

// A Session is a promise of liveness: what is bound to it ends with it, and one
// renewal renews all.
type Session struct {
	Namespace string
	ID        string
	TTL       time.Duration
	Labels    Labels
	Remaining time.Duration // as in Lease
	Opened    time.Time
	Expires   time.Time
	Claims    int // leases, waiters and records bound to it

	// Interventions counts what others did to its leases: how often they broke, ended or
	// changed one. If the number is unchanged, so are the leases.
	Interventions uint64
	// Intervened names the leases of the newest interventions, the newest last.
	Intervened []string
}
