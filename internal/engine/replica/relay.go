package replica

import (
	"errors"
	"maps"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// A node that does not lead passes its callers' commands on to the leader, once and without a
// stamp. The leader answers only with their place in the log; the node finds the results when
// it applies that place itself. So a caller that was answered finds what it did on the very
// node that it talks to.
//
// Every command that was passed on ends in one of three ways. Unavailable: certainly nothing
// happened. Undecided: it may have. Or its result. Which of the first two is said decides
// whether a client may safely send it again, so every path below that answers Unavailable has
// to be able to prove it.

// relayTicks is how many ticks a node waits for what it passed on.
const relayTicks = 30

// A placement can arrive after its entry was applied, since the two travel by different ways.
// So the results of recent entries are kept while any command is open, up to these limits;
// beyond them the answer is Undecided.
const (
	maxRecent        = 1024
	maxRecentAnswers = 1 << 15
)

// A Relay is commands that a node passes on.
type Relay struct {
	First    uint64 // names the first of them; the next has the next number
	Commands [][]byte
}

// A Placement is where in the log a command is that was passed on.
type Placement struct {
	ID          uint64
	Index, Term uint64 // 0: nowhere, nothing happened
	At          int    // which of the entry's commands it is; at no index: refused, if not 0
}

// refusedPlace is the placement of a command that the leader cannot read or may not write: it
// is nowhere, and must not be passed on again.
func refusedPlace(id uint64) Placement { return Placement{ID: id, At: 1} }

// refused reports whether the leader could not read the command.
func (p Placement) refused() bool { return p.Index == 0 && p.At != 0 }

// relays are the commands that a node passed on.
type relays struct {
	// next starts from a nonce: an answer to a question of an earlier process must match none
	// of this one's.
	next   uint64
	open   map[uint64]*relayed   // by id: their places are not known yet
	placed map[uint64][]*relayed // by index, until it is applied
	recent map[uint64]recent     // applied while something was open
	kept   int                   // how many answers that are
}

type relayed struct {
	call  Call
	place Placement
	ticks int
}

type recent struct {
	term    uint64
	answers []core.Answer
}

func newRelays(nonce uint64) relays {
	return relays{next: nonce, open: map[uint64]*relayed{}, placed: map[uint64][]*relayed{},
		recent: map[uint64]recent{}}
}

func (r *relays) idle() bool { return len(r.open) == 0 && len(r.placed) == 0 }

// passOn gives commands to the leader, in pieces of the size of an entry.
func (n *Node) passOn(leader uint64, calls []Call) {
	for len(calls) > 0 {
		r, size := Relay{First: n.relays.next + 1}, 0
		for len(calls) > 0 && len(r.Commands) < maxBatchCommands &&
			(size == 0 || size+len(calls[0].Bytes) <= maxBatchBytes) {
			n.relays.next++
			n.relays.open[n.relays.next] = &relayed{call: calls[0]}
			r.Commands = append(r.Commands, calls[0].Bytes)
			size += len(calls[0].Bytes)
			calls = calls[1:]
		}
		n.nowhere(n.transport.Relay(leader, r))
	}
}

// nowhere gives up what was certainly not sent, and does so at once: if the node heard of a new
// leader first, it could no longer say that nothing happened.
func (n *Node) nowhere(unsent []uint64) {
	for _, id := range unsent {
		n.placedBy([]Placement{{ID: id}})
	}
}

// acceptRelay takes commands of another node's callers. They go no further: a command that
// wandered from node to node could be anywhere. What this node cannot read, or what is above
// the cluster's level, must not get into the log: it would stop every node that applies it, for
// good.
func (n *Node) acceptRelay(e Relayed) {
	calls := make([]Call, 0, len(e.Commands))
	for i, bytes := range e.Commands {
		id := e.First + uint64(i)
		if err := wire.Check(bytes, n.state.Level()); err != nil {
			n.log.Warn("a command of another server is refused", "server", e.From, "err", err)
			n.transport.Place(e.From, []Placement{refusedPlace(id)})
			continue
		}
		calls = append(calls, Call{Bytes: bytes, from: e.From, id: id, Done: func(_ core.Answer, err error) {
			if errors.Is(err, leasehold.ErrUnavailable) {
				n.transport.Place(e.From, []Placement{{ID: id}})
			}
		}})
	}
	if n.stopped || !n.lead.serving {
		n.refuse(Commands(calls), engine.Unavailable("this server does not lead"))
		return
	}
	n.inbox = append(n.inbox, calls...)
}

// tellPlaces tells other nodes where in the log their commands are.
func (n *Node) tellPlaces(b *batch, index uint64) {
	if !slices.ContainsFunc(b.calls, func(c Call) bool { return c.from != 0 }) {
		return // as nearly always: spare it the map
	}
	places := map[uint64][]Placement{}
	for i, c := range b.calls {
		if c.from != 0 {
			places[c.from] = append(places[c.from], Placement{c.id, index, b.header.Term, i})
		}
	}
	for _, to := range slices.Sorted(maps.Keys(places)) {
		n.transport.Place(to, places[to])
	}
}

// placedBy learns where commands are that were passed on.
func (n *Node) placedBy(places []Placement) {
	for _, p := range places {
		r := n.relays.open[p.ID]
		if r == nil {
			continue // it was given up
		}
		delete(n.relays.open, p.ID)
		r.place = p
		switch known, ok := n.relays.recent[p.Index]; {
		case p.refused():
			r.call.Answer(core.Answer{}, engine.Refused("the leader does not know this kind of request: its version "+
				"is older than this server's. Upgrade it, or ask for something else"))
		case p.Index == 0:
			// It has not happened, and nobody else has it: it may be passed on again.
			n.waiting = append(n.waiting, r.call)
		case p.Index > n.applied && p.Term < n.term:
			// A later term is applied already, so no entry of that term can still come.
			r.call.Answer(core.Answer{}, engine.Unavailable("the leader changed before this was kept: try again"))
		case p.Index > n.applied:
			n.relays.placed[p.Index] = append(n.relays.placed[p.Index], r)
		case ok:
			r.settle(known.term, known.answers)
		default:
			// Applied, but its results are no longer kept.
			r.call.Answer(core.Answer{}, engine.Undecided(
				"this server does not know what became of it: ask again with the same id"))
		}
	}
}

// settle answers a caller from the entry at its command's place. If that entry is of another
// term, the next leader has put something else there, and the command is in no log.
func (r *relayed) settle(term uint64, answers []core.Answer) {
	if term != r.place.Term || answers == nil {
		r.call.Answer(core.Answer{}, engine.Unavailable("the leader changed before this was kept: try again"))
		return
	}
	r.call.Answer(engine.Decided(answers[r.place.At]))
}

// settleRelays answers callers whose commands are at an index that has just been applied; or
// with an error, if nobody knows what was there.
func (n *Node) settleRelays(index, term uint64, answers []core.Answer, err error) {
	for _, r := range n.relays.placed[index] {
		if err != nil {
			r.call.Answer(core.Answer{}, err)
		} else {
			r.settle(term, answers)
		}
	}
	delete(n.relays.placed, index)
	if len(n.relays.open) == 0 || len(n.relays.recent) >= maxRecent || n.relays.kept >= maxRecentAnswers {
		clear(n.relays.recent)
		n.relays.kept = 0
	}
	if len(n.relays.open) > 0 && err == nil {
		n.relays.recent[index] = recent{term, answers}
		n.relays.kept += len(answers)
	}
}

// tickRelays gives up what has taken too long. The leader may have it all the same, even one
// without a place: the placement may be what was lost.
func (n *Node) tickRelays() {
	undecided := engine.Undecided("the leader did not say in time what became of it: ask again with the same id")
	for _, id := range slices.Sorted(maps.Keys(n.relays.open)) {
		if r := n.relays.open[id]; r.late() {
			delete(n.relays.open, id)
			r.call.Answer(core.Answer{}, undecided)
		}
	}
	for _, index := range slices.Sorted(maps.Keys(n.relays.placed)) {
		n.relays.placed[index] = slices.DeleteFunc(n.relays.placed[index], func(r *relayed) bool {
			if !r.late() {
				return false
			}
			r.call.Answer(core.Answer{}, undecided)
			return true
		})
		if len(n.relays.placed[index]) == 0 {
			delete(n.relays.placed, index)
		}
	}
}

// late counts a tick, and reports whether the command has waited for too long.
func (r *relayed) late() bool { r.ticks++; return r.ticks > relayTicks }

// dropOpen answers callers when nobody knows whether a leader that is gone got their commands.
// They are not passed on again: only the caller knows whether doing it twice would do harm.
func (n *Node) dropOpen() {
	err := engine.Undecided("the leader changed, and may have got this: ask again with the same id")
	for _, id := range slices.Sorted(maps.Keys(n.relays.open)) {
		n.relays.open[id].call.Answer(core.Answer{}, err)
	}
	clear(n.relays.open)
}

// dropRelays answers everybody that waits for a relay, since this node stops.
func (n *Node) dropRelays(err error) {
	n.dropOpen()
	for _, index := range slices.Sorted(maps.Keys(n.relays.placed)) {
		n.settleRelays(index, 0, nil, err)
	}
}
