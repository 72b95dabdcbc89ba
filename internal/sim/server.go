package sim

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
	"github.com/leasehold/leasehold/internal/engine/replica"
)

// edge is the source of events that no other machine sent.
const edge = "edge"

// A server is a machine with a process on it, or without.
type server struct {
	world *World
	id    uint64
	clock machine
	disk  *disk

	node   *replica.Node // nil: no process runs
	feed   *engine.Feed
	life   int  // which process this is; what was meant for an earlier one is lost
	doomed bool // its disk failed: it has to stop
	paused bool
	held   []delivery    // came while it was paused
	low    time.Duration // until then there is little room on its disk
	wakes  int           // which of its wishes to be woken is the last one

	sums    map[uint64]string // of its state, by index
	serving bool
	ticks   int
	levels  replica.Levels // that its program knows
	founder bool           // it was there from the beginning, and has what it had then
	lost    bool           // it lost its data
	barred  bool           // it was told so, and stopped
	gone    bool           // it is gone
}

// A delivery is an event that came while the process was paused, with the connection it came
// by.
type delivery struct {
	source string
	event  replica.Event
}

func newServer(w *World, id uint64) *server {
	s := &server{world: w, id: id, founder: id != 0, levels: w.program()}
	s.clock = machine{world: w, rate: w.rate()}
	s.clock.start()
	s.disk = newDisk(s)
	return s
}

func (s *server) member() replica.Member {
	return replica.Member{ID: s.id, Name: fmt.Sprint("n", s.id), Peer: fmt.Sprint("p", s.id), Dir: s.disk.dir,
		Levels: s.levels}
}

// start begins a process on what the disk has.
func (s *server) start() {
	if s.node != nil || s.gone || s.barred {
		return
	}
	found, err := s.disk.read()
	if err != nil {
		s.world.violated("server %d cannot start: %v", s.id, err)
		return
	}
	s.life++
	s.doomed, s.paused, s.held, s.serving, s.sums = false, false, nil, false, map[uint64]string{}
	s.world.tell("start %d at %d", s.id, found.applied)
	var begin []replica.Member
	if !found.begun && s.founder {
		begin = s.world.founders
	}
	s.feed = engine.NewFeed()
	s.feed.PublishAll(found.state.View(0))
	c := replica.Config{
		ID: s.id, Storage: found.storage, State: found.state, Applied: found.applied, Roster: found.roster,
		Begin: begin,
		Clock: &s.clock, Disk: s.disk, Transport: &transport{s, s.life}, Nonce: s.world.random.Uint64(), Feed: s.feed,
		Log: slog.New(slog.DiscardHandler), SnapshotEvery: s.world.Faults.SnapshotEvery,
		Watch:  func(a replica.Applied) { s.world.truth.applied(s, a) },
		Levels: s.levels, Complete: s.world.complete, Compare: !s.world.Uncompared, Summed: s.summed,
	}
	var node *replica.Node
	if !s.guarded(func() { node, err = replica.New(c) }) {
		return
	}
	if err != nil {
		s.world.violated("server %d cannot start: %v", s.id, err)
		return
	}
	s.node = node
	s.tick(s.life)
}

// tick tells the node that time passes, as the real ticker does: a tick that was missed is not
// made up for.
func (s *server) tick(life int) {
	if s.life != life || s.node == nil {
		return
	}
	if !s.paused {
		s.deliver(edge, replica.RaftTick{})
		s.hello()
	}
	s.world.after(replica.TickEvery, func() { s.tick(life) })
}

// deliver gives the node an event, now or when it wakes from a pause.
func (s *server) deliver(source string, e replica.Event) {
	switch {
	case s.node == nil:
	case s.paused:
		s.held = append(s.held, delivery{source, e})
	default:
		s.step(e)
	}
}

// step gives the node one event, and looks at what became of it: it may have left, failed, or
// begun to lead.
func (s *server) step(e replica.Event) {
	if !s.guarded(func() { s.node.Step(e) }) {
		return
	}
	if s.node.Left() {
		s.world.truth.left(s)
		s.retire()
		return
	}
	// A node may stop for its disk, and must; for any other reason it must not.
	if err := s.node.Failure(); err != nil {
		if !s.doomed {
			s.world.violated("server %d stopped: %v", s.id, err)
			return
		}
		s.world.count("stopped for its disk")
		s.kill(s.world.between(100*time.Millisecond, 3*time.Second), false)
		return
	}
	s.world.truth.leads(s, s.node.Statistics().Leads)
	if _, member := s.node.Roster().Member(s.id); s.node.Statistics().Serving && !member {
		s.world.violated("server %d serves, and is no member", s.id)
		return
	}
	if now := s.node.Statistics().Serving; now != s.serving {
		s.serving = now
		s.world.tell("server %d serves: %v", s.id, now)
		s.world.truth.served()
	}
	s.wishWake()
}

// guarded runs a step. Raft panics where it finds its own rules broken, which is a violation
// like any other.
func (s *server) guarded(step func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			s.world.violated("server %d panicked: %v", s.id, p)
			ok = false
		}
	}()
	step()
	return true
}

