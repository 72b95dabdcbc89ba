package sim

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"testing"
	"testing/cryptotest"
	"time"
)

var (
	seeds = flag.Int("seeds", 16, "how many seeds to run")
	first = flag.Int("first", 1, "the first of them")
)

// A run makes much that lives for a moment: what is collected less often takes a quarter less.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// run runs a seed. Raft draws its election timeouts from the global random source.
func run(t *testing.T, c Config) Report {
	t.Helper()
	cryptotest.SetGlobalRandom(t, c.Seed)
	return Run(c)
}

// fewer is how many seeds make test runs of some: a quarter.
func fewer(short bool, seeds int) int {
	if short {
		return seeds / 4
	}
	return seeds
}

func TestOneNode(t *testing.T) {
	clean(t, Config{Nodes: 1, Clients: 5, Length: 6 * time.Minute, Faults: Everything}, fewer(testing.Short(), *seeds))
}

func TestThreeNodes(t *testing.T) {
	clean(t, Config{Nodes: 3, Clients: 5, Watchers: 2, Length: 6 * time.Minute, Faults: Everything, Subjects: some},
		fewer(testing.Short(), *seeds))
}

// Servers come and go, from one to five of them, while everything else goes wrong.
func TestMembers(t *testing.T) {
	clean(t, Config{Nodes: 3, Clients: 4, Watchers: 2, Length: 6 * time.Minute, Faults: coming, Subjects: some},
		fewer(testing.Short(), *seeds))
}

func TestFiveNodes(t *testing.T) {
	clean(t, Config{Nodes: 5, Clients: 4, Watchers: 2, Length: 6 * time.Minute, Faults: coming}, fewer(testing.Short(), *seeds/4))
}

var coming = func() Faults {
	f := Everything
	f.Members = Members{Every: 8 * time.Second, Least: 1, Most: 5, Wipe: 1, KillAnswerer: 20}
	return f
}()

// Servers are as far from each other as the election timeout allows.
func TestFarApart(t *testing.T) {
	faults := Everything
	farApart(&faults)
	clean(t, Config{Nodes: 3, Clients: 5, Watchers: 2, Length: 6 * time.Minute, Faults: faults}, fewer(testing.Short(), *seeds/2))
}

func TestChurn(t *testing.T) {
	clean(t, Config{Nodes: 3, Clients: 5, Watchers: 2, Length: 6 * time.Minute, Faults: churn}, fewer(testing.Short(), *seeds))
}

// churn is servers that come and go, often when they have just voted, on a slow network.
var churn = Faults{
	Every: 2 * time.Second, Kill: 10, KillAll: 2, KillVoter: 30, Down: 500 * time.Millisecond, Latency: 300 * time.Millisecond,
	ClockRate: 5000, SnapshotEvery: 4 << 10,
}

// The only trouble is that servers die: then a lease ends late by no more than nobody
// led, and somebody leads again within three seconds.
func TestAFailoverCostsTheGap(t *testing.T) {
	clean(t, Config{
		Nodes: 3, Clients: 5, Length: 6 * time.Minute, Faults: failover, Strict: strict,
	}, *seeds/2)
}

var (
	failover = Faults{
		Every: 10 * time.Second, Kill: 1, Reboot: 1, Down: 900 * time.Millisecond, Latency: 8 * time.Millisecond, ClockRate: bound, SnapshotEvery: 4 << 10,
	}
	strict = Strict{Late: 100 * time.Millisecond, Gap: 3 * time.Second}
)

// A server of its own that starts on another boot of its machine adds up to ten seconds,
// in which nothing may have been stamped; and never a TTL.
func TestARestartCostsTheGapAndTenSeconds(t *testing.T) {
	clean(t, Config{
		Nodes: 1, Clients: 5, Length: 6 * time.Minute, Strict: Strict{Late: 10*time.Second + 100*time.Millisecond},
		Faults: Faults{Every: 20 * time.Second, Kill: 1, Reboot: 2, Down: 900 * time.Millisecond, Latency: 8 * time.Millisecond, ClockRate: bound, SnapshotEvery: 4 << 10},
	}, *seeds/2)
}

// The lead changes five times a second, and time goes on: no lease gets a new TTL from a
// new leader.
func TestALeadThatNeverRests(t *testing.T) {
	clean(t, Config{
		Nodes: 3, Clients: 5, Length: 6 * time.Minute, Strict: Strict{Late: 500 * time.Millisecond},
		Faults: Faults{Every: 200 * time.Millisecond, Transfer: 1, Latency: 8 * time.Millisecond, ClockRate: bound, SnapshotEvery: 4 << 10},
	}, *seeds/4)
}

// With clocks that are wrong by a tenth holders believe too long. Tokens protect all the
// same: that promise needs no clock.
func TestClocksBeyondTheBound(t *testing.T) {
	faults := Everything
	faults.ClockRate = 100_000
	counts := clean(t, Config{Nodes: 3, Clients: 5, Length: 6 * time.Minute, Faults: faults}, *seeds/2)
	if counts["believed too long"] == 0 {
		t.Error("nobody believed too long: the clocks are not wild enough to show anything")
	}
}

