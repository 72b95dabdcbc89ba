package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/core/access"
)

// An entry of a made-up log, stamped from 0s on.
type entry struct {
	stamp    time.Duration
	commands []core.Command
	restore  *core.Restoration // what is there is restored as from a backup, before the commands
	raise    bool              // the state is raised to the next level, before the commands
	asker    *access.Asker     // of the commands; nil: nobody was proven to ask
}

// A journal is a log. It prints as a story, to be pasted into testdata.
type journal []entry

func (j journal) String() string {
	var text strings.Builder
	for _, e := range j {
		if e.restore != nil {
			fmt.Fprintln(&text, writeRestore(e.restore))
		}
		if e.raise {
			fmt.Fprintln(&text, "raise")
		}
		word := short(e.stamp)
		if len(e.commands) == 0 {
			fmt.Fprintln(&text, word, "nothing")
		}
		for _, c := range e.commands {
			fmt.Fprintln(&text, word, writeCommand(c))
			word = "and"
		}
	}
	return text.String()
}

// A writer makes up logs. The world in it is small, and its times are whole
// numbers of a few units, so that things meet: ids are used again, deadlines are hit
// exactly, sessions end with what they hold and wait for.
type writer struct {
	pick  func(n int) int // one of 0 to n-1
	now   time.Duration
	made  int
	sent  []core.Command // lately
	ids   []named        // of leases and waiters, lately
	open  []named        // sessions, lately
	spent map[named]uint64
	areas []string // leases and waiters on names of areas, lately
	wide  bool     // it draws what the models do not know, too: see subjects_test.go
	scene scene    // that is being played
}

type named struct{ namespace, id string }

// writeJournal makes up a log of about so many commands.
func writeJournal(commands int, pick func(n int) int) (j journal) {
	return (&writer{pick: pick, spent: map[named]uint64{}}).journal(commands)
}

func (w *writer) journal(commands int) (j journal) {
	raises := oneOf(w, 0, 0, 0, 50, 1000000) // at which entry, from which on nothing else changes
	for commands > 0 {
		e := entry{stamp: w.step()}
		if w.wide && w.chance(40) {
			e.stamp = w.pass(70 * time.Second) // reservations begin, and are over
		}
		for range w.batch() {
			e.commands = append(e.commands, w.command())
		}
		if w.chance(40) {
			e.commands = append(e.commands, w.caps())
		}
		if w.chance(60) {
			e.commands = append(e.commands, &core.EndQuarantine{Base: oneOf[uint64](w, 0, 0, 1<<40, 1<<41), Reason: oneOf(w, "", "known", "known")})
		}
		if len(j)%20 == 13 { // without a die: the logs of known seeds stay as they are
			e.commands = append(e.commands, w.raiseTokens(len(j)))
		}
		e.raise = raises == len(j)
		if w.pick(150) == 1 {
			e.restore = &core.Restoration{Quarantine: oneOf(w, -1, 0, 3*time.Second, 10*time.Second)}
			e.commands = append([]core.Command{&core.Lead{Node: 7, Boot: "again"}}, e.commands...)
		}
		commands -= max(1, len(e.commands))
		if j = append(j, e); w.wide && w.chance(5) {
			e = w.play()
			commands -= len(e.commands)
			j = append(j, e)
		}
	}
	return j
}

// seeded picks in a way that the seed alone decides.
func seeded(seed uint64) func(n int) int { return rand.New(rand.NewPCG(seed, 1)).IntN }

func oneOf[T any](w *writer, list ...T) T { return list[w.pick(len(list))] }

// chance is true once in so many times.
func (w *writer) chance(oneIn int) bool { return w.pick(oneIn) == 0 }

func (w *writer) seconds(least, most int) time.Duration {
	return time.Duration(least+w.pick(most-least+1)) * time.Second
}

// step moves time, mostly not at all or by a little, now and then by so much that
// whatever is remembered for a while is forgotten.
func (w *writer) step() time.Duration {
	if w.chance(200) {
		w.now += 11 * time.Minute
	}
	if w.chance(800) {
		w.now += leasehold.KeepDeleted
	}
	w.now += oneOf(w, 0, 0, 0, 0, 0, 500*time.Millisecond, 500*time.Millisecond, time.Second, time.Second, 2*time.Second)
	if w.chance(25) {
		w.now += w.seconds(3, 12)
	}
	return w.now
}

func (w *writer) pass(d time.Duration) time.Duration {
	w.now += d
	return w.now
}

