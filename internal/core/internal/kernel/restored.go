package kernel

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
)

// Restored is what a state remembers of the backup that it goes on from. The cluster
// that the backup was taken of may have gone on after it: nobody here knows what it
// granted and told since, so nothing of that may be said a second time, and nobody may
// be granted what somebody may still have.
type Restored struct {
	// Base lies above all tokens and revisions that the other cluster gave. Every
	// namespace goes on from it, also one that the backup does not have: it may have
	// begun after the backup.
	Base uint64

	Wall int64 // the calendar of the backup, for people to read

	// Quarantine is how long nothing is granted, counted from the first Lead on. Until
	// is when it ends; 0: nobody has led yet.
	Quarantine time.Duration
	Until      Time

	// Over says that all who waited in the quarantine had their turn. Before that, and
	// once it has ended, ticks go through the queues; Space and Path are how far they
	// came.
	Over        bool
	Space, Path string
}

// restoredStep is how far apart the tokens of a backup are from those after it: more
// than a cluster grants in its life.
const restoredStep = 1 << 40

// A Restoration is how a state goes on from a backup.
type Restoration struct {
	// Quarantine is how long nothing is granted. Negative: as long as the largest TTL of
	// a lease, a waiter or a session in the backup.
	Quarantine time.Duration
	// Wall is the calendar of the backup; 0: that of the last stamp in it.
	Wall int64
	// Above is a token or revision that somebody saw, if that may be more than the backup
	// knows: the same backup may have been restored before.
	Above uint64
}

// Restored returns what the state remembers of its backup; false if it was never
// restored.
func (s *State) Restored() (Restored, bool) {
	if s.restored == nil {
		return Restored{}, false
	}
	return *s.restored, true
}

// FromBackup turns a state that was just read from a backup into the one with which another
// cluster begins. Everybody keeps what they had, until it ends.
func (s *State) FromBackup(r Restoration) (Restored, error) {
	known := max(r.Above, s.base(), uint64(s.forgotten.token), uint64(s.forgotten.revision))
	s.spaces.Scan(func(_ string, sp *space) bool {
		known = max(known, uint64(sp.token), uint64(sp.revision))
		return true
	})
	base := (known/restoredStep + 1) * restoredStep
	if base > uint64(leasehold.MaxToken)-restoredStep {
		return Restored{}, fmt.Errorf("tokens after a restore would lie above %d, and there would be none left", base)
	}
	if r.Quarantine < 0 {
		r.Quarantine = s.longest()
	}
	if r.Wall == 0 {
		r.Wall = s.wall
	}
	t := s.begin()
	t.forgetGap()
	// Time goes on where it stopped. By the clock of the leader of then, everything would
	// have ended that was renewed since.
	s.lead = Lead{}
	t.clearQuarantine()
	s.restored = &Restored{Base: base, Wall: r.Wall, Quarantine: r.Quarantine}
	s.spaces.Scan(func(_ string, sp *space) bool {
		t.rebase(sp)
		t.doubtLeases(sp, base)
		return true
	})
	return *s.restored, nil
}

// doubtLeases tells every session that all its leases are in doubt: what was granted, broken or
// changed after the backup is not known here. The number is larger than any that a holder was
// told, so every holder notices at its next renewal and asks about each lease.
func (t *turn) doubtLeases(sp *space, base uint64) {
	var all []*Session
	sp.sessions.Scan(func(_ string, session *Session) bool {
		all = append(all, session)
		return true
	})
	for _, session := range all {
		doubtful := *session
		doubtful.Touched = &Touched{Count: base}
		sp.sessions.Set(session.ID, &doubtful)
	}
}

// base is what every namespace counts from; 0 in a state that was never restored.
func (s *State) base() uint64 {
	if s.restored == nil {
		return 0
	}
	return s.restored.Base
}

// rebase makes a namespace go on from the base.
func (t *turn) rebase(sp *space) {
	if t.restored == nil {
		return
	}
	sp.revision = leasehold.Revision(t.restored.Base)
	sp.token = leasehold.Token(t.restored.Base)
}

