package storeapi

import (
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

func (a *API) lease(l leasehold.Lease) v1.Lease {
	answer := v1.Lease{
		Namespace: a.namespace, Resource: l.Resource, ID: l.ID, Holder: l.Holder,
		Token: uint64(l.Token), Floor: uint64(l.Floor), State: l.State.String(), Slots: l.Slots, Units: l.Units,
		Acquired: moment(l.Acquired), Labels: store.LabelMap(l.Labels), Reason: l.Reason, After: ending(l.After),
	}
	if l.State == 0 {
		answer.State = leasehold.Leased.String()
	}
	if l.TTL > 0 {
		ttl := v1.Duration(l.TTL)
		answer.TTL = &ttl
	}
	left := l.Remaining.Milliseconds()
	answer.RemainingMS, answer.Expires = &left, &v1.Time{Time: time.Now().Add(l.Remaining)}
	return answer
}

func (a *API) status(s leasehold.Status) v1.Resource {
	r := v1.Resource{
		Namespace: a.namespace, Resource: s.Resource, State: s.State.String(), Capacity: max(1, s.Capacity),
		Used: s.Used, Holders: []v1.Lease{}, Waiting: s.Waiting, Last: ending(s.Last),
		AvailableAt: moment(s.AvailableAt),
	}
	for _, l := range s.Holders {
		r.Holders = append(r.Holders, a.lease(l))
	}
	for _, w := range s.Queue {
		r.Queue = append(r.Queue, v1.Waiter{
			Position: w.Position, ID: w.ID, Holder: w.Holder, Labels: store.LabelMap(w.Labels), Reason: w.Reason,
			Since: v1.Time{Time: w.Since}, Until: moment(w.Until),
		})
	}
	return r
}

func ending(e *leasehold.Ending) *v1.Ending {
	if e == nil {
		return nil
	}
	return &v1.Ending{
		ID: e.ID, Holder: e.Holder, Token: uint64(e.Token), How: e.How.String(), By: e.By, Reason: e.Reason,
		At: v1.Time{Time: e.At},
	}
}

func event(e leasehold.Event, namespace string) v1.Event {
	answer := v1.Event{
		Namespace: namespace, Revision: uint64(e.Revision), N: e.N, Kind: e.Kind.String(), At: v1.Time{Time: e.At},
		Until: moment(e.Until), Resource: e.Resource, ID: e.ID, Holder: e.Holder, Token: uint64(e.Token), By: e.By,
		Reason: e.Reason,
	}
	if e.How != 0 {
		answer.How = e.How.String()
	}
	return answer
}

func moment(t time.Time) *v1.Time {
	if t.IsZero() {
		return nil
	}
	return &v1.Time{Time: t}
}
