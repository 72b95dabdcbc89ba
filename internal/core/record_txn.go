package core

import (
	"cmp"
	"math"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/record"
)

// txn carries out a transaction: all of one list or nothing. Everything that could refuse an
// operation is looked at before the first one changes anything, since there is no undo.
func (s *State) txn(c *Txn) Answer {
	sp := s.space(c.Namespace)
	for i := range c.If {
		s.settleFor(sp, &c.If[i])
	}
	// A comparison of something that was not fully settled could go either way.
	if s.unsettled {
		return Answer{Err: tooMuchAtOnce()}
	}
	for i := range c.If {
		if refused := incomparable(sp, &c.If[i]); refused != nil {
			return Answer{Err: refused}
		}
	}
	answer := &TxnAnswer{Succeeded: true}
	for i := range c.If {
		answer.Succeeded = answer.Succeeded && s.holds(sp, &c.If[i])
	}
	list := c.Then
	if !answer.Succeeded && !s.plants(TxnAnyway) {
		list = c.Else
	}
	todo, refused := s.allowed(sp, c.Namespace, list)
	if answer.Succeeded && s.atLeast(Level4) {
		todo.sign(sp, c.If)
	}
	if refused == nil && (len(todo.writes) > 0 || todo.claims != nil) {
		sp, refused = s.makeSpace(c.Namespace)
	}
	if refused != nil {
		return Answer{Err: refused}
	}
	for i := range list {
		answer.Results = append(answer.Results, s.operate(sp, &list[i], &todo))
	}
	answer.Revision = s.revisionOf(sp)
	return Answer{Txn: answer}
}

// settleFor ends what is over of the thing that is compared. All comparisons are settled before
// the first is made, because to settle one thing can change another.
func (s *State) settleFor(sp *space, c *Compare) {
	switch {
	case sp == nil:
	case c.What >= LeaseID:
		s.settle(sp, c.Path)
	default:
		s.liveRecord(sp, c.Path)
	}
}

// incomparable refuses to compare a large value: its bytes are not part of the state.
func incomparable(sp *space, c *Compare) *leasehold.Error {
	if sp == nil || c.What != RecordValue {
		return nil
	}
	if r, ok := sp.records.Get(c.Path); ok && r.Large != nil {
		return refuse(leasehold.Refused, "%s has a large value, and those can not be compared: compare its revision, "+
			"which is %d", c.Path, r.Mod).Err
	}
	return nil
}

// A plan is what operations will do, worked out before any of them is done.
type plan struct {
	writes []record.Write    // of the puts, in their order
	tokens []leasehold.Token // that they are made under; 0: none
	items  []Item            // to acquire
	claims []*Claim
}

// sign notes under which leases the puts are made. A transaction that compares the id of the lease
// on the path that it puts is made by the holder: its name and token go with the version, as they
// do with a fenced put.
func (p *plan) sign(sp *space, compares []Compare) {
	for i := range compares {
		c := &compares[i]
		if c.What != LeaseID || c.Is != Equal || c.Text == "" {
			continue
		}
		claim, _ := sp.claims.Get(c.Text) // it is there, since the comparison held
		for j := range p.writes {
			if w := &p.writes[j]; w.Path == c.Path {
				w.Holder, p.tokens[j] = claim.Holder, claim.Token
			}
		}
	}
}

// allowed returns what the operations will do, or why not all of them can be done. It changes
// nothing but what time has changed already.
func (s *State) allowed(sp *space, namespace string, list []Op) (todo plan, refused *leasehold.Error) {
	deleted := 0
	var acquire *Acquire
	for i := range list {
		switch o := &list[i]; o.Do {
		case Put:
			s.liveRecord(sp, o.Path)
			w := record.Write{Path: o.Path, Value: o.Value, Large: o.Large, Session: o.Session, Keep: o.Keep}
			if refused := s.rollBack(sp, &w, o.From); refused != nil {
				return todo, refused
			}
			todo.writes, todo.tokens = append(todo.writes, w), append(todo.tokens, 0)
		case Delete:
			doomed, refused := s.doomed(sp, o.Path, o.To, o.Range)
			if refused != nil {
				return todo, refused
			}
			if deleted += len(doomed); s.atLeast(Level4) && deleted > leasehold.MaxDeletedAtOnce {
				return todo, refuse(leasehold.Limited,
					"a transaction deletes more than %d records: delete them in parts", leasehold.MaxDeletedAtOnce).Err
			}
		case AcquireLease:
			acquire = o.Acquire
		case ReleaseLease:
			if refused := s.releasable(sp, o.ID); refused != nil {
				return todo, refused
			}
		}
	}
	if deleted > s.maxDeleted() {
		return todo, refuse(leasehold.Limited, "a transaction deletes %d records: at most %d are allowed", deleted,
			s.maxDeleted()).Err
	}
	if refused := s.tooWide(sp, list, todo.writes); refused != nil {
		return todo, refused
	}
	if refused := s.roomFor(sp, namespace, todo.writes); refused != nil || acquire == nil {
		return todo, refused
	}
	if sp == nil {
		sp = newSpace(namespace) // a refusal must not begin it
	}
	// An acquire in a transaction does not wait: it is granted with all the rest, or nothing is
	// done.
	todo.items = acquire.Items()
	if todo.claims, refused = s.prepare(sp, acquire, todo.items); refused != nil {
		return todo, refused
	}
	if blocked := s.blocked(sp, acquire, todo.items); blocked != nil {
		return todo, s.blockedBy(sp, blocked).Err
	}
	return todo, s.roomForClaims(sp, len(todo.items), false)
}

