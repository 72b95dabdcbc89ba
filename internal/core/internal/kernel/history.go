package kernel

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
)

// History is what watches are served from: the newest events of each namespace, in order and
// without a gap. What was dropped at its beginning is remembered as a position, so that a watch
// which resumes before it is told that events are missing instead of skipping them.

// maxHistory bounds, in bytes, the events that are kept of all namespaces
// together. Beyond it the namespace that has most loses its oldest.
const maxHistory = 64 << 20

// revise returns the revision that the current command makes in a namespace. A command makes
// one revision at most, however many events it has, and none if it changes nothing. Two make more: one that mirrors a
// resource, and one that changes a record more than once, such as when its claim was over: see reviseRecord.
func (t *turn) revise(sp *space) leasehold.Revision {
	if sp.touched != t.sequence {
		sp.touched, sp.n, sp.changed = t.sequence, 0, t.now
		sp.revision++
	}
	return sp.revision
}

// reviseAgain begins another revision, although the current command may have made one.
func (t *turn) reviseAgain(sp *space) {
	sp.touched = 0
	t.revise(sp)
}

// changedNow reports whether a record was changed by the very command that is applied, such as unlinked because its
// claim was over.
func (t *turn) changedNow(sp *space, r *leasehold.Record) bool {
	return r != nil && sp.touched == t.sequence && r.Mod == sp.revision
}

// reviseRecord returns the revision of a change of a record, which may be nil: the next one if the command has changed
// it already. At one revision a record changes once.
func (t *turn) reviseRecord(sp *space, r *leasehold.Record) leasehold.Revision {
	if t.changedNow(sp, r) {
		t.reviseAgain(sp)
	}
	return t.revise(sp)
}

// event begins an event about a claim.
func (s *State) event(sp *space, c *Claim, kind leasehold.Kind) *leasehold.Event {
	return new(s.eventOf(sp, c, kind))
}

func (s *State) eventOf(sp *space, c *Claim, kind leasehold.Kind) leasehold.Event {
	return leasehold.Event{
		Kind: kind, Resource: c.Resource, ID: c.ID, Holder: c.Holder, Token: c.Token, Session: c.Session,
		Foreign: c.terms().Foreign, Owner: s.ownerOf(sp, c.ID),
	}
}

// emit gives an event its position and puts it in history.
func (t *turn) emit(sp *space, e *leasehold.Event) {
	e.Namespace, e.Revision, e.At = sp.name, t.revise(sp), calendar(t.wall)
	e.N = sp.n
	sp.n++
	t.roomForEvents(1)
	t.events = append(t.events, e)
	t.record(sp, e)
	for t.totals.historyBytes > maxHistory {
		t.dropOldest()
	}
}

// roomForEvents makes room for so many more events. A command that makes one often makes another.
func (t *turn) roomForEvents(more int) {
	if cap(t.events)-len(t.events) < more {
		t.events = slices.Grow(t.events, max(more, 4))
	}
}

func (t *turn) record(sp *space, e *leasehold.Event) {
	sp.history.push(e)
	t.weigh(sp, weight(e))
}

// dropOldest drops the oldest event of the namespace that has most.
func (t *turn) dropOldest() {
	t.dropEvent(t.rankings[mostHistory].first())
}

// keptWhenShort is for how long history is kept even if room is short: those who watch and lost their connection come
// back meanwhile.
const keptWhenShort = time.Minute

// forgetHistory drops old events of the namespace that has most, as far as the budget goes. History is in every
// snapshot: while nothing new is taken for want of room, nothing else would ever move it on.
func (t *turn) forgetHistory() {
	for !t.work.spent() && t.Forgets(t.wall) {
		t.work.take(LookCost)
		t.dropOldest()
	}
}

// Forgets reports whether a tick at a moment of the calendar would drop events if room was short.
func (s *State) Forgets(wall int64) bool {
	most := s.rankings[mostHistory].first()
	return most != nil && most.history.len() > 0 && most.history.front().At.Before(calendar(wall).Add(-keptWhenShort))
}

// HistoryBytes estimates how much memory history takes.
func (s *State) HistoryBytes() int { return s.totals.historyBytes }

// dropEvent drops the oldest event of a namespace.
func (t *turn) dropEvent(sp *space) {
	e := sp.history.front()
	sp.history.pop()
	sp.lost = position{e.Revision, e.N}
	t.weigh(sp, -weight(e))
}

