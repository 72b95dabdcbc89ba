// Package records keeps named values, under fences and with their former versions, ends them with sessions, and carries
// out transactions. A record may stand for a lease or a waiter (link.go); all claims on a resource may show as records
// in the order of its queue (mirror.go); or one record may show who holds the resource of its path (holder.go). What is
// in the tables, and what is counted over all of them, is in package record.
//
// It grants and ends no lease itself. What a put takes with a link it asks the kernel for like an acquire, and what a
// put or a delete gives up is given back or broken there.
package records

import (
	"cmp"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
)

// A store counts the records of all namespaces.
type store struct {
	record.Store
	hand hand
}

// A hand has what one command puts. Its memory is used again.
type hand struct {
	reserved []string // paths that it puts; empty between commands

	ops    []*kernel.Op
	puts   []putting
	writes []record.Write
	claims []*kernel.Claim // of one put
}

// records are those of one namespace.
type records struct {
	store *store // nil in a copy that stays as it is

	// What is in every snapshot.

	table   record.Table
	mirrors btree.Map[string, string] // the prefixes of the records of mirrored resources

	// What follows from that.

	timers      btree.Map[string, *kernel.Timer] // of the deleted records that have former versions
	sessionEnds *btree.Tree[ending]              // the sessions that have records, by when they end
	claimEnds   *btree.Tree[ending]              // the claims that have records and end by themselves, by when they do
	shown       int                              // claims that have records
}

// An ending is when a session or a claim ends unless it is renewed.
type ending struct {
	at kernel.Time
	id string
}

// New returns the store of a state that has no records.
func New() kernel.RecordStore { return &store{} }

func (st *store) New() kernel.Records {
	return &records{store: st, table: record.NewTable(), sessionEnds: newEndings(), claimEnds: newEndings()}
}

func newEndings() *btree.Tree[ending] {
	return btree.New(func(a, b ending) bool {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) < 0
	})
}

// Freeze returns a store that stays as it is.
func (st *store) Freeze() kernel.RecordStore { return &store{Store: st.Store.Copy()} }

// Copy returns records that stay as they are. Nothing is due in a copy.
func (s *records) Copy() kernel.Records {
	return &records{table: s.table.Copy(), mirrors: *s.mirrors.Copy(), sessionEnds: s.sessionEnds.Copy(),
		claimEnds: s.claimEnds.Copy(), shown: s.shown}
}

func (s *records) Get(path string) *leasehold.Record {
	r, _ := s.table.Get(path)
	return r
}

func (s *records) Size() (records, bytes int) { return s.table.Len(), s.table.Bytes() }

func (s *records) BytesOf(path string) int { return s.table.BytesOf(path) }

func (s *records) Growth(w record.Write) record.Growth { return s.table.Growth(&w) }

func (s *records) Empty() bool { return s.table.Empty() }

// MoveSession keeps the list of the sessions that have records, by when they end. A read uses it to leave out the
// records of sessions that are over and not collected yet, without looking at every record.
func (s *records) MoveSession(id string, was, is kernel.Time) {
	move(s.sessionEnds, ending{was, id}, ending{is, id})
}

// MoveClaim counts the claims that have records, and keeps the list of those whose records end with them at a moment of
// their own, by that moment: see recordsOfEndedClaims.
func (s *records) MoveClaim(was, is *kernel.Claim) {
	if was.Linked() != nil {
		s.shown--
	}
	if is.Linked() != nil {
		s.shown++
	}
	move(s.claimEnds, recordEnd(was), recordEnd(is))
}

// move puts what ends at another moment now to its place; 0: it is in none.
func move(ends *btree.Tree[ending], was, is ending) {
	if was == is {
		return
	}
	if was.at != 0 {
		ends.Delete(was)
	}
	if is.at != 0 {
		ends.Set(is)
	}
}

// recordEnd is when the record of a claim ends with it; zero if nobody knows, or if it stays. The claim may be nil.
func recordEnd(c *kernel.Claim) ending {
	if r := c.Linked(); r == nil || r.Stay {
		return ending{}
	}
	at, _ := c.End()
	if at == 0 {
		return ending{}
	}
	return ending{at, c.ID}
}

func refuse(code leasehold.Code, format string, args ...any) *leasehold.Error {
	return kernel.Refusal(code, format, args...)
}