func (w *writer) batch() int { return oneOf(w, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 6, 0) }

func (w *writer) command() core.Command {
	if len(w.sent) > 0 && w.chance(8) {
		return oneOf(w, w.sent...) // a retry
	}
	c := w.fresh()
	if w.wide && w.chance(2) {
		c = w.subject()
	}
	w.sent = latest(append(w.sent, c), 12)
	return c
}

func latest[T any](list []T, most int) []T { return list[max(0, len(list)-most):] }

func (w *writer) fresh() core.Command {
	switch w.pick(34) {
	case 28, 29:
		return w.define()
	case 30:
		return w.undefine()
	case 31:
		return w.acknowledge()
	case 32:
		return w.acknowledgeAlarm()
	case 33:
		return w.acquire()
	case 27:
		lease := w.known(w.ids)
		return &core.Move{Namespace: lease.namespace, ID: lease.id, Priority: w.pick(3) - 1, By: "root", Request: w.request(lease.namespace)}
	case 26:
		lease := w.known(w.ids)
		return &core.Ask{
			Namespace: lease.namespace, Resource: w.resource(), By: "bob", Message: "please", Request: w.request(lease.namespace),
		}
	case 20, 21:
		return w.put()
	case 22, 23:
		return w.delete()
	case 24, 25:
		return w.txn()
	case 0, 1, 2, 3, 4, 5:
		return w.acquire()
	case 6, 7, 8:
		lease := w.known(w.ids)
		renew := &core.Renew{Namespace: lease.namespace, ID: lease.id}
		if len(w.ids)%3 == 0 { // without a die: the logs of known seeds stay as they are
			note := []string{"", "half"}[len(w.open)%2]
			renew.Note = &note
		}
		return renew
	case 9, 10:
		lease := w.known(w.ids)
		release := &core.Release{Namespace: lease.namespace, ID: lease.id, Request: w.request(lease.namespace)}
		if w.chance(2) {
			release.Session = w.known(w.open).id
		}
		if release.Withdraw = w.chance(3); release.Withdraw && w.chance(3) {
			w.made++
			release.ID = fmt.Sprint("n", w.made+1) // of the next that is made up
		}
		return release
	case 11:
		return w.change()
	case 12, 13:
		return w.breakLease()
	case 14:
		session := w.newName()
		w.open = latest(append(w.open, session), 3)
		return &core.OpenSession{Namespace: session.namespace, ID: session.id, TTL: w.seconds(2, 20), Request: w.request(session.namespace)}
	case 15, 16:
		session := w.known(w.open)
		return &core.RenewSession{Namespace: session.namespace, ID: session.id}
	case 17:
		if !w.chance(3) {
			return &core.Tick{}
		}
		session := w.known(w.open)
		return &core.CloseSession{Namespace: session.namespace, ID: session.id, Abandon: w.chance(3), Request: w.request(session.namespace)}
	}
	return &core.Tick{}
}

func (w *writer) raiseTokens(n int) core.Command {
	return &core.RaiseTokens{
		Namespace: []string{leasehold.DefaultNamespace, "green", "new"}[n%3], Above: leasehold.Token(n % 7 * n), Reason: []string{"seen", "seen", "seen", ""}[n%4],
	}
}

// caps are small now and then, and mostly large enough.
func (w *writer) caps() core.Command {
	c := &core.SetCaps{IfUnset: w.chance(4)}
	c.Caps = leasehold.Caps{
		Leases: oneOf(w, 0, 2, 4, 1000), Sessions: oneOf(w, 0, 1, 3, 1000), Waiters: oneOf(w, 0, 1, 3, 1000), Namespaces: oneOf(w, 0, 1, 2, 1000),
	}
	return c
}

// newName is a name that was not used yet, in one of two namespaces.
func (w *writer) newName() named {
	w.made++
	return named{oneOf(w, leasehold.DefaultNamespace, leasehold.DefaultNamespace, leasehold.DefaultNamespace, "green"), fmt.Sprint("n", w.made)}
}

// known is a name that was used lately; now and then one that was not, or the same
// one in the other namespace.
func (w *writer) known(list []named) named {
	if len(list) == 0 || w.chance(30) {
		return named{oneOf(w, leasehold.DefaultNamespace, "green", "blue"), oneOf(w, "nobody", "n1")}
	}
	return oneOf(w, list...)
}