// weigh counts the bytes of an event that a namespace got, or lost.
func (t *turn) weigh(sp *space, bytes int) {
	sp.historyBytes += bytes
	t.totals.historyBytes += bytes
	t.ranked(sp, mostHistory)
}

// weight estimates the memory of an event.
func weight(e *leasehold.Event) int {
	const fixed, hold = 248, 104
	size := fixed + len(e.Resource) + len(e.ID) + len(e.Holder) + len(e.Session) + len(e.By) + len(e.Reason) +
		len(e.Foreign) +
		recordWeight(e.Record) + recordWeight(e.Previous)
	if e.Hold != nil {
		size += hold // its texts are the event's, but for the few that changed hands
	}
	return size
}

// recordWeight estimates what an event adds by keeping a record alive: the record may have been
// replaced since, and then nothing else does.
func recordWeight(r *leasehold.Record) int {
	const fixed = 112
	if r == nil {
		return 0
	}
	return fixed + record.ValueBytes(r.Value, r.Large) + len(r.Session) + len(r.Lease)
}

// A History is the events of one namespace that are still known, oldest first. It stays as it
// is while the state goes on, so a slow reader holds up nobody.
type History struct {
	events   []*leasehold.Event
	lost     position
	base     leasehold.Revision // that the namespace went on from after a restore; 0: it was never restored
	Revision leasehold.Revision // the newest of the namespace

	shows func(*leasehold.Event) bool // nil: all are shown
}

// Behind returns the history as somebody may see it.
func (h History) Behind(shows func(*leasehold.Event) bool) History {
	h.shows = shows
	return h
}

// AllOf is the N of a revision's last event and beyond: resuming after it skips
// the whole revision.
const AllOf = math.MaxUint32

// After returns the events that came after one, and false if some of them are no longer known.
func (h History) After(revision leasehold.Revision, n uint32) ([]*leasehold.Event, bool) {
	events, known := h.after(revision, n)
	return h.shown(events), known
}

func (h History) after(revision leasehold.Revision, n uint32) ([]*leasehold.Event, bool) {
	if revision < h.lost.revision || revision == h.lost.revision && n < h.lost.n {
		return nil, false
	}
	i := h.search(revision, n)
	if h.Skipped(revision) {
		return nil, false // what followed it there, nobody here knows
	}
	return h.events[i:], true
}

// search finds the first event after a position.
func (h History) search(revision leasehold.Revision, n uint32) int {
	return sort.Search(len(h.events), func(i int) bool {
		e := h.events[i]
		return e.Revision > revision || e.Revision == revision && e.N > n
	})
}

// backup returns the newest revision that the backup had.
func (h History) backup() leasehold.Revision {
	if i := h.search(h.base, AllOf); i > 0 {
		return h.events[i-1].Revision
	}
	return h.lost.revision
}

// Skipped reports whether a revision lies between the backup and what came after its restore.
// Such a revision may have been seen in the cluster that was lost; here it never was.
func (h History) Skipped(revision leasehold.Revision) bool {
	return revision < h.base && revision > h.backup()
}

// All returns every event that is still known.
func (h History) All() []*leasehold.Event { return h.shown(h.events) }

// shown returns the events that may be seen.
func (h History) shown(events []*leasehold.Event) (seen []*leasehold.Event) {
	if h.shows == nil {
		return events
	}
	for _, e := range events {
		if h.shows(e) {
			seen = append(seen, e)
		}
	}
	return seen
}

// Last returns the newest events before a position that are wanted, oldest first and at most most; it looks at no more
// than look. The second result is the position of the oldest that it looked at, before which to go on; false if
// there is nothing before it.
func (h History) Last(
	revision leasehold.Revision, n uint32, most, look int, wanted func(*leasehold.Event) bool,
) (found []*leasehold.Event, at *leasehold.Event, more bool) {
	end := len(h.events)
	if revision != 0 || n != 0 {
		end = sort.Search(end, func(i int) bool {
			e := h.events[i]
			return e.Revision > revision || e.Revision == revision && e.N >= n
		})
	}
	i := end
	for ; i > max(0, end-look) && len(found) < most; i-- {
		if e := h.events[i-1]; wanted(e) && (h.shows == nil || h.shows(e)) {
			found = append(found, e)
		}
	}
	slices.Reverse(found)
	if i == 0 || i == end {
		return found, nil, false
	}
	return found, h.events[i], true
}

// Oldest returns a position from which After can still resume.
func (h History) Oldest() (leasehold.Revision, uint32) { return h.lost.revision, h.lost.n }
