package sim

import "time"

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
		{f.Kill, "kill", func() { s.kill(w.upTo(3*time.Second), false) }},
		{f.Reboot, "reboot", func() { s.kill(w.upTo(3*time.Second), true) }},
		{f.KillAll, "kill all", w.killAll},
		{f.Pause, "pause", func() { s.pause(w.upTo(9 * time.Second)) }},
		{f.SlowDisk, "slow disk", func() { s.disk.slow = w.now + w.upTo(8*time.Second) }},
		{f.StalledDisk, "stalled disk", func() { s.disk.stall = w.between(500*time.Millisecond, 7*time.Second) }},
		{f.BadDisk, "bad disk", func() { s.disk.broken = s.node != nil }},
		{f.WallJump, "calendar", func() { s.clock.wall = w.upTo(2*time.Hour) - time.Hour }},
		{f.LoseReplies, "lost replies", func() { w.network.deaf = w.now + w.upTo(3*time.Second) }},
	})
}

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

func (w *World) killAll() {
	for _, s := range w.servers {
		s.kill(w.upTo(2*time.Second), w.chance(30))
	}
}
