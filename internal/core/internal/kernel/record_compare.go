package kernel

import (
	"cmp"

	"github.com/leasehold/leasehold"
)

// settleCompared ends what is over of everything that a transaction compares, or those nested in it. All of it is
// settled before the first comparison is made, because to settle one thing can change another.
func (t *turn) settleCompared(sp *space, c *Txn) *leasehold.Error {
	if sp == nil {
		return nil
	}
	left := leasehold.MaxSearched
	return t.settleTree(sp, c, &left)
}

func (t *turn) settleTree(sp *space, c *Txn, left *int) *leasehold.Error {
	for i := range c.If {
		if refused := t.settleFor(sp, &c.If[i], left); refused != nil {
			return refused
		}
	}
	for _, list := range [2][]Op{c.Then, c.Else} {
		for i := range list {
			if list[i].Do != Nested {
				continue
			}
			if refused := t.settleTree(sp, list[i].Txn, left); refused != nil {
				return refused
			}
		}
	}
	return nil
}

// settleFor ends what is over of the thing that is compared. left is how many records may still be looked at.
func (t *turn) settleFor(sp *space, c *Compare, left *int) *leasehold.Error {
	switch {
	case c.What.OfLease():
		t.settle(sp, c.Path)
		return nil
	case !c.Range:
		t.liveRecord(sp, c.Path)
		return nil
	}
	n := sp.records.Count(RecordQuery{From: c.Path, To: c.To})
	if *left -= n; *left < 0 {
		return refuse(leasehold.Limited, "more than %d records are compared: give smaller ranges",
			leasehold.MaxSearched).Err
	}
	t.work.take(n / PerUnit)
	var settle []string // listed first: to end a session deletes from the tree that is walked
	sp.records.Ascend(c.Path, c.To, func(r *leasehold.Record) bool {
		if t.recordOver(sp, r) || sp.loose(r) {
			settle = append(settle, r.Path)
		}
		return true
	})
	for _, path := range settle {
		t.liveRecord(sp, path)
	}
	return nil
}

// A branch is a transaction, or one that is nested in another, as far as its comparisons decide: the list that is to
// be done, and of each transaction nested in it the same.
type branch struct {
	compared  []Compare
	succeeded bool
	list      []Op
	nested    []branch // of the nested ones in the list, in their order
}

// choose makes all comparisons.
func (s *State) choose(sp *space, c *Txn) (b branch, refused *leasehold.Error) {
	for i := range c.If {
		if refused := incomparable(sp, &c.If[i]); refused != nil {
			return b, refused
		}
	}
	b = branch{compared: c.If, succeeded: true, list: c.Then}
	for i := range c.If {
		b.succeeded = b.succeeded && s.holds(sp, &c.If[i])
	}
	if !b.succeeded {
		b.list = c.Else
	}
	for i := range b.list {
		if b.list[i].Do != Nested {
			continue
		}
		nested, refused := s.choose(sp, b.list[i].Txn)
		if refused != nil {
			return b, refused
		}
		b.nested = append(b.nested, nested)
	}
	return b, nil
}

// ops appends all operations that are to be done, in their order, without what only nests others.
func (b *branch) ops(list []*Op) []*Op {
	nested := b.nested
	for i := range b.list {
		if b.list[i].Do != Nested {
			list = append(list, &b.list[i])
			continue
		}
		list = nested[0].ops(list)
		nested = nested[1:]
	}
	return list
}

// answer puts the results of operations where these are. It takes them off the list.
func (b *branch) answer(results *[]TxnResult) *TxnAnswer {
	answer, nested := &TxnAnswer{Succeeded: b.succeeded}, b.nested
	if len(nested) == 0 {
		n := len(b.list)
		answer.Results, *results = (*results)[:n:n], (*results)[n:]
		return answer
	}
	answer.Results = make([]TxnResult, 0, len(b.list))
	for i := range b.list {
		if b.list[i].Do == Nested {
			answer.Results = append(answer.Results, TxnResult{Txn: nested[0].answer(results)})
			nested = nested[1:]
			continue
		}
		answer.Results = append(answer.Results, (*results)[0])
		*results = (*results)[1:]
	}
	return answer
}

// incomparable refuses to compare a large value: its bytes are not part of the state.
func incomparable(sp *space, c *Compare) (refused *leasehold.Error) {
	if sp == nil || c.What != RecordValue {
		return nil
	}
	to := c.Path + "\x00"
	if c.Range {
		to = c.To
	}
	sp.records.Ascend(c.Path, to, func(r *leasehold.Record) bool {
		if r.Large != nil {
			refused = refuse(leasehold.Refused, "%s has a large value, and those can not be compared: compare its "+
				"revision, which is %d", r.Path, r.Mod).Err
		}
		return refused == nil
	})
	return refused
}

// holds reports whether a comparison of something settled holds.
func (s *State) holds(sp *space, c *Compare) bool {
	switch {
	case c.What.OfLease():
		return s.leaseHolds(sp, c)
	case c.Range:
		return s.rangeHolds(sp, c)
	}
	now, _ := sp.table().Get(c.Path)
	return recordHolds(now, c)
}

// rangeHolds compares all records of a range. If there is none, it is as with one that is not there.
func (s *State) rangeHolds(sp *space, c *Compare) bool {
	if sp == nil {
		return recordHolds(nil, c)
	}
	hold, found := true, false
	sp.records.Ascend(c.Path, c.To, func(r *leasehold.Record) bool {
		hold, found = recordHolds(r, c), true
		return hold
	})
	if !found {
		return recordHolds(nil, c)
	}
	return hold
}

// recordHolds compares one record; nil: it is not there.
func recordHolds(now *leasehold.Record, c *Compare) bool {
	var r leasehold.Record
	found := now != nil
	if found {
		r = *now
	}
	switch c.What {
	case RecordCreate:
		return related(uint64(r.Create), c.Is, c.Number)
	case RecordMod:
		return related(uint64(r.Mod), c.Is, c.Number)
	case RecordVersion:
		return related(r.Version, c.Is, c.Number)
	case RecordValue:
		return found && related(r.Value, c.Is, c.Text)
	case RecordLease:
		return found && related(r.Lease, c.Is, c.Text)
	}
	return related(r.Session, c.Is, c.Text)
}

// leaseHolds compares the lease with the smallest token on a resource. If nobody holds it,
// there is no id and the token is 0.
func (s *State) leaseHolds(sp *space, c *Compare) bool {
	var claim Claim
	if sp != nil {
		if r, ok := sp.resources.Get(c.Path); ok && r.Held() {
			claim = *sp.senior(r)
		}
	}
	switch {
	case c.What == LeaseID:
		return related(claim.ID, c.Is, c.Text)
	case c.What == LeaseBreak && claim.state() == leasehold.Breaking:
		return related(1, c.Is, c.Number)
	case c.What == LeaseBreak:
		return related(0, c.Is, c.Number)
	}
	return related(uint64(claim.Token), c.Is, c.Number)
}

func related[T cmp.Ordered](a T, is Relation, b T) bool {
	switch is {
	case Equal:
		return a == b
	case NotEqual:
		return a != b
	case Less:
		return a < b
	}
	return a > b
}
