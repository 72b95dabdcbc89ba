package records

import (
	"cmp"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
)

// settleCompared ends what is over of everything that a transaction compares, or those nested in it. All of it is
// settled before the first comparison is made, because to settle one thing can change another.
func (s *records) settleCompared(k kernel.Turn, c *kernel.Txn) *leasehold.Error {
	if k.IsNew() {
		return nil
	}
	left := leasehold.MaxSearched
	return s.settleTree(k, c, &left)
}

func (s *records) settleTree(k kernel.Turn, c *kernel.Txn, left *int) *leasehold.Error {
	for i := range c.If {
		if refused := s.settleFor(k, &c.If[i], left); refused != nil {
			return refused
		}
	}
	for _, list := range [2][]kernel.Op{c.Then, c.Else} {
		for i := range list {
			if list[i].Do != kernel.Nested {
				continue
			}
			if refused := s.settleTree(k, list[i].Txn, left); refused != nil {
				return refused
			}
		}
	}
	return nil
}

// settleFor ends what is over of the thing that is compared. left is how many records may still be looked at.
func (s *records) settleFor(k kernel.Turn, c *kernel.Compare, left *int) *leasehold.Error {
	switch {
	case c.What.OfLease():
		k.Settle(c.Path)
		return nil
	case !c.Range:
		s.liveRecord(k, c.Path)
		return nil
	}
	n := s.table.Count(record.Query{From: c.Path, To: c.To})
	if *left -= n; *left < 0 {
		return refuse(leasehold.Limited, "more than %d records are compared: give smaller ranges",
			leasehold.MaxSearched)
	}
	k.Take(n / kernel.PerUnit)
	var settle []string // listed first: to end a session deletes from the tree that is walked
	s.table.Ascend(c.Path, c.To, func(r *leasehold.Record) bool {
		if recordOver(k.Namespace, r) || loose(k.Namespace, r) {
			settle = append(settle, r.Path)
		}
		return true
	})
	for _, path := range settle {
		s.liveRecord(k, path)
	}
	return nil
}

// A branch is a transaction, or one that is nested in another, as far as its comparisons decide: the list that is to
// be done, and of each transaction nested in it the same.
type branch struct {
	compared  []kernel.Compare
	succeeded bool
	list      []kernel.Op
	nested    []branch // of the nested ones in the list, in their order
}

// choose makes all comparisons.
func (s *records) choose(k kernel.Turn, c *kernel.Txn) (b branch, refused *leasehold.Error) {
	for i := range c.If {
		if refused := s.incomparable(&c.If[i]); refused != nil {
			return b, refused
		}
	}
	b = branch{compared: c.If, succeeded: true, list: c.Then}
	for i := range c.If {
		b.succeeded = b.succeeded && s.holds(k, &c.If[i])
	}
	if !b.succeeded {
		b.list = c.Else
	}
	for i := range b.list {
		if b.list[i].Do != kernel.Nested {
			continue
		}
		nested, refused := s.choose(k, b.list[i].Txn)
		if refused != nil {
			return b, refused
		}
		b.nested = append(b.nested, nested)
	}
	return b, nil
}

// ops appends all operations that are to be done, in their order, without what only nests others.
func (b *branch) ops(list []*kernel.Op) []*kernel.Op {
	nested := b.nested
	for i := range b.list {
		if b.list[i].Do != kernel.Nested {
			list = append(list, &b.list[i])
			continue
		}
		list = nested[0].ops(list)
		nested = nested[1:]
	}
	return list
}

// answer puts the results of operations where these are. It takes them off the list.
func (b *branch) answer(results *[]kernel.TxnResult) *kernel.TxnAnswer {
	answer, nested := &kernel.TxnAnswer{Succeeded: b.succeeded}, b.nested
	if len(nested) == 0 {
		n := len(b.list)
		answer.Results, *results = (*results)[:n:n], (*results)[n:]
		return answer
	}
	answer.Results = make([]kernel.TxnResult, 0, len(b.list))
	for i := range b.list {
		if b.list[i].Do == kernel.Nested {
			answer.Results = append(answer.Results, kernel.TxnResult{Txn: nested[0].answer(results)})
			nested = nested[1:]
			continue
		}
		answer.Results = append(answer.Results, (*results)[0])
		*results = (*results)[1:]
	}
	return answer
}

// incomparable refuses to compare a large value: its bytes are not part of the state.
func (s *records) incomparable(c *kernel.Compare) (refused *leasehold.Error) {
	if c.What != kernel.RecordValue {
		return nil
	}
	to := c.Path + "\x00"
	if c.Range {
		to = c.To
	}
	s.table.Ascend(c.Path, to, func(r *leasehold.Record) bool {
		if r.Large != nil {
			refused = refuse(leasehold.Refused, "%s has a large value, and those can not be compared: compare its "+
				"revision, which is %d", r.Path, r.Mod)
		}
		return refused == nil
	})
	return refused
}

// holds reports whether a comparison of something settled holds.
func (s *records) holds(k kernel.Turn, c *kernel.Compare) bool {
	switch {
	case c.What.OfLease():
		return leaseHolds(k, c)
	case c.Range:
		return s.rangeHolds(c)
	}
	now, _ := s.table.Get(c.Path)
	return recordHolds(now, c)
}

// rangeHolds compares all records of a range. If there is none, it is as with one that is not there.
func (s *records) rangeHolds(c *kernel.Compare) bool {
	hold, found := true, false
	s.table.Ascend(c.Path, c.To, func(r *leasehold.Record) bool {
		hold, found = recordHolds(r, c), true
		return hold
	})
	if !found {
		return recordHolds(nil, c)
	}
	return hold
}

// recordHolds compares one record; nil: it is not there.
func recordHolds(now *leasehold.Record, c *kernel.Compare) bool {
	var r leasehold.Record
	found := now != nil
	if found {
		r = *now
	}
	switch c.What {
	case kernel.RecordCreate:
		return related(uint64(r.Create), c.Is, c.Number)
	case kernel.RecordMod:
		return related(uint64(r.Mod), c.Is, c.Number)
	case kernel.RecordVersion:
		return related(r.Version, c.Is, c.Number)
	case kernel.RecordValue:
		return found && related(r.Value, c.Is, c.Text)
	case kernel.RecordLease:
		return found && related(r.Lease, c.Is, c.Text)
	}
	return related(r.Session, c.Is, c.Text)
}

// leaseHolds compares the lease with the smallest token on a resource. If nobody holds it,
// there is no id and the token is 0.
func leaseHolds(k kernel.Turn, c *kernel.Compare) bool {
	claim := &kernel.Claim{}
	if r := k.Resource(c.Path); r != nil && r.Held() {
		claim = k.Senior(r)
	}
	switch {
	case c.What == kernel.LeaseID:
		return related(claim.ID, c.Is, c.Text)
	case c.What == kernel.LeaseBreak && claim.Terms != nil && claim.Terms.BreakAt != 0:
		return related(1, c.Is, c.Number)
	case c.What == kernel.LeaseBreak:
		return related(0, c.Is, c.Number)
	}
	return related(uint64(claim.Token), c.Is, c.Number)
}

func related[T cmp.Ordered](a T, is kernel.Relation, b T) bool {
	switch is {
	case kernel.Equal:
		return a == b
	case kernel.NotEqual:
		return a != b
	case kernel.Less:
		return a < b
	}
	return a > b
}
