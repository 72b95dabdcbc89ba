package replica

// A state that was read from a snapshot has to prove itself: what is in the file may differ from what the log makes,
// because a bit flipped or because whoever wrote it went wrong. So it is compared with those of the others at one place
// of the log before anybody gets an answer from it, however stale. Until then the node votes and writes as always. As
// raft's leader it proposes nothing but the comparison: whole clusters that start again have nobody else who could.

const (
	// proveTicks is how many ticks a leader waits before it asks for another comparison; each time twice as long, up
	// to proveTicksMost, as summing up a large state takes a while, and those that differ ask as well.
	proveTicks     = 20
	proveTicksMost = 100
	// unprovenTicks is how many ticks a state waits for the word of a majority, once the first comparison began.
	unprovenTicks = 300
)

// proof is what is known of the state that came from a snapshot.
type proof struct {
	open  bool   // it was not compared yet
	from  uint64 // index of the snapshot
	since uint64 // tick at which the first comparison began; 0: none did
	asked uint64 // tick at which this node asked for a comparison, as raft's leader; 0: it did not
	pause uint64 // ticks until it asks again
}

// Compared says what a comparison of the states at an index came to. It is settled if a majority has the state of this
// node, or if all have said theirs and nobody can tell which is right.
type Compared struct {
	Index   uint64
	Settled bool
}

func (Compared) event() {}

// Unproven reports whether the node answers nobody, because its state has to prove itself. The only one with a vote
// has nobody to be compared with.
func (n *Node) Unproven() bool {
	if !n.proof.open {
		return false
	}
	voters := n.members.GetVoters()
	return len(voters) != 1 || voters[0] != n.id
}

// beginProof notes that the state came from a snapshot.
func (n *Node) beginProof(index uint64) {
	n.proof = proof{open: n.config.Compare && index > 0, from: index}
}

// comparing notes that a comparison began. Until then nobody is known to be away: a server may have waited for the
// others, which are about to come.
func (n *Node) comparing() {
	if n.proof.since == 0 {
		n.proof.since = max(n.ticks, 1)
	}
}

// compared takes the result of a comparison. Without a majority nobody can tell who is right, and a cluster that
// refused to serve for it would be lost.
func (n *Node) compared(e Compared) {
	if !n.proof.open || e.Index <= n.proof.from || !e.Settled && n.ticks-n.proof.since < unprovenTicks {
		return
	}
	n.proof.open = false
	n.feed.PublishAll(n.state.View(0))
	n.leadAgain()
	n.handOn()
	n.serveReads()
}

// hasToProve reports whether it is this node's turn to ask for a comparison.
func (n *Node) hasToProve() bool {
	return n.Leads() && n.lead.ready && n.Unproven() && (n.proof.asked == 0 || n.ticks-n.proof.asked >= n.proof.pause)
}

// prove asks for a comparison.
func (n *Node) prove() {
	if n.proposeChange(Change{Kind: Sum, Member: Member{ID: n.id}}) {
		n.proof.asked, n.proof.pause = max(n.ticks, 1), min(max(2*n.proof.pause, proveTicks), proveTicksMost)
	}
}
