package replica

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/wire"
)

// A stage drives one node by hand: its clock stands until told otherwise, and its
// disk finishes a write only when asked to.
type stage struct {
	t       *testing.T
	node    *Node
	storage *raft.MemoryStorage
	mono    time.Duration
	boot    string

	inFlight *Write
	saving   *Snapshot
	written  []*raftpb.Entry
	hard     *raftpb.HardState
}

func (s *stage) Monotonic() time.Duration     { return s.mono }
func (s *stage) Wall() time.Time              { return time.Unix(1, 0) }
func (s *stage) Boot() string                 { return s.boot }
func (s *stage) Write(w Write)                { s.inFlight = &w }
func (s *stage) Save(x Snapshot)              { s.saving = &x }
func (s *stage) Send(ms []*raftpb.Message)    {}
func (s *stage) Relay(uint64, Relay) []uint64 { return nil }
func (s *stage) Place(uint64, []Placement)    {}
func (s *stage) step(e Event)                 { s.node.Step(e) }
func (s *stage) passes(d time.Duration)       { s.mono += d }
func (s *stage) state() *core.State           { return s.node.state }
func (s *stage) now() time.Duration           { return time.Duration(s.state().Now()) }
func (s *stage) fails(err error)              { s.inFlight = nil; s.step(Written{err}) }
func (s *stage) stepsUntilQuiet()             { s.step(RaftTick{}); s.syncs() }
func (s *stage) holds(path string) (n int) {
	return len(s.state().View(0).Status("default", path, 0).Holders)
}
func (s *stage) lead() core.Lead           { return s.state().Lead() }
func (s *stage) serving() bool             { return s.node.lead.serving }
func (s *stage) commandsInFlight() (n int) { return commandsIn(s.t, s.inFlight) }

// sync finishes the write in flight.
func (s *stage) sync() {
	w := s.inFlight
	s.inFlight = nil
	s.written = append(s.written, w.Entries...)
	if w.Hard != nil {
		s.hard = w.Hard
	}
	s.step(Written{})
}

// syncs finishes writes until there is none.
func (s *stage) syncs() {
	for s.inFlight != nil {
		s.sync()
	}
}

// newStage returns a node that has not taken a step.
func newStage(t *testing.T, boot string) *stage {
	s := &stage{t: t, storage: raft.NewMemoryStorage(), mono: time.Hour, boot: boot}
	s.make(core.New(), true)
	return s
}

