package kernel

import (
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/access"
)

// Who may do what is part of the state, and so is whose each lease, session and record is. Which
// command may do what is in allow.go.

// From is where commands come from, and who was proven to ask for them: one for each, or none at all.
type From struct {
	Origins []leasehold.Origin
	Askers  []*access.Asker
}

// setOrigin notes who asks for the command that is applied next, and through which door.
func (t *turn) setOrigin(f From, i int) {
	t.door, t.asker = "", nil
	if i < len(f.Origins) {
		t.door = f.Origins[i].Door
	}
	if i < len(f.Askers) {
		t.asker = f.Askers[i]
	}
}

// changeAccess changes the policy, begins it or ends it. What would lock everybody out is refused.
func (t *turn) changeAccess(c *ChangeAccess) Answer {
	switch {
	case c.Off:
		return t.endAccess(c)
	case len(c.Used) > 0:
		t.work.take(len(c.Used) * LookCost)
		t.policy = t.policy.WithUses(c.Used)
		return t.accessAnswer()
	}
	remove := c.Remove
	if c.Replace {
		tokens := remove.Tokens
		remove = t.policy.Without(c.Put)
		remove.Tokens = tokens
	}
	t.work.take((remove.Len() + c.Put.Len()) * LookCost)
	if !t.policy.Changes(remove, c.Put) && !t.policy.Declares(c.Declared) {
		return t.accessAnswer() // an earlier try did it
	}
	if c.IfNone && t.policy != nil {
		return Answer{Err: accessIsOn()}
	}
	if failure := t.policyIsAt(c.IfRevision); failure != nil {
		return Answer{Err: failure}
	}
	changed := t.policy.With(remove, c.Put)
	if c.Declared.Hash != "" {
		changed.Declared = c.Declared
	}
	t.work.take(changed.Size() / PerUnit)
	if err := changed.FitsAfter(t.policy, t.asker, c.Wall); err != nil {
		return refuse(leasehold.Refused, "%v", err)
	}
	if failure := t.loses(c, changed, remove.Tokens); failure != nil {
		return Answer{Err: failure}
	}
	before := t.policy
	t.policy = changed
	t.withdraws(c, before, remove)
	return t.accessAnswer()
}

func accessIsOn() *leasehold.Error {
	return refuse(leasehold.Refused, "access is on already: see leasehold access export").Err
}

func (t *turn) endAccess(c *ChangeAccess) Answer {
	if t.policy != nil {
		if failure := t.policyIsAt(c.IfRevision); failure != nil {
			return Answer{Err: failure}
		}
	}
	t.policy, t.withdrawal, t.revocations = nil, nil, btree.Map[uint64, *Revocation]{}
	return t.accessAnswer()
}

// policyIsAt refuses a change of another policy than the caller has seen.
func (s *State) policyIsAt(revision uint64) *leasehold.Error {
	if at := s.policy.At(); revision != 0 && revision != at {
		return refuse(leasehold.Refused, "access was changed by somebody else (it is at revision %d, not %d): look at "+
			"it again with leasehold access export", at, revision).Err
	}
	return nil
}

func (s *State) accessAnswer() Answer { return Answer{Access: &AccessAnswer{Revision: s.policy.At()}} }

// Policy returns who may do what; nil: everybody may do everything.
func (s *State) Policy() *access.Policy { return s.policy }

// Policy returns who may do what; nil: everybody may do everything.
func (v *view) Policy() *access.Policy { return v.s.policy }

// OwnerOfClaim returns whose a lease or a waiter is, also one that ended lately; nil: nobody's.
func (v *view) OwnerOfClaim(namespace, id string) *access.Owner {
	if sp := v.s.space(namespace); sp != nil {
		return v.s.ownerOf(sp, id)
	}
	return nil
}

// ownerOf returns whose a lease or a waiter is, also one that has just ended. Without a policy nobody asks.
func (s *State) ownerOf(sp *space, id string) *access.Owner {
	if s.policy == nil {
		return nil
	}
	if owner := sp.claimOwner(id); owner != nil {
		return owner
	}
	if ended, ok := sp.claims.Ended(id); ok {
		return ended.Owner
	}
	return nil
}

// PathOfClaim returns the resource of a lease or a waiter, also of one that ended lately; empty: it is unknown.
func (v *view) PathOfClaim(namespace, id string) string {
	if sp := v.s.space(namespace); sp != nil {
		if c, ok := sp.claims.Get(id); ok {
			return c.Resource
		}
		if ended, ok := sp.claims.Ended(id); ok {
			return ended.Resource
		}
	}
	return ""
}

// OwnerOfSession returns whose a session is, also one that ended lately; nil: nobody's.
func (v *view) OwnerOfSession(namespace, id string) *access.Owner {
	if sp := v.s.space(namespace); sp != nil {
		if session, ok := sp.sessions.Get(id); ok {
			return session.Owner
		}
		if ended, ok := sp.endedSessions.Get(id); ok {
			return ended.Owner
		}
	}
	return nil
}

