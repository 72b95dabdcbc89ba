package sim

import (
	"maps"
	"os"
	"slices"
	"testing"
	"time"
)

// worlds are made so that certain mistakes show in them soon: internal/sim/mutants says which. A name that begins with that
// of a kind of trouble has more of it than there usually is.
var worlds = map[string]Config{
	"one":          {Nodes: 1},
	"three":        {Nodes: 3},
	"snapshots":    {Nodes: 1, Faults: but(func(f *Faults) { f.SnapshotEvery, f.SlowDisk = 1<<10, 10 })},
	"powercuts":    {Nodes: 3, Faults: but(func(f *Faults) { f.KillAll, f.SlowDisk = 20, 20 })},
	"transfers":    {Nodes: 3, Faults: but(func(f *Faults) { f.Every, f.Transfer, f.SlowDisk, f.SlowNet = 500*time.Millisecond, 60, 10, 10 })},
	"failover":     {Nodes: 3, Faults: failover, Strict: strict},
	"churn":        {Nodes: 3, Faults: churn},
	"quick-churn":  {Nodes: 3, Faults: quickChurn},
	"slow-net":     {Nodes: 3, Clients: 15, Faults: but(func(f *Faults) { f.SlowNet, f.Latency, f.LossPerMille = 20, 200*time.Millisecond, 200 })},
	"far-apart":    {Nodes: 3, Faults: but(farApart)},
	"isolated":     {Nodes: 3, Clients: 15, Faults: but(func(f *Faults) { f.Isolate, f.Kill, f.LossPerMille = 40, 20, 200 })},
	"late-lead":    {Nodes: 3, Faults: lateLead},
	"one-or-two":   {Nodes: 3, Clients: 15, Faults: but(oneOrTwo)},
	"come-and-go":  {Nodes: 3, Faults: but(comeAndGo)},
	"lost-data":    {Nodes: 3, Faults: but(func(f *Faults) { comeAndGo(f); f.Members.Wipe = 10 })},
	"seldom":       {Nodes: 1, Faults: failover, Visits: 14 * time.Minute, Length: time.Hour},
	"restores":     {Nodes: 3, Faults: restores, Disasters: disasters},
	"versions":     {Nodes: 3, Versions: versions},
	"lost-replies": {Nodes: 1, Faults: but(func(f *Faults) { f.LoseReplies = 20 })},
	"slots":        {Nodes: 1, Faults: but(func(f *Faults) { f.Pools = 80 })},
	"watched":      {Nodes: 3, Watchers: 2},

	"access":          {Nodes: 1, Access: accessed},
	"access-crowded":  {Nodes: 1, Clients: 8, Access: accessed},
	"access-of-three": {Nodes: 3, Access: accessed},
	"links":           {Nodes: 1, Links: 60},
	"areas":           {Nodes: 1, Subjects: areas},
	"tasks":           {Nodes: 1, Subjects: tasks},
	"reservations":    {Nodes: 1, Subjects: booked},
	"subjects":        {Nodes: 1, Subjects: mixed},
	"pools":           {Nodes: 1, Subjects: pooled},
	"pools-crowded":   {Nodes: 1, Clients: 14, Subjects: pooled},
	"pools-reloaded": {Nodes: 3, Clients: 14, Subjects: pooled, Faults: but(func(f *Faults) {
		f.Every, f.Kill, f.SnapshotEvery, f.Eager = time.Second, 30, 256, true
	})},
}

// but is all that can go wrong, with some of it changed.
func but(change func(*Faults)) Faults {
	f := Everything
	change(&f)
	return f
}

var (
	// lateLead is servers that were away, need a snapshot, and lead as soon as they have it.
	lateLead = Faults{Every: 4 * time.Second, LateLead: 1, Latency: 8 * time.Millisecond, ClockRate: bound, SnapshotEvery: 64, Eager: true}

	quickChurn = func() Faults {
		f := churn
		f.Every, f.KillAll, f.KillVoter = time.Second, 0, 0
		return f
	}()
)

// farApart lets messages take as long as the election timeout allows.
func farApart(f *Faults) { f.Latency = 450 * time.Millisecond }

// oneOrTwo is a server that often dies, and another one that comes and goes.
func oneOrTwo(f *Faults) {
	*f = Faults{Every: time.Second, Kill: 1, SlowDisk: 1, Down: 100 * time.Millisecond, Latency: 8 * time.Millisecond, SnapshotEvery: 4 << 10}
	f.Members = Members{Every: time.Second, Least: 1, Most: 2, StartLate: 100 * time.Millisecond}
}

// comeAndGo lets the members change all the time.
func comeAndGo(f *Faults) {
	f.Members = Members{Every: 4 * time.Second, Least: 1, Most: 5, Wipe: 1, KillAnswerer: 50, StartLate: 5 * time.Second}
}

// maxSearch is within how much simulated time a mutant must be found.
const maxSearch = 4 * time.Hour

// TestWorlds survives each world. With a mutant (see internal/sim/mutants) it goes on until something is found.
func TestWorlds(t *testing.T) {
	mutated := os.Getenv("LEASEHOLD_MUTANT") != ""
	for _, name := range slices.Sorted(maps.Keys(worlds)) {
		t.Run(name, func(t *testing.T) {
			c, seeds := worlds[name], 3
			if c.Clients == 0 {
				c.Clients = 5
			}
			if c.Faults == (Faults{}) {
				c.Faults = Everything
			}
			switch {
			case mutated && c.Length != 0:
				seeds = int(maxSearch / c.Length)
			case mutated:
				c.Length = 2 * time.Minute
				seeds = int(maxSearch / c.Length)
			case c.Length == 0:
				c.Length = time.Minute
			}
			c.Uncompared = mutated
			clean(t, c, seeds)
		})
	}
}
