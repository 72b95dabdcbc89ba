package azure

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
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
	ending    *leasehold.Ending // after its end
	waiting   int
}

// lookLease reads the lease on a resource. p says which ended lease no longer counts.
func (c *call) lookLease(v core.View, resource string, p *properties) lease {
	status := v.Status(c.door.config.Namespace, resource, 0)
	if len(status.Holders) > 0 {
		return liveLease(status)
	}
	last := status.Last
	if status.State == leasehold.Available || last == nil || last.Token <= p.Settled {
		return lease{state: leasehold.Available, waiting: status.Waiting}
	}
	l := lease{state: status.State, token: last.Token, ending: last, holder: last.Holder, waiting: status.Waiting}
	// An expired lease that was broken afterwards counts as broken: it can no longer be renewed.
	if p.Broken == last.Token {
		l.state = leasehold.Broken
	}
	l.guid, l.seconds, l.renewable = guidOfEnding(last)
	return l
}

// liveLease shows the first holder of a resource; there are others only if they came in by another door and share
// it, and then all of them are in the way.
func liveLease(status leasehold.Status) lease {
	first := status.Holders[0]
	l := lease{state: leasehold.Leased, id: first.ID, token: first.Token, remaining: first.Remaining,
		since:  first.Acquired,
		holder: first.Holder, labels: first.Labels, waiting: status.Waiting, renewable: true}
	if first.State == leasehold.Breaking {
		l.state = leasehold.Breaking
	}
	l.guid, l.seconds = guidOfLease(&first)
	return l
}

// alive reports whether the lease locks what it is on.
func (l *lease) alive() bool { return l.id != "" }

// asSeen compares that the lease is still the one that was read.
func (l *lease) asSeen(resource string) core.Compare { return leaseAsSeen(resource, l.id) }

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
	if c.at.snapshot != "" {
		return badQuery("snapshot", c.at.snapshot).saying("A snapshot cannot be leased.")
	}
	return c.leaseThing(&leaseTarget{
		resource: c.at.resource(), path: c.at.propertiesPath(), missing: errBlobNotFound,
		look: func(v core.View) item {
			if !c.lookContainer(v).found {
				return item{}
			}
			return c.lookBlob(v, c.at)
		},
	})
}

func (c *call) leaseContainer() error {
	return c.leaseThing(&leaseTarget{
		resource: c.at.resource(), path: c.at.containerPath(), missing: errContainerNotFound, look: c.lookContainer,
	})
}

