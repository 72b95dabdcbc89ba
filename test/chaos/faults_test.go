//go:build linux

package chaos

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"
)

// A fault is something that happens to servers.
type fault struct {
	name   string
	weight int
	disk   bool // it needs a disk that fails
	do     func(*trouble)
}

// A trouble is one fault that goes on.
type trouble struct {
	*cluster
	ctx    context.Context
	random *rand.Rand
}

var allFaults = []fault{
	{name: "kill-one", weight: 3, do: (*trouble).killOne},
	{name: "kill-all", weight: 1, do: (*trouble).killAll},
	{name: "pause-one", weight: 3, do: (*trouble).pauseOne},
	{name: "cut-clients", weight: 1, do: (*trouble).cutClients},
	{name: "hold-clients", weight: 1, do: (*trouble).holdClients},
	{name: "fail-sync", weight: 2, disk: true, do: (*trouble).failSync},
	{name: "hang-sync", weight: 2, disk: true, do: (*trouble).hangSync},
	{name: "slow-sync", weight: 1, disk: true, do: (*trouble).slowSync},
	{name: "full-disk", weight: 2, disk: true, do: (*trouble).fullDisk},
	{name: "restart", weight: 1, do: (*trouble).restart},
}

// suffer has one fault happen.
func (c *cluster) suffer(ctx context.Context, random *rand.Rand, faults []fault) {
	sum := 0
	for _, f := range faults {
		sum += f.weight
	}
	n := random.IntN(sum)
	for _, f := range faults {
		if n -= f.weight; n >= 0 {
			continue
		}
		end := c.report.begin(f.name)
		f.do(&trouble{c, ctx, random})
		end()
		return
	}
}

func (t *trouble) tell(format string, args ...any) { t.report.tell(format, args...) }

// between draws a time.
func (t *trouble) between(least, most time.Duration) time.Duration {
	return least + time.Duration(t.random.Int64N(int64(most-least)))
}

// lasts waits for a while, or until the trouble has to end.
func (t *trouble) lasts(d time.Duration) { pause(t.ctx, d) }

// anyone is a server, of any kind.
func (t *trouble) anyone() *server {
	all := t.servers()
	return all[t.random.IntN(len(all))]
}

func (t *trouble) killOne() {
	s, down := t.anyone(), t.between(0, 4*time.Second)
	lose := t.random.IntN(2) == 0
	t.tell("kill %s for %v, unsynced bytes lost: %v", s.name, down, lose)
	s.kill()
	t.lasts(down)
	t.back(s, lose)
}

// back starts a server again, maybe without the bytes that it had not synced.
func (t *trouble) back(s *server, lose bool) {
	if lose {
		if err := s.loseUnsynced(); err != nil {
			t.report.violated(stuck, "%s: %v", s.name, err)
		}
	}
	t.start(s)
}

func (t *trouble) killAll() {
	down := t.between(0, 3*time.Second)
	t.tell("kill all for %v, unsynced bytes lost", down)
	for _, s := range t.servers() {
		s.doom()
		s.signal(syscall.SIGKILL)
	}
	for _, s := range t.servers() {
		s.kill()
	}
	t.lasts(down)
	for _, s := range t.servers() {
		t.back(s, true)
	}
}

func (t *trouble) pauseOne() {
	s, stopped := t.anyone(), t.between(100*time.Millisecond, 9*time.Second)
	t.tell("stop %s for %v", s.name, stopped)
	s.signal(syscall.SIGSTOP)
	t.lasts(stopped)
	s.signal(cont)
}

func (t *trouble) cutClients() {
	t.tell("cut all connections of clients")
	t.network.reset(func(p pair) bool { return p.from == groups[0] || p.from == groups[1] })
}

func (t *trouble) holdClients() {
	group, length := groups[t.random.IntN(len(groups))], t.between(time.Second, 8*time.Second)
	back := t.random.IntN(2) == 0
	t.tell("hold what clients in the %s say for %v; answers too: %v", group, length, back)
	for i := range t.slots {
		p := pair{group, t.party(i)}
		t.network.set(p, condition{held: true})
		if back {
			t.network.set(p.back(), condition{held: true})
		}
	}
	t.lasts(length)
	for i := range t.slots {
		p := pair{group, t.party(i)}
		t.network.set(p, condition{})
		t.network.set(p.back(), condition{})
	}
}

func (t *trouble) failSync() {
	s := t.anyone()
	t.tell("syncs of %s fail", s.name)
	s.failSyncs()
	t.lasts(t.between(time.Second, 4*time.Second))
	t.ends(s)
}

func (t *trouble) hangSync() {
	s, length := t.anyone(), t.between(500*time.Millisecond, 9*time.Second)
	t.tell("syncs of %s hang for %v", s.name, length)
	s.hangSyncs()
	t.lasts(length)
	t.ends(s)
}

// ends makes a disk well again, and the server that ended because of it.
func (t *trouble) ends(s *server) {
	t.tell("the disk of %s is well; it runs: %v", s.name, s.runs())
	s.kill() // one that was about to end would look as if it died of nothing
	t.back(s, true)
}

func (t *trouble) slowSync() {
	s, length, each := t.anyone(), t.between(2*time.Second, 8*time.Second), t.between(5*time.Millisecond, 300*time.Millisecond)
	t.tell("syncs of %s take %v for %v", s.name, each, length)
	s.doom()
	s.disk.OnSync(func(string, bool) error {
		time.Sleep(each)
		return nil
	})
	t.lasts(length)
	t.ends(s)
}

func (t *trouble) fullDisk() {
	s, length, room := t.anyone(), t.between(2*time.Second, 8*time.Second), int64(t.random.IntN(6<<20))
	t.tell("the disk of %s has room for %d bytes for %v", s.name, room, length)
	s.doom()
	s.disk.SetRoom(room)
	t.lasts(length)
	t.ends(s)
}

// restart is what an upgrade does: one server after the other, with SIGTERM.
func (t *trouble) restart() {
	t.tell("restart all, one after the other")
	for _, s := range t.servers() {
		s.doom()
		s.signal(syscall.SIGTERM)
		<-s.current().ended
		t.start(s)
		caller := t.direct(s)
		t.until(s.name+" gets ready", func() error {
			_, err := caller.Ready(t.ctx)
			if t.ctx.Err() != nil {
				return nil
			}
			return err
		})
		caller.CloseIdle()
	}
}
