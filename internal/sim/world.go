// Package sim runs a whole cluster in virtual time, from one seed: the very step function of
// engine/cluster with the real core and the real raft, on machines, disks, networks and clients
// that are simulated and fail in every way that a cluster has to survive. Same seed, same run,
// byte for byte.
//
// What it checks is written from the promises alone (docs/guarantees.md) and shares no code
// with what keeps them.
package sim

import (
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
	"github.com/leasehold/leasehold/internal/sim/agenda"
)

// Config is what a run is made from.
type Config struct {
	Seed     uint64
	Nodes    int
	Clients  int
	Watchers int
	Length   time.Duration // of the troubled part; a quiet one follows
	Faults   Faults
	Strict   Strict

	Disasters Disasters
	Versions  Versions
	Access    Access

	// Links is how many want something by a record that stands for their lease, in percent.
	Links int

	Subjects Subjects

	// Visits is how often somebody does something in a namespace that nobody else uses, on
	// average; 0: never.
	Visits time.Duration
	Trace  io.Writer // nil: none is written

	// Uncompared servers do not compare their states with each other: one that waits for that hides some mistakes.
	Uncompared bool
}

// Strict is what is promised only while nothing is wrong but a server that is down.
// Zero: it is not asked for.
type Strict struct {
	Late time.Duration // beyond the time without a leader, by which a lease may end late
	Gap  time.Duration // how long there may be no leader
}

// Faults say how often each happens, by weight, and how often any does.
type Faults struct {
	Every time.Duration // on average

	Kill, KillAll, Reboot          int
	Pause                          int
	SlowDisk, StalledDisk, BadDisk int
	WallJump                       int
	Isolate, OneWay, SlowNet       int
	Transfer                       int
	Sleep                          int // of a server's machine, or of a client's
	LowRoom                        int // on a disk
	LoseReplies                    int
	LateLead                       int // who was away and needs a snapshot gets the lead at once

	Down          time.Duration // that a server is down, mostly, at the longest
	Latency       time.Duration // between servers, at the longest
	ClockRate     int64         // parts per million by which a clock may be wrong
	SnapshotEvery int64         // bytes
	Eager         bool          // snapshots are taken that often however large a state is

	LossPerMille, RepeatPerMille int

	// Pools is how often, in a hundred, somebody wants slots; 0: not very.
	Pools int

	// KillVoter kills a server, in this percentage of cases, when it has just voted.
	KillVoter int

	Members Members
}

// Members say how the members change.
type Members struct {
	Every       time.Duration // on average; 0: they do not
	Least, Most int           // how many there are
	Wipe        int           // how often, by weight, a server loses its data instead
	// KillAnswerer kills a leader, in this percentage of cases, when it has just answered
	// that a change is done.
	KillAnswerer int
	// StartLate is the longest time until a server that was added starts.
	StartLate time.Duration
}

// Everything is what a cluster has to live with.
var Everything = Faults{
	Every: 2 * time.Second,
	Kill:  4, KillAll: 1, Reboot: 2, Pause: 4, SlowDisk: 3, StalledDisk: 1, BadDisk: 1, WallJump: 1,
	Isolate: 3, OneWay: 3, SlowNet: 3, Transfer: 3, LoseReplies: 2, Sleep: 2, LowRoom: 1,
	Down: 3 * time.Second, Latency: 8 * time.Millisecond, ClockRate: 5000, SnapshotEvery: 4 << 10, LossPerMille: 5,
	RepeatPerMille: 5,
}

// A Report is what a run came to.
type Report struct {
	Seed        uint64
	Violations  []string
	Fingerprint uint64 // of everything that happened
	Counts      map[string]int
}

// A World is a run.
type World struct {
	Config
	random *rand.Rand
	now    time.Duration // real time
	agenda agenda.Agenda
	print  hash.Hash64

	servers  []*server // the machines that there are
	byID     map[uint64]*server
	clients  []*client
	watchers []*watcher
	operator *operator
	founders []replica.Member
	network  network
	truth    *truth
	history  *history
	quiet    bool          // the troubled part is over
	lull     time.Duration // until then clients send nothing
	backups  []*backup
	raising  bool // the level is being raised, or was
	epoch    int  // how many restores there were

	violations []string
	counts     map[string]int
}

