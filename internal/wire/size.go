package wire

import (
	"encoding/binary"

	"github.com/leasehold/leasehold"
)

// What the core accepts must be written in snapshots, or servers stop when they write the next one. How long a record
// may be therefore follows from the limits of the core, here and nowhere else. The longest is the outcome of a
// transaction that got a lease by each of its operations, and by its acquire as many as one can get.

const (
	maxNumber = binary.MaxVarintLen64 + 1 // with its tag
	maxText   = leasehold.MaxName + 3     // with its tag and length

	// A label has a byte of key at least, and two lengths.
	maxLabels = 3*leasehold.MaxLabels + maxNumber

	// A name has a byte at least, and its length takes no more than it does.
	maxNames     = 2*leasehold.MaxUnitNames + maxNumber
	maxPoolNames = 2*leasehold.MaxPoolNames + maxNumber

	maxEnding = 4*maxText + leasehold.MaxForeign + 8*maxNumber
	maxLease  = 6*maxText + maxLabels + leasehold.MaxForeign + leasehold.MaxDoor + leasehold.MaxNote + 20*maxNumber +
		maxEnding + maxNames
	maxResult = maxLease + 4*maxText + 8*maxNumber // of an operation: what it got, and the record without its value

	// maxRest is more than what else an outcome has: its keys, or a session with the ids of those of its leases that
	// others ended, or a definition, or an error with a cycle of waits in words.
	maxRest = 1 << 20

	maxRecord = (leasehold.MaxOps+leasehold.MaxTogether)*maxResult + maxPoolNames + maxRest // bytes of a body
)
