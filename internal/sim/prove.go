package sim

import (
	"crypto/sha256"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/wire"
)

// Servers compare their states, as the engine has them do: one that read a snapshot serves only then.

// comparesFor is how long a server waits for the sums of others.
const comparesFor = 10 * time.Second

// summed keeps the sum of a state, and compares it with those of the others.
func (s *server) summed(index uint64, frozen *core.State) {
	hash := sha256.New()
	if _, err := wire.WriteSnapshot(hash, frozen); err != nil {
		s.world.violated("the state of server %d cannot be summed up: %v", s.id, err)
		return
	}
	s.sums[index] = string(hash.Sum(nil))
	life, until := s.life, s.world.now+comparesFor
	s.world.after(0, func() { s.compare(life, index, until) })
}

// compare compares states until a majority has that of this server, or it takes too long.
func (s *server) compare(life int, index uint64, until time.Duration) {
	if s.node == nil || s.life != life {
		return
	}
	voters, same := s.node.Roster().Voters(), 0
	for _, id := range voters {
		switch other := s.world.byID[id]; {
		case id != s.id && (other == nil || other.node == nil || other.paused):
		case s.world.network.cut[[2]uint64{id, s.id}] > 0:
		case id != s.id && other.sums[index] == "":
		case s.world.byID[id].sums[index] != s.sums[index]:
			s.world.violated("at %d the states of servers %d and %d differ", index, s.id, id)
			return
		default:
			same++
		}
	}
	if settled := same > len(voters)/2; settled || s.world.now > until {
		s.deliver(edge, replica.Compared{Index: index, Settled: settled})
		return
	}
	s.world.after(replica.TickEvery, func() { s.compare(life, index, until) })
}

// askProof asks the leader for a comparison, if this server has to be compared.
func (s *server) askProof() {
	if leader := s.node.Leader(); s.ticks%50 == 0 && s.node.Unproven() && leader != 0 && leader != s.id {
		s.world.network.carry(s, leader, func(o *server) {
			o.deliver(edge, replica.Reconfigure{Change: replica.Change{Kind: replica.Sum},
				Done: func(replica.Member, uint64, error) {}})
		})
	}
}
