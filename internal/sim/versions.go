package sim

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// Rolling upgrades: servers of two releases in one cluster, and the moment when all are raised
// to the new level. Nobody may write what the other release cannot read.

// Versions say how servers of the release before become those of this one.
type Versions struct {
	Every time.Duration // something is done about it, on average; 0: all are of this release
	Back  int           // how often, in a hundred, a server goes back instead, before the level is raised
}

// before is what the older of two releases knows, which is this one; after is what the newer knows.
// Its level has one rule, which only the simulation knows: there are news.
var (
	before = replica.KnownLevels
	after  = replica.Levels{Oldest: core.OldestLevel, Newest: core.NewestLevel + 1}
)

// program is what a new server knows.
func (w *World) program() replica.Levels {
	if w.raising {
		return after
	}
	return before
}

// news is a record that nobody could put before the newer release.
const news = "news"

// needs returns the level that a command came with.
func needs(c core.Command) core.Level {
	if put, ok := c.(*core.PutRecord); ok && put.Path == news {
		return after.Newest
	}
	return core.OldestLevel
}

// publish puts news, if the cluster that the client knows has any.
func (c *client) publish(namespace string) {
	if c.world.Versions.Every == 0 || c.level < after.Newest {
		return
	}
	c.world.count("news")
	c.insist(&core.PutRecord{Namespace: namespace, Path: news, Value: c.name}, 5)
}

// upgrade starts one server with another version, or raises the level when all can follow;
// and sometimes asks for that when they cannot, and must be refused.
func (w *World) upgrade() {
	if w.quiet {
		return
	}
	w.after(w.upTo(2*w.Versions.Every), w.upgrade)
	w.stranger()
	if w.operator.busy || w.raising || w.truth.members.newest == nil {
		return
	}
	if slices.ContainsFunc(w.servers, func(s *server) bool { return !s.knows(core.OldestLevel) }) {
		return // one of them has not said yet what it is now
	}
	all := !slices.ContainsFunc(w.servers, func(s *server) bool { return !s.knows(after.Newest) })
	s := w.servers[w.random.IntN(len(w.servers))]
	switch {
	case w.chance(w.Versions.Back):
		s.becomes(before)
	case all:
		w.raise()
	case !all && w.chance(20):
		w.raiseInVain()
	default:
		s.becomes(after)
	}
}

// knows reports whether a server knows a level, and said so.
func (s *server) knows(level core.Level) bool {
	m, member := s.world.truth.members.newest.Member(s.id)
	return member && m.Levels == s.levels && s.levels.Newest >= level
}

// becomes starts a server with another version of the program.
func (s *server) becomes(levels replica.Levels) {
	if s.levels == levels || s.node == nil || s.lost || s.barred {
		return
	}
	s.world.tell("server %d is to know %v", s.id, levels)
	s.world.count(fmt.Sprintf("servers that became of %v", levels))
	s.kill(s.world.upTo(time.Second), false)
	s.levels = levels
}

// announce says what a server knows, until everybody has heard it.
func (s *server) announce() {
	w := s.world
	m, member := s.node.Roster().Member(s.id)
	leader := w.leader(nil)
	if !member || m.Levels == s.levels || leader == nil {
		return
	}
	m.Levels = s.levels
	w.network.carry(s, leader.id, func(to *server) {
		to.deliver(fmt.Sprint("server ", m.ID), replica.Reconfigure{
			Change: replica.Change{Kind: replica.Announce, Member: m}, Done: func(replica.Member, uint64, error) {},
		})
	})
}

// raise raises the level. From then on no server may go back.
func (w *World) raise() {
	w.raising, w.operator.busy = true, true
	w.operator.ask(replica.Change{Kind: replica.Raise}, func(_ replica.Member, err error) {
		w.operator.busy = false
		if err != nil {
			w.violated("the level cannot be raised: %v", err)
		}
		w.count("levels raised")
	})
}

// raiseInVain asks for a level that not all servers know. Who announced last that it knows
// it may be the last who did not, so that it may succeed after all.
func (w *World) raiseInVain() {
	w.operator.busy = true
	w.operator.ask(replica.Change{Kind: replica.Raise, Level: after.Newest}, func(_ replica.Member, err error) {
		w.operator.busy = false
		if w.raising = err == nil; !w.raising {
			w.count("raises refused")
		}
	})
}

// stranger is a server of a later release, which relays what nobody here knows. It must be
// refused before it is in the log: there it would stop every server.
func (w *World) stranger() {
	s, from := w.leader(w.servers[0]), w.servers[w.random.IntN(len(w.servers))]
	unknown := [][]byte{{120, 0}, {4, 3, 255, 255, 255}, {}}
	w.count("unknown commands passed on")
	s.deliver("a stranger", replica.Relayed{From: from.id, Relay: replica.Relay{
		First: 1, Commands: [][]byte{unknown[w.random.IntN(len(unknown))]},
	}})
}

// understands checks that a server gets nothing that its version cannot read, and that
// nobody writes above the level that the cluster is at.
func (t *truth) understands(s *server, a replica.Applied) {
	if a.Entry == nil || s.node == nil {
		return
	}
	_, n := binary.Uvarint(a.Data) // the format
	written, _ := binary.Uvarint(a.Data[n:])
	level := core.Level(written)
	for _, c := range a.Entry.Commands {
		level = max(level, needs(c))
	}
	switch active := s.node.State().Level(); {
	case level > s.levels.Newest:
		t.world.violated("server %d knows %v, and has to read entry %d of level %d", s.id, s.levels, a.Index, level)
	case level > active:
		t.world.violated("entry %d is of level %d, and the cluster is at %d", a.Index, level, active)
	}
}
