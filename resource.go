package leasehold

import "time"

// A Status is the whole state of one resource.
type Status struct {
	Namespace   string
	Resource    string
	State       State
	Capacity    int // the number of slots; 1 unless a definition or a holder says otherwise
	Used        int // the number of slots that are held
	Units       []Unit
	Holding     int     // the number of holders
	Holders     []Lease // the first of them, by token
	Waiting     int
	Queue       []Waiter // the first ones, in order
	Last        *Ending
	AvailableAt time.Time // zero unless a grace runs and no slot is free before its end

	// Unacknowledged is an unclean end that has to be acknowledged before the next grant;
	// nil if there is none.
	Unacknowledged *Ending

	Usual *Usual // nil: nothing was learned yet

	// Overlapping are leases on other names of its area that overlap this one, in the order of
	// their names, at most ten. Only the status of a single resource shows them.
	Overlapping []Lease
}

// A Unit is a slot that has a name.
type Unit struct {
	Name   string
	Lease  string // the id of the lease that holds it; empty: none
	Holder string // who holds it, or held it last
	Rests  bool   // it is in its grace after an unclean end
}

// A Usual is what was learned from the last leases on a resource, and the last waits for it.
// Half of them took at most P50, nineteen of twenty at most P95. The last 64 of either count,
// and times are known within a sixteenth.
type Usual struct {
	Holds   int // ended leases
	HoldP50 time.Duration
	HoldP95 time.Duration
	Unclean int // how many of them ended uncleanly

	Waits   int // granted waits; grants without a wait do not count
	WaitP50 time.Duration
	WaitP95 time.Duration
	Queue   int // how many usually wait when one of them is granted, itself included
}

// A LearnedKind is what was learned of one kind of leases on a resource. Only leases that were given back count, and
// newer ones count more.
type LearnedKind struct {
	Name       string
	TTL        time.Duration // that suits a lease that is renewed
	Unattended time.Duration // that suits one that is not
	Usual      *Usual        // nil: too little is known
}

// An Advice is a suggested TTL for a resource, from what was learned about it.
type Advice struct {
	Namespace string
	Resource  string
	TTL       time.Duration
	Learned   bool // false: too little is known, and TTL is the default

	Least    time.Duration // below it, pauses that were seen would have cost the lease
	Cheapest time.Duration // where renewals and time without a holder together cost least
	Most     time.Duration // above it, waiters wait too long for a holder that died

	Renewals int           // in one TTL
	Interval time.Duration // between two renewals
	TakeOver time.Duration // from a holder's death to the end of its lease, on average; TTL at worst
	Grace    time.Duration // after that, before the next grant
	Usual    *Usual        // nil: nothing was learned yet
	Reasons  []string      // the reasons, a sentence each
}