func (w *writer) acquire() core.Command {
	lease := w.newName()
	if w.chance(12) {
		lease = w.known(w.ids)
	}
	w.ids = latest(append(w.ids, lease), 7)
	c := &core.Acquire{
		Namespace: lease.namespace, ID: lease.id, Resource: w.resource(), Holder: oneOf(w, "ann", "bob", "cyd"),
	}
	w.share(&c.Slots, &c.Capacity)
	if w.wide {
		c.Labels = oneOf(w, nil, leasehold.Labels{{Key: "kind", Value: "eval"}}, leasehold.Labels{{Key: "kind", Value: "train"}})
		w.selects(c.Resource, &c.Slots, &c.Capacity, &c.Select)
		if strings.HasPrefix(c.Resource, "repo/") {
			w.areas = latest(append(w.areas, c.ID), 4)
		}
	}
	if w.chance(5) || w.wide && w.chance(3) {
		w.also(c)
	}
	if w.chance(6) {
		c.Party = oneOf(w, "west", "east", w.newName().id)
	}
	switch w.pick(8) {
	case 0: // until it is released
	case 1, 2, 3, 4:
		c.Session = w.sessionIn(lease.namespace)
	default:
		c.TTL = w.seconds(1, 12)
		c.Pick = oneOf(w, core.TTLAsSaid, core.TTLAsSaid, core.TTLByDefault, core.TTLAuto)
	}
	if !w.chance(3) {
		c.Wait = w.seconds(1, 20)
	}
	if w.chance(4) {
		c.Grace = w.seconds(1, 5)
	}
	if w.chance(4) {
		c.HoldLimit = w.seconds(1, 10)
	}
	if w.chance(4) {
		c.Priority = w.pick(5) - 2
	}
	if w.chance(50) {
		c.TTL, c.Session, c.Pick = time.Second, "both", 0 // which is not allowed
	}
	if w.chance(4) {
		c.Foreign = oneOf(w, "7", "8", strings.Repeat("9", leasehold.MaxForeign))
	}
	c.MayExpire = w.chance(4)
	c.Request = w.request(lease.namespace)
	return c
}

func (w *writer) change() core.Command {
	lease := w.known(w.ids)
	c := &core.Change{Namespace: lease.namespace, ID: lease.id, Request: w.request(lease.namespace)}
	if w.chance(5) {
		c.About = &core.About{Holder: oneOf(w, "ann", "bob", "cyd@host", ""), Reason: oneOf(w, "", "apply")}
		return c
	}
	if w.chance(2) {
		c.Holder = oneOf(w, "ann", "bob", "cyd")
	}
	if w.chance(2) {
		id := w.newName().id
		if w.chance(8) {
			id = w.known(w.ids).id
		}
		c.NewID = id
		c.Foreign = oneOf(w, "", "7", "8")
		w.ids = latest(append(w.ids, named{lease.namespace, id}), 7)
	}
	return c
}

func (w *writer) breakLease() core.Command {
	lease := w.known(w.ids)
	c := &core.Break{Namespace: lease.namespace, ID: lease.id, By: "root", Request: w.request(lease.namespace)}
	if w.chance(3) {
		c.ID, c.Resource, c.Token = "", w.resource(), leasehold.Token(1+w.pick(1+w.made))
		c.All = w.chance(2)
	} else if w.chance(4) {
		c.Token = leasehold.Token(1 + w.pick(1+w.made))
	} else {
		c.Waiting = w.chance(4)
	}
	switch w.pick(3) {
	case 0:
		c.Remains = true
	case 1:
		c.Period = w.seconds(1, 6)
	}
	return c
}

// paths are few, and some begin like others.
func (w *writer) path() string { return oneOf(w, "a", "a/1", "a/2", "b", "c", "printer") }

func (w *writer) value() string { w.made++; return fmt.Sprint("v", w.made) }

// fence is that of a lease, of a lease and a token, or of a token.
func (w *writer) fence(lease named) (f core.Fence) {
	if w.chance(2) {
		return f
	}
	if !w.chance(3) {
		f.Lease = lease.id
	}
	if w.chance(2) {
		f.Token = leasehold.Token(1 + w.pick(1+w.made/4))
	}
	return f
}

func (w *writer) put() core.Command {
	lease := w.known(w.ids)
	c := &core.PutRecord{Namespace: lease.namespace, Path: w.path(), Value: w.value(), Fence: w.fence(lease), Request: w.request(lease.namespace)}
	switch w.pick(6) {
	case 0, 1:
		c.Session = w.sessionIn(lease.namespace)
	case 2:
		c.IfAbsent = true
	case 3:
		c.IfRevision = leasehold.Revision(1 + w.pick(1+w.made))
	}
	w.version(&c.Value, &c.Large, &c.From, &c.Keep)
	if w.chance(8) {
		c.By, c.Reason = "ops", "forced"
	}
	return c
}

