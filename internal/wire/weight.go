package wire

import "encoding/binary"

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
		switch kind {
		case kindOrigin, kindAsker:
			b = b[n+m+int(size):]
			continue
		case kindRenew, kindRenewSession, kindRenewNote:
			return renewWeight
		case kindTxn, kindTxnVersions, kindTxnForeign, kindTxnNested:
			return commandWeight + min(int(size)/bytesPerUnit, maxTxnWeight)
		}
		break
	}
	return commandWeight
}

// What commands weigh. How many operations a transaction has is guessed from its size.
const (
	renewWeight   = 2
	commandWeight = 8
	bytesPerUnit  = 8
	maxTxnWeight  = 1024
)
