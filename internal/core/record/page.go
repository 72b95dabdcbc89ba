package record

import "github.com/leasehold/leasehold"

// A Pager collects a page within its limits.
type Pager struct {
	Page  Page
	query Query
	bytes int

	found []*leasehold.Record // by a query that searches, in no order yet
	first *leasehold.Record   // of them, if no more than one is shown
	more  bool
}

// NewPager returns a pager for a query.
func NewPager(q Query) *Pager {
	if q.Most <= 0 || q.Most > leasehold.MaxPage {
		q.Most = leasehold.MaxPage
	}
	return &Pager{query: q}
}

// Add takes one more record, in the order of their paths, and reports whether there is room for another.
func (p *Pager) Add(r *leasehold.Record) bool {
	if p.query.Searches() {
		return p.search(r)
	}
	return p.add(r)
}

func (p *Pager) add(r *leasehold.Record) bool {
	size := len(r.Path)
	if !p.query.KeysOnly {
		size += len(r.Value)
	}
	n := len(p.Page.Records)
	if n == p.query.Most || n > 0 && p.bytes+size > leasehold.MaxPageBytes {
		p.Page.More = true
		return false
	}
	if p.query.KeysOnly {
		r = WithoutValue(r)
	}
	p.bytes += size
	p.Page.Records = append(p.Page.Records, r)
	return true
}

// Bytes returns how many bytes of names and values the page has.
func (p *Page) Bytes() (n int) {
	for _, r := range p.Records {
		n += len(r.Path) + len(r.Value)
	}
	return n
}

// WithoutValue returns a record as answers show it whose receiver has the value: they are
// remembered for ten minutes, and a hundred thousand values would be too much. The name
// of a large value stays.
func WithoutValue(r *leasehold.Record) *leasehold.Record {
	shown := *r
	shown.Value = ""
	return &shown
}

// PageAt returns records as they were at a revision. It merges two ordered lists: the records
// of today that have not changed since, and what past knows of those that have.
func (t *Table) PageAt(q Query, past *Past) Page {
	p := NewPager(q)
	more := true
	old := past.before.Iter()
	left := old.Next()
	// takeOld adds what was there then and comes before a path of today.
	takeOld := func(to string, end bool) {
		for ; more && left && (end || old.Key() < to); left = old.Next() {
			if r := old.Value(); r != nil {
				more = p.Add(r)
			}
		}
	}
	t.Ascend(q.From, q.To, func(r *leasehold.Record) bool {
		takeOld(r.Path, false)
		if _, changed := past.before.Get(r.Path); more && !changed {
			more = p.Add(r)
		}
		return more
	})
	takeOld("", true)
	p.Finish()
	if q.Count {
		p.Page.Count = t.countAt(q, past)
	}
	p.Page.Revision = q.Revision
	return p.Page
}

// countAt returns how many records were in a range.
func (t *Table) countAt(q Query, past *Past) int {
	n := t.Count(q)
	past.before.Scan(func(path string, r *leasehold.Record) bool {
		if _, now := t.records.Get(path); now {
			n--
		}
		if r != nil {
			n++
		}
		return true
	})
	return n
}
