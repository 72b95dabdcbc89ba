package leasehold

import "time"

// A Select says which units of a pool are asked for. The zero Select asks for any, all on one host.
type Select struct {
	Where  string   // conditions that each unit meets, such as model=H100, memory>=40; empty: none
	Spread bool     // the units may be on several hosts
	Units  []string // exactly these; the others are then empty
}

// A UnitLimit bounds how many units of a pool somebody may have at the same time.
type UnitLimit struct {
	By   LimitBy
	Name string // of the label, or the prefix
	Most int
}

// LimitBy says whose units a limit counts together.
type LimitBy uint8

// The ways to count. Wire formats number them: add at the end only.
const (
	EachHolder LimitBy = iota // those of each holder by itself
	EachValue                 // those of all holders that have the same value of a label
	EachPrefix                // those of all holders whose name begins with a prefix
)

// A PoolUnit is a unit of a pool as it is shown.
type PoolUnit struct {
	Name    string
	Host    string
	Labels  Labels
	Lease   string    // the id of the lease that has it; empty: nobody has
	Holder  string    // who has it, or had it last
	Since   time.Time // that lease began
	Until   time.Time // when it ends by time; zero: it does not
	Reason  string    // of that lease
	Freed   time.Time
	Rests   bool   // after an unclean end
	Unfit   string // why its host says that it is not to be granted
	Drained string // why an operator does
	Removed bool   // its host has it no longer
	Use     *UnitUse
}

// A UnitUse is how a unit is used, as its host said last.
type UnitUse struct {
	At        time.Time
	Percent   int // -1: not known
	Memory    int // that is taken, in MiB
	Strangers []UnitProcess
	Busy      time.Duration // that the lease used it, and did not, as far as that was reported
	Idle      time.Duration
	IdleSince time.Time // since when all reports say that the lease does not use it; zero: it does, or nobody knows
	Asked     time.Time // when its holder was asked about that
}

// A UnitProcess is a process that uses a unit without a lease.
type UnitProcess struct {
	PID  int
	User string
	Name string
}

// A PoolStatus shows units of a pool, and who waits for which.
type PoolStatus struct {
	Namespace string
	Resource  string
	Total     int // units, without those that were removed
	Free      int // that could be granted now
	Held      int
	Out       int // that nobody has and that are not to be granted: drained, unfit, at rest or taken without a lease
	Units     []PoolUnit
	Next      string // where the next page begins; empty: this was the last
	Hosts     int    // in a list of pools
	Waiting   int
	Queue     []PoolWaiter // the first of them
	Limits    []UnitLimit

	Idle, IdleRelease time.Duration // as in the definition
}

// A PoolWaiter is somebody who waits for units.
type PoolWaiter struct {
	Waiter
	Select Select
	Why    string // it has to wait
}

// LabelPID is the label with which a lease adopts processes that were there before it: their process ids, separated
// by commas.
const LabelPID = "pid"
