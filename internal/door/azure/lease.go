package azure

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/azureblob"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// A lease is the lease on a blob or a container as Azure sees it. After its end it is still shown, until something
// is written or leased again: Azure's clients renew, release and break leases that are over, and expect the answers
// that Azure gives then.
type lease struct {
	state     leasehold.State
	guid      string // empty if it is available
	id        string // the core's, while it is alive; empty: nobody holds it
	seconds   int    // how long it lasts; infinite
	renewable bool   // after its end: its duration is known
	token     leasehold.Token
	remaining time.Duration
	since     time.Time
	holder    string
	labels    leasehold.Labels
	reason    string
	ending    *leasehold.Ending // of the lease that ended last
	ends      []azureblob.End   // of leases that were broken before
	waiting   int
}

// lookLease reads the lease on a resource. p says which ended lease no longer counts.
func (c *call) lookLease(v core.View, resource string, p *properties) lease {
	status := v.Status(c.door.config.Namespace, resource, 0)
	l := lease{state: leasehold.Available, waiting: status.Waiting, ending: status.Last, ends: p.Ends}
	if len(status.Holders) > 0 {
		l.live(&status.Holders[0])
		return l
	}
	last := status.Last
	if status.State == leasehold.Available || last == nil || last.Token <= p.Settled {
		return l
	}
	l.state, l.token, l.holder = status.State, last.Token, last.Holder
	// An expired lease that was broken afterwards counts as broken: it can no longer be renewed.
	if p.Broken == last.Token {
		l.state = leasehold.Broken
	}
	l.guid, l.seconds, l.renewable = guidOfEnding(last)
	return l
}

// live shows the first holder of a resource; there are others only if they came in by another door and share it, and
// then all of them are in the way.
func (l *lease) live(first *leasehold.Lease) {
	l.state, l.id, l.token, l.renewable = leasehold.Leased, first.ID, first.Token, true
	l.remaining, l.since = first.Remaining, first.Acquired
	l.holder, l.reason, l.labels = first.Holder, first.Reason, first.Labels
	if first.State == leasehold.Breaking {
		l.state = leasehold.Breaking
	}
	l.guid, l.seconds = guidOfLease(first)
}

// alive reports whether the lease locks what it is on.
func (l *lease) alive() bool { return l.id != "" }

// asSeen compares that the lease is still the one that was read.
func (l *lease) asSeen(resource string) core.Compare { return azureblob.LeaseAsSeen(resource, l.id) }

// head writes the state of a lease as headers. The duration is there only while it is leased, as in Azure.
func (l *lease) head(h http.Header) {
	h["x-ms-lease-status"] = []string{l.status()}
	h["x-ms-lease-state"] = []string{l.state.String()}
	if l.state == leasehold.Leased {
		h["x-ms-lease-duration"] = []string{l.kind()}
	}
}

func (l *lease) status() string {
	if l.alive() {
		return "locked"
	}
	return "unlocked"
}

func (l *lease) kind() string {
	if l.seconds == infinite {
		return "infinite"
	}
	return "fixed"
}

func (c *call) leaseBlob() error {
	if c.at.Snapshot != "" {
		return badQuery("snapshot", c.at.Snapshot).saying("A snapshot cannot be leased.")
	}
	return c.leaseThing(&leaseTarget{
		resource: c.at.Resource(), path: c.at.PropertiesPath(),
		look: func(v core.View) (item, *fault) {
			i := c.lookBlob(v, c.at)
			switch {
			case !c.lookContainer(v).found:
				return i, errContainerNotFound
			case !i.found:
				return i, errBlobNotFound
			}
			return i, nil
		},
	})
}

func (c *call) leaseContainer() error {
	return c.leaseThing(&leaseTarget{
		resource: c.at.Resource(), path: c.at.ContainerPath(),
		look: func(v core.View) (item, *fault) {
			i := c.lookContainer(v)
			if !i.found {
				return i, errContainerNotFound
			}
			return i, nil
		},
	})
}

// A leaseTarget is what a lease operation is about.
type leaseTarget struct {
	resource string
	path     string // of the properties
	look     func(core.View) (i item, missing *fault)

	*call
	q    leaseRequest
	item // as it was read last
	made string
	all  []string // that were made

	broke   leasehold.Token // of the lease that an earlier try of a break may have broken
	settled leasehold.Token // what an earlier try of a release may have noted
}

