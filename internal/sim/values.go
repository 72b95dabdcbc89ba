package sim

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// Large values are kept beside the log. What the edge of a server does for them is reduced to
// two rules here: a value is on a majority of disks before a record names it, and a server that
// lacks one that its state names asks for it. The rest is the node's own: it gives no vote to a
// server that lacks one, and reports of each entry which values got a name and which lost it.

// putLarge puts a large value, and names it once a majority has it.
func (c *client) putLarge() {
	w, to := c.world, c.at
	roster := w.truth.members.newest
	if to.node == nil || to.paused || roster == nil {
		return
	}
	large := leasehold.Large{SHA256: sha256.Sum256(fmt.Append(nil, w.random.IntN(6))), Size: 100_000}
	voters := roster.Voters()
	have, named := 0, false
	kept := func(s *server) {
		s.disk.values[large.SHA256] = true
		if slices.Contains(voters, s.id) {
			have++
		}
		if have <= len(voters)/2 || named || w.quiet {
			return
		}
		named = true
		w.count("large values named")
		c.insist(&core.PutRecord{Namespace: w.space(), Path: fmt.Sprint("large", w.random.IntN(3)), Large: &large}, 3)
	}
	kept(to)
	for _, id := range voters {
		if id != to.id {
			w.network.carry(to, id, func(s *server) {
				if s.node != nil {
					kept(s)
				}
			})
		}
	}
}

// canName reports whether a server and a majority have the large values that a command names.
func (s *server) canName(c core.Command) bool {
	for _, large := range core.LargeOf(c) {
		have := 0
		voters := s.node.Roster().Voters()
		for _, id := range voters {
			if o := s.world.byID[id]; o != nil && o.disk.values[large.SHA256] {
				have++
			}
		}
		if !s.disk.values[large.SHA256] || have <= len(voters)/2 {
			return false
		}
	}
	return true
}

// lacks returns the large values that a server's state names and its disk does not have.
func (s *server) lacks() (list []leasehold.Digest) {
	if s.node == nil {
		return nil
	}
	s.node.State().Larges(func(l leasehold.Large) bool {
		if !s.disk.values[l.SHA256] {
			list = append(list, l.SHA256)
		}
		return true
	})
	return list
}

// fetchValues asks another server for what this one lacks.
func (s *server) fetchValues() {
	w := s.world
	lacks, from := s.lacks(), w.otherThan(s)
	if len(lacks) == 0 || from == s {
		return
	}
	w.network.carry(s, from.id, func(o *server) {
		for _, d := range lacks {
			if o.node != nil && o.disk.values[d] {
				w.network.carry(o, s.id, func(s *server) {
					if s.node != nil {
						s.disk.values[d] = true
						w.count("large values fetched")
					}
				})
			}
		}
	})
}

// complete reports whether another server has all that its state names.
func (w *World) complete(id uint64) bool {
	s := w.byID[id]
	return s != nil && s.node != nil && len(s.lacks()) == 0
}

// valuesRest checks, at the end, that no value was lost.
func (t *truth) valuesRest(s *server) {
	if lacks := s.lacks(); len(lacks) > 0 {
		t.world.violated("server %d lacks %d large values that are named, and nobody could give them to it", s.id,
			len(lacks))
	}
}
