package core

import (
	"sort"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
)

// Past works out how the range of a query was at its revision. It costs a walk over
// all events since, but a history can be walked while the state goes on: whoever reads
// an older revision keeps nobody waiting.
func (h History) Past(q RecordQuery) *record.Past {
	since, known := h.After(q.Revision, AllOf)
	return record.NewPast(q, since, known)
}

// Record shows one record, as it was at a revision; 0 for as it is.
func (v View) Record(namespace, path string, at leasehold.Revision) (*leasehold.Record, *leasehold.Error) {
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
func (v View) Records(namespace string, q RecordQuery) (RecordPage, *leasehold.Error) {
	sp := v.s.space(namespace)
	newest := v.s.revisionOf(sp)
	switch {
	case q.Revision > newest:
		return RecordPage{}, refuse(leasehold.Refused, "revision %d is not there yet: %d is the newest", q.Revision, newest).Err
	case sp == nil && q.Revision != 0 && q.Revision < newest:
		return RecordPage{}, refuse(leasehold.Lost, "revision %d is gone from history: %d is the oldest that can be read", q.Revision, newest).Err
	case sp == nil:
		return RecordPage{Revision: newest}, nil
	case q.Revision == 0:
		page, inTime := v.s.page(sp, q, v.work)
		if !inTime {
			return RecordPage{}, crowded()
		}
		return page, nil
	}
	history, past := v.History(namespace), q.Past
	if past == nil {
		past = history.Past(q)
	}
	if history.Skipped(q.Revision) {
		return RecordPage{}, refuse(leasehold.Lost, "revision %d is gone: it is from after the backup that this cluster was restored from", q.Revision).Err
	}
	since, known := history.After(past.Newest())
	if !known || !past.Known() {
		return RecordPage{}, refuse(leasehold.Lost, "revision %d is gone from history: %d is the oldest that can be read", q.Revision, sp.lost.revision).Err
	}
	past.TakeBack(q, since)
	return pageAt(sp, q, past), nil
}

// ascend walks over the records of [from, to).
func ascend(sp *space, from, to string, see func(*leasehold.Record) bool) {
	sp.records.Ascend(from, func(path string, r *leasehold.Record) bool {
		return (to == "" || path < to) && see(r)
	})
}

// page shows records as they are. One whose session is over at the stamp is not
// there any more, collected or not. It reports whether it had done by the end of its
// work: of many sessions that end at once, each record has to be passed over.
func (s *State) page(sp *space, q RecordQuery, w *work) (RecordPage, bool) {
	p := newPager(q)
	inTime := true
	ascend(sp, q.From, q.To, func(r *leasehold.Record) bool {
		if s.recordOver(sp, r) {
			inTime = w.take(lookCost)
			return inTime
		}
		return p.add(r)
	})
	if q.Count && inTime {
		over := 0
		over, inTime = s.overIn(sp, q, w)
		p.page.Count = counted(sp, q) - over
	}
	w.take(len(p.page.Records) / perUnit)
	p.page.Revision = sp.revision
	return p.page, inTime
}

// crowded refuses to read records while too many of them are being collected.
func crowded() *leasehold.Error {
	return refuse(leasehold.Limited, "too many sessions with records have just ended, and their records are being deleted: "+
		"more than %d would have to be passed over; read again in a moment", maxReadWork).Err
}

// counted returns how many records are in a range, collected or not. It counts by
// halving over the ranks of the tree, so a long range costs no more than a short one.
func counted(sp *space, q RecordQuery) int {
	below := func(path string) int {
		return sort.Search(sp.records.Len(), func(i int) bool {
			at, _, _ := sp.records.GetAt(i)
			return at >= path
		})
	}
	end := sp.records.Len()
	if q.To != "" {
		end = below(q.To)
	}
	return max(0, end-below(q.From))
}

// overIn counts the records of a range whose sessions are over, though nobody has
// collected them yet. It looks at these alone, and reports whether it looked at all.
func (s *State) overIn(sp *space, q RecordQuery, w *work) (over int, all bool) {
	all = true
	see := func(session string) bool {
		all = w.take(lookCost)
		sp.boundRecords.Ascend(binding{session, q.From}, func(b binding) bool {
			if b.session != session || q.To != "" && b.id >= q.To || !all {
				return false
			}
			over++
			all = w.take(lookCost)
			return all
		})
		return all
	}
	sp.lapses.Ascend(lapse{}, func(l lapse) bool { return l.at <= s.now && see(l.session) })
	if all {
		sp.eachLeft(see)
	}
	return over, all
}

// pageAt shows records as they were.
func pageAt(sp *space, q RecordQuery, past *record.Past) RecordPage {
	p := newPager(q)
	more := true
	old := past.Before().Iter()
	left := old.First()
	// takeOld adds what was there then and comes before a path of today.
	takeOld := func(to string, end bool) {
		for ; more && left && (end || old.Key() < to); left = old.Next() {
			if r := old.Value(); r != nil {
				more = p.add(r)
			}
		}
	}
	ascend(sp, q.From, q.To, func(r *leasehold.Record) bool {
		takeOld(r.Path, false)
		if _, changed := past.Before().Get(r.Path); more && !changed {
			more = p.add(r)
		}
		return more
	})
	takeOld("", true)
	if q.Count {
		p.page.Count = counted(sp, q)
		past.Before().Scan(func(path string, r *leasehold.Record) bool {
			if _, now := sp.records.Get(path); now {
				p.page.Count--
			}
			if r != nil {
				p.page.Count++
			}
			return true
		})
	}
	p.page.Revision = q.Revision
	return p.page
}

// A pager collects a page within its limits.
type pager struct {
	q     RecordQuery
	bytes int
	page  RecordPage
}

func newPager(q RecordQuery) *pager {
	if q.Most <= 0 || q.Most > leasehold.MaxPage {
		q.Most = leasehold.MaxPage
	}
	return &pager{q: q}
}

// add takes one more, and tells whether it wants another.
func (p *pager) add(r *leasehold.Record) bool {
	size := len(r.Path)
	if !p.q.KeysOnly {
		size += len(r.Value)
	}
	if len(p.page.Records) == p.q.Most || len(p.page.Records) > 0 && p.bytes+size > leasehold.MaxPageBytes {
		p.page.More = true
		return false
	}
	if p.q.KeysOnly {
		r = withoutValue(r)
	}
	p.bytes += size
	p.page.Records = append(p.page.Records, r)
	return true
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
