package cluster

import (
	"time"
)

// healths returns how the others are doing, by their recent reports.
func (n *network) healths() map[uint64]health {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[uint64]health{}
	for id, h := range n.health {
		if time.Since(h.at) <= healthFor {
			all[id] = h.health
		}
	}
	return all
}

// heardAgo returns how long ago the others last reported, in nanoseconds.
func (n *network) heardAgo() map[uint64]int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[uint64]int64{}
	for id, h := range n.health {
		all[id] = int64(time.Since(h.at))
	}
	return all
}

// diedFull reports whether the last thing heard from a server is that its disk is full.
func (n *network) diedFull(id uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.health[id].lowRoom
}

// isFull reports whether a server said recently that it has hardly any room.
func (n *network) isFull(id uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.health[id]
	return h.lowRoom && time.Since(h.at) <= healthFor
}

// anyFull reports whether any other server said recently that it has hardly any room.
func (n *network) anyFull() bool {
	for _, h := range n.healths() {
		if h.lowRoom {
			return true
		}
	}
	return false
}

// missing returns the names of the members to which there is no connection.
func (n *network) missing() (names []string) {
	peers := n.mesh.Peers()
	for _, m := range n.current().Members {
		if m.ID != n.mesh.Self().ID && !peers[m.ID].Connected {
			names = append(names, m.Name)
		}
	}
	return names
}

// tellHealth tells all others how this server is doing. It is urgent: behind a long queue of
// entries it would be out of date on arrival, and the server would look dead.
func (n *network) tellHealth(h health) {
	n.applied.Store(h.applied)
	body := appendHealth(nil, h)
	for id := range n.mesh.Peers() {
		n.mesh.SendUrgent(id, messageHealth, body)
	}
}
