package sim

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/wire"
)

// bound is by how many parts in a million a clock may be wrong while the promises hold.
const bound = 5000

// checkEvery is how many entries pass between two looks at the whole state of a server, which
// take long.
const checkEvery = 200

// truth sees everything: what each server applies, what each client sends, is told and
// believes, and what time it really is. It judges by the promises alone. No server or client
// ever reads it.
type truth struct {
	world    *World
	log      map[uint64]fact   // by index: what was applied there first, by anybody
	states   map[uint64]uint32 // by index: the checksum of the state
	attempts map[string]*attempt
	last     *attempt
	made     int
	end      uint64 // of the log that anybody applied

	// acknowledged is the last index of which a client was told.
	acknowledged uint64
	terms        map[uint64]uint64    // who led in a term
	votes        map[[2]uint64]uint64 // of a server in a term
	gaps         []gap
	witness      *witness
	guards       map[spot]leasehold.Token
	events       map[string][]*leasehold.Event // all that ever happened, by namespace
	members      members

	// ever is the largest token that was granted, by any cluster that was restored too.
	ever map[string]leasehold.Token
}

// A gap is a time without a leader that serves.
type gap struct{ from, to time.Duration }

// A fact is an entry of the log with what it came to.
type fact struct{ entry, result uint32 }

func newTruth(w *World) *truth {
	return &truth{
		world: w, log: map[uint64]fact{}, states: map[uint64]uint32{}, attempts: map[string]*attempt{},
		terms: map[uint64]uint64{}, votes: map[[2]uint64]uint64{}, witness: newWitness(w),
		guards: map[spot]leasehold.Token{}, gaps: []gap{{}}, members: newMembers(),
		events: map[string][]*leasehold.Event{}, ever: map[string]leasehold.Token{},
	}
}

// attempted records a command before it is sent. Each attempt has an id of its own, which
// travels as its origin, so that it is recognized in the log.
func (t *truth) attempted(c *client, command core.Command) *attempt {
	t.made++
	a := &attempt{epoch: t.world.epoch, id: fmt.Sprint("a", t.made), client: c, asker: c.asker(), sent: t.world.now,
		slept: c.slept, command: command}
	t.attempts[a.id], t.last = a, a
	return a
}

// applied is called when a server applies an entry: the first time, again after a restart, or
// on another server. Only the first time is the entry new to the witness; every other time it
// must be the same entry with the same result.
func (t *truth) applied(s *server, a replica.Applied) {
	f := fact{crc32.ChecksumIEEE(fmt.Append(nil, a.Term, a.Data)), digest(a)}
	before, known := t.log[a.Index]
	switch {
	case known && before.entry != f.entry:
		t.world.violated("server %d applies another entry at %d than was applied there before", s.id, a.Index)
		return
	case known && before.result != f.result:
		t.world.violated("server %d comes to another result at %d", s.id, a.Index)
		return
	case known:
	// Entries come to be in order: the first who applies one must not skip any.
	case a.Index != t.end+1:
		t.world.violated("server %d applies %d, and nobody applied what comes after %d", s.id, a.Index, t.end)
		return
	default:
		t.end, t.log[a.Index] = a.Index, f
		t.happened(s, a)
	}
	if a.Roster != nil {
		t.counted(s, a)
	}
	t.understands(s, a)
	t.reads(s, a)
	if a.Index%checkEvery == 0 {
		t.inspect(s, a.Index)
	}
}

// reads checks that a server applies what the log says. One that wrote an entry has not decoded it.
func (t *truth) reads(s *server, a replica.Applied) {
	if a.Entry == nil {
		return
	}
	e, err := wire.DecodeEntry(a.Data)
	// An asker remembers what it may do, which is not in the log.
	same := func(a, b *access.Asker) bool { return bytes.Equal(wire.AppendAsker(nil, a), wire.AppendAsker(nil, b)) }
	if err != nil || !reflect.DeepEqual(e.Commands, a.Entry.Commands) ||
		!slices.Equal(e.Origins, a.Entry.Origins) || !slices.EqualFunc(e.Askers, a.Entry.Askers, same) {
		t.world.violated("server %d applies other commands at %d than the log has: %v", s.id, a.Index, err)
	}
}

