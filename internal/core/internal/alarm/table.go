package alarm

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

// How many alarms can be active. Beyond it the oldest of the namespace makes room.
const (
	maxAlarms    = 10000 // in all namespaces
	maxAlarmsOne = 1000  // in one
)

// alarms are those of all namespaces.
type alarms struct {
	// What is in every snapshot.

	order  uint64                    // of the newest
	raised [16]uint64                // how often there was reason for one, by kind
	of     btree.Map[string, *table] // by namespace, of those that have any

	// What follows from that.

	stand [16]int                   // how many there are, by kind
	past  btree.Map[uint64, *Alarm] // those about something past, by Order
}

// A table has the alarms of one namespace.
type table struct {
	byKey   btree.Map[string, *Alarm] // by what they are about
	byOrder btree.Map[uint64, *Alarm] // by when they happened last
}

// New returns those of a state that has none.
func New() kernel.Alarms { return &alarms{} }

func (s *alarms) Copy() kernel.Alarms {
	f := &alarms{order: s.order, raised: s.raised, stand: s.stand, past: *s.past.Copy()}
	s.of.Scan(func(namespace string, t *table) bool {
		f.of.Set(namespace, &table{*t.byKey.Copy(), *t.byOrder.Copy()})
		return true
	})
	return f
}

// key identifies what an alarm is about. There is one active alarm for each key.
func (a *Alarm) key() string {
	kind := string(rune('a' + a.Kind))
	switch {
	case a.Kind == leasehold.HeldLong:
		return kind + "lease " + a.ID
	case a.Session != "" && a.ID == "":
		return kind + "session " + a.Session
	}
	return kind + "resource " + a.Resource
}

// isActive reports whether an alarm is still active at a moment, collected or not. One about
// something past is forgotten by time alone.
func (a *Alarm) isActive(now kernel.Time) bool {
	return !a.Kind.Past() || a.Last.Add(leasehold.AlarmMemory) > now
}

// table returns that of a namespace; one that is empty if it has no alarms.
func (s *alarms) table(namespace string) *table {
	if t, ok := s.of.Get(namespace); ok {
		return t
	}
	return &table{}
}

func (s *alarms) Count(namespace string) int { return s.table(namespace).byKey.Len() }

// find returns the alarm about the same thing as another, active or not; nil if there is none.
func (s *alarms) find(n kernel.Namespace, like *Alarm) *Alarm {
	t, ok := s.of.Get(n.Name())
	if !ok {
		return nil
	}
	a, _ := t.byKey.Get(like.key())
	return a
}

// active returns the active alarm about the same thing as another; nil if there is none.
func (s *alarms) active(n kernel.Namespace, like *Alarm) *Alarm {
	if a := s.find(n, like); a != nil && a.isActive(n.Now()) {
		return a
	}
	return nil
}

// at returns the alarm with a place in the order of all; nil if there is none in the namespace.
func (s *alarms) at(n kernel.Namespace, order uint64) *Alarm {
	a, _ := s.table(n.Name()).byOrder.Get(order)
	return a
}

// file keeps an alarm, and drop does not any longer.
func (s *alarms) file(t kernel.Turn, a *Alarm) {
	a.filed, a.namespace = a.key(), t.Name()
	of := s.table(a.namespace)
	of.byKey.Set(a.filed, a)
	of.byOrder.Set(a.Order, a)
	s.of.Set(a.namespace, of)
	s.count(t, a, 1)
	if a.Kind.Past() {
		s.past.Set(a.Order, a)
	}
}

func (s *alarms) drop(t kernel.Turn, a *Alarm) {
	of := s.table(a.namespace)
	of.byKey.Delete(a.filed)
	if of.byOrder.Delete(a.Order); of.byOrder.Len() == 0 {
		s.of.Delete(a.namespace)
	}
	s.count(t, a, -1)
	if a.Kind.Past() {
		s.past.Delete(a.Order)
	}
}

// count counts an alarm among those of all namespaces.
func (s *alarms) count(t kernel.Turn, a *Alarm, n int) {
	if !a.Quiet {
		s.stand[a.Kind] += n
	}
	t.CountAlarms(n)
}

// makeRoom makes room for one more alarm, and reports whether there is any. If there are too many in all and this
// namespace has none to give up, there is no room: nobody's alarms are dropped for those of others.
func (s *alarms) makeRoom(t kernel.Turn) bool {
	of := s.table(t.Name())
	if of.byKey.Len() < maxAlarmsOne && t.Alarms() < maxAlarms {
		return true
	}
	_, oldest, ok := of.byOrder.Min()
	if ok {
		s.drop(t, oldest)
	}
	return ok
}

// Forget drops the oldest alarm about something past if it is no longer active.
func (s *alarms) Forget(t kernel.Turn) bool {
	_, a, ok := s.past.Min()
	if !ok || a.isActive(t.Now()) {
		return false
	}
	s.drop(t, a)
	return true
}

// Raised is written without the last zeros.
func (s *alarms) Raised() (order uint64, raised []uint64) {
	n := len(s.raised)
	for n > 1 && s.raised[n-1] == 0 {
		n--
	}
	return s.order, slices.Clone(s.raised[1:n])
}

func (s *alarms) RestoreRaised(order uint64, raised []uint64) error {
	if len(raised) >= len(s.raised) {
		return fmt.Errorf("snapshot counts alarms of %d kinds, more than there are", len(raised))
	}
	s.order = order
	copy(s.raised[1:], raised)
	return nil
}

// Pieces are the alarms of a namespace, in the order in which they happened last, which decides what goes first when
// there are too many.
func (s *alarms) Pieces(namespace string, yield func(piece any) bool) (more bool) {
	more = true
	s.table(namespace).byOrder.Scan(func(_ uint64, a *Alarm) bool {
		more = yield(a)
		return more
	})
	return more
}

func (s *alarms) Restore(t kernel.Turn, piece any) (known bool, err error) {
	a, ok := piece.(*Alarm)
	if !ok {
		return false, nil
	}
	if s.find(t.Namespace, a) != nil || s.at(t.Namespace, a.Order) != nil || a.Order > s.order {
		return true, fmt.Errorf("snapshot has the alarm %v on %q twice, or out of order", a.Kind, a.Resource)
	}
	s.file(t, a)
	return true, nil
}
