package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// Changes of the membership, and what is promised about them: an id is given once, a
// removed server stays removed, no server votes without the log, and a change that was answered is not
// forgotten.

// An operator adds servers, removes them and replaces them, one after the other, and asks
// again until it is told that it is done.
type operator struct {
	world *World
	busy  bool
	made  int
}

// work does one thing, and then the next.
func (o *operator) work() {
	w, m := o.world, o.world.Faults.Members
	w.after(w.upTo(2*m.Every), o.work)
	if o.busy {
		return
	}
	// One that lost its data is replaced before anything else is done: to remove another
	// one in the meantime could be one too many.
	if i := slices.IndexFunc(w.servers, func(s *server) bool { return s.lost }); i >= 0 {
		if w.servers[i].barred {
			o.remove(w.servers[i])
		}
		return
	}
	if w.quiet {
		return
	}
	roster := w.truth.members.newest
	if roster == nil {
		return
	}
	voters := roster.Voters()
	s := w.byID[voters[w.random.IntN(len(voters))]]
	grow, shrink := 0, 0
	if len(roster.Members) < m.Most {
		grow = 3
	}
	if len(voters) > m.Least {
		shrink = 2
	}
	wipe := 0
	if len(voters) > 2 && len(voters) == len(roster.Members) {
		wipe = m.Wipe
	}
	w.pick([]fault{
		{grow, "add", o.add},
		{shrink, "remove", func() { o.remove(s) }},
		{wipe, "lost data", func() { s.wipe(w.between(100*time.Millisecond, 2*time.Second)) }},
	})
}

// add takes in a new server, and starts it.
func (o *operator) add() {
	w := o.world
	s := newServer(w, 0)
	o.made++
	o.busy = true
	about := replica.Member{Name: fmt.Sprint("new", o.made), Peer: fmt.Sprint("peer", o.made), Dir: s.disk.dir,
		Levels: s.levels}
	o.ask(replica.Change{Kind: replica.Add, Member: about}, func(m replica.Member, err error) {
		o.busy = false
		if err != nil {
			w.violated("a server cannot be added: %v", err)
			return
		}
		w.truth.given(m.ID)
		s.id = m.ID
		w.servers, w.byID[s.id] = append(w.servers, s), s
		w.count("servers added")
		w.after(w.upTo(max(w.Faults.Members.StartLate, time.Second)), s.start)
	})
}

// remove ends a membership. The server is mostly turned off at once, for good; otherwise it has
// to find out by itself that it was removed.
func (o *operator) remove(s *server) {
	w := o.world
	o.busy = true
	o.ask(replica.Change{Kind: replica.Remove, Member: replica.Member{ID: s.id}}, func(_ replica.Member, err error) {
		o.busy = false
		if err != nil {
			w.count("removals refused")
			return
		}
		w.count("servers removed")
		if w.chance(70) || s.barred {
			s.retire()
		}
	})
}

// ask asks the leader for a change until there is a definite answer.
func (o *operator) ask(c replica.Change, done func(replica.Member, error)) {
	w := o.world
	over, told := false, false
	// The answer and the timeout may both come: only the first counts.
	again := func() {
		if !over {
			over = true
			w.after(w.between(50*time.Millisecond, 500*time.Millisecond), func() { o.ask(c, done) })
		}
	}
	leader := w.leader(w.servers[w.random.IntN(len(w.servers))])
	w.tell("operator to %d: %v %d %s", leader.id, c.Kind, c.Member.ID, c.Member.Name)
	reply := func(m replica.Member, index uint64, err error) {
		if told {
			w.violated("a change is answered twice")
		}
		told = true
		if err == nil && index != 0 {
			w.truth.settled(c, index)
			if !w.quiet && w.chance(w.Faults.Members.KillAnswerer) {
				w.after(time.Microsecond, func() { leader.kill(w.upTo(20*time.Millisecond), false) })
			}
		}
		w.after(w.delay(), func() {
			w.tell("operator is told of %v %d: %v", c.Kind, m.ID, err)
			if over {
				return
			}
			if errors.Is(err, leasehold.ErrUnavailable) || errors.Is(err, leasehold.ErrUndecided) {
				again()
				return
			}
			over = true
			done(m, err)
		})
	}
	w.after(w.delay(), func() { leader.deliver("operator", replica.Reconfigure{Change: c, Done: reply}) })
	w.after(4*time.Second, again)
}

// retire takes a machine away, with all that is on it.
func (s *server) retire() {
	if s.gone {
		return
	}
	s.world.tell("server %d is gone", s.id)
	s.gone = true
	s.end()
	s.world.servers = slices.DeleteFunc(s.world.servers, func(o *server) bool { return o == s })
}

