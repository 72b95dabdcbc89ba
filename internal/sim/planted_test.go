package sim

import (
	"cmp"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// A bug is a mistake that was planted on purpose: a switch in a real code path.
type bug struct {
	name   string
	nodes  int
	server replica.Mistake
	core   core.Mistake
	holder Holder
	aim    func(*Faults)
	strict Strict
	watch  int // how many watch
	crowd  int // how many more clients there are

	disasters Disasters
	versions  Versions
	access    Access
	links     int // percent of those who ask by a record
	subjects  Subjects
	visits    time.Duration // how often a namespace is used that nobody else uses; 0: never
	length    time.Duration // of a run; 0: two minutes
}

// A simulation that finds nothing proves as much as the mistakes that it would find.
// The general checks must find each of these.
var bugs = []bug{
	{name: "a write is taken for durable when it begins", nodes: 1, server: replica.AnswerBeforeSync},
	{name: "the log learns of a snapshot before its file is durable", nodes: 1, server: replica.MarkBeforeSave,
		aim: func(f *Faults) { f.SnapshotEvery, f.SlowDisk = 1<<10, 10 }},
	{name: "the stamp is read before the batch is sealed", nodes: 1, server: replica.StampBeforeSeal},
	{name: "a stamp may go back", nodes: 1, server: replica.StampGoesBack},
	{name: "a Lead of another boot is counted on from", nodes: 1, server: replica.AnyBoot},
	{name: "the calendar says how long nobody led", nodes: 3, server: replica.WallTime},
	{name: "a snapshot lacks the newest entry", nodes: 1, server: replica.StaleSnapshot},

	{name: "a holder counts from the reply", nodes: 1, holder: Holder{CountsFromReply: true}},
	{name: "the answer to a first try is counted from the second", nodes: 1, holder: Holder{CountsFromRetry: true}},
	{name: "a lost connection releases an id that the client proposed", nodes: 1, holder: Holder{LateDisconnect: true}},
	{name: "a holder asks before it gives up what it holds", nodes: 1, holder: Holder{AsksFirst: true}},
	{name: "a holder trusts its clock fully", nodes: 1, holder: Holder{NoGuard: true}},

	{name: "a lease that is over is renewed", nodes: 1, core: core.RenewRevives},
	{name: "a waiter is granted whose session is over", nodes: 1, core: core.GrantToGone},
	{name: "tokens are counted on from those still held", nodes: 1, core: core.TokenFromLive},

	{name: "a follower acknowledges what is not on its disk", nodes: 3, server: replica.AcknowledgeBeforeSync,
		aim: func(f *Faults) { f.KillAll, f.SlowDisk = 20, 20 }},
	{name: "a leader serves before its Lead is applied", nodes: 3, server: replica.ServeBeforeLead,
		aim: func(f *Faults) { f.Every, f.Transfer, f.SlowDisk, f.SlowNet = 500*time.Millisecond, 60, 10, 10 }},
	{name: "a leader counts on as when it last led", nodes: 3, server: replica.StaleLead},
	{name: "time is counted from the start of the term", nodes: 3, server: replica.TimeFromTerm,
		aim: func(f *Faults) { *f = failover }, strict: strict},
	{name: "stamped entries go to another leader, and their term is not checked", nodes: 3, server: replica.ForwardStamped},
	{name: "a vote is forgotten by a restart", nodes: 3, server: replica.ForgetVote,
		aim: func(f *Faults) { *f = churn }},
	{name: "a leader reads without asking", nodes: 3, server: replica.ReadByFlag},
	{name: "a read joins a round that has begun", nodes: 3, server: replica.ReadJoinsRound,
		aim: func(f *Faults) { f.SlowNet, f.Latency, f.LossPerMille = 20, 200*time.Millisecond, 200 }, crowd: 10},
	{name: "a late answer to an older round is thrown away", nodes: 3, server: replica.NewestRoundOnly, aim: farApart},
	{name: "a leader that does not serve yet tells others how far the log is", nodes: 3, server: replica.TellUnserved,
		aim: oneOrTwo, crowd: 10},
	{name: "one server makes something else of the log", nodes: 3, server: replica.AppliesDifferently},
	{name: "what may have happened is called refused", nodes: 3, server: replica.LostIsRefused},
	{name: "time counts on from before a snapshot came", nodes: 3, server: replica.KeepsArrival,
		aim: func(f *Faults) { *f = lateLead }},
	{name: "a relayed command is answered from another leader's entry", nodes: 3, server: replica.RelayAnyTerm,
		aim: func(f *Faults) { f.Isolate, f.Kill, f.LossPerMille = 40, 20, 200 }, crowd: 10},
	{name: "questions have the same names after a restart", nodes: 3, server: replica.SameNonce,
		aim: func(f *Faults) { *f = churn; f.Every, f.KillAll, f.KillVoter = time.Second, 0, 0 }},
	{name: "a command is answered before it is committed", nodes: 3, server: replica.AnswerBeforeCommit},
	{name: "a server passes on again what a lost leader may have got", nodes: 3, server: replica.RelayAgain},
	{name: "what the next leader never got is never answered", nodes: 3, server: replica.NeverAnswers},

	{name: "a namespace is forgotten with its tokens", nodes: 1, core: core.ForgetTokens,
		visits: 14 * time.Minute, length: time.Hour, aim: func(f *Faults) { *f = failover }},
	{name: "a request that was answered is done again", nodes: 1, core: core.DoAgain},
	{name: "slots are granted that rest", nodes: 1, core: core.Oversubscribe},
	{name: "a unit is given twice", nodes: 1, core: core.UnitTwice},
	{name: "a transaction goes on whatever it compared", nodes: 1, core: core.TxnAnyway},
	{name: "a large value is freed that another record names", nodes: 1, core: core.FreeNamed},
	{name: "a lease is held for longer than was defined", nodes: 1, core: core.IgnoreHoldLimit},

	{name: "a restore goes on with the tokens of its backup", nodes: 3, core: core.RestoreKeepsTokens, disasters: disasters,
		aim: func(f *Faults) { *f = restores }},
	{name: "a restored cluster grants at once", nodes: 3, core: core.NoQuarantine, disasters: disasters,
		aim: func(f *Faults) { *f = restores }},
	{name: "an unknown command of another server is taken", nodes: 3, server: replica.TakeUnknown, versions: versions},
	{name: "a command is encoded above the cluster's level", nodes: 3, holder: Holder{EncodesAbove: true}, versions: versions},
	{name: "a snapshot that finds no room ends the server", nodes: 1, server: replica.NoRoomIsTheEnd},
	{name: "a level is raised that a member does not know", nodes: 3, server: replica.RaiseUnready, versions: versions},
	{name: "what others did to a session's leases is not counted", nodes: 1, core: core.NoCount},
	{name: "a withdrawn id leaves no mark", nodes: 1, core: core.NoMark,
		aim: func(f *Faults) { f.LoseReplies = 20 }},
	{name: "a waiter stays that needs more than there is", nodes: 1, core: core.WaitHopeless,
		aim: func(f *Faults) { f.Pools = 80 }},
	{name: "a renewed session extends what others broke", nodes: 1, holder: Holder{IgnoresCount: true}},
	{name: "a holder's clock stops while its machine sleeps", nodes: 1, holder: Holder{StoppedClock: true}},

	{name: "a command is judged by the policy before the last change", nodes: 1, core: core.FormerPolicy, access: accessed},
	{name: "what is another's is taken for one's own", nodes: 1, core: core.AllIsOwn, access: accessed},
	{name: "a waiter is granted what it may not have any more", nodes: 1, core: core.GrantToRevoked, access: accessed, crowd: 3},
	{name: "what is over still counts for a quota", nodes: 1, core: core.CountGone, access: accessed},
	{name: "who asks is lost when a command is passed on", nodes: 3, server: replica.RelayUnasked, access: accessed},
	{name: "what is passed on is asked by the server", nodes: 3, server: replica.RelayAsServer, access: accessed},

	{name: "a record is there after its lease", nodes: 1, core: core.FaceOutlives, links: 60},
	{name: "a claim on a mirrored resource has no record", nodes: 1, core: core.MirrorMisses, links: 60},

	{name: "what overlaps a name of an area is missed", nodes: 1, core: core.MissOverlap, subjects: areas},
	{name: "who waits for a part of an area passes who waits for more", nodes: 1, core: core.PassInArea, subjects: areas},
	{name: "a task is offered again that is done", nodes: 1, core: core.OfferDone, subjects: tasks},
	{name: "a task whose worker was lost is not offered to those who wait", nodes: 1, core: core.KeepLost, subjects: tasks},
	{name: "the attempts of a task are not counted", nodes: 1, core: core.NoAttempt, subjects: tasks},
	{name: "a worker finishes a task that it lost", nodes: 1, core: core.FinishLate, subjects: tasks},
	{name: "several resources are granted in part", nodes: 1, core: core.GrantInPart, subjects: mixed},
	{name: "a snapshot loses until when a queue is calm", nodes: 3, core: core.LoseCalm, subjects: pooled, crowd: 9,
		aim: func(f *Faults) { f.Every, f.Kill, f.SnapshotEvery, f.Eager = time.Second, 30, 256, true }},
	{name: "a unit that is drained is granted", nodes: 1, core: core.GrantDrained, subjects: pooled},
	{name: "a newcomer gets units that are kept for those who wait", nodes: 1, core: core.PassInPool, subjects: pooled, crowd: 9},
	{name: "units are lent to those who need them for nobody knows how long", nodes: 1, core: core.BorrowBlind, subjects: pooled, crowd: 9},
	{name: "a snapshot loses reservations", nodes: 1, core: core.LoseReservations, subjects: booked},
	{name: "a reservation that was cancelled is answered as made", nodes: 1, core: core.CancelledIsMade, subjects: booked},
	{name: "what is reserved is granted to others", nodes: 1, core: core.KeepNothing, subjects: booked},
	{name: "a transaction ends half done", nodes: 1, core: core.HalfTxn},

	{name: "a watch resumes one event late", nodes: 3, core: core.ResumeLate, watch: 2},
	{name: "a watch resumes by what another server happens to have", nodes: 3, holder: Holder{ResumesUnasked: true}, watch: 2},

	{name: "a change of the members is answered before it is settled", nodes: 3, server: replica.AnswerUnsettled, aim: comeAndGo},
	{name: "a removed server goes before that is settled", nodes: 3, server: replica.LeaveUnsettled, aim: comeAndGo},
	{name: "an id is given twice", nodes: 3, server: replica.ReuseID, aim: comeAndGo},
	{name: "a server is let in that lost its data", nodes: 3, server: replica.AdmitAnyDir, aim: func(f *Faults) { comeAndGo(f); f.Members.Wipe = 10 }},
	{name: "a server without a vote is counted", nodes: 3, server: replica.LearnerVotes, aim: comeAndGo},
	{name: "the vote of a removed server is counted", nodes: 3, server: replica.RemovedVotes, aim: comeAndGo},
	{name: "a snapshot has the members of long ago", nodes: 3, server: replica.StaleRoster, aim: comeAndGo},
	{name: "a server gets its vote before it has caught up", nodes: 3, server: replica.PromoteEarly, aim: comeAndGo},
	{name: "a removed leader goes on", nodes: 3, server: replica.KeepsLead, aim: comeAndGo},
	{name: "one of two servers sends what is not on its own disk", nodes: 3, server: replica.BehindOfTwo, aim: oneOrTwo, crowd: 10},
	{name: "a joiner takes no snapshot older than its add", nodes: 3, server: replica.OnlyOwnSnapshots, aim: comeAndGo},
}

// lateLead is servers that were away, need a snapshot, and lead as soon as they have it.
var lateLead = Faults{Every: 4 * time.Second, LateLead: 1, Latency: 8 * time.Millisecond, ClockRate: bound, SnapshotEvery: 64, Eager: true}

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

// maxSearch is within how much simulated time each must be found.
const maxSearch = 4 * time.Hour

func TestPlantedBugsAreFound(t *testing.T) {
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			length := cmp.Or(b.length, 2*time.Minute)
			c := Config{Nodes: b.nodes, Clients: 5 + b.crowd, Watchers: b.watch, Length: length, Faults: Everything, Planted: b.server, Core: b.core, Holder: b.holder, Strict: b.strict, Disasters: b.disasters, Versions: b.versions, Access: b.access, Visits: b.visits, Links: b.links, Subjects: b.subjects}
			if b.aim != nil {
				b.aim(&c.Faults)
			}
			for tried := 1; time.Duration(tried)*length <= maxSearch; tried++ {
				c.Seed = uint64(*first + tried - 1)
				if r := run(t, c); len(r.Violations) > 0 {
					t.Logf("seed %d: %s", c.Seed, r.Violations[0])
					return
				}
			}
			t.Errorf("not found in %v", maxSearch)
		})
	}
}

// What finds mistakes where there are none finds nothing.
func TestAimedFaultsAloneAreSurvived(t *testing.T) {
	for _, b := range bugs {
		if b.aim == nil {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			c := Config{Nodes: b.nodes, Clients: 5 + b.crowd, Watchers: b.watch, Length: time.Minute, Faults: Everything, Strict: b.strict, Disasters: b.disasters, Versions: b.versions, Access: b.access, Visits: b.visits, Subjects: b.subjects}
			b.aim(&c.Faults)
			clean(t, c, 3)
		})
	}
}