func (s *stage) make(state *core.State, fresh bool) {
	var begin []Member
	if fresh {
		begin = []Member{{ID: 1}}
	}
	node, err := New(Config{
		ID: 1, Storage: s.storage, State: state, Begin: begin, Clock: s, Disk: s, Transport: s,
		Feed: engine.NewFeed(), Log: slog.New(slog.DiscardHandler), SnapshotEvery: 1 << 40,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.node = node
}

// restart makes the node anew from what was written.
func (s *stage) restart(boot string) {
	s.inFlight, s.boot = nil, boot
	s.storage = raft.NewMemoryStorage()
	if err := errors.Join(s.storage.Append(s.written), s.storage.SetHardState(s.hard)); err != nil {
		s.t.Fatal(err)
	}
	s.make(core.New(), false)
}

// started returns a node that serves.
func started(t *testing.T) *stage {
	s := newStage(t, "boot")
	s.stepsUntilQuiet()
	if !s.serving() {
		t.Fatal("the only member does not serve after its writes are done")
	}
	return s
}

// An outcome is what a caller was told, if anything yet.
type outcome struct {
	told   bool
	answer core.Answer
	err    error
}

func (s *stage) call(c core.Command) *outcome {
	o := &outcome{}
	s.step(Commands{{Bytes: bytesOf(s.t, c), Done: func(a core.Answer, err error) { *o = outcome{true, a, err} }}})
	return o
}

func bytesOf(t *testing.T, c core.Command) []byte {
	t.Helper()
	b, err := wire.AppendCommand(nil, c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func commandsIn(t *testing.T, w *Write) (n int) {
	if w == nil {
		return 0
	}
	for _, e := range w.Entries {
		if e.GetType() == raftpb.EntryNormal && len(e.GetData()) > 0 {
			entry, err := wire.DecodeEntry(e.GetData())
			if err != nil {
				t.Fatal(err)
			}
			n += len(entry.Commands)
		}
	}
	return n
}

func lease(path string, ttl time.Duration) *core.Acquire {
	return &core.Acquire{Namespace: "default", Resource: path, ID: "id-" + path, Holder: "ann", TTL: ttl}
}

func TestNothingIsServedBeforeLeadIsApplied(t *testing.T) {
	s := newStage(t, "boot")
	s.step(RaftTick{})
	var early []*outcome
	for writes := 0; s.inFlight != nil && !s.serving(); writes++ {
		early = append(early, s.call(lease(fmt.Sprint("r", writes), time.Minute)))
		if n := len(s.node.inbox); n > 0 {
			t.Fatalf("before write %d was done: %d commands are taken", writes, n)
		}
		s.sync()
	}
	s.syncs()
	for i, o := range early {
		if !o.told || o.err != nil {
			t.Errorf("call %d, which waited: %+v", i, o)
		}
	}
	if !s.serving() || s.lead().Node != 1 || s.lead().Boot != "boot" {
		t.Fatalf("serving %v, lead %+v", s.serving(), s.lead())
	}
}

func TestAnAnswerWaitsForTheDisk(t *testing.T) {
	s := started(t)
	o := s.call(lease("r", time.Minute))
	if o.told || s.holds("r") != 0 {
		t.Fatal("answered before it was written")
	}
	s.passes(3 * time.Second)
	s.step(RaftTick{})
	s.step(Wake{})
	if o.told {
		t.Fatal("answered before it was written")
	}
	s.sync()
	if !o.told || o.err != nil || s.holds("r") != 1 {
		t.Fatalf("after the write: %+v", o)
	}
}

func TestCommandsAreCollectedWhileAWriteIsInFlight(t *testing.T) {
	s := started(t)
	first := s.call(lease("r0", time.Minute))
	var rest []*outcome
	for i := range 5000 {
		rest = append(rest, s.call(lease(fmt.Sprint("r", i+1), time.Minute)))
	}
	if n := s.commandsInFlight(); n != 1 {
		t.Fatalf("%d commands are in the first write", n)
	}
	s.sync()
	if !first.told || rest[0].told {
		t.Fatal("the first write answers the first command and nothing else")
	}
	most := maxBatchWork / wire.Weight(bytesOf(t, lease("r", time.Minute)))
	if n := s.commandsInFlight(); n != most {
		t.Fatalf("%d commands are in the second write, at most %d should be", n, most)
	}
	s.sync()
	if n := s.commandsInFlight(); n != most || !rest[most-1].told || rest[most].told {
		t.Fatalf("%d commands are in the third write", n)
	}
	s.syncs()
	if !rest[4999].told {
		t.Fatal("the last command has no answer")
	}
}

// Readers get a part of the node's time, and the others theirs, before the next part.
func TestReadsAreServedInParts(t *testing.T) {
	s := started(t)
	s.call(lease("r", time.Minute))
	s.syncs()
	served := 0
	var calls []ReadCall
	for range 3 * maxReadsWork {
		calls = append(calls, ReadCall{Read: func(v core.View) { v.Status("default", "r", 0) }, Done: func(error) { served++ }})
	}
	s.node.answered = []readyRead{{s.node.applied, calls}}
	for last := 0; served < len(calls); last = served {
		after, ok := s.node.NextWake()
		if !ok || after != 0 {
			t.Fatalf("%d of %d are served, and the next wake is in %v", served, len(calls), after)
		}
		s.step(Wake{})
		if n := served - last; n == 0 || n > maxReadsWork/readCost {
			t.Fatalf("%d reads were served at once", n)
		}
	}
	if after, ok := s.node.NextWake(); !ok || after == 0 {
		t.Fatalf("all are served, and the next wake is in %v", after)
	}
}

func TestALargeBatchIsCutByItsBytes(t *testing.T) {
	s := started(t)
	s.call(lease("first", time.Minute))
	big := lease("r", time.Minute)
	for i := range 4 {
		big.Labels = append(big.Labels, leasehold.Label{Key: fmt.Sprint("k", i), Value: string(make([]byte, 1000))})
	}
	for i := range 600 {
		c := *big
		c.Resource, c.ID = fmt.Sprint("r", i), fmt.Sprint("id", i)
		s.call(&c)
	}
	s.sync()
	size := 0
	for _, e := range s.inFlight.Entries {
		size += len(e.GetData())
	}
	if size > maxBatchBytes+4096 || size < maxBatchBytes/2 {
		t.Fatalf("the batch has %d bytes", size)
	}
	s.syncs()
}

// The stamp must be after every command of the batch was sent, else a lease could
// end before its holder thinks so.
func TestTheClockIsReadAfterTheBatchIsSealed(t *testing.T) {
	s := started(t)
	s.call(lease("a", time.Minute))
	s.passes(time.Second)
	o := s.call(lease("b", time.Minute)) // waits for the write of a
	s.passes(10 * time.Second)
	before := s.now()
	s.sync() // a is written; b is sealed and stamped now
	s.passes(20 * time.Second)
	s.sync()
	if got := s.now() - before; got < 11*time.Second || got >= 30*time.Second {
		t.Fatalf("b was stamped %v after a", got)
	}
	if o.answer.Lease.Remaining != time.Minute {
		t.Fatalf("b has %v", o.answer.Lease.Remaining)
	}
}

func TestAClockThatGoesBackMovesNothing(t *testing.T) {
	s := started(t)
	s.passes(time.Minute)
	s.call(lease("a", time.Minute))
	s.syncs()
	before := s.now()
	s.mono -= 30 * time.Second
	s.call(lease("b", time.Minute))
	s.syncs()
	if s.now() < before || s.node.Failure() != nil {
		t.Fatalf("time went from %v to %v, failure %v", before, s.now(), s.node.Failure())
	}
}

func TestAFailedWriteIsTheEnd(t *testing.T) {
	s := started(t)
	inFlight := s.call(lease("a", time.Minute))
	queued := s.call(lease("b", time.Minute))
	var read error
	s.step(Reads{{Read: func(core.View) { t.Error("read after a failure") }, Done: func(err error) { read = err }}})
	s.fails(errors.New("input/output error"))
	if s.node.Failure() == nil {
		t.Fatal("the node goes on")
	}
	if !errors.Is(inFlight.err, leasehold.ErrUndecided) || !errors.Is(queued.err, leasehold.ErrUnavailable) || read == nil {
		t.Fatalf("in flight: %v, queued: %v, read: %v", inFlight.err, queued.err, read)
	}
	// The disk may say what it likes now.
	s.step(Written{})
	s.step(RaftTick{})
	late := s.call(lease("c", time.Minute))
	if !errors.Is(late.err, leasehold.ErrUnavailable) || s.inFlight != nil || s.holds("a")+s.holds("c") != 0 {
		t.Fatalf("after the failure: %v", late.err)
	}
}

func TestAnUnknownCommandStopsTheNode(t *testing.T) {
	s := started(t)
	o := &outcome{}
	s.step(Commands{{Bytes: []byte{250, 0}, Done: func(a core.Answer, err error) { *o = outcome{true, a, err} }}})
	s.syncs()
	if s.node.Failure() == nil || s.node.Failure().Error() == "" {
		t.Fatal("the node goes on after a command that it does not know")
	}
}

// An entry that says it was stamped for another term than the one it was kept in
// has a stamp of a leader that is gone.
func TestAnEntryStampedForAnotherTermIsEmpty(t *testing.T) {
	s := started(t)
	s.node.lead.term-- // as if it had not noticed that another term began
	o := s.call(lease("a", time.Minute))
	s.node.lead.term++
	s.syncs()
	if s.holds("a") != 0 || o.told && o.err == nil {
		t.Fatalf("it happened: %+v", o)
	}
	if s.node.Failure() != nil {
		t.Fatal(s.node.Failure())
	}
}

func TestRestartOnTheSameBootCountsOn(t *testing.T) {
	s := started(t)
	s.call(lease("r", time.Minute))
	s.syncs()
	before := s.now()
	s.passes(20 * time.Second) // part of it while the process is down
	s.restart("boot")
	s.stepsUntilQuiet()
	o := s.call(lease("r", time.Minute))
	s.syncs()
	if got := o.answer.Lease.Remaining; got != 40*time.Second {
		t.Fatalf("after 20 s it has %v of 60 s", got)
	}
	if passed := s.now() - before; passed != 20*time.Second {
		t.Fatalf("time moved by %v", passed)
	}
}

func TestRestartOnAnotherBootGoesOnWhereTimeStopped(t *testing.T) {
	s := started(t)
	s.call(lease("r", time.Minute))
	s.syncs()
	s.passes(20 * time.Second)
	s.call(&core.Renew{Namespace: "default", ID: "id-r"})
	s.syncs()
	s.passes(5 * time.Second)
	s.mono = 3 * time.Second // another boot, another clock
	s.restart("other boot")
	s.passes(2 * time.Second) // while it starts
	s.stepsUntilQuiet()
	o := s.call(lease("r", time.Minute))
	s.syncs()
	if got := o.answer.Lease.Remaining; got != 58*time.Second {
		t.Fatalf("it has %v; 2 s passed that this node can know of", got)
	}
}

// Somebody else led in the meantime: then this node's own older Lead says nothing
// about the time that the other one counted.
func TestAnOlderLeadOfOnesOwnIsNotUsed(t *testing.T) {
	s := started(t)
	s.call(lease("r", time.Minute))
	s.call(&core.Lead{Node: 2, Boot: "boot", Offset: -time.Hour}) // as another leader's entry would
	s.syncs()
	s.passes(20 * time.Second)
	s.restart("boot")
	s.stepsUntilQuiet()
	o := s.call(lease("r", time.Minute))
	s.syncs()
	if got := o.answer.Lease.Remaining; got != time.Minute {
		t.Fatalf("it has %v, although nobody knows how long the other leader's time ran", got)
	}
}

func TestTicksComeWhenDueAndAtLeastEveryTenSeconds(t *testing.T) {
	s := started(t)
	if _, ok := s.node.NextWake(); ok {
		t.Fatal("an empty node wants to be woken")
	}
	s.call(lease("r", 25*time.Second))
	s.syncs()
	for _, want := range []time.Duration{10 * time.Second, 10 * time.Second, 5 * time.Second} {
		after, ok := s.node.NextWake()
		if !ok || after != want {
			t.Fatalf("next wake in %v, want %v", after, want)
		}
		s.passes(after)
		s.step(Wake{})
		s.syncs()
	}
	if s.holds("r") != 0 {
		t.Fatal("it is held after its time")
	}
	if _, ok := s.node.NextWake(); ok {
		t.Fatal("nothing ends by time, and it wants to be woken")
	}
}

func TestATickStandsBehindWhatIsQueued(t *testing.T) {
	s := started(t)
	s.call(lease("r", 10*time.Second))
	s.syncs()
	s.passes(10*time.Second - time.Millisecond)
	s.call(lease("other", time.Minute)) // its write keeps the renewal waiting
	renewal := s.call(&core.Renew{Namespace: "default", ID: "id-r"})
	s.step(Wake{})
	s.syncs()
	if renewal.err != nil || s.holds("r") != 1 {
		t.Fatalf("a renewal that came in time: %v", renewal.err)
	}
}

// A tick may end thousands of leases; the answer to a renewal must not wait for that.
func TestATickIsAloneInItsEntry(t *testing.T) {
	s := started(t)
	s.call(lease("r", 10*time.Second))
	s.syncs()
	s.call(lease("other", time.Minute))
	s.passes(10 * time.Second)
	s.step(Wake{}) // the tick stands behind other
	late := s.call(lease("third", time.Minute))
	for _, want := range []int{1, 1, 1} {
		if n := s.commandsInFlight(); n != want {
			t.Fatalf("%d commands are in the write", n)
		}
		if want == 1 && late.told {
			t.Fatal("answered before its write")
		}
		s.sync()
	}
	if s.holds("r") != 0 || !late.told {
		t.Fatal("the tick or what came after it was lost")
	}
}

func TestAReadSeesWhatWasAnsweredBefore(t *testing.T) {
	s := started(t)
	s.call(lease("a", time.Minute))
	seen := -1
	s.step(Reads{{Read: func(v core.View) { seen = len(v.Status("default", "a", 0).Holders) }, Done: func(error) {}}})
	s.syncs()
	if seen == -1 {
		t.Fatal("the read was never done")
	}
	s.step(Reads{{Read: func(v core.View) { seen = len(v.Status("default", "a", 0).Holders) }, Done: func(error) {}}})
	if seen != 1 {
		t.Fatalf("a read after the answer sees %d holders", seen)
	}
}

func TestASnapshotIsMarkedOnlyWhenItIsDurable(t *testing.T) {
	s := started(t)
	s.node.config.SnapshotEvery = 1
	s.call(lease("a", time.Minute))
	s.syncs()
	if s.saving == nil {
		t.Fatal("no snapshot was taken")
	}
	taken := *s.saving
	events := func() int { return len(taken.State.View(0).History("default").All()) }
	before := events()
	for i := range 10 {
		s.call(lease(fmt.Sprint("r", i), time.Minute))
		s.syncs()
	}
	if n := events(); n != before {
		t.Fatalf("the frozen state had %d events and has %d, it went on", before, n)
	}
	if first, _ := s.storage.FirstIndex(); first != 1 {
		t.Fatal("the log was cut before the snapshot was durable")
	}
	s.step(Saved{Bytes: 1000})
	if s.inFlight == nil || s.inFlight.Snapshot.GetIndex() != taken.Index {
		t.Fatalf("the log was not told: %+v", s.inFlight)
	}
	s.syncs()
	if first, _ := s.storage.FirstIndex(); first != taken.Index+1 {
		t.Fatalf("the log begins at %d", first)
	}
}

func TestAFailedSnapshotIsTheEnd(t *testing.T) {
	s := started(t)
	s.node.config.SnapshotEvery = 1
	s.call(lease("a", time.Minute))
	s.syncs()
	s.step(Saved{Err: errors.New("input/output error")})
	if s.node.Failure() == nil {
		t.Fatal("the node goes on")
	}
}

// Nothing is lost if there is no room for a snapshot: the log has all of it.
func TestASnapshotWithoutRoomIsTriedAgain(t *testing.T) {
	s := started(t)
	s.node.config.SnapshotEvery = 1
	s.call(lease("a", time.Minute))
	s.syncs()
	s.saving = nil
	s.step(Saved{Err: fmt.Errorf("it cannot be written: %w", ErrNoRoom)})
	if err := s.node.Failure(); err != nil {
		t.Fatal(err)
	}
	o := s.call(lease("b", time.Minute))
	s.syncs()
	if o.err != nil || s.saving != nil {
		t.Fatalf("the next command: %v; another snapshot at once: %v", o.err, s.saving != nil)
	}
	for range snapshotAgain {
		s.step(RaftTick{})
		s.syncs()
	}
	if s.saving == nil {
		t.Fatal("it is not tried again while nothing comes")
	}
	s.step(Saved{Bytes: 1})
	s.syncs()
	if n := s.node.Statistics().Snapshots; n != 1 {
		t.Fatalf("%d snapshots", n)
	}
}

func TestStoppingTakesNothingMoreAndFinishesWhatItHas(t *testing.T) {
	s := started(t)
	o := s.call(lease("a", time.Minute))
	s.passes(3 * time.Second)
	s.step(Stop{})
	late := s.call(lease("b", time.Minute))
	s.syncs()
	if o.err != nil || !errors.Is(late.err, leasehold.ErrUnavailable) || !s.node.Idle() {
		t.Fatalf("in flight: %v, late: %v", o.err, late.err)
	}
	if got := s.now(); got == 0 || time.Duration(s.node.now())-got != 0 {
		t.Fatalf("the last stamp is %v old", time.Duration(s.node.now())-got)
	}
}

// hash names a state: two that are the same write the same snapshot.
func hash(t *testing.T, s *core.State) uint32 {
	t.Helper()
	summary, err := wire.WriteSnapshot(io.Discard, s)
	if err != nil {
		t.Fatal(err)
	}
	return summary.Checksum
}

// A transport or a caller that gave the node an event in mid-step would find half of a step.
func TestNobodyStepsInMidStep(t *testing.T) {
	s := started(t)
	defer func() {
		if recover() == nil {
			t.Error("a step within a step is taken")
		}
	}()
	s.step(Reads{{Read: func(core.View) { s.step(RaftTick{}) }, Done: func(error) {}}})
	s.syncs()
}
