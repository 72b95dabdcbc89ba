package sim

import (
	"time"

	"github.com/leasehold/leasehold/internal/engine/replica"
)

// The faults. Which one comes next, and to whom, is drawn from the seed; at least every second
// one hits the leader, because that is where a fault hurts.

// trouble lets one fault happen, and then the next.
func (w *World) trouble() {
	if w.quiet {
		return
	}
	w.after(w.upTo(2*w.Faults.Every), w.trouble)
	f := w.Faults
	s := w.servers[w.random.IntN(len(w.servers))]
	if w.chance(50) {
		s = w.leader(s)
	}
	w.pick([]fault{
		{f.Kill, "kill", func() { s.kill(w.downFor(), false) }},
		{f.Reboot, "reboot", func() { s.kill(w.downFor(), true) }},
		{f.KillAll, "kill all", w.killAll},
		{f.Pause, "pause", func() { s.pause(w.upTo(9 * time.Second)) }},
		{f.SlowDisk, "slow disk", func() { s.disk.slow = w.now + w.upTo(8*time.Second) }},
		{f.StalledDisk, "stalled disk", func() { s.disk.stall = w.between(500*time.Millisecond, 7*time.Second) }},
		{f.BadDisk, "bad disk", func() { s.disk.broken = s.node != nil }},
		{f.WallJump, "calendar", func() { s.clock.wall = w.upTo(2*time.Hour) - time.Hour }},
		{f.Isolate, "isolation", func() { w.network.isolate(s.id, w.upTo(8*time.Second)) }},
		{f.OneWay, "one-way cut", func() { w.network.cuts(s.id, w.otherThan(s).id, w.upTo(8*time.Second)) }},
		{f.OneWay, "one-way cut", func() { w.network.cuts(w.otherThan(s).id, s.id, w.upTo(8*time.Second)) }},
		{f.SlowNet, "slow network", func() { w.network.slow = w.now + w.upTo(5*time.Second) }},
		{f.Transfer, "transfer", func() { s.deliver(edge, replica.Transfer{To: w.otherThan(s).id}) }},
		{f.LateLead, "late lead", w.lateLead},
		{f.Sleep, "a server sleeps", func() { s.sleep(w.upTo(9 * time.Second)) }},
		{f.Sleep, "a client sleeps",
			func() { w.clients[w.random.IntN(len(w.clients))].sleep(w.upTo(9 * time.Second)) }},
		{f.LowRoom, "low room", func() { s.low = w.now + w.upTo(8*time.Second) }},
		{f.LoseReplies, "lost replies", func() { w.network.deaf = w.now + w.upTo(3*time.Second) }},
	})
}

// lateLead cuts a server off for so long that it needs a snapshot, and gives it the lead
// when it has that, and while nobody does anything.
func (w *World) lateLead() {
	leader := w.leader(nil)
	if leader == nil {
		return
	}
	s, away := w.otherThan(leader), w.between(2*time.Second, 5*time.Second)
	w.network.isolate(s.id, away)
	w.after(away-700*time.Millisecond, func() { w.lull = w.now + 2*time.Second })
	w.after(away+w.upTo(500*time.Millisecond), func() { w.leader(leader).deliver(edge, replica.Transfer{To: s.id}) })
}

// A fault is one thing that can go wrong, with its weight among the others.
type fault struct {
	weight int
	name   string
	do     func()
}

// pick does one of several things, by their weights.
func (w *World) pick(of []fault) {
	total := 0
	for _, f := range of {
		total += f.weight
	}
	if total == 0 {
		return
	}
	n := w.random.IntN(total)
	for _, f := range of {
		if n -= f.weight; n < 0 {
			w.tell("fault %s", f.name)
			w.count(f.name)
			f.do()
			return
		}
	}
}

// leader returns a server that leads, or else another one.
func (w *World) leader(otherwise *server) *server {
	for _, s := range w.servers {
		if s.serving {
			return s
		}
	}
	return otherwise
}

// otherThan returns another server, or the same one if there is no other.
func (w *World) otherThan(s *server) *server {
	n := w.random.IntN(len(w.servers))
	if w.servers[n] == s {
		n = (n + 1) % len(w.servers)
	}
	return w.servers[n]
}

// killAll loses power everywhere at once: only what was synced is left.
func (w *World) killAll() {
	for _, s := range w.servers {
		s.kill(w.upTo(2*time.Second), w.chance(30))
	}
}

// downFor is how long a server is down: sometimes for so long that the others' logs
// have moved on without it.
func (w *World) downFor() time.Duration {
	if w.chance(15) && w.Faults.Down >= time.Second {
		return w.upTo(40 * time.Second)
	}
	return w.upTo(w.Faults.Down)
}
