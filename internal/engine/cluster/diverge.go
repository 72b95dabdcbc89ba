package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/internal/engine/replica"
)

// Servers that apply the same log have the same state. A server whose state differs, because a
// bit flipped in its memory or a bug shows on one machine alone, would answer as readily as the
// others, and wrongly. So the leader puts a Sum into the log once in a while: there each server
// sums up a frozen state in the background, asks the others for theirs, and judges itself. The
// majority decides; a server that differs from it stops, and its data are refused from then on.
// Where no majority agrees, nobody can tell who is right: then it is logged as an error, and
// nobody stops.
//
// A server that read a snapshot answers nobody before its state was compared: see prove.go of the
// replica.

const (
	// sumEvery is how often states are compared, unless that would take more than one part
	// in sumShare of one processor's time.
	sumEvery = time.Minute
	sumShare = 100

	// compareWithin is how long the others have to reach the same place.
	compareWithin = time.Minute

	// proofEvery is how often a server asks for a comparison that has to prove its state; each
	// time half as often, as it may be far behind.
	proofEvery = 5 * time.Second

	// disownAfter is how long a server that differs keeps running, so that the others can ask
	// for its hash: otherwise they would only see that it is away.
	disownAfter = time.Second
)

// paceSums starts a comparison when one is due. It is called from the node's own goroutine.
func (e *Engine) paceSums() {
	now := time.Now()
	if !e.node.Serving() || len(e.node.Roster().Members) < 2 {
		e.sumAt = time.Time{}
		return
	}
	if e.sumAt.IsZero() {
		e.sumAt = now.Add(e.sums.pause())
	}
	if now.Before(e.sumAt) {
		return
	}
	e.sumAt = now.Add(e.sums.pause())
	e.node.Step(replica.Reconfigure{Change: replica.Change{Kind: replica.Sum},
		Done: func(replica.Member, uint64, error) {}})
}

// paceProof asks the leader for a comparison while this server's own state has to prove itself. A
// leader does so by itself. It is called from the node's own goroutine.
func (e *Engine) paceProof() {
	now := time.Now()
	switch {
	case !e.node.Unproven():
		e.proofAt, e.proofIn = time.Time{}, 0
		return
	case e.node.Leads(), e.node.Leader() == 0, now.Before(e.proofAt):
		return
	}
	e.proofIn = min(max(2*e.proofIn, proofEvery), sumEvery)
	e.proofAt = now.Add(e.proofIn)
	e.spawn(func() {
		ctx, cancel := context.WithTimeout(e.network.ctx, proofEvery)
		defer cancel()
		_, _ = e.change(ctx, replica.Change{Kind: replica.Sum})
	})
}

// pause is how long to wait between two comparisons.
func (s *sums) pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(sumEvery, sumShare*s.took)
}

// A comparison is what the hashes of the servers' states at one place of the log say.
type comparison struct {
	known    int              // voters whose hash is known
	majority string           // the hash that more than half of the voters have; empty: there is none
	odd      []replica.Member // who differs from the majority; without one, all who are known if not all are alike
}

// compareSums judges hashes by the ids of servers. Only voters make a majority, but a learner
// can differ as well.
func compareSums(roster *replica.Roster, hashes map[uint64]string) (c comparison) {
	votes, voters := map[string]int{}, len(roster.Voters())
	for _, m := range roster.Members {
		if hash := hashes[m.ID]; hash != "" && m.Voter {
			c.known++
			if votes[hash]++; votes[hash] > voters/2 {
				c.majority = hash
			}
		}
	}
	first := ""
	for _, m := range roster.Members {
		if first == "" {
			first = hashes[m.ID]
		}
	}
	alike := true
	for _, m := range roster.Members {
		hash := hashes[m.ID]
		if hash == "" {
			continue
		}
		alike = alike && hash == first
		if hash != c.majority {
			c.odd = append(c.odd, m)
		}
	}
	if alike {
		c.odd = nil
	}
	return c
}