// OwnerOfRecord returns whose a record is; nil: nobody's.
func (v *view) OwnerOfRecord(namespace, path string) *access.Owner {
	if sp := v.s.space(namespace); sp != nil {
		return sp.recordOwner(path)
	}
	return nil
}

func (sp *space) claimOwner(id string) *access.Owner {
	owner, _ := sp.claimOwners.Get(id)
	return owner
}

func (sp *space) recordOwner(path string) *access.Owner {
	owner, _ := sp.recordOwners.Get(path)
	return owner
}

func (sp *space) setClaimOwner(id string, owner *access.Owner) {
	if owner != nil {
		sp.claimOwners.Set(id, owner)
	}
}

// A ClaimOwner is whose a lease or a waiter is, as a piece of a snapshot.
type ClaimOwner struct {
	ID    string
	Owner *access.Owner
}

// A RecordOwner is whose a record is, as a piece of a snapshot.
type RecordOwner struct {
	Path  string
	Owner *access.Owner
}

// A PolicyHead is the first piece of a policy; the items follow it.
type PolicyHead struct {
	Revision uint64
	Declared access.Declaration
}

// policyPieces writes the policy, if there is one, item by item.
func (s *State) policyPieces(yield func(Piece) bool) bool {
	if s.policy == nil {
		return true
	}
	all := s.policy.Items()
	return yield(Piece{Value: &PolicyHead{s.policy.Revision, s.policy.Declared}}) && pieces(all.Tokens, yield) &&
		pieces(all.Roles, yield) && pieces(all.Bindings, yield) && pieces(all.Quotas, yield) &&
		pieces(all.Issuers, yield) && pieces(all.Certificates, yield)
}

func pieces[T any](list []*T, yield func(Piece) bool) bool {
	for _, item := range list {
		if !yield(Piece{Value: item}) {
			return false
		}
	}
	return true
}

func (sp *space) claimOwnerPieces(yield func(Piece) bool) (more bool) {
	more = true
	sp.claimOwners.Scan(func(id string, owner *access.Owner) bool {
		more = yield(Piece{sp.name, &ClaimOwner{id, owner}})
		return more
	})
	return more
}

func (sp *space) recordOwnerPieces(yield func(Piece) bool) (more bool) {
	more = true
	sp.recordOwners.Scan(func(path string, owner *access.Owner) bool {
		more = yield(Piece{sp.name, &RecordOwner{path, owner}})
		return more
	})
	return more
}

func (t *turn) restoreClaimOwner(sp *space, v *ClaimOwner) error {
	claim, ok := sp.claims.Get(v.ID)
	if _, twice := sp.claimOwners.Set(v.ID, v.Owner); !ok || twice {
		return fmt.Errorf("snapshot has the owner of lease %q twice, or the lease is not there", v.ID)
	}
	t.countClaim(sp, nil, claim)
	return nil
}

func (t *turn) restoreRecordOwner(sp *space, v *RecordOwner) error {
	_, twice := sp.recordOwners.Set(v.Path, v.Owner)
	if twice || sp.records.Get(v.Path) == nil {
		return fmt.Errorf("snapshot has the owner of record %q twice, or the record is not there", v.Path)
	}
	t.tallies.add(v.Owner, tally{records: 1, bytes: sp.records.BytesOf(v.Path)})
	return nil
}

// restorePolicy takes over a part of a policy, and reports whether it is one. Nobody has seen the policy yet.
func (t *turn) restorePolicy(value any) bool {
	var put access.Items
	switch v := value.(type) {
	case *PolicyHead:
		t.policy = &access.Policy{Revision: v.Revision, Declared: v.Declared}
		return true
	case *access.Token:
		put.Tokens = []*access.Token{v}
	case *access.Role:
		put.Roles = []*access.Role{v}
	case *access.Binding:
		put.Bindings = []*access.Binding{v}
	case *access.Quota:
		put.Quotas = []*access.Quota{v}
	case *access.Issuer:
		put.Issuers = []*access.Issuer{v}
	case *access.Certificate:
		put.Certificates = []*access.Certificate{v}
	default:
		return false
	}
	if t.policy != nil {
		t.policy.Put(put)
	}
	return true
}

// access checks that somebody can change the policy, and that nobody owns what is gone.
func (c *checker) access(s *State) {
	if s.policy != nil {
		err := s.policy.Fits()
		c.that(err == nil, "access: %v", err)
	}
	s.spaces.Scan(func(_ string, sp *space) bool {
		sp.recordOwners.Scan(func(path string, owner *access.Owner) bool {
			c.that(sp.records.Get(path) != nil && owner != nil, "%s: %s has an owner and is no record", sp.name, path)
			return true
		})
		sp.claimOwners.Scan(func(id string, owner *access.Owner) bool {
			_, ok := sp.claims.Get(id)
			c.that(ok && owner != nil, "%s: %s has an owner and is no lease", sp.name, id)
			return true
		})
		return true
	})
}
