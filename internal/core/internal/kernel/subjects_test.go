package kernel_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
)

// The writer of logs draws what the models do not know as well, for judges that need no model: names of areas, tasks,
// pools with what is selected of them, use that hosts report, reservations and series, records that stand for leases,
// kinds, backfill, limits and quotas, and people who ask.

// wideJournal makes up a log of everything. In every other one access is on.
func wideJournal(seed uint64) journal {
	w := &writer{pick: seeded(seed), spent: map[named]uint64{}, wide: true}
	j := w.journal(*length)
	if seed%2 == 0 {
		return j
	}
	for i := range j {
		j[i].asker = person(oneOf(w, "root", "root", "root", "op", "op", "op", "ann", "bob", "own", ""))
	}
	begin := judgePolicy()
	for _, who := range []string{"root", "op", "ann", "bob"} {
		begin.Put.Quotas = append(begin.Put.Quotas, &access.Quota{Principal: who, Leases: 12, Waiters: 12, Sessions: 4, Records: 12})
	}
	return append(journal{{stamp: 0, commands: []core.Command{begin}, asker: person("root")}}, j...)
}

func person(who string) *access.Asker {
	if who == "" {
		return nil
	}
	return &access.Asker{Principal: who, Token: "t-" + who}
}

// askers are who asks for the commands of an entry.
func (e entry) askers() (from core.From) {
	if e.asker != nil {
		from.Askers = slices.Repeat([]*access.Asker{e.asker}, len(e.commands))
	}
	return from
}

func (w *writer) wideResource() string {
	return oneOf(w, "gpu", "gpu", "gpu", "tpu", "repo/w:", "repo/w:x*", "repo/w:xy", "repo/w:**/y", "jobs/t1", "jobs/t2", "m", "st")
}

func (w *writer) pool() string { return oneOf(w, "gpu", "gpu", "tpu") }
func (w *writer) host() string { return fmt.Sprint("h", w.pick(3)) }
func (w *writer) unit() string { return fmt.Sprintf("h%d-%d", w.pick(3), w.pick(3)) }
func (w *writer) task() string { return fmt.Sprint("jobs/t", 1+w.pick(3)) }
func (w *writer) plan() string { return fmt.Sprint("r", w.pick(8)) }

// selects makes a request for a pool one for some of its units.
func (w *writer) selects(path string, slots, capacity *int, sel **leasehold.Select) {
	if path != "gpu" && path != "tpu" || w.chance(8) {
		return
	}
	*slots, *capacity = 1+w.pick(3), 0
	switch w.pick(6) {
	case 0:
		*sel = &leasehold.Select{Spread: true}
	case 1:
		*sel = &leasehold.Select{Where: "model=A"}
	case 2:
		*sel = &leasehold.Select{Where: "host=h1"}
	case 3:
		*slots, *sel = 1, &leasehold.Select{Units: []string{w.unit()}}
	}
}

// some is the id of a lease or a waiter.
func (w *writer) some() string { return w.known(w.ids).id }

// another is an id for a lease that is new.
func (w *writer) another() string {
	id := w.newName().id
	w.ids = latest(append(w.ids, named{ns, id}), 7)
	return id
}

func (w *writer) subject() core.Command {
	switch w.pick(24) {
	case 0, 1, 2:
		return &core.SetUnits{Namespace: ns, Resource: w.pool(), Host: w.host(), Units: w.units(w.pick(3)), Request: w.request(ns)}
	case 3:
		return &core.Drain{Namespace: ns, Resource: w.pool(), Units: []string{w.unit()}, Why: oneOf(w, "", "dust")}
	case 4:
		return w.reportUse()
	case 5, 6:
		return w.defineWide()
	case 7, 8, 9:
		return w.reserve()
	case 10, 11:
		return &core.CancelReservation{Namespace: ns, ID: w.plan(), Request: w.request(ns)}
	case 12, 13:
		return &core.Acquire{Namespace: ns, Resource: oneOf(w, "gpu", "printer", "st", "jobs/t1"), ID: w.another(), Holder: "ann",
			TTL: 10 * time.Second, Reservation: w.plan(), Wait: oneOf(w, 0, time.Minute)}
	case 14, 15:
		return &core.PutTask{Namespace: ns, Path: w.task(), Value: "v", Priority: w.pick(2), Attempts: w.pick(3)}
	case 16, 17:
		return &core.Acquire{Namespace: ns, Resource: "jobs/", ID: w.another(), Holder: "wrk", Task: true, TTL: 5 * time.Second,
			Wait: oneOf(w, 0, 20*time.Second)}
	case 18:
		return &core.FinishTask{Namespace: ns, ID: w.some(), Token: leasehold.Token(1 + w.pick(1+w.made)), Failed: w.chance(2)}
	case 19:
		return &core.DeleteRecord{Namespace: ns, Path: oneOf(w, "jobs/t1", "jobs/t2", "st", "m/"), Range: w.chance(2)}
	case 20:
		return w.links()
	case 21, 22:
		return &core.Renew{Namespace: ns, ID: w.some()} // which shows that a waiter is alive
	}
	return w.exchange()
}

