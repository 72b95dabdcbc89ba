package alarm

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
)

// Check checks that the alarms of a namespace are in order, and not too many, and that those of leases are about such
// as are held for too long.
func (s *alarms) Check(n kernel.Namespace, that func(ok bool, format string, args ...any)) {
	t := s.table(n.Name())
	that(t.byKey.Len() == t.byOrder.Len() && t.byKey.Len() <= maxAlarmsOne, "%s has %d alarms, %d in order", n.Name(),
		t.byKey.Len(), t.byOrder.Len())
	t.byKey.Scan(func(key string, a *Alarm) bool {
		that(!a.Quiet || a.Kind == leasehold.LongQueue, "%s: alarm %q is quiet", n.Name(), key)
		same, _ := t.byOrder.Get(a.Order)
		that(key == a.key() && same == a && a.Order <= s.order, "%s: alarm %q stands at %d, and is not there", n.Name(),
			key, a.Order)
		if a.Kind.Past() {
			listed, _ := s.past.Get(a.Order)
			that(listed == a && a.namespace == n.Name(), "%s: alarm %q is not forgotten when it should be", n.Name(),
				key)
		}
		if a.Kind == leasehold.HeldLong {
			c := n.Claim(a.ID)
			that(c != nil && c.Overdue, "%s: alarm %q is about a lease that is not held for too long", n.Name(), key)
		}
		return true
	})
}

// CheckAll checks that the alarms of all namespaces are counted.
func (s *alarms) CheckAll(counted int, that func(ok bool, format string, args ...any)) {
	all, past, stand := 0, 0, [16]int{}
	s.of.Scan(func(namespace string, t *table) bool {
		that(t.byKey.Len() > 0, "%s has no alarms, and a table", namespace)
		t.byKey.Scan(func(_ string, a *Alarm) bool {
			all++
			if !a.Quiet {
				stand[a.Kind]++
			}
			if a.Kind.Past() {
				past++
			}
			return true
		})
		return true
	})
	that(all == counted && stand == s.stand && all <= maxAlarms, "%d alarms stand, %d are counted", all, counted)
	that(past == s.past.Len(), "%d alarms are to be forgotten, %d are listed", past, s.past.Len())
}
