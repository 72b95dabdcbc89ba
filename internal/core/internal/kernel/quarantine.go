package kernel

import (
	"fmt"
	"math"
	"time"

	"github.com/leasehold/leasehold"
)

// A Quarantine is the time after a restore in which nothing is granted, as it is shown.
type Quarantine struct {
	Left   time.Duration // until it ends; all of it while nobody has led yet
	Ends   time.Time     // by the calendar of the last stamp; zero while nobody has led yet
	Backup time.Time     // when the backup was taken
	Base   uint64        // all tokens after the restore are larger
}

// Quarantine returns the quarantine that is under way; false if there is none. It ends between two
// stamps too, for those who look: the tick that follows is a moment away.
func (v *view) Quarantine() (Quarantine, bool) {
	r := v.s.restored
	if !v.s.quarantined() {
		return Quarantine{}, false
	}
	q := Quarantine{Left: r.Quarantine, Backup: calendar(r.Wall), Base: r.Base}
	if r.Until != 0 {
		q.Left, q.Ends = time.Duration(r.Until-v.s.now)-v.passed, v.s.moment(r.Until)
	}
	if q.Left <= 0 {
		return Quarantine{}, false
	}
	return q, true
}

// endQuarantine ends the quarantine now, as if its time had passed: the next tick hands over to those
// who wait. It is idempotent, so a retry whose first try did it is answered alike.
func (t *turn) endQuarantine(c *EndQuarantine) Answer {
	switch {
	case c.Base != 0 && c.Base != t.base():
		return refuse(leasehold.Refused, "this cluster is from another restore than the one you looked at: its tokens "+
			"are above %d, and you named %d. Look again with leasehold cluster status", t.base(), c.Base)
	case !t.quarantined():
		return Answer{}
	}
	ended := *t.restored
	ended.Until = t.now
	t.setRestored(&ended)
	return Answer{}
}

// whyQuarantined says why nothing is granted, and until when.
func (s *State) whyQuarantined() string {
	r := s.restored
	until := "until a leader is elected"
	if r.Until != 0 {
		until = fmt.Sprintf("for another %s (until %s)", left(r.Until-s.now), clockTime(s.moment(r.Until)))
	}
	return fmt.Sprintf("nothing is granted %s: this cluster was restored from a backup taken at %s, and leases "+
		"granted after that may still be held", until, clockTime(calendar(r.Wall)))
}

// orEnd says how to end the quarantine, at the end of a refusal: people copy it from there.
func (s *State) orEnd() string {
	return "; if you know that no such lease is left, end this quarantine: " + endQuarantineHint
}

// notGiven refuses to give a lease to another holder in a quarantine.
func (s *State) notGiven(c *Change) Answer {
	return refuse(leasehold.Refused, "lease %q cannot be given to %s yet: %s", c.ID, c.Holder,
		s.whyQuarantined()+s.orEnd())
}

// endQuarantineHint is the command that ends a quarantine early.
const endQuarantineHint = `leasehold cluster end-quarantine --reason "all holders were stopped"`

func clockTime(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") }

// quarantineAlarm is the alarm of a quarantine, which comes before all others in every namespace,
// whatever the prefix: nothing is granted anywhere. It is not part of the state, which knows of the
// quarantine itself. last is the place in the order of alarms that the list has come to.
func (v *view) quarantineAlarm(namespace string, q AlarmQuery) (list []leasehold.Alarm, last uint64) {
	if q.Before != 0 || q.Kind != 0 && q.Kind != leasehold.InQuarantine || !v.s.quarantined() {
		return nil, 0
	}
	r := v.s.restored
	since := calendar(v.s.wall)
	if r.Until != 0 {
		since = v.s.moment(r.Until).Add(-r.Quarantine)
	}
	return []leasehold.Alarm{{
		Namespace: namespace, Kind: leasehold.InQuarantine, Since: since, Last: since, Count: 1,
		Text: v.s.whyQuarantined() + v.s.orEnd(),
	}}, math.MaxUint64
}
