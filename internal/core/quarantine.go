package core

import "time"

// A Quarantine is the time after a restore in which nothing is granted, as it is shown.
type Quarantine struct {
	Left   time.Duration // until it ends; all of it while nobody has led yet
	Ends   time.Time     // by the calendar of the last stamp; zero while nobody has led yet
	Backup time.Time     // when the backup was taken
	Base   uint64        // all tokens after the restore are larger
}

// Quarantine returns the quarantine that is under way; false if there is none. It ends between two
// stamps too, for those who look: the tick that follows is a moment away.
func (v View) Quarantine() (Quarantine, bool) {
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
