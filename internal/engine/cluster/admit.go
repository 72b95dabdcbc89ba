package cluster

import (
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/peer"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// Admit decides whether a server may talk to this one. The order matters: which cluster, then
// who, then which version, so that the reason given is the one that the operator has to act on.
func (n *network) Admit(from peer.Identity, question bool) *peer.Refusal {
	self, roster := n.mesh.Self(), n.current()
	switch {
	case from.ID == 0 && question:
		return nil // it has no cluster yet, and may ask for one
	case self.Cluster == "" && question && from.Cluster != "":
		return nil // it has one, and may ask whether this server begins it too
	case self.Cluster == "":
		return &peer.Refusal{Reason: peer.NotReady, Message: fmt.Sprintf("server %q has no cluster yet", self.Name)}
	case from.Cluster != self.Cluster:
		return &peer.Refusal{Reason: peer.OtherCluster, Message: fmt.Sprintf(
			"server %q belongs to cluster %s, not to %s", self.Name, self.Cluster, from.Cluster)}
	case from.ID == self.ID:
		return &peer.Refusal{Reason: peer.Replaced,
			Message: fmt.Sprintf("server %q has the id %d, too", self.Name, self.ID)}
	}
	if refused := admitMember(roster, from); refused != nil {
		return refused
	}
	if !n.isMember(roster, from) {
		return &peer.Refusal{Reason: peer.NotReady, Message: fmt.Sprintf(
			"server %q does not know yet that server %s belongs to the cluster", self.Name, from)}
	}
	if known := levelsOf(from); !known.Has(roster.Active()) {
		return &peer.Refusal{Reason: peer.WrongLevel, Message: fmt.Sprintf(
			"server %q knows %v, and the cluster is at level %d: start it with another version", from.Name, known,
			roster.Active())}
	}
	if !question {
		n.learn(from)
	}
	return nil
}

// levelsOf returns the levels that a server says it knows; none if it says nothing.
func levelsOf(from peer.Identity) replica.Levels {
	return replica.Levels{Oldest: core.Level(from.OldestLevel), Newest: core.Level(from.NewestLevel)}
}

// admitMember returns why a roster speaks against a server; nil: it does not.
func admitMember(roster *replica.Roster, from peer.Identity) *peer.Refusal {
	if err := roster.Admit(from.ID, from.Dir); err != nil {
		reason := peer.Replaced
		if _, member := roster.Peer(from.ID); !member {
			reason = peer.Removed
		}
		return &peer.Refusal{Reason: reason, Message: err.Error()}
	}
	if m, ok := roster.Peer(from.ID); ok && m.Name != "" && m.Name != from.Name {
		return &peer.Refusal{Reason: peer.WrongName,
			Message: fmt.Sprintf("server %d is called %q, not %q", m.ID, m.Name, from.Name)}
	}
	return nil
}

// Refused hears that another server refuses this one. Some reasons are final: then this server
// stops, rather than try for ever. Only its own cluster is believed.
func (n *network) Refused(r *peer.Refusal) {
	if self := n.mesh.Self(); !r.Final() || self.Cluster == "" || r.By.Cluster != self.Cluster {
		return
	}
	n.post(replica.Expelled{Err: &leasehold.Error{Code: leasehold.Refused, Message: r.Message}})
}