// tooWide refuses, from level 4 on, operations that would have to look at too much: gets
// that pass over too many records of sessions that are over, and puts that let too many
// former versions fall.
func (s *State) tooWide(sp *space, list []Op, writes []record.Write) *leasehold.Error {
	if !s.atLeast(Level4) || sp == nil {
		return nil
	}
	w := work{most: maxReadWork / 2}
	defer func() { s.work.take(w.done) }()
	for i := range list {
		if o := &list[i]; o.Do == Get && (o.Range || o.Count) {
			if _, all := s.overIn(sp, RecordQuery{From: o.Path, To: o.To}, &w); !all {
				return crowded()
			}
		}
	}
	dropped := 0
	for i := range writes {
		dropped += sp.records.Drops(&writes[i])
	}
	s.work.take(dropped)
	if dropped > leasehold.MaxDroppedAtOnce {
		return refuse(leasehold.Limited, "a transaction drops %d former versions: at most %d are allowed; change in "+
			"parts how many are kept",
			dropped, leasehold.MaxDroppedAtOnce).Err
	}
	return nil
}

// releasable returns why a lease cannot be released; nil if it can, or was released before.
func (s *State) releasable(sp *space, id string) *leasehold.Error {
	if s.permit != nil && sp != nil {
		if failure := s.allowClaim(access.Release, sp.name, id); failure != nil {
			return failure
		}
	}
	if s.touch(sp, id) != nil || s.wasReleased(sp, id) {
		return nil
	}
	return s.noClaim(sp, id).Err
}

// operate does one operation. It cannot fail: allowed has found that all of them can be done,
// and nothing else comes between.
func (s *State) operate(sp *space, o *Op, todo *plan) (result TxnResult) {
	switch {
	case o.Do == AcquireLease:
		answer := s.admit(sp, o.Acquire, todo.items, todo.claims)
		result.Lease, result.Also = answer.Lease, answer.Also
	case o.Do == ReleaseLease:
		s.release(&Release{Namespace: sp.name, ID: o.ID})
	case o.Do == Get && sp == nil:
		result.Page = &RecordPage{}
	case o.Do == Get:
		q := RecordQuery{From: o.Path, To: o.To, Most: o.Most, KeysOnly: o.KeysOnly, Count: o.Count}
		if !o.Range {
			q.To = o.Path + "\x00"
		}
		page, _ := s.page(sp, q, &work{most: math.MaxInt})
		result.Page = &page
	case o.Do == Put:
		r := s.setRecord(sp, todo.writes[0], writing{token: todo.tokens[0]})
		todo.writes, todo.tokens = todo.writes[1:], todo.tokens[1:]
		result.Record = &leasehold.Record{Create: r.Create, Mod: r.Mod, Version: r.Version, Token: r.Token}
	default:
		doomed, _ := s.doomed(sp, o.Path, o.To, o.Range) // as many as were allowed, or fewer
		s.drop(sp, doomed)
		result.Deleted = len(doomed)
	}
	return result
}

// holds reports whether a comparison of something settled holds.
func (s *State) holds(sp *space, c *Compare) bool {
	if c.What >= LeaseID {
		return s.leaseHolds(sp, c)
	}
	var r leasehold.Record
	found := false
	if sp != nil {
		if now, ok := sp.records.Get(c.Path); ok {
			r, found = *now, true
		}
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
	}
	return found && related(r.Session, c.Is, c.Text)
}

// leaseHolds compares the lease with the smallest token on a resource. If nobody holds it,
// there is no id and the token is 0.
func (s *State) leaseHolds(sp *space, c *Compare) bool {
	var claim Claim
	if sp != nil {
		if r, ok := sp.resources.Get(c.Path); ok && r.held() {
			claim = *sp.senior(r)
		}
	}
	if c.What == LeaseID {
		return related(claim.ID, c.Is, c.Text)
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