// version makes what is put a large value now and then, or a former one, and says how
// many former ones are kept.
func (w *writer) version(value *string, large **leasehold.Large, from *leasehold.Revision, keep *int) {
	switch w.pick(6) {
	case 0, 1:
		name := w.pick(3)
		*value, *large = "", &leasehold.Large{SHA256: leasehold.Digest{byte('x' + name)}, Size: int64(100 + name)}
	case 2:
		*value, *from = "", leasehold.Revision(1+w.pick(1+w.made))
	}
	if w.chance(2) {
		*keep = oneOf(w, 1, 2, 3, 3, leasehold.KeepNone)
	}
}

func (w *writer) delete() core.Command {
	lease := w.known(w.ids)
	c := &core.DeleteRecord{Namespace: lease.namespace, Path: w.path(), Fence: w.fence(lease), Request: w.request(lease.namespace)}
	switch w.pick(6) {
	case 0:
		c.IfRevision = leasehold.Revision(1 + w.pick(1+w.made))
	case 1, 2:
		c.Range = true
		if w.chance(2) {
			c.To = w.path()
		}
	}
	return c
}

func (w *writer) txn() core.Command {
	lease := w.known(w.ids)
	c := &core.Txn{Namespace: lease.namespace, Request: w.request(lease.namespace)}
	for range w.pick(3) {
		c.If = append(c.If, w.compare(lease))
	}
	for range w.pick(4) {
		c.Then = append(c.Then, w.op(lease.namespace))
	}
	for range w.pick(3) {
		c.Else = append(c.Else, w.op(lease.namespace))
	}
	return c
}

func (w *writer) compare(lease named) core.Compare {
	c := core.Compare{What: core.What(1 + w.pick(int(core.LeaseFloor))), Is: core.Relation(1 + w.pick(int(core.Greater))), Path: w.path()}
	switch c.What {
	case core.RecordValue:
		c.Text = fmt.Sprint("v", 1+w.pick(1+w.made))
	case core.RecordSession:
		c.Text = w.sessionIn(lease.namespace)
	case core.LeaseID:
		c.Text = oneOf(w, lease.id, "")
	default:
		c.Number = uint64(w.pick(2 + w.made/4))
	}
	return c
}

func (w *writer) op(namespace string) core.Op {
	switch w.pick(8) {
	case 0:
		return core.Op{Do: core.ReleaseLease, ID: w.known(w.ids).id}
	case 1:
		a := w.acquire().(*core.Acquire)
		a.Namespace, a.Request = namespace, core.Request{}
		if !w.chance(8) {
			a.Wait = 0 // as it has to be
		}
		return core.Op{Do: core.AcquireLease, Acquire: a}
	}
	o := core.Op{Do: core.Do(1 + w.pick(int(core.Get))), Path: w.path()}
	if o.Do == core.Put {
		o.Value = w.value()
		if w.chance(3) {
			o.Session = w.sessionIn(namespace)
		}
		w.version(&o.Value, &o.Large, &o.From, &o.Keep)
		return o
	}
	if o.Range = w.chance(2); o.Range && w.chance(2) {
		o.To = w.path()
	}
	if o.Do == core.Get {
		o.Most, o.KeysOnly, o.Count = w.pick(3), w.chance(4), w.chance(2)
	}
	return o
}

// sessionIn is one of the newest sessions of a namespace; empty if it has none.
func (w *writer) sessionIn(namespace string) string {
	own := slices.DeleteFunc(slices.Clone(w.open), func(s named) bool { return s.namespace != namespace })
	if len(own) == 0 {
		return ""
	}
	return w.known(latest(own, 2)).id
}

// request makes a command happen once: by a key, or by a number within a session.
func (w *writer) request(namespace string) (r core.Request) {
	switch w.pick(8) {
	case 0:
		w.made++
		r.Key = fmt.Sprint("k", w.made)
	case 1:
		if r.Session = w.sessionIn(namespace); r.Session == "" {
			return r
		}
		count := named{namespace, r.Session}
		w.spent[count] += oneOf(w, uint64(1), 1, 1, 1, 2, 700, 1024, 5000)
		r.Sequence = w.spent[count] - min(w.spent[count]-1, oneOf(w, uint64(0), 0, 0, 0, 1, 1023, 1024))
	case 2:
		if w.chance(4) {
			r.Key = "often" // by which other requests went as well
		}
	}
	return r
}