func (w *writer) units(host int) (list []core.HostUnit) {
	for i := range 3 {
		if w.chance(6) {
			continue
		}
		u := core.HostUnit{Name: fmt.Sprintf("h%d-%d", host, i), Labels: leasehold.Labels{{Key: "model", Value: oneOf(w, "A", "A", "B")}}}
		if w.chance(8) {
			u.Unfit = "fan"
		}
		list = append(list, u)
	}
	return list
}

func (w *writer) reportUse() core.Command {
	host := w.pick(3)
	c := &core.ReportUse{Namespace: ns, Resource: w.pool(), Host: fmt.Sprint("h", host)}
	for i := range 3 {
		if w.chance(4) {
			continue
		}
		r := core.UnitReport{Name: fmt.Sprintf("h%d-%d", host, i), Percent: w.pick(2) * 50}
		if w.chance(3) {
			r.Processes = []core.UnitProcess{{PID: 7, Name: "p", Lease: w.some()}}
		}
		c.Units = append(c.Units, r)
	}
	return c
}

func (w *writer) defineWide() core.Command {
	d := leasehold.Definition{Path: oneOf(w, "gpu", "gpu", "tpu", "jobs/", "repo/", "st", "m"), OnReservation: leasehold.AtStart(w.pick(3))}
	if d.Path == "gpu" || d.Path == "tpu" {
		d.Backfill = w.chance(2)
		if w.chance(2) {
			d.Limits = []leasehold.UnitLimit{{Most: 1 + w.pick(3)}}
		}
		if w.chance(3) {
			d.Idle, d.IdleRelease = 2*time.Second, 2*time.Second
		}
	}
	if w.chance(3) {
		d.Grace = 3 * time.Second
	}
	if w.chance(3) {
		d.Unclean = leasehold.AwaitAcknowledgement
	}
	if w.chance(4) {
		return &core.Undefine{Namespace: ns, Path: d.Path, By: "root"}
	}
	return &core.Define{Namespace: ns, Definition: d, By: "root"}
}

// reserve plans something for soon, or again and again.
func (w *writer) reserve() core.Command {
	from := reservation.Moment(wallOf(w.now + w.seconds(0, 20)))
	c := &core.Reserve{Namespace: ns, ID: w.plan(), Resource: oneOf(w, "gpu", "printer", "st", "jobs/t1", "jobs/t2"), Holder: oneOf(w, "ann", "bob"),
		From: from, Length: time.Minute, Request: w.request(ns)}
	if w.made++; w.chance(2) {
		c.Request = core.Request{Key: fmt.Sprint("k", w.made)}
	}
	if c.Resource == "gpu" {
		w.selects("gpu", &c.Slots, new(int), &c.Select)
	}
	if w.chance(5) {
		c.From, c.Starts = 0, []reservation.Moment{from, from.Add(2 * time.Minute)}
		c.Rule, c.To = &leasehold.Rule{Zone: "UTC", Days: leasehold.AllDays, Length: time.Minute}, from.Add(3*time.Minute)
	}
	return c
}

// links puts a record that stands for who has a resource, or waits for it.
func (w *writer) links() core.Command {
	if w.chance(3) {
		return &core.PutRecord{Namespace: ns, Path: "st", Link: &core.Link{Resource: "st", Mirror: "st"}}
	}
	id := w.another()
	return &core.PutRecord{Namespace: ns, Path: "m/" + id, Session: w.sessionIn(ns),
		Link: &core.Link{Resource: "m", ID: id, Holder: "h", Wait: true, Mirror: "m/"}}
}