// All servers are lost, again and again, and a cluster of one goes on from a backup: no
// token is given twice, nothing is granted while anybody may believe in what the backup
// does not know, and a watch is told that it missed something.
func TestRestores(t *testing.T) {
	counts := clean(t, Config{Nodes: 3, Clients: 5, Watchers: 2, Length: 6 * time.Minute, Faults: restores, Disasters: disasters}, *seeds/4)
	if counts["restores"] == 0 || counts["watches that learned of a restore"] == 0 {
		t.Error("nothing was restored, or nobody noticed")
	}
}

// A namespace in which nothing happens for long may be forgotten, and begins again: tokens
// and revisions still only grow.
func TestSeldomNamespaces(t *testing.T) {
	clean(t, Config{Nodes: 1, Clients: 1, Length: time.Hour, Faults: failover, Visits: 14 * time.Minute}, *seeds/10)
}

// Servers of the release before are started with this one, one after the other, and some go
// back; then the level is raised, while servers of both kinds come and go.
func TestVersions(t *testing.T) {
	counts := clean(t, Config{
		Nodes: 3, Clients: 5, Watchers: 2, Length: 6 * time.Minute, Faults: Everything, Versions: versions,
	}, *seeds/4)
	coming := clean(t, Config{
		Nodes: 3, Clients: 4, Length: 6 * time.Minute, Faults: coming, Versions: versions,
	}, *seeds/8)
	if counts["levels raised"] == 0 || coming["levels raised"] == 0 || counts["raises refused"] == 0 || counts["news"] == 0 {
		t.Error("no level was raised, none was refused, or nothing was done at the new one")
	}
}

// Who may do what changes all the time, and everybody tries what it may not, while everything else goes wrong.
func TestAccess(t *testing.T) {
	counts := clean(t, Config{Nodes: 3, Clients: 5, Watchers: 2, Length: 6 * time.Minute, Faults: Everything, Access: accessed}, *seeds/3)
	for _, what := range []string{"denied", "changes of access", "refused for a quota", "holds", "registers written", "grants to those who waited, judged"} {
		if counts[what] == 0 {
			t.Errorf("%s: none", what)
		}
	}
}

// Many ask by records that stand for their leases, below mirror prefixes and elsewhere, beside those who do not.
func TestLinks(t *testing.T) {
	counts := clean(t, Config{Nodes: 3, Clients: 6, Watchers: 2, Length: 6 * time.Minute, Faults: Everything, Links: 60}, *seeds/2)
	restored := clean(t, Config{Nodes: 3, Clients: 5, Watchers: 2, Length: 6 * time.Minute, Faults: restores, Disasters: disasters, Links: 60}, *seeds/6)
	for _, what := range []string{"records made or freed", "records of others deleted", "holds"} {
		if counts[what] == 0 || restored[what] == 0 {
			t.Errorf("%s: none", what)
		}
	}
}

var accessed = Access{Every: 2 * time.Second}

var versions = Versions{Every: 6 * time.Second, Back: 20}

var (
	disasters = Disasters{Every: 40 * time.Second, Backup: 10 * time.Second, Quarantine: 8 * time.Second}
	restores  = func() Faults {
		f := Everything
		f.Members = Members{Every: 8 * time.Second, Least: 1, Most: 3}
		return f
	}()
)

// clean wants a number of seeds to keep every promise.
func clean(t *testing.T, c Config, seeds int) map[string]int {
	t.Helper()
	total := map[string]int{}
	for seed := range seeds {
		c.Seed = uint64(seed + *first)
		r := run(t, c)
		for what, n := range r.Counts {
			total[what] += n
		}
		for _, v := range r.Violations {
			t.Errorf("seed %d: %s", c.Seed, v)
		}
		if t.Failed() {
			return total
		}
	}
	line := ""
	for _, what := range slices.Sorted(maps.Keys(total)) {
		line += fmt.Sprintf(" %s %d;", what, total[what])
	}
	t.Logf("%d seeds:%s", seeds, line)
	return total
}

func TestSameSeedSameRun(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		var traces [2]bytes.Buffer
		var reports [2]Report
		for i := range traces {
			reports[i] = run(t, Config{Seed: 7, Nodes: nodes, Clients: 5, Length: time.Minute, Faults: Everything, Trace: &traces[i]})
		}
		if !bytes.Equal(traces[0].Bytes(), traces[1].Bytes()) || reports[0].Fingerprint != reports[1].Fingerprint {
			t.Errorf("%d nodes: the same seed ran differently", nodes)
		}
		if traces[0].Len() < 10000 {
			t.Errorf("%d nodes: the trace has %d bytes", nodes, traces[0].Len())
		}
	}
}