// resource is one of a few; some of them are under a prefix that may be defined.
func (w *writer) resource() string {
	if w.wide && w.chance(2) {
		return w.wideResource()
	}
	return oneOf(w, "printer", "printer", "scanner", "plotter", "pool/gpu", "pool/gpu", "pool/cpu")
}

// share makes a request for a resource one for some of its slots, mostly in agreement
// with the others.
func (w *writer) share(slots, capacity *int) {
	switch w.pick(12) {
	case 0, 1, 2:
		*slots, *capacity = 1+w.pick(3), 3
	case 3:
		*slots = 1 // of as many as there are
	case 4:
		*slots, *capacity = 1+w.pick(2), 2
	case 5:
		*slots = 1 + w.pick(3)
	}
}

// also asks for further resources at once.
func (w *writer) also(c *core.Acquire) {
	asked := []string{c.Resource}
	for range 1 + w.pick(2) {
		item := core.Item{Resource: w.resource(), ID: w.newName().id}
		if slices.Contains(asked, item.Resource) {
			continue
		}
		if w.chance(25) {
			item.ID = w.known(w.ids).id
		}
		if item.ID == c.ID || slices.ContainsFunc(c.Also, func(i core.Item) bool { return i.ID == item.ID }) {
			continue
		}
		w.share(&item.Slots, &item.Capacity)
		if w.wide {
			w.selects(item.Resource, &item.Slots, &item.Capacity, &item.Select)
		}
		asked, c.Also = append(asked, item.Resource), append(c.Also, item)
		w.ids = latest(append(w.ids, named{c.Namespace, item.ID}), 7)
	}
}

func (w *writer) namespace() string {
	return oneOf(w, leasehold.DefaultNamespace, leasehold.DefaultNamespace, leasehold.DefaultNamespace, "green")
}

func (w *writer) defined() string {
	return oneOf(w, "printer", "scanner", "pool/gpu", "pool/gpu", "pool/", "pool/", "/")
}

func (w *writer) define() core.Command {
	namespace := w.namespace()
	d := leasehold.Definition{Path: w.defined()}
	switch w.pick(5) {
	case 0, 1:
		d.Units = oneOf(w, []string{"u1", "u2", "u3"}, []string{"u1", "u2"}, []string{"u3", "u2", "u4"}, []string{"u1"})
	case 2:
		d.Capacity = 1 + w.pick(4)
	}
	if w.chance(3) {
		d.Grace = w.seconds(1, 5)
	}
	if w.chance(5) {
		d.HoldLimit = w.seconds(2, 10)
	}
	if w.chance(6) {
		d.LargestTTL = w.seconds(5, 12)
	}
	if w.chance(4) {
		d.DefaultTTL = w.seconds(2, 5)
	}
	if w.chance(8) {
		d.Expected = w.seconds(2, 20)
	}
	d.Unclean = oneOf(w, leasehold.AllowNext, leasehold.AllowNext, leasehold.WarnNext, leasehold.AwaitAcknowledgement)
	c := &core.Define{Namespace: namespace, Definition: d, By: "root", Request: w.request(namespace)}
	if w.chance(3) {
		c.Fields = core.DefinitionFields(w.pick(1 << 7))
		c.Definition = c.Over(nil)
	}
	c.KeepSlots = w.chance(4)
	if w.chance(12) {
		c.IfRevision = leasehold.Revision(1 + w.pick(20))
	}
	return c
}

func (w *writer) undefine() core.Command {
	namespace := w.namespace()
	return &core.Undefine{Namespace: namespace, Path: w.defined(), By: "root", Request: w.request(namespace)}
}

func (w *writer) acknowledge() core.Command {
	namespace := w.namespace()
	return &core.Acknowledge{
		Namespace: namespace, Resource: w.resource(), Token: leasehold.Token(1 + w.pick(1+w.made)), By: "root", Request: w.request(namespace),
	}
}

func (w *writer) acknowledgeAlarm() core.Command {
	namespace := w.namespace()
	return &core.AcknowledgeAlarm{
		Namespace: namespace, Kind: oneOf(w, leasehold.UncleanEnd, leasehold.HeldLong, leasehold.LongQueue, leasehold.Flapping, leasehold.LateRenewal),
		Resource: w.resource(), Order: uint64(1 + w.pick(30)), By: "root", Request: w.request(namespace),
	}
}