// digest returns a checksum of what an entry came to, by the fields that decide something.
func digest(a replica.Applied) uint32 {
	sum := crc32.NewIEEE()
	if a.Roster != nil {
		fmt.Fprint(sum, describe(a.Roster))
	}
	for _, e := range a.Result.Events {
		fmt.Fprint(sum, e.Revision, e.N, e.Kind, e.How, e.Resource, e.ID, e.Token, e.Until.UnixNano())
	}
	for _, answer := range a.Result.Answers {
		if answer.Err != nil {
			fmt.Fprint(sum, answer.Err.Code)
		}
		if answer.Lease != nil {
			fmt.Fprint(sum, answer.Lease.Token, answer.Lease.Remaining)
		}
	}
	return sum.Sum32()
}

// inspect checks the whole state of a server, and compares its encoding with what other servers
// had at the same index.
func (t *truth) inspect(s *server, index uint64) {
	w := t.world
	// The entry is still being applied: its state is looked at a moment later.
	node, life := s.node, s.life
	if node == nil {
		return
	}
	w.after(0, func() {
		if s.life != life || s.node != node || node.Statistics().Applied != index {
			return
		}
		if err := node.State().Check(); err != nil {
			w.violated("the state of server %d at %d contradicts itself: %v", s.id, index, err)
		}
		summary, err := wire.WriteSnapshot(io.Discard, node.State().Freeze())
		if err != nil {
			w.violated("the state of server %d cannot be encoded: %v", s.id, err)
		}
		t.hashed(s, index, summary.Checksum)
	})
}

// hashed compares the state of a server with that of others at the same place.
func (t *truth) hashed(s *server, index uint64, sum uint32) {
	t.world.tell("state of %d at %d: %08x", s.id, index, sum)
	if before, known := t.states[index]; known && before != sum {
		t.world.violated("server %d has another state at %d than was there before", s.id, index)
	}
	t.states[index] = sum
}

// happened is called once for each entry, by whichever server applies it first.
func (t *truth) happened(s *server, a replica.Applied) {
	w := t.world
	if a.Roster != nil {
		t.changed(a)
	}
	if a.Entry == nil || a.Empty {
		w.tell("entry %d of term %d by %d: nothing", a.Index, a.Term, s.id)
		return
	}
	w.tell("entry %d of term %d by %d at %d: %d commands, %d events", a.Index, a.Term, s.id, a.Entry.Stamp,
		len(a.Entry.Commands), len(a.Result.Events))
	w.count("entries")
	// From the beginning to now the fastest clock cannot have counted more.
	if most := own(w.now, bound) + time.Second; !w.wild() && time.Duration(a.Entry.Stamp) > most {
		w.violated("entry %d is stamped %v, ahead of real time", a.Index, time.Duration(a.Entry.Stamp))
	}
	t.witness.turnsPage(a.Entry.Wall)
	for i, c := range a.Entry.Commands {
		var from *attempt
		if a.Entry.Origins != nil {
			from = t.attempts[a.Entry.Origins[i].Address]
		}
		if from != nil {
			if from.refused {
				w.violated("%s happened at %d, although its sender was told that it did not", from.id, a.Index)
			}
			if from.applied != 0 {
				w.violated("%s was sent once, and happened at %d and at %d", from.id, from.applied, a.Index)
			}
			from.applied, from.appliedAt = a.Index, w.now
			from.failed = a.Result.Answers[i].Err != nil
			from.swapped = a.Result.Answers[i].Txn != nil && a.Result.Answers[i].Txn.Succeeded
		}
		t.witness.see(a.Entry.Stamp, c, from, a.Result.Answers[i], a.Result.Of(i))
	}
	t.witness.values(a.Result)
	t.witness.look(a.Entry.Commands)
	t.witness.lookSubjects(s, a.Result.Events)
	for _, e := range a.Result.Events {
		t.events[e.Namespace] = append(t.events[e.Namespace], e)
	}
}

