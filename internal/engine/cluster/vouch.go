package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine/peer"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// A server that is behind in the log does not know members that were added since, and one of
// them may lead. It cannot take their word for it: any server with a certificate of the
// authority could claim as much. So it asks the members that it knows.

const (
	vouchWithin  = 5 * time.Second
	vouchEvery   = time.Second
	maxStrangers = 16 // that are asked about at a time

	maxComplaints = 100
)

// strangers are servers that this one does not find in its log.
type strangers struct {
	mu      sync.Mutex
	asked   map[uint64]bool          // those that others are being asked about
	vouched map[uint64]peer.Identity // those that a member knows
	said    map[uint64]bool          // those of whom the log says that nobody knows them
}

// knows reports whether a server is a member, or about to leave.
func knows(r *replica.Roster, who peer.Identity) bool {
	m, ok := r.Peer(who.ID)
	return ok && (m.Name == "" || m.Name == who.Name) && (m.Dir == "" || m.Dir == who.Dir)
}

// isMember reports whether a server belongs to the cluster, as far as is known here. If that is
// not known, it is found out in the background, and the stranger tries again.
func (n *network) isMember(roster *replica.Roster, from peer.Identity) bool {
	if _, known := roster.Peer(from.ID); known {
		return true
	}
	if _, ok := roster.Member(n.mesh.Self().ID); !ok {
		// This one has not even come to its own place in the log. It knows whom it joined, or nobody.
		if roster = n.joinedTo(); roster == nil || knows(roster, from) {
			return true
		}
	}
	s := &n.strangers
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.vouched[from.ID]; ok && v.Name == from.Name && v.Dir == from.Dir {
		return true
	}
	if !s.asked[from.ID] && len(s.asked) < maxStrangers {
		if s.asked == nil {
			s.asked, s.vouched, s.said = map[uint64]bool{}, map[uint64]peer.Identity{}, map[uint64]bool{}
		}
		s.asked[from.ID] = true
		n.workers.Go(func() { n.askAbout(roster, from) })
	}
	return false
}

// askAbout asks the known members whether another server belongs to the cluster.
func (n *network) askAbout(roster *replica.Roster, who peer.Identity) {
	vouched := n.vouchedFor(roster, who)
	if !vouched {
		n.complain(roster, who)
		n.sleep(vouchEvery)
	}
	n.strangers.mu.Lock()
	defer n.strangers.mu.Unlock()
	delete(n.strangers.asked, who.ID)
	if vouched {
		n.strangers.vouched[who.ID] = who
	}
}

// complain logs once about a stranger that nobody knows it. What is remembered is bounded,
// since strangers choose their own ids.
func (n *network) complain(roster *replica.Roster, who peer.Identity) {
	n.strangers.mu.Lock()
	said := n.strangers.said[who.ID] || len(n.strangers.said) >= maxComplaints
	if !said {
		n.strangers.said[who.ID] = true
	}
	n.strangers.mu.Unlock()
	if !said && n.ctx.Err() == nil {
		n.log.Warn("an unknown server wants to take part: no reachable member knows it", "server", who.Name, "id",
			who.ID, "asked", names(roster.Members))
	}
}

// vouchedFor asks all members at once, and takes the word of the first that knows the server.
func (n *network) vouchedFor(roster *replica.Roster, who peer.Identity) bool {
	ctx, cancel := context.WithTimeout(n.ctx, vouchWithin)
	defer cancel()
	answers := make(chan bool, len(roster.Members))
	for _, m := range roster.Members {
		go func() { answers <- m.ID != n.mesh.Self().ID && n.vouches(ctx, m.ID, who) }()
	}
	return slices.ContainsFunc(roster.Members, func(replica.Member) bool { return <-answers })
}

// vouches asks one member. A version that does not know the question would have let the
// stranger in, so its error counts as yes.
func (n *network) vouches(ctx context.Context, member uint64, who peer.Identity) bool {
	yes, err := askServer[peer.Identity, bool](ctx, n, member, askMember, who)
	return yes || errors.Is(err, leasehold.ErrInvalid)
}
