package kernel

import "github.com/leasehold/leasehold"

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
	if sp == nil || v.s.totals.alarms == 0 {
		return list, 0
	}
	return v.s.alarms.Show(Namespace{v.s.State, sp}, q, list, last)
}

// An AlarmCount is how many alarms of a kind are active, and how often there was reason for one
// since the first command.
type AlarmCount struct {
	Kind   leasehold.AlarmKind
	Stand  int
	Raised uint64
}

func (s *State) countAlarms() []AlarmCount {
	list := s.alarms.Counts(s.now)
	for i := range list {
		if list[i].Kind == leasehold.InQuarantine && s.quarantined() {
			list[i].Stand = 1
		}
	}
	return list
}
