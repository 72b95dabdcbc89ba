package records

import (
	"errors"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
)

// Page shows a range of records. An older revision is found by taking back, event by event, what happened to the range
// since, and can be had while history has that.
func (s *records) Page(l kernel.Look, q record.Query, h kernel.History) (record.Page, *leasehold.Error) {
	if q.Searches() && !l.Take(s.table.Count(q)/kernel.PerUnit) {
		return record.Page{}, crowded()
	}
	if failure := s.table.TooWide(q); failure != nil {
		return record.Page{}, failure
	}
	if q.Revision == 0 {
		page, inTime := s.page(l.Namespace, q, l.Budget())
		if !inTime {
			return record.Page{}, crowded()
		}
		return page, nil
	}
	past := q.Past
	if past == nil {
		past = h.Past(q)
	}
	// A revision that only the lost cluster had must not be answered with what is here.
	if h.Skipped(q.Revision) {
		return record.Page{}, refuse(leasehold.Lost, "revision %d is gone: it is from after the backup that this "+
			"cluster was restored from", q.Revision)
	}
	since, known := h.After(past.Newest())
	if !known || !past.Known() {
		oldest, _ := h.Oldest()
		return record.Page{}, refuse(leasehold.Lost,
			"revision %d is gone from history: %d is the oldest that can be read", q.Revision, oldest)
	}
	past.TakeBack(q, since)
	return s.table.PageAt(q, past), nil
}

// page shows records as they are. One whose session is over at the stamp no longer exists,
// collected or not. It reports whether the budget was enough: when many sessions end at once,
// each of their records has to be passed over.
func (s *records) page(n kernel.Namespace, q record.Query, w *kernel.Budget) (record.Page, bool) {
	p := record.NewPager(q)
	inTime := true
	s.table.Each(q, func(r *leasehold.Record) bool {
		if recordOver(n, r) {
			inTime = w.Take(kernel.LookCost)
			return inTime
		}
		return p.Add(r)
	})
	p.Finish()
	if q.Count && inTime {
		over := 0
		over, inTime = s.recordsOfEndedSessions(n, q, w)
		p.Page.Count = s.table.Count(q) - over
	}
	w.Take(len(p.Page.Records) / kernel.PerUnit)
	p.Page.Revision = n.Revision()
	return p.Page, inTime
}

// crowded refuses to read records while too many of them are being collected.
func crowded() *leasehold.Error {
	return refuse(leasehold.Limited, crowdedText+": more than %d would have to be passed over; read again in a moment",
		kernel.MaxReadWork)
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
func (s *records) recordsOfEndedSessions(
	n kernel.Namespace, q record.Query, w *kernel.Budget,
) (over int, all bool) {
	all = true
	see := func(session string) bool {
		all = w.Take(kernel.LookCost)
		if !all {
			return false
		}
		s.table.AscendBound(session, q.From, q.To, func(string) bool {
			over++
			all = w.Take(kernel.LookCost)
			return all
		})
		return all
	}
	s.sessionEnds.Ascend(ending{}, func(l ending) bool { return l.at <= n.Now() && see(l.id) })
	if all {
		n.EachLeft(see)
	}
	if all && s.claimEnds.Len() > 0 {
		ended := 0
		ended, all = s.recordsOfEndedClaims(n, q, w)
		over += ended
	}
	return over, all
}
