package sim

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/engine/cluster"
)

// A simulation that finds nothing proves as much as the mistakes that it would find.
// Each of these is a switch in a real code path, and the general checks must find it.
var planted = []struct {
	name   string
	nodes  int
	server cluster.Planted
	holder Holder
	faults func(*Faults)
}{
	{"a write is taken for durable when it begins", 1, cluster.Planted{AnswerBeforeSync: true}, Holder{}, nil},
	{"the log learns of a snapshot before its file is durable", 1, cluster.Planted{MarkBeforeSave: true}, Holder{}, func(f *Faults) { f.SnapshotEvery, f.SlowDisk = 1<<10, 10 }},
	{"the stamp is read before the batch is sealed", 1, cluster.Planted{StampBeforeSeal: true}, Holder{}, nil},
	{"a stamp may go back", 1, cluster.Planted{StampGoesBack: true}, Holder{}, nil},
	{"a Lead of another boot is counted on from", 1, cluster.Planted{AnyBoot: true}, Holder{}, nil},
	{"the calendar says how long nobody led", 1, cluster.Planted{WallTime: true}, Holder{}, nil},
	{"a holder counts from the reply", 1, cluster.Planted{}, Holder{CountsFromReply: true}, nil},
	{"the answer to a first try is counted from the second", 1, cluster.Planted{}, Holder{CountsFromRetry: true}, nil},
	{"a lost connection releases an id that the client proposed", 1, cluster.Planted{}, Holder{LateDisconnect: true}, nil},
	{"a holder trusts its clock fully", 1, cluster.Planted{}, Holder{NoGuard: true}, nil},
}

// maxHunt is within how many seeds each must be found.
const maxHunt = 40

func TestPlantedBugsAreFound(t *testing.T) {
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			c := Config{Nodes: p.nodes, Clients: 5, Length: 2 * time.Minute, Faults: Everything, Planted: p.server, Holder: p.holder}
			if p.faults != nil {
				p.faults(&c.Faults)
			}
			for c.Seed = 1; c.Seed <= maxHunt; c.Seed++ {
				if r := run(t, c); len(r.Violations) > 0 {
					t.Logf("seed %d: %s", c.Seed, r.Violations[0])
					return
				}
			}
			t.Errorf("not found in %d seeds", maxHunt)
		})
	}
}