// leaseThing carries out a lease operation: it reads, decides by the state of the lease, and acts if nothing has
// changed since; otherwise it reads again. Which answer belongs to which state follows Azure's table of lease
// operations, since the SDKs decide by it.
func (c *call) leaseThing(t *leaseTarget) (err error) {
	t.call = c
	if t.q, err = c.readLease(); err != nil {
		return err
	}
	conditions, err := c.readConditions("")
	if err != nil {
		return err
	}
	act := map[string]func(bool) (bool, error){
		"acquire": t.acquire, "renew": t.renew, "change": t.change, "release": t.release, "break": t.breakLease,
	}[t.q.action]
	err = c.decide(func(tried bool) (bool, error) {
		var missing *fault
		if err := c.read(func(v core.View) { t.item, missing = t.look(v) }); err != nil {
			return false, err
		}
		if missing != nil {
			return false, missing
		}
		if err := conditions.check(&t.item, true); err != nil {
			return false, err
		}
		return act(tried)
	})
	if err == nil || !t.q.ours {
		return err
	}
	// The ids were made here and never sent, so nobody could release the lease that one of them may have.
	for _, id := range t.all {
		engine.Withdraw(c.ctx, c.engine, &core.Acquire{Namespace: c.door.config.Namespace, ID: id})
	}
	return err
}

// done answers a lease operation.
func (t *leaseTarget) done(status int, guid string) (bool, error) {
	h := t.w.Header()
	t.tags(h)
	if guid != "" {
		h["x-ms-lease-id"] = []string{guid}
	}
	return true, t.answer(status)
}

// acquire takes the lease. In Azure the holder may acquire again under its own id, also with another duration.
func (t *leaseTarget) acquire(tried bool) (bool, error) {
	l := &t.lease
	switch {
	case tried && l.alive() && l.id == t.made:
		return t.done(http.StatusCreated, l.guid)
	case !l.alive():
		return t.grant(http.StatusCreated, t.q.proposed, t.q.seconds)
	case l.guid != t.q.proposed:
		return false, t.present()
	case l.state == leasehold.Breaking:
		return false, errLeaseBreaking
	case l.seconds == t.q.seconds:
		return t.extend(http.StatusCreated)
	}
	return t.regrant()
}

// present returns the refusal of an acquire that finds another holder, and says who that is.
func (t *leaseTarget) present() *fault {
	l := &t.lease
	t.inTheWay = l.token
	message := fmt.Sprintf("There is already a lease present: held by %s since %s", l.who(),
		l.since.UTC().Format(time.RFC3339))
	if l.seconds != infinite {
		message += fmt.Sprintf(", for another %v unless it is renewed", l.remaining.Round(time.Second))
	}
	return errLeasePresent.saying("%s.", message)
}

// grant gives the caller a lease, if nobody has one and nothing has been written since it was read.
func (t *leaseTarget) grant(status int, guid string, seconds int) (bool, error) {
	a := t.claim(guid, seconds)
	t.made = a.ID
	ops := []core.Op{{Do: core.AcquireLease, Acquire: a}}
	// The next lease that ends makes the core forget how this one did.
	if p := t.properties; p.Remember(t.lease.ending) {
		ops = append(ops, core.Op{Do: core.Put, Path: t.path, Value: p.Encode()})
	}
	_, done, err := t.do([]core.Compare{unchanged(t.path, t.mod), t.lease.asSeen(t.resource)}, ops...)
	if err != nil || !done {
		return false, err
	}
	return t.done(status, guid)
}

func (t *leaseTarget) claim(guid string, seconds int) *core.Acquire {
	labels := leasehold.Labels{{Key: "azure/lease-id", Value: guid}}
	if agent := t.r.UserAgent(); agent != "" {
		labels = append(labels, leasehold.Label{Key: "user-agent", Value: brief(cut(agent, 512))})
	}
	about := core.About{Holder: t.who, Labels: labels}
	// A lease that goes on, as a new grant, keeps the note of its holder.
	if told := noteOf(&t.item.properties, guid); told != nil {
		about = told.about(t.who, labels)
	}
	name := newIdentity(guid)
	t.all = append(t.all, name.id)
	return &core.Acquire{
		Namespace: t.door.config.Namespace, Resource: t.resource, ID: name.id, Foreign: name.foreign,
		Holder: about.Holder, Reason: about.Reason, Labels: about.Labels, TTL: ttlOf(seconds),
		MayExpire: seconds != infinite,
	}
}

// extend renews a lease that is alive.
func (t *leaseTarget) extend(status int) (bool, error) {
	answer, err := t.engine.Do(t.ctx, &core.Renew{Namespace: t.door.config.Namespace, ID: t.lease.id})
	switch {
	case ended(err):
		return false, nil // since it was read: look again
	case err != nil:
		return false, err
	case answer.Lease.State == leasehold.Breaking:
		return false, nil
	}
	return t.done(status, t.lease.guid)
}

// ended reports whether an error says that a lease is over.
func ended(err error) bool {
	return errors.Is(err, leasehold.ErrLost) || errors.Is(err, leasehold.ErrNotFound)
}

