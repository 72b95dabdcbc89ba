package command

import "time"

// Tick lets time alone change what is due at its stamp.
type Tick struct {
	Short bool // room is short on a server's disk: old history is forgotten
}

// Lead is the first entry of a leader: whose clock stamps from now on. Offset is
// cluster time less that node's monotonic clock, so that the same node can go on
// counting after a restart within one boot of its machine.
type Lead struct {
	Node   uint64
	Boot   string
	Offset time.Duration
}

func (*Tick) Validate() error { return nil }

func (c *Lead) Validate() error { return text("boot", c.Boot) }
