package leasehold

import "time"

// Limits of one request and of one object. They are the same on every server of a
// cluster, since the core decides by them.
const (
	MaxName   = 1024 // bytes of a namespace, path, id, holder or reason
	MaxLabels = 4096 // bytes of all labels together

	MinTTL = 100 * time.Millisecond
	MaxTTL = 30 * 24 * time.Hour

	MaxWait  = 24 * time.Hour
	MaxGrace = 24 * time.Hour
	MaxHold  = 365 * 24 * time.Hour // the largest limit on a hold; a lease without TTL needs none

	MaxClaimsPerSession = 16384  // leases, waiters and records bound to one session
	MaxQueue            = 100000 // waiters on one resource
	MaxPriority         = 1000   // of a waiter; the least is -MaxPriority
	MaxNamespaces       = 4096   // also the largest cap on namespaces
	MaxCapacity         = 65536  // slots of one resource
	MaxUnits            = 1024   // slots of one resource that have names
	MaxUnitNames        = 32768  // bytes of all these names
	MaxTogether         = 64     // resources acquired at once
	MaxDefinitions      = 10000  // of all namespaces together
	MaxBatch            = 1024   // commands in one request

	MaxAddress = 256 // bytes of the address that a request came from
	MaxDoor    = 32  // bytes of the name of a door
	MaxForeign = 256 // bytes of the id that a foreign protocol gave a lease
	MaxNote    = 256 // bytes of the note with a renewal
)

// Limits of records.
const (
	MaxValue       = 64 << 10  // bytes of one value
	MaxRecords     = 4000000   // of all namespaces together
	MaxRecordBytes = 1 << 30   // of all their paths and values
	MaxPage        = 1000      // records in one answer
	MaxPageBytes   = 1 << 20   // of their paths and values, unless a single one has more
	MaxOps         = 128       // comparisons in a transaction, and operations in each of its branches
	MaxTxn         = 768 << 10 // bytes of all names and values in it
)

// Limits of what one request does, so that no other waits long for it.
const (
	MaxDeletedAtOnce = 10240    // records that it deletes
	MaxReadAtOnce    = 32768    // records that all gets of a transaction may show together
	MaxReadBytes     = 16 << 20 // bytes of their names and values
	MaxDroppedAtOnce = 2048     // former versions that a transaction drops
	MaxSearched      = 8192     // records among which it looks for some, compares all, or that it puts in order
	MaxUnlinked      = 512      // linked records that it deletes, each of which ends a lease or a wait
	MaxMirrored      = 1024     // leases and waiters that become records when a command mirrors their resources
	MaxMirror        = 960      // bytes of the prefix of mirrored records
)

// Limits of large values and of former versions.
const (
	MaxLarge    = 256 << 20           // bytes of one large value
	MaxKeep     = 1000                // former versions that one record keeps
	MaxVersions = 1000000             // former versions of all records, and records that keep some
	KeepDeleted = 30 * 24 * time.Hour // how long the versions of a deleted record are kept

	// KeepNone makes a record keep no former versions.
	KeepNone = -1
)

// DefaultTTL is the TTL of a lease whose request named none; ShortTTL is where
// a warning is due: below it an ordinary pause can cost the lease.
const (
	DefaultTTL = 30 * time.Second
	ShortTTL   = 5 * time.Second
)

// Caps are how much there may be in a cluster, or is, in all namespaces together.
type Caps struct {
	Leases     int
	Sessions   int // opened by clients
	Waiters    int
	Namespaces int
}

// MaxCap is the largest cap on leases, sessions or waiters.
const MaxCap = 100000000

// DefaultCaps returns the caps of a cluster where none were set. They are the same on every
// server, since the core decides by them.
func DefaultCaps() Caps {
	return Caps{Leases: 4000000, Sessions: 1000000, Waiters: 1000000, Namespaces: MaxNamespaces}
}

// Or returns the caps, with those of other where c has 0.
func (c Caps) Or(other Caps) Caps {
	for _, cap := range []struct {
		mine  *int
		other int
	}{
		{&c.Leases, other.Leases}, {&c.Sessions, other.Sessions},
		{&c.Waiters, other.Waiters}, {&c.Namespaces, other.Namespaces},
	} {
		if *cap.mine == 0 {
			*cap.mine = cap.other
		}
	}
	return c
}

// Limits of pools.
const (
	MaxPoolUnits  = 10000   // units of one pool, on all its hosts
	MaxHostUnits  = 1024    // units of one pool that one host has
	MaxPoolNames  = 1 << 20 // bytes of the names of all units of one pool, and of those that one request may get
	MaxPoolsUnits = 65536   // units, and once more for each condition, of the pools of a request that asks for several
	MaxUnitLabels = 1024    // bytes of the labels of one unit
	MaxSelector   = 1024    // bytes of the text that selects units
	MaxUnitLimits = 16      // limits on how many units one holder or group may have

	MaxUnitProcesses = 16   // processes that one report names of a unit
	MaxHostProcesses = 1024 // and of all units of a host
	MaxProcessText   = 64   // bytes of a process's name, and of its user's
)

// MaxAreaNames is how many names of one area may be held, waited for or at rest at once.
const MaxAreaNames = 1024

// Limits of tasks.
const (
	MaxTasks        = 1000000 // of all namespaces together
	MaxFolderTasks  = 100000  // that are claimed from one folder
	MaxResult       = 4096    // bytes of what a task came to
	MaxAttempts     = 1000    // to do one task
	DefaultAttempts = 3       // of a task for which nobody said how many
)
