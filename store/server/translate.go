package server

import (
	"time"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/store"
)

// The API's words are those of package leasehold, with moments, durations and names as text.

func grant(l v1.Lease) store.Grant {
	g := store.Grant{Lease: lease(l), Waited: l.WaitedMS > 0}
	if l.Interventions != nil {
		g.Counted, g.Interventions = true, *l.Interventions
	}
	for _, also := range l.Also {
		other := grant(also)
		other.Counted, other.Interventions = g.Counted, g.Interventions // they share its session
		g.Also = append(g.Also, other)
	}
	return g
}

func lease(l v1.Lease) leasehold.Lease {
	answer := leasehold.Lease{
		Namespace: l.Namespace, Resource: l.Resource, ID: l.ID, Holder: l.Holder, Labels: store.LabelsOf(l.Labels),
		Reason: l.Reason, Session: l.Session, State: stateOf(l.State),
		Token: leasehold.Token(l.Token), Floor: leasehold.Token(l.Floor), Slots: l.Slots, Units: l.Units,
		HoldLimit: time.Duration(l.HoldLimit), Acquired: moment(l.Acquired), Expires: moment(l.Expires),
		AvailableAt: moment(l.AvailableAt), Revision: leasehold.Revision(l.Revision), After: ending(l.After),
		Foreign: l.Foreign, Door: l.Door, Note: l.Note, Noted: moment(l.Noted),
	}
	if l.TTL != nil {
		answer.TTL = time.Duration(*l.TTL)
	}
	if l.RemainingMS != nil {
		// Less than a millisecond is told as 0, which would mean here that it does not end by time.
		answer.Remaining = max(1, time.Duration(*l.RemainingMS)*time.Millisecond)
	}
	return answer
}

func sessionAnswer(s v1.Session) store.SessionAnswer {
	answer := store.SessionAnswer{
		Remaining: time.Duration(s.RemainingMS) * time.Millisecond, Intervened: s.Intervened,
	}
	if s.Interventions != nil {
		answer.Counted, answer.Interventions = true, *s.Interventions
	}
	return answer
}

func status(r v1.Resource) leasehold.Status {
	s := leasehold.Status{
		Namespace: r.Namespace, Resource: r.Resource, State: stateOf(r.State), Capacity: r.Capacity, Used: r.Used,
		Holding: max(r.Holding, len(r.Holders)), Waiting: r.Waiting, Last: ending(r.Last),
		AvailableAt: moment(r.AvailableAt), Unacknowledged: ending(r.Unacknowledged),
	}
	for _, u := range r.Units {
		s.Units = append(s.Units, leasehold.Unit{Name: u.Name, Lease: u.Lease, Holder: u.Holder, Rests: u.Rests})
	}
	for _, l := range r.Holders {
		s.Holders = append(s.Holders, lease(l))
	}
	for _, l := range r.Overlapping {
		s.Overlapping = append(s.Overlapping, lease(l))
	}
	for _, w := range r.Queue {
		s.Queue = append(s.Queue, leasehold.Waiter{
			Namespace: r.Namespace, Resource: r.Resource, ID: w.ID, Holder: w.Holder, Labels: store.LabelsOf(w.Labels),
			Reason: w.Reason, Session: w.Session, Slots: w.Slots, Priority: w.Priority, Position: w.Position,
			Since: w.Since.Time, Until: moment(w.Until), Forecast: time.Duration(w.Forecast),
			ForecastError: time.Duration(w.ForecastError), Foreign: w.Foreign,
		})
	}
	return s
}

func ending(e *v1.Ending) *leasehold.Ending {
	if e == nil {
		return nil
	}
	return &leasehold.Ending{
		ID: e.ID, Holder: e.Holder, Token: leasehold.Token(e.Token), How: howOf(e.How),
		By: e.By, Reason: e.Reason, At: e.At.Time, Foreign: e.Foreign,
	}
}

func event(e v1.Event) leasehold.Event {
	return leasehold.Event{
		Namespace: e.Namespace, Revision: leasehold.Revision(e.Revision), N: e.N, Kind: kindOf(e.Kind),
		How: howOf(e.How), At: e.At.Time, Until: moment(e.Until), Resource: e.Resource, ID: e.ID, Holder: e.Holder,
		Token: leasehold.Token(e.Token), Session: e.Session, By: e.By, Reason: e.Reason, Foreign: e.Foreign,
	}
}

func moment(t *v1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// The names of states, ends and kinds are those that package leasehold gives them.

func stateOf(name string) leasehold.State { return named(name, leasehold.Available, leasehold.Expired) }

func howOf(name string) leasehold.How { return named(name, leasehold.Released, leasehold.Abandoned) }

func kindOf(name string) leasehold.Kind {
	return named(name, leasehold.Queued, leasehold.ReservationCancelled)
}

// named returns the value between first and last with a name; 0 if there is none, as in the answer of
// a newer server.
func named[T interface {
	~uint8
	String() string
}](name string, first, last T) T {
	for v := first; v <= last; v++ {
		if v.String() == name {
			return v
		}
	}
	return 0
}
