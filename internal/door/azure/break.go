package azure

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// breakLease ends a lease for anybody who asks, after a period. Breaking again can only shorten it. A break names no
// lease: one whose earlier try may have happened is about the lease that it found then, and not about the next one.
func (t *leaseTarget) breakLease(tried bool) (bool, error) {
	l := &t.lease
	switch {
	case tried && t.broke != 0 && l.token != t.broke:
		return t.broken(0)
	case l.state == leasehold.Available:
		return false, errLeaseNone
	case l.state == leasehold.Broken:
		return t.broken(0)
	case !l.alive():
		return t.settle(func(p *properties) { p.Broken = l.token })
	}
	t.broke = l.token
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
