package record

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold"
)

// A Selection says which records of a range are shown, and in which order. The zero Selection is all of them, by path.
type Selection struct {
	By      Order
	Descend bool // the last first

	// Only those that were created, or changed last, within these revisions; 0: no bound.
	MinCreate, MaxCreate leasehold.Revision
	MinMod, MaxMod       leasehold.Revision
}

// An Order is what records are ordered by. Records that are equal in it are ordered by path.
type Order uint8

// The orders. The log numbers them: add at the end only.
const (
	ByPath Order = iota
	ByCreate
	ByMod
	ByVersion
	ByValue
)

// Validate says what is wrong with a selection, whatever is there.
func (s Selection) Validate() error {
	if s.By > ByValue {
		return &leasehold.Error{Code: leasehold.Invalid,
			Message: fmt.Sprintf("unknown order %d: records are ordered by path, create, mod, version or value", s.By)}
	}
	return nil
}

// Searches reports whether all records of a range must be looked at to find those that are shown.
func (q *Query) Searches() bool { return q.Select != Selection{} }

// takes reports whether a record is one of those that are shown.
func (s *Selection) takes(r *leasehold.Record) bool {
	return r.Create >= s.MinCreate && r.Mod >= s.MinMod && (s.MaxCreate == 0 || r.Create <= s.MaxCreate) &&
		(s.MaxMod == 0 || r.Mod <= s.MaxMod)
}

// compare orders two records.
func (s *Selection) compare(a, b *leasehold.Record) (order int) {
	switch s.By {
	case ByCreate:
		order = cmp.Compare(a.Create, b.Create)
	case ByMod:
		order = cmp.Compare(a.Mod, b.Mod)
	case ByVersion:
		order = cmp.Compare(a.Version, b.Version)
	case ByValue:
		order = cmp.Compare(a.Value, b.Value)
	}
	if order == 0 {
		order = cmp.Compare(a.Path, b.Path)
	}
	if s.Descend {
		return -order
	}
	return order
}

// search keeps what a search has found so far. The first of all is what is most often looked for, and needs no list.
func (p *Pager) search(r *leasehold.Record) bool {
	switch {
	case !p.query.Select.takes(r):
	case p.query.Most != 1:
		p.found = append(p.found, r)
	case p.first == nil:
		p.first = r
	default:
		p.more = true
		if p.query.Select.compare(r, p.first) < 0 {
			p.first = r
		}
	}
	return true
}

// Finish fills the page of a query that searches. No more can be added then.
func (p *Pager) Finish() {
	if !p.query.Searches() {
		return
	}
	if p.first != nil {
		p.add(p.first)
	}
	slices.SortFunc(p.found, p.query.Select.compare)
	for _, r := range p.found {
		if !p.add(r) {
			break
		}
	}
	p.Page.More = p.Page.More || p.more
}

// TooWide refuses a search among more records than one may look at; nil if it may. The table may be nil.
func (t *Table) TooWide(q Query) *leasehold.Error {
	if t == nil || !q.Searches() || t.Count(q) <= leasehold.MaxSearched {
		return nil
	}
	return limited("more than %d records are from %q on, which is as many as can be searched or ordered at once: "+
		"give a smaller range", leasehold.MaxSearched, q.From)
}