// sameVersion reports whether all members run the version of this server. Two versions are meant to
// write the same state alike; should they ever not, that is a bug of the program, and no server
// must be lost for it. The roster may not know yet what was just started: so all are asked.
func (e *Engine) sameVersion(ctx context.Context, roster *replica.Roster) bool {
	all := e.askAll(ctx, roster)
	return !slices.ContainsFunc(roster.Members, func(m replica.Member) bool {
		return m.ID != e.id && cmp.Or(all[m.ID].Version, m.Version) != e.self.Version
	})
}

// compare asks the others for their hashes at an index, and acts on the result.
func (e *Engine) compare(index uint64, own string) {
	roster := e.network.current()
	defer e.sums.comparing.Add(-1)
	if e.sums.comparing.Add(1) > maxSums || len(roster.Members) < 2 {
		return
	}
	ctx, cancel := context.WithTimeout(e.network.ctx, compareWithin)
	defer cancel()
	hashes := map[uint64]string{e.id: own}
	c, proven := compareSums(roster, hashes), false
	for s := range e.eachSum(ctx, roster, index) {
		if s.Server != e.id {
			hashes[s.Server] = s.Hash
		}
		c = compareSums(roster, hashes)
		if c.majority == own && !proven {
			proven = true
			e.network.post(replica.Compared{Index: index, Settled: true})
		}
		if c.majority != "" && c.majority != own {
			break // whatever the rest say
		}
	}
	if e.network.ctx.Err() == nil {
		e.judge(ctx, verdict{comparison: c, index: index, own: own, roster: roster, hashes: hashes})
	}
}

// A verdict is a comparison with what it was made from.
type verdict struct {
	comparison
	index  uint64
	own    string
	roster *replica.Roster
	hashes map[uint64]string
}

// judge acts on a comparison.
func (e *Engine) judge(ctx context.Context, v verdict) {
	v.odd = append(v.odd, e.sums.stillOdd(v.roster, v.hashes)...)
	if e.sums.note(v.index, v.odd) {
		e.watch.compared(v.comparison)
	}
	settled := v.majority != "" || v.known == len(v.roster.Voters())
	switch {
	case len(v.odd) == 0:
		e.log.Debug("the states of the servers are the same", "index", v.index, "servers", v.known)
	// Somebody else differs, and will find out by itself; or nobody can tell who.
	case v.majority == "" || v.majority == v.own:
		e.log.Error("the states of the servers differ", "index", v.index, "differ", names(v.odd), "majority",
			v.majority != "")
	case !e.sameVersion(ctx, v.roster):
		e.log.Error("the state of this server differs from that of the majority, which runs other versions", "index",
			v.index)
	default:
		pause(ctx, disownAfter)
		e.disown(v.index)
		return
	}
	e.network.post(replica.Compared{Index: v.index, Settled: settled})
}

// note keeps who differs, unless a newer comparison has come to an end already.
func (s *sums) note(index uint64, odd []replica.Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if index < s.judged {
		return false
	}
	s.judged = index
	s.odd.Store(&odd)
	return true
}

// stillOdd returns the members that differed before and have said nothing since. They have
// stopped; the alarm goes on until they are removed.
func (s *sums) stillOdd(roster *replica.Roster, hashes map[uint64]string) (odd []replica.Member) {
	before := s.odd.Load()
	if before == nil {
		return nil
	}
	for _, m := range *before {
		if _, member := roster.Member(m.ID); member && hashes[m.ID] == "" {
			odd = append(odd, m)
		}
	}
	return odd
}

func names(members []replica.Member) (names []string) {
	for _, m := range members {
		names = append(names, m.Name)
	}
	return names
}

// disown ends this server permanently, because its state differs from what the log produces. The
// data directory records it: otherwise a restart would bring the wrong state back.
func (e *Engine) disown(index uint64) {
	why := fmt.Sprintf("at entry %d of the log the state of this server was another than that of the majority", index)
	refused, err := e.network.dir.Disown(why)
	if err != nil {
		e.log.Error("the data directory could not be marked as unusable", "err", err)
	}
	e.network.post(replica.Expelled{Err: refused})
}