// regrant gives the holder a lease of another duration. It queues in front of everybody else and then gives back
// what it has, so that the core hands over in one command and nobody gets in between.
func (t *leaseTarget) regrant() (bool, error) {
	next := t.claim(t.lease.guid, t.q.seconds)
	next.Wait, next.Priority = 10*time.Second, leasehold.MaxPriority
	next.Party = next.ID // or it would wait for itself
	t.made = next.ID
	answer, err := t.engine.Do(t.ctx, next)
	if err != nil {
		if errors.Is(err, leasehold.ErrUndecided) {
			engine.Withdraw(t.ctx, t.engine, next)
		}
		return false, err
	}
	if answer.Waiter != nil {
		done, err := t.handOver(next, answer.Waiter)
		if errors.Is(err, leasehold.ErrUndecided) {
			return false, err // it may be what is held by now; else it leaves the queue by itself
		}
		if !done {
			// Also for a caller that went away: what stays in the queue is granted when the holder gives back what it
			// has, and nobody would know of that lease.
			engine.Withdraw(t.ctx, t.engine, next)
			return false, err
		}
	}
	return t.done(http.StatusCreated, t.lease.guid)
}

func (t *leaseTarget) lookAgain(v core.View) lease {
	i, _ := t.look(v)
	return i.lease
}

// notBreaking compares whether nobody breaks a lease: the period that who does was promised must hold.
func notBreaking(resource string) core.Compare {
	return core.Compare{What: core.LeaseBreak, Is: core.Equal, Path: resource}
}

func (t *leaseTarget) handOver(next *core.Acquire, w *leasehold.Waiter) (bool, error) {
	if w.Position != 1 {
		return false, errServerBusy
	}
	var now lease
	if err := t.read(func(v core.View) { now = t.lookAgain(v) }); err != nil {
		return false, err
	}
	if now.id == next.ID {
		return true, nil
	}
	_, done, err := t.do([]core.Compare{t.lease.asSeen(t.resource), notBreaking(t.resource)},
		core.Op{Do: core.ReleaseLease, ID: t.lease.id})
	return done, err
}

// renew extends a lease, also one that has expired, as long as nobody has leased or written since: in Azure a
// client that slept past its lease may go on if nothing happened meanwhile.
func (t *leaseTarget) renew(tried bool) (bool, error) {
	l := &t.lease
	switch {
	case tried && l.alive() && l.id == t.made:
		return t.done(http.StatusOK, l.guid)
	case l.guid != t.q.id:
		return false, l.told(errLeaseMismatch, t.q.id)
	case l.state == leasehold.Breaking || l.state == leasehold.Broken:
		return false, l.told(errLeaseBroken, t.q.id)
	case l.alive():
		return t.extend(http.StatusOK)
	case !l.renewable:
		return false, l.told(errLeaseMismatch, t.q.id)
	}
	// What has ended is never revived: this is a new grant, with a larger token.
	return t.grant(http.StatusOK, l.guid, l.seconds)
}

// change gives the lease another id. A repeated change finds the new id, and is answered with success.
func (t *leaseTarget) change(tried bool) (bool, error) {
	l := &t.lease
	switch {
	case !l.alive():
		return false, l.told(errLeaseNone, t.q.id)
	case l.state == leasehold.Breaking && l.guid == t.q.id:
		return false, errLeaseBreakingStays
	case l.state == leasehold.Breaking:
		return false, l.told(errLeaseMismatch, t.q.id)
	case l.guid == t.q.proposed:
		return t.done(http.StatusOK, l.guid) // an earlier try did it, or there is nothing to do
	case l.guid != t.q.id:
		return false, l.told(errLeaseMismatch, t.q.id)
	}
	name := newIdentity(t.q.proposed)
	_, err := t.engine.Do(t.ctx,
		&core.Change{Namespace: t.door.config.Namespace, ID: l.id, NewID: name.id, Foreign: name.foreign})
	switch {
	case ended(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return t.done(http.StatusOK, t.q.proposed)
}

// release ends a lease. Releasing one that has expired is allowed, and makes the blob available.
func (t *leaseTarget) release(tried bool) (bool, error) {
	l := &t.lease
	if tried && (t.made != "" && l.id != t.made || t.settled != 0 && t.Settled >= t.settled) {
		return t.done(http.StatusOK, "") // an earlier try did it
	}
	if l.guid != t.q.id {
		return false, l.told(errLeaseMismatch, t.q.id)
	}
	t.made = l.id
	if !l.alive() {
		t.settled = l.token
		return t.settle(func(p *properties) { p.Settled = l.token })
	}
	_, done, err := t.do([]core.Compare{unchanged(t.path, t.mod), l.asSeen(t.resource)},
		core.Op{Do: core.ReleaseLease, ID: l.id})
	if err != nil || !done {
		return false, err
	}
	return t.done(http.StatusOK, "")
}

// settle notes something about a lease that is over, in the properties of the blob: the core itself no longer
// changes an ended lease.
func (t *leaseTarget) settle(note func(*properties)) (bool, error) {
	p := t.properties
	note(&p)
	_, done, err := t.do([]core.Compare{unchanged(t.path, t.mod), t.lease.asSeen(t.resource)},
		core.Op{Do: core.Put, Path: t.path, Value: p.Encode()})
	if err != nil || !done {
		return false, err
	}
	if t.q.action == "break" {
		return t.broken(0)
	}
	return t.done(http.StatusOK, "")
}
