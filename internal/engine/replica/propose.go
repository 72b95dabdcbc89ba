package replica

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// An entry carries what arrived while the entry before it was written, up to these limits. All
// of an entry is applied in one go, so they also bound how long one entry can hold the state.
const (
	maxBatchCommands = 4096
	maxBatchBytes    = 1 << 20
	maxBatchWork     = 3072 // as wire.Weight estimates it: below what the core does for one entry
)

// A batch is the commands of one entry, until their answers are known.
type batch struct {
	header wire.Header
	calls  []Call
	data   []byte // of the entry
}

// entry returns the contents of the batch's entry, and decodes only the commands that it has as bytes alone.
func (b *batch) entry(known *wire.Askers) (*wire.Entry, error) {
	e := &wire.Entry{Term: b.header.Term, Stamp: b.header.Stamp, Wall: b.header.Wall,
		Commands: make([]core.Command, 0, len(b.calls))}
	for i := range b.calls {
		c := &b.calls[i]
		if c.Command == nil {
			command, origin, asker, err := wire.DecodeCall(known, c.Bytes)
			if err != nil {
				return nil, err
			}
			e.Add(command, origin, asker)
			continue
		}
		// An asker that was met before is the same value, which remembers what it may do.
		asker, err := wire.AskerOf(known, c.Bytes)
		if err != nil {
			return nil, err
		}
		origin := leasehold.Origin{}
		if c.Origin != nil {
			origin = *c.Origin
		}
		e.Add(c.Command, origin, asker)
	}
	return e, nil
}

// done answers all callers of a batch with an error.
func (b *batch) done(err error) {
	for _, c := range b.calls {
		c.Answer(core.Answer{}, err)
	}
}

// pace puts a tick behind what is queued when time alone has something to change. Behind, so
// that nobody who is in the queue waits for what the tick ends.
func (n *Node) pace() {
	if n.ticking || !n.lead.serving || n.lead.dropped {
		return
	}
	if engine.TickDue(n.state, n.now()) {
		n.ticking = true
		n.inbox = append(n.inbox, n.tick())
	}
}

var (
	tickBytes      = must(wire.AppendCommand(nil, &core.Tick{}))
	shortTickBytes = must(wire.AppendCommand(nil, &core.Tick{Short: true}))
)

// tick is a call that nobody waits for. It has an entry to itself: thousands of leases may end
// by it, and a renewal in the same entry would wait for them all.
func (n *Node) tick() Call { return n.tickOf(tickBytes) }

// Forget lets old history go, because room is short on the disk of a server. Only a leader can;
// what goes, the log decides.
func (n *Node) Forget() {
	if n.ticking || !n.lead.serving || n.lead.dropped || n.stopped || !n.state.Forgets(n.clock.Wall().UnixNano()) {
		return
	}
	n.ticking = true
	n.inbox = append(n.inbox, n.tickOf(shortTickBytes))
}

func (n *Node) tickOf(bytes []byte) Call {
	n.statistics.Ticks++
	return Call{Bytes: bytes, Done: func(core.Answer, error) { n.ticking = false }, alone: true}
}

// NextWake returns how long from now the node wants to be woken; false: it does not.
func (n *Node) NextWake() (time.Duration, bool) {
	at, ok := n.WakeAt()
	if !ok || at == 0 {
		return 0, ok
	}
	return time.Duration(max(0, at-n.now())), true
}

// WakeAt returns the cluster time at which the node wants to be woken, 0 for at once; false: it
// does not. There is no wake-up for a tick while one is under way, nor while raft takes no
// proposals.
func (n *Node) WakeAt() (core.Time, bool) {
	if n.readable() && n.failure == nil {
		return 0, true
	}
	if !n.lead.serving || n.lead.dropped || n.failure != nil {
		return 0, false
	}
	at, ok := engine.NextLook(n.state)
	if n.ticking {
		at, ok = 0, false
	}
	// While a write is under way nothing is sealed, and its end is a step of its own.
	if until := n.lingersUntil; until != 0 && len(n.inbox) > 0 && !n.writing && (!ok || until < at) {
		at, ok = until, true
	}
	return max(at, 1), ok
}

// seal closes a batch and proposes it. It runs only when no write is in flight, so the batch is
// whatever arrived in the meantime: no timer is needed, but for what may linger, and the busier the
// node, the larger the batch.
func (n *Node) seal() {
	if !n.lead.serving || len(n.inbox) == 0 || n.unplaced != nil || n.lead.dropped || n.lingers() {
		return
	}
	n.lingersUntil = 0
	count := n.batchSize()
	if !n.propose(n.inbox[:count:count]) {
		return
	}
	n.inbox = n.inbox[count:]
	if len(n.inbox) == 0 {
		n.inbox = nil
	}
}

// batchSize returns how many calls of the inbox make the next entry.
func (n *Node) batchSize() int {
	size, work := 0, 0
	for i, c := range n.inbox {
		size, work = size+len(c.Bytes), work+wire.Weight(c.Bytes)
		switch {
		case i == 0 && c.alone:
			return 1
		case i > 0 && (c.alone || size > maxBatchBytes || work > maxBatchWork), i == maxBatchCommands:
			return i
		}
	}
	return len(n.inbox)
}

// propose stamps a batch and gives it to raft, and reports whether raft took it. The clock is
// read here, after the batch is closed: every command in it was sent before its stamp, so a
// holder that counts from when it sent gives up before the server does.
func (n *Node) propose(calls []Call) bool {
	n.lead.last = n.now()
	n.encoded = n.encoded[:0]
	for i := range calls {
		n.encoded = append(n.encoded, calls[i].Bytes)
	}
	header := wire.Header{Term: n.lead.term, Stamp: n.lead.last, Wall: n.clock.Wall().UnixNano()}
	data, err := wire.AppendEncoded(nil, header, n.encoded)
	clear(n.encoded)
	if err != nil {
		n.fail(err)
		return false
	}
	if err := n.raft.Propose(data); err != nil {
		n.lead.dropped = true
		return false
	}
	n.noteReleased(calls)
	// Raft does not say where it puts a proposal. The next Ready shows it, see place.
	n.unplaced = &batch{header: header, calls: calls, data: data}
	return true
}

// place learns the index of the batch that was just proposed, and notes when entries arrived.
// Both are taken before the entries are written: an arrival counts from receipt, and a
// placement sent early only names a place, whatever comes to be there.
func (n *Node) place(entries []*raftpb.Entry) {
	n.placeChange(entries)
	if len(entries) == 0 {
		return
	}
	if n.lead.arrivals == nil {
		n.lead.arrivals = map[uint64]time.Duration{}
	}
	mono := n.clock.Monotonic()
	for _, e := range entries {
		n.lead.arrivals[e.GetIndex()] = mono
		if b := n.unplaced; b != nil && e.GetType() == raftpb.EntryNormal && len(e.GetData()) > 0 &&
			e.GetTerm() == b.header.Term {
			n.proposed[e.GetIndex()] = b
			n.unplaced = nil
			n.tellPlaces(b, e.GetIndex())
		}
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
