//go:build linux

package chaos

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"

	v1 "github.com/leasehold/leasehold/api/v1"
)

// A fault is something that happens to servers.
type fault struct {
	name   string
	weight int
	disk   bool // it needs a disk that fails
	many   bool // it needs several servers
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
	{name: "kill-leader", weight: 3, many: true, do: (*trouble).killLeader},
	{name: "kill-all", weight: 1, do: (*trouble).killAll},
	{name: "pause-one", weight: 3, do: (*trouble).pauseOne},
	{name: "pause-leader", weight: 2, many: true, do: (*trouble).pauseLeader},
	{name: "partition-one", weight: 2, many: true, do: (*trouble).partitionOne},
	{name: "partition-leader", weight: 2, many: true, do: (*trouble).partitionLeader},
	{name: "partition-one-way", weight: 2, many: true, do: (*trouble).partitionOneWay},
	{name: "slow-links", weight: 2, many: true, do: (*trouble).slowLinks},
	{name: "transfer", weight: 2, many: true, do: (*trouble).transfer},
	{name: "replace", weight: 2, many: true, do: (*trouble).replaceOne},
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

// whoLeads is the leader, or anyone if nobody knows.
func (t *trouble) whoLeads() *server {
	if s := t.leader(); s != nil {
		return s
	}
	return t.anyone()
}

// maybeLeader is the leader more often than not.
func (t *trouble) maybeLeader() *server {
	if t.random.IntN(2) == 0 {
		return t.whoLeads()
	}
	return t.anyone()
}

func (t *trouble) killOne() { t.killIt(t.anyone()) }

func (t *trouble) killLeader() { t.killIt(t.whoLeads()) }

func (t *trouble) killIt(s *server) {
	down := t.between(0, 4*time.Second)
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

func (t *trouble) pauseOne() { t.pauseIt(t.anyone()) }

func (t *trouble) pauseLeader() { t.pauseIt(t.whoLeads()) }

func (t *trouble) pauseIt(s *server) {
	stopped := t.between(100*time.Millisecond, 9*time.Second)
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
	s := t.maybeLeader()
	t.tell("syncs of %s fail", s.name)
	s.failSyncs()
	t.lasts(t.between(time.Second, 4*time.Second))
	t.ends(s)
}

func (t *trouble) hangSync() {
	s, length := t.maybeLeader(), t.between(500*time.Millisecond, 9*time.Second)
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
	s, length, each := t.maybeLeader(), t.between(2*time.Second, 8*time.Second), t.between(5*time.Millisecond, 300*time.Millisecond)
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
	s, length, room := t.maybeLeader(), t.between(2*time.Second, 8*time.Second), int64(t.random.IntN(6<<20))
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
		<-s.current().Ended()
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

func (t *trouble) partitionOne() { t.partition(t.anyone()) }

func (t *trouble) partitionLeader() { t.partition(t.whoLeads()) }

// partition cuts a server off from the others, but not from clients: connections are
// reset, or carry nothing from then on.
func (t *trouble) partition(s *server) {
	c, length := t.apart(), t.between(time.Second, 10*time.Second)
	t.tell("cut %s off for %v: %+v", s.name, length, c)
	t.during(length, func(p pair) bool { return p.from == s.name || p.to == s.name }, c)
}

// apart is a way of not being connected.
func (t *trouble) apart() condition {
	if t.random.IntN(2) == 0 {
		return condition{cut: true}
	}
	return condition{held: true}
}

// partitionOneWay keeps what a server says from the others, or what they say from it.
func (t *trouble) partitionOneWay() {
	s, length, deaf := t.maybeLeader(), t.between(time.Second, 10*time.Second), t.random.IntN(2) == 0
	t.tell("for %v %s is cut off in one direction; it hears nothing: %v, else it is not heard", length, s.name, deaf)
	t.during(length, func(p pair) bool { return deaf && p.to == s.name || !deaf && p.from == s.name }, condition{held: true})
}

func (t *trouble) slowLinks() {
	c, length := condition{delay: t.between(10*time.Millisecond, 400*time.Millisecond)}, t.between(2*time.Second, 10*time.Second)
	t.tell("between all servers it takes %v, for %v", c.delay, length)
	t.during(length, func(pair) bool { return true }, c)
}

// during puts some of the ways between servers into a condition for a while.
func (t *trouble) during(length time.Duration, which func(pair) bool, c condition) {
	var pairs []pair
	for _, from := range t.servers() {
		for _, to := range t.servers() {
			if p := (pair{from.name, to.name}); from != to && which(p) {
				pairs = append(pairs, p)
			}
		}
	}
	for _, p := range pairs {
		t.network.set(p, c)
	}
	t.lasts(length)
	for _, p := range pairs {
		t.network.set(p, condition{})
	}
}

// transfer moves the lead every 200 ms.
func (t *trouble) transfer() {
	length := t.between(3*time.Second, 8*time.Second)
	t.tell("transfer the lead every 200 ms for %v", length)
	ctx, cancel := context.WithTimeout(t.ctx, length)
	defer cancel()
	for ctx.Err() == nil {
		caller := t.direct(t.anyone())
		asking, cancel := context.WithTimeout(ctx, time.Second)
		if _, err := caller.TransferLead(asking, v1.TransferRequest{To: t.anyone().name}); err == nil {
			t.report.count("leads transferred", 1)
		}
		cancel()
		caller.CloseIdle()
		pause(ctx, 200*time.Millisecond)
	}
}

// replaceOne removes a server for good and takes in a new one.
func (t *trouble) replaceOne() {
	s := t.maybeLeader()
	t.tell("replace %s", s.name)
	t.replace(t.slotOf(s))
	t.allVote()
}
