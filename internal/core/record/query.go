// Package record keeps named values: in order, with their former versions, and with the names of
// values that are too large for the log. It knows neither leases nor sessions nor time; core decides
// who may write, and ends what is bound to a session.
package record

import (
	"math"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
)

// A Query asks for the records of [From, To), in the order of their paths unless it selects another.
type Query struct {
	From     string
	To       string // empty: to the end
	Most     int    // 0: as many as one answer has, MaxPage
	KeysOnly bool   // without their values
	Count    bool   // how many there are in all, whatever is selected
	Session  string // only those that end with it, as they are; empty: all. It has no count
	Select   Selection
	Revision leasehold.Revision // as they were then; 0: as they are
	Past     *Past              // of History.Past, for this query; nil: it is worked out while the state is read
}

// A Page is what a Query found. The records are those of the state: they
// must not be changed.
type Page struct {
	Records  []*leasehold.Record
	More     bool               // others follow the last of them
	Behind   string             // or follow this path, if it is set: there is something in between that is not shown
	Count    int                // of all, if that was asked for
	Revision leasehold.Revision // of the namespace when they were so
}

// Next returns the path after which the next page begins; empty: there is none.
func (p *Page) Next() string {
	switch {
	case !p.More:
		return ""
	case p.Behind != "":
		return p.Behind
	}
	return p.Records[len(p.Records)-1].Path
}

// A Past is what a range of records was before the events of a history. It can be used
// once.
type Past struct {
	known    bool
	revision leasehold.Revision // of the newest event that it takes back
	n        uint32
	before   btree.Map[string, *leasehold.Record] // nil: it was not there
}

// NewPast works out how the range of a query was at its revision, from all events since. known
// says that history still has them.
func NewPast(q Query, since []*leasehold.Event, known bool) *Past {
	p := &Past{known: known, revision: q.Revision, n: math.MaxUint32}
	p.TakeBack(q, since)
	return p
}

// Known reports whether history had all events that were needed.
func (p *Past) Known() bool { return p.known }

// Newest returns the position of the newest event that was taken back.
func (p *Past) Newest() (leasehold.Revision, uint32) { return p.revision, p.n }

// TakeBack goes on with events that came later.
func (p *Past) TakeBack(q Query, events []*leasehold.Event) {
	for _, e := range events {
		p.revision, p.n = e.Revision, e.N
		if e.Kind != leasehold.RecordPut && e.Kind != leasehold.RecordDeleted {
			continue
		}
		if e.Resource < q.From || q.To != "" && e.Resource >= q.To {
			continue
		}
		if _, seen := p.before.Get(e.Resource); !seen {
			p.before.Set(e.Resource, e.Previous)
		}
	}
}