// told is called when a server answers. Unavailable says that the command did not happen and
// never will; any other answer says that it did. Undecided promises nothing.
func (t *truth) told(a *attempt, err error) {
	switch a.command.(type) {
	case *core.Renew, *core.RenewSession, *core.Release, *core.CloseSession:
		if errors.Is(err, leasehold.ErrLimited) {
			t.world.violated("%T is refused for lack of room: %v", a.command, err)
		}
	}
	switch {
	case errors.Is(err, leasehold.ErrUndecided):
	case errors.Is(err, leasehold.ErrUnavailable):
		if a.refused = true; a.applied != 0 {
			t.world.violated("%s happened at %d, and its sender is told that it did not", a.id, a.applied)
		}
	case a.applied == 0 && a.turned:
	case a.applied == 0:
		t.world.violated("%s is answered, and nobody applied it", a.id)
	}
}

// heard is called when a client gets an answer. From then on the entry is acknowledged, and
// must survive everything.
func (t *truth) heard(a *attempt, err error) {
	if !errors.Is(err, leasehold.ErrUndecided) && !errors.Is(err, leasehold.ErrUnavailable) &&
		a.epoch == t.world.epoch {
		t.acknowledged = max(t.acknowledged, a.applied)
	}
}

// served keeps the list of times without a leader.
func (t *truth) served() {
	w, last := t.world, &t.gaps[len(t.gaps)-1]
	serving := slices.ContainsFunc(w.servers, func(s *server) bool { return s.serving })
	switch open := last.to == 0; {
	case serving && open:
		last.to = w.now
		if took := last.to - last.from; w.Strict.Gap != 0 && took > w.Strict.Gap {
			w.violated("nobody led for %v", took)
		}
	case !serving && !open:
		t.gaps = append(t.gaps, gap{from: w.now})
	}
}

// without is how long there was no leader since a moment.
func (t *truth) without(since time.Duration) (sum time.Duration) {
	for _, g := range t.gaps {
		if g.to == 0 {
			g.to = t.world.now
		}
		sum += max(0, g.to-max(g.from, since))
	}
	return sum
}

// voted records a vote: a server has one in each term, through any restart.
func (t *truth) voted(s *server, term, candidate uint64) {
	vote := [2]uint64{s.id, term}
	if other := t.votes[vote]; other != 0 && other != candidate {
		t.world.violated("server %d votes for %d and for %d in term %d", s.id, other, candidate, term)
	}
	t.votes[vote] = candidate
	t.world.count("votes")
}

// leads records who leads in a term: never more than one.
func (t *truth) leads(s *server, term uint64) {
	if term == 0 || t.terms[term] == s.id {
		return
	}
	if other := t.terms[term]; other != 0 {
		t.world.violated("servers %d and %d lead in term %d", other, s.id, term)
	}
	t.terms[term] = s.id
	t.world.count("leaders")
}

// believed is called when a client begins to believe in a lease, or extends its belief. It is
// checked at that moment, because a belief that is too long shows in nothing else until
// somebody is granted the resource.
func (t *truth) believed(g *grip) {
	w := t.world
	if g.exempt || g.former || w.wild() {
		return
	}
	if c := t.witness.byToken[grant{g.at.space, g.token}]; c == nil {
		w.violated("%s believes in %s with token %d, which is over", g.client.name, g.at.name, g.token)
	} else if end := c.atLeast(); end != 0 && g.until > end {
		w.violated("%s believes in %s for %v longer than the server may let it last", g.client.name, g.at.name,
			g.until-end)
	}
	for _, c := range w.clients {
		if o := c.grip; o != nil && o != g && meet(o.at, g.at) && o.believes() && !o.exempt && !o.former &&
			g.excludes(o) {
			w.violated("%s believes in %s with token %d while %s does with %d", g.client.name, g.at.name, g.token,
				c.name, o.token)
		}
	}
}

