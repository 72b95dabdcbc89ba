package wire

import (
	"encoding/binary"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/command"
)

var kindTxn = uint64(command.VerbOf(new(core.Txn)).Number)

// Weight estimates how much work a command is, in the units in which the core counts it, by its
// kind and its size. It reads what AppendCommand, AppendOrigin or AppendAsker wrote and decodes nothing
// more, because a server asks this of every command that waits.
func Weight(b []byte) int {
	for len(b) > 0 {
		kind, n := binary.Uvarint(b)
		size, m := binary.Uvarint(b[max(0, n):])
		if n <= 0 || m <= 0 || size > uint64(len(b)-n-m) {
			break
		}
		if kind == kindOrigin || kind == kindAsker {
			b = b[n+m+int(size):]
			continue
		}
		switch row := verbOf(kind); {
		case row == nil:
		case row.Class == command.Keeps:
			return renewWeight
		case kind == kindTxn:
			n := int(size) / bytesPerUnit
			return commandWeight + min(n+min(n, leasehold.MaxOps), maxTxnWeight)
		}
		break
	}
	return commandWeight
}

// What commands weigh. How many operations a transaction has is guessed from its size: the shortest that changes
// something has about as many bytes as there are to a unit, and counts for two of those.
const (
	renewWeight   = 2
	commandWeight = 8
	bytesPerUnit  = 8
	maxTxnWeight  = 1024
)