// Run runs one seed to its end, or to the first violation.
func Run(c Config) Report {
	w := &World{
		Config: c, random: rand.New(rand.NewPCG(c.Seed, 0x6c65617365)), print: fnv.New64a(), counts: map[string]int{},
		byID: map[uint64]*server{},
	}
	w.truth, w.history = newTruth(w), &history{world: w}
	w.network.world = w
	for i := range c.Nodes {
		s := newServer(w, uint64(i+1))
		w.servers, w.byID[s.id] = append(w.servers, s), s
	}
	for _, s := range w.servers {
		w.founders = append(w.founders, s.member())
	}
	w.operator = &operator{world: w}
	for i := range c.Watchers {
		w.watchers = append(w.watchers, &watcher{world: w, name: fmt.Sprint("w", i), space: spaces[i%len(spaces)]})
	}
	for i := range c.Clients {
		w.clients = append(w.clients, newClient(w, i))
	}
	for _, s := range w.servers {
		w.after(w.upTo(50*time.Millisecond), s.start)
	}
	for _, c := range w.clients {
		c.later(time.Second+w.upTo(time.Second), c.think)
	}
	w.after(3*time.Second, w.trouble)
	w.after(2*time.Second, w.meddle)
	w.after(2*time.Second, w.define)
	for _, x := range w.watchers {
		w.after(time.Second+w.upTo(time.Second), x.look)
	}
	if c.Faults.Members.Every > 0 {
		w.after(5*time.Second, w.operator.work)
	}
	w.beginSubjects()
	if c.Visits > 0 {
		w.after(5*time.Second, w.visit)
	}
	if c.Access.Every > 0 {
		w.after(time.Second, w.beginAccess)
	}
	if c.Versions.Every > 0 {
		w.after(5*time.Second, w.upgrade)
	}
	if c.Disasters.Every > 0 {
		w.after(3*time.Second, w.backUp)
		w.after(w.between(c.Disasters.Every/2, 3*c.Disasters.Every/2), w.disaster)
	}
	w.runUntil(c.Length)
	w.settle()
	return w.report()
}

// settle ends the trouble and checks that everything comes to rest: all servers agree, and what
// nobody renews is gone. Many mistakes only show then, as something that never ends.
func (w *World) settle() {
	if w.failed() {
		return
	}
	w.quiet = true
	w.network.heal()
	for _, s := range slices.Clone(w.servers) { // one of them may hear at once that it is to go
		s.recoverFully()
	}
	w.after(5*time.Second, func() {
		canary := newClient(w, 100)
		canary.insist(&core.Acquire{Namespace: spaces[0], Resource: "canary", ID: "canary", Holder: "canary",
			TTL: time.Second, Wait: 12 * time.Second}, 20)
	})
	// By then somebody leads and everybody has caught up, so that no read may fail.
	for at := 15 * time.Second; at < 25*time.Second; at += 500 * time.Millisecond {
		w.after(at, w.canaryReads)
	}
	w.runUntil(w.now + 40*time.Second)
	for range 20 { // an entry may be on its way: as long as anything is reserved time is told
		if !w.truth.behind() {
			break
		}
		w.runUntil(w.now + 50*time.Millisecond)
	}
	if !w.failed() {
		w.truth.rest()
		w.history.check()
		for _, x := range w.watchers {
			x.rest()
		}
	}
}

// canaryReads reads at each server. Nothing is wrong now and somebody leads, so each of
// them must succeed, however long messages take.
func (w *World) canaryReads() {
	for _, s := range w.servers {
		if s.node == nil || s.barred {
			continue
		}
		s.deliver("canary", replica.Reads{{
			Read: func(core.View) { w.count("canary reads") },
			Done: func(err error) {
				if err != nil {
					w.violated("server %d cannot be read, and nothing is wrong: %v", s.id, err)
				}
			},
		}})
	}
}

func (w *World) report() Report {
	fmt.Fprintf(w.print, "%d %d", w.now, w.agenda.Made)
	return Report{w.Seed, w.violations, w.print.Sum64(), w.counts}
}

func (w *World) runUntil(end time.Duration) {
	for !w.failed() {
		at, do, more := w.agenda.Next(end)
		if !more {
			break
		}
		w.now = at
		do()
	}
	w.now = max(w.now, end)
}

func (w *World) failed() bool { return len(w.violations) > 0 }

// violated records a promise that was not kept. The run ends there: what follows would be
// consequences.
func (w *World) violated(format string, args ...any) {
	line := fmt.Sprintf("at %v: ", w.now) + fmt.Sprintf(format, args...)
	w.tell("VIOLATED %s", line)
	w.violations = append(w.violations, line)
}

// tell writes a line of the trace. All lines are part of the fingerprint, so two runs of one
// seed that differ anywhere are found out.
func (w *World) tell(format string, args ...any) {
	line := fmt.Sprintf("%d ", w.now) + fmt.Sprintf(format, args...) + "\n"
	_, _ = io.WriteString(w.print, line)
	if w.Trace != nil {
		_, _ = io.WriteString(w.Trace, line)
	}
}

func (w *World) count(what string) { w.counts[what]++ }

// after schedules something.
func (w *World) after(d time.Duration, do func()) { w.agenda.Add(w.now+max(0, d), do) }

// upTo returns some duration below d.
func (w *World) upTo(d time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(max(1, d))))
}

func (w *World) between(a, b time.Duration) time.Duration { return a + w.upTo(b-a) }

// chance is true in a percentage of its calls.
func (w *World) chance(percent int) bool { return w.random.IntN(100) < percent }

// rate is by how many parts in a million a clock is wrong.
func (w *World) rate() int64 {
	if w.Faults.ClockRate == 0 {
		return 0
	}
	if w.chance(50) { // the worst is the most telling
		return w.Faults.ClockRate * int64(2*w.random.IntN(2)-1)
	}
	return w.random.Int64N(2*w.Faults.ClockRate+1) - w.Faults.ClockRate
}

// wild reports whether clocks may be so wrong that nothing is promised that depends on them.
func (w *World) wild() bool { return w.Faults.ClockRate > bound }
