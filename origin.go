package leasehold

import "time"

// A Hold is one holder's time with a resource, once it is over.
type Hold struct {
	ID     string
	Holder string
	Token  Token
	Since  time.Time
	Until  time.Time
	Waited time.Duration // in the queue, before the grant

	// Busy and Idle are how long units of a pool were used and were not, summed over the units, as far as their hosts
	// said so. What nobody reported is in neither of them.
	Busy, Idle time.Duration
}

// An Owner is whose a lease, a session or a record is: the principal that acquired it, and the group
// through whose rights it could. A nil Owner is that of what nobody proven acquired.
type Owner struct {
	Principal string
	Group     string
}

// An Origin is where a request came from. It decides nothing; the journal keeps it.
type Origin struct {
	Actor   string // who sent it, if that was proven; empty: nobody asked
	Address string // of the client's end of the connection
	Door    string // the door that it came through
}

// A Share is what a hold had of a pool, and for whom. Only the journal keeps it.
type Share struct {
	Units  int
	Labels Labels      // of the lease
	Hosts  []HostUnits // by name; what is beyond MaxShareHosts is left out
}

// HostUnits is how many of its units a hold had on one host.
type HostUnits struct {
	Host  string
	Units int
}

// MaxShareHosts is how many hosts of one hold the journal names.
const MaxShareHosts = 64