// forgetGap lets go of the events from before an earlier restore. Only one gap in the
// revisions is remembered, and After must never pass over another in silence.
func (t *turn) forgetGap() {
	old := leasehold.Revision(t.base())
	if old == 0 {
		return
	}
	t.spaces.Scan(func(_ string, sp *space) bool {
		for sp.history.len() > 0 && sp.history.front().Revision <= old {
			t.dropEvent(sp)
		}
		if sp.lost.revision < old {
			sp.lost = position{old, 0}
		}
		return true
	})
}

// longest is the longest time for which anybody may still believe in a lease, as far as
// a backup can tell. If it was taken in a quarantine, what that was for is not over yet.
func (s *State) longest() (d time.Duration) {
	if s.quarantined() {
		d = s.restored.Quarantine
	}
	if at := s.availableAfter(); at != 0 {
		d = time.Duration(at - s.now)
	}
	s.spaces.Scan(func(_ string, sp *space) bool {
		sp.claims.Scan(func(_ string, c *Claim) bool {
			d = max(d, c.TTL)
			return true
		})
		sp.sessions.Scan(func(_ string, session *Session) bool {
			d = max(d, session.TTL)
			return true
		})
		return true
	})
	return d
}

// leads records who leads. The quarantine is counted from the first leader: before, nobody
// could renew, and nobody was told what is held.
func (t *turn) leads(c *Lead) {
	t.lead = *c
	if t.restored == nil || t.restored.Over || t.restored.Until != 0 {
		return
	}
	begun := *t.restored
	begun.Until = t.now.Add(begun.Quarantine)
	t.setRestored(&begun)
}

// quarantined reports whether nothing is granted yet.
func (s *State) quarantined() bool {
	r := s.restored
	return r != nil && !r.Over && (r.Until == 0 || s.now < r.Until)
}

// setRestored stores how far the quarantine has come, and keeps account of its end.
func (t *turn) setRestored(r *Restored) {
	t.restored = r
	if t.quarantine == nil {
		t.quarantine = newTimer(dueQuarantine, &space{}, "")
	}
	at := r.Until
	if r.Over {
		at = 0
	}
	t.due.Set(t.quarantine, at)
}

func (t *turn) clearQuarantine() {
	if t.quarantine != nil {
		t.due.Set(t.quarantine, 0)
	}
}

// resume hands over what is free after the quarantine to one more queue. There may be very
// many, and a tick does a bounded amount.
func (t *turn) resume() {
	t.work.take(LookCost)
	next := *t.restored
	sp, path := t.nextQueue(next.Space, next.Path)
	if sp == nil {
		next.Over, next.Space, next.Path = true, "", ""
		t.setRestored(&next)
		return
	}
	next.Space, next.Path = sp.name, path
	t.setRestored(&next)
	t.wakeQueue(sp, path)
}

// nextQueue finds the first resource that somebody waits for, after another one.
func (s *State) nextQueue(name, path string) (found *space, next string) {
	s.spaces.Ascend(name, func(at string, sp *space) bool {
		from := ""
		if at == name && path != "" {
			from = path + "\x00"
		}
		if waiter := firstFrom(sp, from); waiter != nil {
			found, next = sp, waiter.Resource
		}
		return found == nil
	})
	return found, next
}

// unresumed reports whether a queue has still to wait for the end of the quarantine, or
// for the tick that notices it.
func (s *State) unresumed(sp *space, path string) bool {
	r := s.restored
	switch {
	case s.quarantined():
		return true
	case r == nil || r.Over:
		return false
	}
	return sp.name > r.Space || sp.name == r.Space && path > r.Path
}

// availableAfter is when something may be granted that is free, as far as a quarantine
// has to do with it; 0: now, or nobody knows.
func (s *State) availableAfter() Time {
	if !s.quarantined() {
		return 0
	}
	return s.restored.Until
}

// restoreRestored takes the piece over that Pieces made.
func (t *turn) restoreRestored(r *Restored) error {
	switch {
	case t.restored != nil:
		return fmt.Errorf("snapshot says twice that it was restored")
	case r.Base == 0 || r.Base%restoredStep != 0 || r.Base > uint64(leasehold.MaxToken)-restoredStep:
		return fmt.Errorf("snapshot was restored with tokens above %d, which cannot be", r.Base)
	case r.Quarantine < 0 || r.Until < 0 || r.Over && (r.Space != "" || r.Path != ""):
		return fmt.Errorf("snapshot was restored with a quarantine that cannot be")
	}
	t.setRestored(r)
	return nil
}
