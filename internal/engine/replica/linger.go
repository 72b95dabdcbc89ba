package replica

import (
	"time"

	"github.com/leasehold/leasehold/internal/core"
)

// Where leases change hands all the time, acquires that have to wait anyway linger for a moment: nobody needs to hear
// at once that they have a place in the queue, and the release that ends their wait would wait for their write. With
// it they share one.
const (
	lingerFor  = core.Time(time.Millisecond)
	lingering  = 64            // calls at most
	lingerNear = 2 * lingerFor // after a release at most: another may be about to come
)

// lingers reports whether all that is in the inbox may linger. It is asked again whenever something has changed: what
// can be granted by now does not linger on.
func (n *Node) lingers() bool {
	if n.released == 0 || len(n.inbox) > lingering || n.stopped {
		return false
	}
	for i := range n.inbox {
		c, ok := n.inbox[i].Command.(*core.Acquire)
		if !ok || c.Wait == 0 || !n.state.Leased(c.Namespace, c.Resource) {
			return false
		}
	}
	now := n.now()
	if now > n.released+lingerNear {
		return false
	}
	if n.lingersUntil == 0 {
		n.lingersUntil = now + lingerFor
	}
	return now < n.lingersUntil
}

// noteReleased remembers when leases were given back last.
func (n *Node) noteReleased(calls []Call) {
	for i := range calls {
		if _, ok := calls[i].Command.(*core.Release); ok {
			n.released = n.lead.last
			return
		}
	}
}