// excludes reports whether two cannot hold the same at the same time.
func (g *grip) excludes(o *grip) bool {
	return g.slots == 0 || o.slots == 0 || slices.ContainsFunc(g.units,
		func(u string) bool { return slices.Contains(o.units, u) })
}

// nobodyBelieves is called when a lease is over, and checks that its holder does not believe in
// it any longer.
func (t *truth) nobodyBelieves(at spot, token leasehold.Token, what string) {
	for _, c := range t.world.clients {
		if g := c.grip; g != nil && g.at == at && g.token == token && g.believes() && !g.exempt && !g.former &&
			!t.world.wild() {
			t.world.violated("%s: %s still believes in %s with token %d for %v", what, c.name, at.name, token,
				g.until-t.world.now)
		}
	}
}

// othersBelieve is called when a lease is granted, and checks that nobody else believes in the
// resource. Those who share a place may believe beside others: each of their ends is checked by
// itself.
func (t *truth) othersBelieve(at spot, token leasehold.Token, slots int) {
	for _, c := range t.world.clients {
		g := c.grip
		switch {
		case g == nil || !meet(g.at, at) || g.token == token || !g.believes() || g.exempt || g.slots != 0 && slots != 0:
		case t.world.wild():
			t.world.count("believed too long")
		default:
			t.world.violated("%s is granted with token %d while %s believes in it with %d for %v", at.name, token,
				c.name, g.token, g.until-t.world.now)
		}
	}
}

// guard is a store that a holder writes to, and that refuses tokens below the largest floor it
// saw. It needs no clock: with wild clocks it is what still protects.
func (t *truth) guard(g *grip) {
	if !g.held {
		return
	}
	t.world.count("guarded writes")
	if g.token < t.guards[g.at] {
		t.world.count("guarded writes refused")
		switch {
		case !g.believes() || g.exempt || g.former:
		case t.world.wild():
			t.world.count("late holders refused")
		default:
			t.world.violated("%s is refused with token %d while it believes in %s", g.client.name, g.token, g.at.name)
		}
		return
	}
	t.guards[g.at] = max(t.guards[g.at], g.floor)
}

// behind reports whether a server has not come to the end of the log.
func (t *truth) behind() bool {
	return slices.ContainsFunc(t.world.servers, func(s *server) bool {
		return s.node != nil && !s.barred && s.node.Statistics().Applied != t.end
	})
}

// rest is called when nothing has troubled anybody for a while: all servers must have caught up
// and agree, and nothing that was acknowledged may be missing.
func (t *truth) rest() {
	w := t.world
	w.tell("rest: %d entries", t.end)
	for _, s := range w.servers {
		if s.barred {
			continue
		}
		switch {
		case s.node == nil:
			w.violated("server %d does not run", s.id)
			return
		case s.node.Statistics().Applied != t.end:
			w.violated("server %d has come to %d of %d", s.id, s.node.Statistics().Applied, t.end)
			return
		case !s.node.Idle():
			w.violated("somebody still waits for an answer of server %d", s.id)
			return
		}
		if err := s.node.State().Check(); err != nil {
			w.violated("the state of server %d contradicts itself: %v", s.id, err)
		}
		summary, _ := wire.WriteSnapshot(io.Discard, s.node.State().Freeze())
		t.hashed(s, t.end, summary.Checksum)
		t.witness.recorded(s)
		t.valuesRest(s)
	}
	if t.acknowledged > t.end {
		w.violated("entry %d was acknowledged and is not there", t.acknowledged)
	}
	t.witness.rest()
	t.membersRest()
	w.counts["grants"] += t.witness.grants
}
