package alarm

import (
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

// Show adds the active alarms of a namespace to a list, those that happened last first. last is the place in their
// order that the list has come to, and next where to continue, 0 at the end.
func (s *alarms) Show(
	n kernel.Namespace, q kernel.AlarmQuery, list []leasehold.Alarm, last uint64,
) (all []leasehold.Alarm, next uint64) {
	from := q.Before - 1 // of 0: the largest there is
	s.table(n.Name()).byOrder.Descend(from, func(order uint64, a *Alarm) bool {
		switch {
		case a.Quiet || !a.isActive(n.Now()) || q.Kind != 0 && a.Kind != q.Kind ||
			!strings.HasPrefix(a.Resource, q.Prefix):
			return true
		case len(list) == q.Most:
			next = last
			return false
		}
		list, last = append(list, a.shown(n.Name())), order
		return true
	})
	return list, next
}

func (a *Alarm) shown(namespace string) leasehold.Alarm {
	return leasehold.Alarm{
		Namespace: namespace, Kind: a.Kind, Resource: a.Resource, ID: a.ID, Holder: a.Holder, Token: a.Token,
		Session: a.Session, Order: a.Order,
		Since: time.Unix(0, a.SinceWall).UTC(), Last: time.Unix(0, a.LastWall).UTC(), Count: a.Count, Text: a.Text,
	}
}

func (s *alarms) Counts(now kernel.Time) (list []kernel.AlarmCount) {
	stand := s.stand
	s.past.Scan(func(_ uint64, a *Alarm) bool {
		if a.isActive(now) {
			return false
		}
		stand[a.Kind]--
		return true
	})
	for _, kind := range leasehold.AlarmKinds {
		if kind == leasehold.TokenEnding {
			continue // wall time is no part of the state: servers find these themselves
		}
		list = append(list, kernel.AlarmCount{Kind: kind, Stand: stand[kind], Raised: s.raised[kind]})
	}
	return list
}
