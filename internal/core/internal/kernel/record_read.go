package kernel

import (
	"errors"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
)

// Past works out how the range of a query was at its revision. It costs a walk over
// all events since, but a history can be walked while the state goes on: a reader of
// an older revision keeps nobody waiting.
func (h History) Past(q RecordQuery) *record.Past {
	since, known := h.after(q.Revision, AllOf) // what may be seen of it, the page says
	return record.NewPast(q, since, known)
}

// Record shows one record, as it was at a revision; 0 for as it is.
func (v *view) Record(namespace, path string, at leasehold.Revision) (*leasehold.Record, *leasehold.Error) {
	page, failure := v.Records(namespace, RecordQuery{From: path, To: path + "\x00", Most: 1, Revision: at})
	switch {
	case failure != nil:
		return nil, failure
	case len(page.Records) == 0:
		return nil, refuse(leasehold.NotFound, "%s is not there", path).Err
	}
	return page.Records[0], nil
}

// Records shows a range of records. An older revision is found by taking back, event
// by event, what happened to the range since, and can be had while history has that.
func (v *view) Records(namespace string, q RecordQuery) (RecordPage, *leasehold.Error) {
	sp := v.s.space(namespace)
	newest := v.s.revisionOf(sp)
	switch {
	case q.Revision > newest:
		return RecordPage{}, refuse(leasehold.Refused, "revision %d is not there yet: %d is the newest", q.Revision,
			newest).Err
	case sp == nil && q.Revision != 0 && q.Revision < newest:
		return RecordPage{}, refuse(leasehold.Lost,
			"revision %d is gone from history: %d is the oldest that can be read", q.Revision, newest).Err
	case sp == nil:
		return RecordPage{Revision: newest}, nil
	case q.Searches() && !v.work.take(sp.records.Count(q)/PerUnit):
		return RecordPage{}, crowded()
	}
	if failure := sp.table().TooWide(q); failure != nil {
		return RecordPage{}, failure
	}
	if q.Revision == 0 {
		page, inTime := v.s.page(sp, q, &v.work)
		if !inTime {
			return RecordPage{}, crowded()
		}
		return page, nil
	}
	history, past := v.History(namespace), q.Past
	if past == nil {
		past = history.Past(q)
	}
	// A revision that only the lost cluster had must not be answered with what is here.
	if history.Skipped(q.Revision) {
		return RecordPage{}, refuse(leasehold.Lost, "revision %d is gone: it is from after the backup that this "+
			"cluster was restored from", q.Revision).Err
	}
	since, known := history.After(past.Newest())
	if !known || !past.Known() {
		return RecordPage{}, refuse(leasehold.Lost,
			"revision %d is gone from history: %d is the oldest that can be read", q.Revision, sp.lost.revision).Err
	}
	past.TakeBack(q, since)
	return sp.records.PageAt(q, past), nil
}

// page shows records as they are. One whose session is over at the stamp no longer exists,
// collected or not. It reports whether the budget was enough: when many sessions end at once,
// each of their records has to be passed over.
func (s *State) page(sp *space, q RecordQuery, w *work) (RecordPage, bool) {
	p := record.NewPager(q)
	inTime := true
	sp.records.Each(q, func(r *leasehold.Record) bool {
		if s.recordOver(sp, r) {
			inTime = w.take(LookCost)
			return inTime
		}
		return p.Add(r)
	})
	p.Finish()
	if q.Count && inTime {
		over := 0
		over, inTime = s.recordsOfEndedSessions(sp, q, w)
		p.Page.Count = sp.records.Count(q) - over
	}
	w.take(len(p.Page.Records) / PerUnit)
	p.Page.Revision = sp.revision
	return p.Page, inTime
}

// crowded refuses to read records while too many of them are being collected.
func crowded() *leasehold.Error {
	return refuse(leasehold.Limited, crowdedText+": more than %d would have to be passed over; read again in a moment",
		maxReadWork).Err
}

const crowdedText = "too many sessions with records have just ended, and their records are being deleted"

// Crowded reports whether something was refused because records are being collected. It changed nothing, and a moment
// later it is possible.
func Crowded(err error) bool {
	if err == nil {
		return false
	}
	var e *leasehold.Error
	return errors.As(err, &e) && e.Code == leasehold.Limited && strings.HasPrefix(e.Message, crowdedText)
}

// recordsOfEndedSessions counts the records of a range whose sessions are over, though nobody has
// collected them yet. It looks at these alone, and reports whether it looked at all.
func (s *State) recordsOfEndedSessions(sp *space, q RecordQuery, w *work) (over int, all bool) {
	all = true
	see := func(session string) bool {
		all = w.take(LookCost)
		if !all {
			return false
		}
		sp.records.AscendBound(session, q.From, q.To, func(string) bool {
			over++
			all = w.take(LookCost)
			return all
		})
		return all
	}
	sp.sessionEnds.Ascend(sessionEnd{}, func(l sessionEnd) bool { return l.at <= s.now && see(l.session) })
	if all {
		sp.eachLeft(see)
	}
	if all && sp.claimEnds.Len() > 0 {
		faded := 0
		faded, all = s.recordsOfEndedClaims(sp, q, w)
		over += faded
	}
	return over, all
}

// PrefixEnd returns the end of the range of all paths that begin with prefix; empty if
// the range has no end.
func PrefixEnd(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}