// exchange takes one thing and gives another back at the same moment, before those who wait.
func (w *writer) exchange() core.Command {
	a := w.acquire().(*core.Acquire)
	a.Namespace, a.Request, a.Wait, a.Priority, a.Select = ns, core.Request{}, 0, w.pick(3), nil
	id := w.some()
	if len(w.areas) > 0 && w.chance(2) {
		id, a.Resource, a.Slots, a.Capacity, a.Also = oneOf(w, w.areas...), oneOf(w, "repo/w:xy", "repo/w:z", "repo/w:q/y"), 0, 0, nil
	}
	for i := range a.Also {
		a.Also[i].Select = nil
	}
	return &core.Txn{Namespace: ns, Then: []core.Op{{Do: core.AcquireLease, Acquire: a}, {Do: core.ReleaseLease, ID: id}}, Request: w.request(ns)}
}

// A scene is what chance alone hardly ever brings together: entries that are made in their order, with others between
// them.
type scene []entry

// play is the next entry of a scene. Its stamp is how much later it is.
func (w *writer) play() entry {
	if len(w.scene) == 0 {
		w.scene = oneOf(w, w.calmScene, w.exchangeScene)()
	}
	e := w.scene[0]
	w.scene = w.scene[1:]
	e.stamp = w.pass(e.stamp)
	return e
}

// calmScene lets somebody wait for a unit and for what rests. The rest ends before anybody looks but one who waits
// behind and shows that it is alive.
func (w *writer) calmScene() scene {
	id := w.another()
	path := oneOf(w, "gpu", "tpu", "pool"+id)
	return scene{
		{commands: []core.Command{
			&core.SetUnits{Namespace: ns, Resource: path, Host: "h0", Units: w.units(0)},
			&core.OpenSession{Namespace: ns, ID: "s" + id, TTL: time.Hour},
			&core.Acquire{Namespace: ns, Resource: "rest" + id, ID: "old" + id, Holder: "old", TTL: time.Second, Grace: 10 * time.Second},
		}},
		{stamp: time.Second, commands: []core.Command{
			&core.Tick{},
			&core.Acquire{Namespace: ns, Resource: path, ID: id, Holder: "w" + id, Session: "s" + id, Slots: 1, Wait: time.Hour,
				Also: []core.Item{{Resource: "rest" + id, ID: "also" + id}}},
			&core.Acquire{Namespace: ns, Resource: path, ID: "behind" + id, Holder: "p" + id, TTL: time.Minute, Slots: 2, Wait: time.Hour},
		}},
		{stamp: 5 * time.Second, commands: []core.Command{&core.Renew{Namespace: ns, ID: "behind" + id}}},
		{stamp: 8 * time.Second, commands: []core.Command{&core.Renew{Namespace: ns, ID: "behind" + id}, w.command()}},
	}
}

// exchangeScene lets somebody wait for what a record stands for and for something else. A transaction deletes the record
// and acquires what is then in the way: a name that overlaps, or the last lease for which there is room.
func (w *writer) exchangeScene() scene {
	id := w.another()
	space, waited, acquired := ns, "repo/w:x*", "repo/w:xy"
	limit, unlimited := &core.SetCaps{}, &core.SetCaps{}
	if w.chance(2) {
		space, waited, acquired, limit.Caps.Leases = "of-"+id, "a", "b", 2
	} else if w.chance(2) {
		waited, acquired = "repo/"+id+":x*", "repo/"+id+":xy"
	}
	return scene{
		{commands: []core.Command{
			&core.OpenSession{Namespace: space, ID: "s" + id, TTL: time.Hour},
			&core.PutRecord{Namespace: space, Path: "face" + id, Session: "s" + id, Link: &core.Link{Resource: "f" + id, ID: "l" + id, Holder: "h"}},
			&core.Acquire{Namespace: space, Resource: waited, ID: id, Holder: "w" + id, Session: "s" + id, Party: "w" + id, Wait: time.Hour,
				Also: []core.Item{{Resource: "f" + id, ID: "also" + id}}},
		}},
		{commands: []core.Command{limit, &core.Txn{Namespace: space, Then: []core.Op{
			{Do: core.Delete, Path: "face" + id},
			{Do: core.AcquireLease, Acquire: &core.Acquire{Namespace: space, Resource: acquired, ID: "mine" + id, Holder: "me", TTL: time.Minute, Priority: 1}},
		}}, unlimited}},
	}
}