// wishWake schedules the moment at which the node wants to be woken. Only the last wish counts.
func (s *server) wishWake() {
	s.wakes++
	wish, life := s.wakes, s.life
	after, ok := s.node.NextWake()
	if !ok {
		return
	}
	s.world.after(s.clock.real(after), func() {
		if s.life == life && s.wakes == wish {
			s.deliver(edge, replica.Wake{})
		}
	})
}

// level is that of the cluster, as the server knows it.
func (s *server) level() core.Level {
	if s.node == nil {
		return 0
	}
	return s.node.State().Level()
}

// kill ends the process, which loses everything that was not synced, and starts another after a
// while; with reboot, on a machine whose clock has begun anew.
func (s *server) kill(down time.Duration, reboot bool) {
	if s.node == nil {
		return
	}
	s.world.tell("kill %d", s.id)
	s.disk.losePower()
	s.end()
	if reboot {
		s.clock.start()
	}
	s.world.after(down, s.start)
}

// end ends the process.
func (s *server) end() {
	s.clock.wake()
	s.node, s.paused, s.held, s.serving = nil, false, nil, false
	s.world.truth.served()
	s.life++
}

// pause stops the process for a while. What is sent to it waits, and comes all at once:
// in the order of each connection, and in no order among them.
func (s *server) pause(d time.Duration) {
	if s.node == nil || s.paused {
		return
	}
	s.world.tell("pause %d for %v", s.id, d)
	s.paused = true
	life := s.life
	s.world.after(d, func() {
		if s.life == life {
			s.resume()
		}
	})
}

// sleep suspends the machine for a while: its clock stops too.
func (s *server) sleep(d time.Duration) {
	if s.node == nil || s.paused {
		return
	}
	s.pause(d)
	s.clock.sleep()
}

func (s *server) resume() {
	if s.node == nil || !s.paused {
		return
	}
	s.world.tell("resume %d", s.id)
	s.clock.wake()
	s.paused = false
	life := s.life
	// In the order of each connection, and in no order among them: that is all TCP promises.
	for len(s.held) > 0 && s.life == life && !s.world.failed() {
		k := s.world.random.IntN(len(s.held))
		source := s.held[k].source
		for i, d := range s.held {
			if d.source == source {
				k = i
				break
			}
		}
		event := s.held[k].event
		s.held = append(s.held[:k:k], s.held[k+1:]...)
		s.deliver(source, event)
	}
	if s.node != nil && s.life == life {
		s.wishWake()
	}
}

// hello is how servers keep in touch, once a second, whether they have to say anything or not.
func (s *server) hello() {
	if s.ticks++; s.ticks%10 != 0 || s.node == nil {
		return
	}
	s.askProof()
	s.fetchValues()
	s.announce()
	if other := s.world.otherThan(s); other != s {
		s.world.network.carry(s, other.id, func(*server) {})
	}
}

// recoverFully ends everything that troubles a server.
func (s *server) recoverFully() {
	s.disk.slow, s.disk.stall, s.low = 0, 0, 0
	if s.disk.broken && s.node != nil {
		s.kill(0, false)
	}
	s.resume()
	s.start()
}

// A machine has a clock that runs fast or slow, stops while the machine sleeps, and begins anew
// with every boot.
type machine struct {
	world  *World
	rate   int64 // parts per million by which it is fast
	starts int
	began  time.Duration // on real time
	base   time.Duration
	wall   time.Duration // by how much the calendar is wrong
	boot   string

	asleep bool
	since  time.Duration // it sleeps, on real time
	slept  time.Duration // since it was started
}

// start starts the machine, again.
func (m *machine) start() {
	m.starts++
	m.began, m.base = m.world.now, m.world.between(time.Second, time.Hour)
	m.boot = fmt.Sprint("boot ", m.starts)
	m.asleep, m.slept = false, 0
}

// sleep stops the clock, and wake lets it go on.
func (m *machine) sleep() { m.asleep, m.since = true, m.world.now }

func (m *machine) wake() {
	if m.asleep {
		m.asleep = false
		m.slept += m.world.now - m.since
	}
}

// Monotonic leaves out the time in which the machine slept, as CLOCK_MONOTONIC does.
func (m *machine) Monotonic() time.Duration {
	now := m.world.now
	if m.asleep {
		now = m.since
	}
	return m.base + own(now-m.began-m.slept, m.rate)
}
func (m *machine) Boot() string    { return m.boot }
func (m *machine) Wall() time.Time { return time.Unix(1_800_000_000, 0).Add(m.world.now + m.wall) }

// real converts a duration on this machine into real time, rounded up: a timer never fires
// early.
func (m *machine) real(d time.Duration) time.Duration { return real(d, m.rate) + 1 }

// own turns a real duration into one on a clock that is fast by rate.
func own(d time.Duration, rate int64) time.Duration {
	return d + time.Duration(int64(d)/1000*rate/1000)
}

// real turns a duration on a clock that is fast by rate into a real one.
func real(d time.Duration, rate int64) time.Duration {
	return time.Duration(float64(d) / (1 + float64(rate)/1e6))
}
