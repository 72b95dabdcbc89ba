package replica

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// apply lets committed entries take effect, in order. An entry that cannot be applied stops the
// node: the others apply it too, and skipping it here would make this copy differ from theirs
// for good.
func (n *Node) apply(entries []*raftpb.Entry) {
	for _, e := range entries {
		// An entry counts once, however often it is handed out.
		if e.GetIndex() <= n.applied {
			continue
		}
		if e.GetTerm() > n.term {
			n.superseded(e.GetTerm())
		}
		answers, err := n.applyOne(e)
		if err != nil {
			n.fail(fmt.Errorf("entry %d of the log cannot be applied: %w", e.GetIndex(), err))
			return
		}
		delete(n.lead.arrivals, e.GetIndex())
		n.applied, n.term = e.GetIndex(), e.GetTerm()
		n.logBytes += int64(len(e.GetData()))
		n.settleRelays(e.GetIndex(), e.GetTerm(), answers, nil)
	}
	n.freeze()
}

// superseded answers callers whose commands will never be in the log: after an entry of one
// term no entry of an earlier term can follow. That makes the answer certain (nothing happened,
// try again), where a timeout could only say that nobody knows.
func (n *Node) superseded(term uint64) {
	gone := engine.Unavailable("the leader changed before this was kept: try again")
	for _, index := range slices.Sorted(maps.Keys(n.proposed)) {
		if b := n.proposed[index]; b.header.Term < term {
			delete(n.proposed, index)
			b.done(gone)
		}
	}
	for _, index := range slices.Sorted(maps.Keys(n.relays.placed)) {
		n.relays.placed[index] = slices.DeleteFunc(n.relays.placed[index], func(r *relayed) bool {
			over := r.place.Term < term
			if over {
				r.call.Answer(core.Answer{}, gone)
			}
			return over
		})
		if len(n.relays.placed[index]) == 0 {
			delete(n.relays.placed, index)
		}
	}
}

// applyOne lets one committed entry take effect. Raft's own first entry of a term is empty:
// it says that everything of earlier terms is known here, so that this node may take the lead.
func (n *Node) applyOne(e *raftpb.Entry) ([]core.Answer, error) {
	// Commands and changes of members are shown where their result is known.
	if n.config.Watch != nil && e.GetType() == raftpb.EntryNormal && len(e.GetData()) == 0 {
		n.config.Watch(Applied{Index: e.GetIndex(), Term: e.GetTerm(), Data: e.GetData()})
	}
	switch e.GetType() {
	case raftpb.EntryConfChange:
		return nil, n.applyChange(e)
	// Raft counts votes by it, so a node that ignored it would count differently from the
	// others.
	case raftpb.EntryConfChangeV2:
		return nil, errors.New("a change of the members has a form that this version does not know")
	}
	if len(e.GetData()) == 0 {
		if n.Leads() && e.GetTerm() == n.lead.term && !n.lead.fixed {
			n.lead.ready = true
			n.takeLead()
		}
		return nil, nil
	}
	return n.applyCommands(e)
}

// applyCommands applies an entry of commands, and answers those of this node's callers.
func (n *Node) applyCommands(e *raftpb.Entry) ([]core.Answer, error) {
	b := n.proposed[e.GetIndex()]
	delete(n.proposed, e.GetIndex())
	entry, err := n.entryOf(e, b)
	if err != nil {
		return nil, err
	}
	if entry.Term != e.GetTerm() {
		n.watch(e, entry, core.Result{}, true)
		// Stamped by a leader that was deposed before the entry was committed: its time is not
		// this term's time. Every node skips it by the same rule, so nothing in it happens
		// anywhere.
		if b != nil {
			b.done(engine.Unavailable("the leader changed before this was kept: try again"))
		}
		return nil, nil
	}
	// The stamp of this entry becomes the state's time: from here on, time that passed is
	// counted from when the entry arrived, which is after it was stamped.
	if arrived, ok := n.lead.arrivals[e.GetIndex()]; ok {
		n.lead.received = arrived
	}
	before, history := n.state.Policy(), n.state.HistoryBytes()
	result, err := n.state.Apply(entry.Stamp, entry.Wall, entry.Commands, entry.From)
	if err != nil {
		return nil, err
	}
	if !n.state.Policy().SameRules(before) {
		n.askers = wire.Askers{} // each remembers what it may do by the old policy, and so all of that
	}
	n.statistics.Entries++
	n.statistics.Commands += uint64(len(entry.Commands))
	// Before any watcher or caller: the journal hears of it here, and what was answered must
	// not be missing there.
	n.watch(e, entry, result, false)
	if !n.Unproven() {
		n.feed.Publish(n.state.View(0), result.Events)
	}
	n.answer(b, result.Answers)
	if slices.ContainsFunc(entry.Commands, isShort) {
		n.forgets(history)
	}
	if i := slices.IndexFunc(entry.Commands, isLead); i >= 0 {
		n.served(entry.Commands[i].(*core.Lead), e.GetTerm())
	}
	if !n.lead.serving {
		// Only the leader's pacemaker asks for deadlines. Elsewhere each renewal would leave
		// its old deadline behind in the queue of deadlines, which would grow without end.
		n.state.DueBy(n.state.Now())
	}
	return result.Answers, nil
}

// entryOf returns what is in an entry. What this node put there it has, as long as those are the bytes.
func (n *Node) entryOf(e *raftpb.Entry, b *batch) (*wire.Entry, error) {
	if b != nil && bytes.Equal(b.data, e.GetData()) {
		return b.entry(&n.askers)
	}
	return wire.DecodeEntryWith(&n.askers, e.GetData())
}

// watch shows an entry to the engine, or to the simulator's checks.
func (n *Node) watch(e *raftpb.Entry, entry *wire.Entry, result core.Result, empty bool) {
	if n.config.Watch != nil {
		n.config.Watch(Applied{Index: e.GetIndex(), Term: e.GetTerm(), Data: e.GetData(), Entry: entry, Empty: empty,
			Result: result})
	}
}

func isLead(c core.Command) bool { _, ok := c.(*core.Lead); return ok }

func isShort(c core.Command) bool { t, ok := c.(*core.Tick); return ok && t.Short }

// answer gives the answers of an entry to the callers that this node has for it.
func (n *Node) answer(b *batch, answers []core.Answer) {
	if b == nil {
		return
	}
	for i, c := range b.calls {
		if c.from != 0 {
			continue // its own node finds the answer in its log
		}
		c.Answer(engine.Decided(answers[i]))
	}
}