// wipe loses what is on a server's disk. The server comes back in its old place with an empty
// disk, and must not vote: it may have forgotten a vote that it gave, or an entry that it
// acknowledged.
func (s *server) wipe(down time.Duration) {
	s.kill(down, true)
	s.disk, s.lost, s.founder = newDisk(s), true, false
	s.world.after(down, s.start)
}

// members are what is known of who belonged to the cluster, at each place in the log.
type members struct {
	newest  *replica.Roster
	indexes []uint64 // of changes
	rosters []string
	ids     map[uint64]bool // that were given
}

func newMembers() members { return members{ids: map[uint64]bool{}} }

func describe(r *replica.Roster) string {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// changed notes a change of the members, once.
func (t *truth) changed(a replica.Applied) {
	w, m := t.world, &t.members
	before := m.newest
	m.newest = a.Roster
	m.indexes, m.rosters = append(m.indexes, a.Index), append(m.rosters, describe(a.Roster))
	w.tell("roster at %d: %s", a.Index, describe(a.Roster))
	if before == nil || a.Index <= uint64(w.Nodes) {
		return
	}
	for _, id := range before.Removed {
		if _, back := a.Roster.Member(id); back || !slices.Contains(a.Roster.Removed, id) {
			w.violated("server %d was removed, and is a member again", id)
		}
	}
	for _, id := range a.Roster.Voters() {
		if !slices.Contains(before.Voters(), id) {
			w.count("promotions")
			t.promoted(id, a.Index)
		}
	}
	if len(a.Roster.Voters()) == 0 {
		w.violated("nobody has a vote left")
	}
}

// behind is by how many entries a server may be behind that gets a vote.
const behind = 300

// promoted checks that a server that gets a vote has most of the log: with a voter that lacks
// it, a majority could be unable to commit anything for a long time.
func (t *truth) promoted(id, index uint64) {
	s := t.world.byID[id]
	switch {
	case s != nil && s.gone:
	case s == nil && index > behind, s != nil && s.disk.last()+behind < index:
		t.world.violated("server %d gets a vote at %d, and lacks most of the log", id, index)
	}
}

// counted checks that a server counts the votes of exactly those members that have one.
func (t *truth) counted(s *server, a replica.Applied) {
	var learners []uint64
	for _, m := range a.Roster.Members {
		if !m.Voter {
			learners = append(learners, m.ID)
		}
	}
	votes, none := slices.Sorted(slices.Values(a.Votes.GetVoters())),
		slices.Sorted(slices.Values(a.Votes.GetLearners()))
	// it has not come to its own add yet
	none = slices.DeleteFunc(none, func(id uint64) bool { return id >= a.Roster.Next })
	if a.Index >= uint64(t.world.Nodes) && (!slices.Equal(votes, a.Roster.Voters()) || !slices.Equal(none, learners)) {
		t.world.violated("server %d counts the votes of %v and not of %v at %d, and the members are %s", s.id, votes,
			none, a.Index, describe(a.Roster))
	}
}

// rostered checks that the members in a snapshot are those of that place in the log.
func (t *truth) rostered(s *server, index uint64, r *replica.Roster) {
	m := &t.members
	at, found := slices.BinarySearch(m.indexes, index)
	if found {
		at++
	}
	if at > 0 && describe(r) != m.rosters[at-1] {
		t.world.violated("a snapshot of server %d at %d has the members %s, and they were %s", s.id, index, describe(r),
			m.rosters[at-1])
	}
}

// given checks that an id is new.
func (t *truth) given(id uint64) {
	if t.members.ids[id] || id <= uint64(t.world.Nodes) {
		t.world.violated("the id %d is given twice", id)
	}
	t.members.ids[id] = true
}

// settled is called when a change is answered: then a majority of those who have a vote
// must not be able to forget it, even if all of them die now.
func (t *truth) settled(c replica.Change, index uint64) {
	voters, know := t.members.newest.Voters(), 0
	if c.Kind != replica.Promote && c.Kind != replica.Remove {
		return
	}
	for _, id := range voters {
		if s := t.world.byID[id]; s != nil && s.disk.knows() >= index {
			know++
		}
	}
	if know <= len(voters)/2 {
		t.world.violated("%v of server %d is answered, and only %d of %d servers with a vote cannot forget it", c.Kind,
			c.Member.ID, know, len(voters))
	}
}

// left is called when a server stops because it was removed.
func (t *truth) left(s *server) {
	t.world.count("servers that left")
	if !slices.Contains(t.members.newest.Removed, s.id) {
		t.world.violated("server %d stops as removed, and it is not for good that it was", s.id)
	}
}

// membersRest is called when nothing has troubled anybody for a while.
func (t *truth) membersRest() {
	w, r := t.world, t.members.newest
	for _, s := range w.servers {
		m, member := r.Member(s.id)
		switch {
		case s.barred:
		case !member:
			w.violated("server %d was removed, and goes on", s.id)
		case !m.Voter:
			w.violated("server %d has caught up, and has no vote", s.id)
		}
	}
}
