package kernel

import (
	"strings"

	"github.com/leasehold/leasehold"
)

// An AlarmQuery says which alarms to show.
type AlarmQuery struct {
	Prefix string              // of the resource
	Kind   leasehold.AlarmKind // 0: any
	Before uint64              // only those that happened before; 0: from the newest on
	Most   int
}

// Alarms shows the active alarms of a namespace, those that happened last first. next is where
// to continue, 0 at the end.
func (v *view) Alarms(namespace string, q AlarmQuery) (list []leasehold.Alarm, next uint64) {
	list, last := v.quarantineAlarm(namespace, q)
	sp := v.s.space(namespace)
	if sp == nil {
		return list, 0
	}
	show := func(order uint64, a *Alarm) bool {
		switch {
		case a.Quiet || !a.isActive(v.s.now) || q.Kind != 0 && a.Kind != q.Kind ||
			!strings.HasPrefix(a.Resource, q.Prefix):
			return true
		case len(list) == q.Most:
			next = last
			return false
		}
		list, last = append(list, a.shown(sp.name)), order
		return true
	}
	from := q.Before - 1 // of 0: the largest there is
	sp.alarmOrder.Descend(from, show)
	return list, next
}

func (a *Alarm) shown(namespace string) leasehold.Alarm {
	return leasehold.Alarm{
		Namespace: namespace, Kind: a.Kind, Resource: a.Resource, ID: a.ID, Holder: a.Holder, Token: a.Token,
		Session: a.Session, Order: a.Order,
		Since: calendar(a.SinceWall), Last: calendar(a.LastWall), Count: a.Count, Text: a.Text,
	}
}

// An AlarmCount is how many alarms of a kind are active, and how often there was reason for one
// since the first command.
type AlarmCount struct {
	Kind   leasehold.AlarmKind
	Stand  int
	Raised uint64
}

func (s *State) countAlarms() (list []AlarmCount) {
	stand := s.alarms.stand
	s.alarms.past.Scan(func(_ uint64, a *Alarm) bool {
		if a.isActive(s.now) {
			return false
		}
		stand[a.Kind]--
		return true
	})
	if s.quarantined() {
		stand[leasehold.InQuarantine] = 1
	}
	for _, kind := range leasehold.AlarmKinds {
		if kind == leasehold.TokenEnding {
			continue // wall time is no part of the state: servers find these themselves
		}
		list = append(list, AlarmCount{kind, stand[kind], s.alarms.raised[kind]})
	}
	return list
}