// A leaseTarget is what a lease operation is about.
type leaseTarget struct {
	resource string
	path     string // of the properties
	missing  *fault
	look     func(core.View) item

	*call
	q    leaseRequest
	item // as it was read last
	made string

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
		if err := c.read(func(v core.View) { t.item = t.look(v) }); err != nil {
			return false, err
		}
		if !t.found {
			return false, t.missing
		}
		if err := conditions.check(&t.item, true); err != nil {
			return false, err
		}
		return act(tried)
	})
	if errors.Is(err, leasehold.ErrUndecided) && t.q.ours && t.made != "" {
		// The id was made here and never sent, so nobody could release the lease.
		engine.Withdraw(c.ctx, c.engine, &core.Acquire{Namespace: c.door.config.Namespace, ID: t.made})
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
	message := fmt.Sprintf("There is already a lease present: held by %s since %s", l.holder,
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
	_, done, err := t.do([]core.Compare{unchanged(t.path, t.mod), t.lease.asSeen(t.resource)},
		core.Op{Do: core.AcquireLease, Acquire: a})
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
	name := t.newIdentity(guid, seconds)
	return &core.Acquire{
		Namespace: t.door.config.Namespace, Resource: t.resource, ID: name.id, Foreign: name.foreign, Holder: t.who,
		TTL: ttlOf(seconds), Labels: labels,
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
		return false, err
	}
	if answer.Waiter != nil {
		done, err := t.handOver(next, answer.Waiter)
		if errors.Is(err, leasehold.ErrUndecided) {
			return false, err // it may be what is held by now; else it leaves the queue by itself
		}
		if !done {
			_, _ = t.engine.Do(t.ctx, &core.Release{Namespace: next.Namespace, ID: next.ID})
			return false, err
		}
	}
	return t.done(http.StatusCreated, t.lease.guid)
}

func (t *leaseTarget) handOver(next *core.Acquire, w *leasehold.Waiter) (bool, error) {
	if w.Position != 1 {
		return false, errServerBusy
	}
	// A break that came since the lease was read must hold: its period has been promised.
	var now lease
	if err := t.read(func(v core.View) { now = t.look(v).lease }); err != nil {
		return false, err
	}
	if now.id == next.ID {
		return true, nil
	}
	if now.id != t.lease.id || now.state != leasehold.Leased {
		return false, nil
	}
	_, done, err := t.do([]core.Compare{leaseAsSeen(t.resource, t.lease.id)},
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
		return false, errLeaseMismatch
	case l.state == leasehold.Breaking || l.state == leasehold.Broken:
		return false, errLeaseBroken
	case l.alive():
		return t.extend(http.StatusOK)
	case !l.renewable:
		return false, errLeaseMismatch
	}
	// What has ended is never revived: this is a new grant, with a larger token.
	return t.grant(http.StatusOK, l.guid, l.seconds)
}

// change gives the lease another id. A repeated change finds the new id, and is answered with success.
func (t *leaseTarget) change(tried bool) (bool, error) {
	l := &t.lease
	switch {
	case !l.alive():
		return false, errLeaseNone
	case l.state == leasehold.Breaking && l.guid == t.q.id:
		return false, errLeaseBreakingStays
	case l.state == leasehold.Breaking:
		return false, errLeaseMismatch
	case l.guid == t.q.proposed:
		return t.done(http.StatusOK, l.guid) // an earlier try did it, or there is nothing to do
	case l.guid != t.q.id:
		return false, errLeaseMismatch
	}
	name := t.newIdentity(t.q.proposed, l.seconds)
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
		return false, errLeaseMismatch
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
		core.Op{Do: core.Put, Path: t.path, Value: p.encode()})
	if err != nil || !done {
		return false, err
	}
	if t.q.action == "break" {
		return t.broken(0)
	}
	return t.done(http.StatusOK, "")
}

// breakLease ends a lease for anybody who asks, after a period. Breaking again can only shorten it.
func (t *leaseTarget) breakLease(bool) (bool, error) {
	l := &t.lease
	switch {
	case l.state == leasehold.Available:
		return false, errLeaseNone
	case l.state == leasehold.Broken:
		return t.broken(0)
	case !l.alive():
		return t.settle(func(p *properties) { p.Broken = l.token })
	}
	// What is left counts if it is less than the period. A period that ends after the lease would let it expire,
	// and an expired lease can be renewed where a broken one cannot.
	period := time.Duration(t.q.period) * time.Second
	remains := t.q.period == noPeriod || l.seconds != infinite && period >= l.remaining
	left, err := t.breakIn(period, remains)
	switch {
	case err == nil && t.q.period != noPeriod && left > period: // it was renewed meanwhile
		left, err = t.breakIn(period, false)
	case err == nil && !remains && left < period && left > 0: // it had less left than was read
		left, err = t.breakIn(0, true)
	}
	switch {
	case ended(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return t.broken(left)
}

// breakIn breaks the lease and returns how long it still lasts.
func (t *leaseTarget) breakIn(period time.Duration, remains bool) (time.Duration, error) {
	c := &core.Break{Namespace: t.door.config.Namespace, ID: t.lease.id, Period: period, By: t.who, Remains: remains}
	if remains {
		c.Period = 0
	}
	answer, err := t.engine.Do(t.ctx, c)
	if err != nil {
		return 0, err
	}
	if answer.Lease.State == leasehold.Broken {
		return 0, nil
	}
	return answer.Lease.Remaining, nil
}

func (t *leaseTarget) broken(left time.Duration) (bool, error) {
	t.w.Header()["x-ms-lease-time"] = []string{strconv.Itoa(int(math.Ceil(left.Seconds())))}
	return t.done(http.StatusAccepted, "")
}
