package core

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/command"
)

// What an asker may do is judged here for every item that a command names, before the command is decided and at its
// place in the log. Three answers are possible. It may: the command goes on. It may see the item and may not do
// that: denied, with the verb and the path. It may not see the item: then a lease or a session that is
// named by its id is unknown, and the answer is the one that an id gets that never was. What is named by
// a path is denied whether it exists or not, so that this tells nothing either.

// allow refuses a command that the asker may not give, and reports whether it did.
func (s *State) allow(c Command) (Answer, bool) {
	s.permit = nil
	switch c.(type) {
	case *Tick, *Lead:
		return Answer{}, false
	}
	if s.permit = s.judge().Permit(s.asker); s.permit == nil {
		return Answer{}, false
	}
	failure := s.begins(c)
	if failure == nil {
		failure = s.unproven()
	}
	if failure == nil {
		failure = s.allowCommand(c)
	}
	if failure == nil { // last: a session that cannot be seen must not change what else is said
		failure = s.allowRequest(c)
	}
	if r, ok := c.(*Release); ok && r.Withdraw && s.nothingToWithdraw(r, failure) {
		return Answer{}, true
	}
	return Answer{Err: failure}, failure != nil
}

// judge is the policy that decides.
func (s *State) judge() *access.Policy {
	if s.plants(FormerPolicy) && s.former != nil {
		return s.former
	}
	return s.policy
}

// begins refuses to begin access a second time, also to those who have no credential yet: several servers may try to.
func (s *State) begins(c Command) *leasehold.Error {
	if change, ok := c.(*ChangeAccess); ok && change.IfNone && !s.permit.MayCluster(access.Admin) {
		return accessIsOn()
	}
	return nil
}

// nothingToWithdraw reports whether a withdrawal is done without doing anything. An id that is unknown may be
// withdrawn: so it must be with one that the asker cannot see, and where the asker may take nothing: marks without a
// session are the namespace's, and not for strangers to fill it with.
func (s *State) nothingToWithdraw(r *Release, failure *leasehold.Error) bool {
	if failure != nil {
		return failure.Code == leasehold.NotFound
	}
	_, _, known := s.claimOwner(r.Namespace, r.ID)
	return !known && r.Session == "" && !s.permit.MaySomewhere(access.Acquire, r.Namespace) &&
		!s.permit.MaySomewhere(access.Share, r.Namespace)
}

func (s *State) unproven() *leasehold.Error {
	switch {
	case s.asker == nil:
		return deny("this cluster asks for a credential: log in with leasehold login, or set LEASEHOLD_TOKEN")
	case s.permit.Revoked():
		return deny("%s", s.asker.Unproven())
	}
	return nil
}

// allowCommand has a rule for each kind of command. What has none is denied.
func (s *State) allowCommand(c Command) *leasehold.Error {
	switch c := c.(type) {
	case *OpenSession:
		return s.allowOpen(c)
	case *RenewSession:
		return s.allowSession(access.Renew, c.Namespace, c.ID)
	case *CloseSession:
		return s.allowSession(access.Release, c.Namespace, c.ID)
	case *Acquire:
		return s.allowAcquire(c)
	case *Renew:
		return s.allowClaim(access.Renew, c.Namespace, c.ID)
	case *Release:
		return s.allowClaim(access.Release, c.Namespace, c.ID)
	case *Change:
		return s.allowChange(c)
	case *Break:
		if c.ID != "" {
			return s.allowClaim(access.Break, c.Namespace, c.ID)
		}
		return s.allowPath(access.Break, c.Namespace, c.Resource)
	case *Ask:
		return s.allowPath(access.Ask, c.Namespace, c.Resource)
	case *Move:
		return s.allowClaim(access.Move, c.Namespace, c.ID)
	case *PutRecord:
		return s.allowPut(c)
	case *DeleteRecord:
		return s.allowDelete(c)
	case *Txn:
		return s.allowTxn(c)
	case *Define:
		return s.allowDefine(c.Namespace, c.Definition.Path)
	case *Undefine:
		return s.allowDefine(c.Namespace, c.Path)
	case *SetUnits:
		return s.allowDefine(c.Namespace, c.Resource)
	case *Drain:
		return s.allowDefine(c.Namespace, c.Resource)
	case *PutTask:
		return s.allowRecord(access.RecordWrite, c.Namespace, c.Path)
	case *FinishTask:
		return s.allowClaim(access.Release, c.Namespace, c.ID)
	case *ReportUse:
		return s.allowDefine(c.Namespace, c.Resource)
	case *Reserve:
		return s.allowReserve(c)
	case *CancelReservation:
		return s.allowCancel(c)
	case *Acknowledge:
		return s.allowAcknowledge(c.Namespace, c.Resource)
	case *AcknowledgeAlarm:
		return s.allowAcknowledge(c.Namespace, c.Resource)
	case *SetCaps, *EndQuarantine, *RaiseTokens, *ChangeAccess:
		return s.allowCluster()
	}
	return deny("%s may not do this: nobody said who may", s.permit.Asker.Principal)
}

// allowRequest refuses a request that is counted in somebody else's session.
func (s *State) allowRequest(c Command) *leasehold.Error {
	if closing, ok := c.(*CloseSession); ok && closing.ID == closing.Request.Session {
		return nil // judged by its own rule
	}
	return s.allowUse(command.NamespaceOf(c), command.RequestOf(c).Session)
}

// allowOpen lets those open a session who may bind something to it. An id that is somebody else's session, or
// was, is never shown.
func (s *State) allowOpen(c *OpenSession) *leasehold.Error {
	p := s.permit
	if !p.MaySomewhere(access.Acquire, c.Namespace) && !p.MaySomewhere(access.Share, c.Namespace) &&
		!p.MaySomewhere(access.RecordWrite, c.Namespace) {
		return deny("%s may not open a session%s: that needs one of the verbs acquire, share and record-write "+
			"somewhere there; ask an admin", p.Asker.Principal, inNamespace(c.Namespace))
	}
	if owner, known := s.sessionOwner(c.Namespace, c.ID); known && !p.Owns(owner) {
		return refuse(leasehold.Refused, "session id %q is used already: choose another", c.ID).Err
	}
	return nil
}

// sessionOwner returns whose a session is, or was, and whether there is any.
func (s *State) sessionOwner(namespace, id string) (owner *access.Owner, known bool) {
	sp := s.space(namespace)
	if sp == nil {
		return nil, false
	}
	if session, ok := sp.sessions.Get(id); ok {
		return session.Owner, true
	}
	if ended, ok := sp.endedSessions.Get(id); ok {
		return ended.Owner, true
	}
	return nil, sp.left(id) != nil
}

// allowSession judges a command about one session.
func (s *State) allowSession(v access.Verb, namespace, id string) *leasehold.Error {
	owner, known := s.sessionOwner(namespace, id)
	switch {
	case !known || s.permit.MayToOwn(v, namespace, owner):
		return nil
	case s.permit.MayToOwn(access.Read, namespace, owner):
		return deny("%s may not %s session %s: that needs the verb %s; ask an admin", s.permit.Asker.Principal, v, id,
			v)
	}
	return s.noSession(nil, id).Err
}

// allowUse refuses to bind something to somebody else's session, or to count a request in it.
func (s *State) allowUse(namespace, session string) *leasehold.Error {
	if session == "" {
		return nil
	}
	owner, known := s.sessionOwner(namespace, session)
	if !known || s.permit.Owns(owner) || s.permit.MayAll(access.Renew, namespace) {
		return nil
	}
	return s.noSession(nil, session).Err
}

func (s *State) allowAcquire(c *Acquire) *leasehold.Error {
	first := Item{Resource: c.Resource, ID: c.ID, Slots: c.Slots}
	if failure := s.allowItem(c, &first); failure != nil {
		return failure
	}
	for i := range c.Also {
		if failure := s.allowItem(c, &c.Also[i]); failure != nil {
			return failure
		}
	}
	return s.allowUse(c.Namespace, c.Session)
}

// allowItem judges one resource that is asked for. An id that is somebody else's is never shown, also not as the
// answer to a request that looks like a retry.
func (s *State) allowItem(c *Acquire, item *Item) *leasehold.Error {
	v := takeVerb(item.Slots)
	if c.Reservation != "" {
		v = s.claimVerb(c)
	}
	if !s.permit.MayHold(v, c.Namespace, item.Resource, c.Holder, nil) {
		return s.denyHolder(v, c.Namespace, item.Resource, c.Holder)
	}
	if _, owner, known := s.claimOwner(c.Namespace, item.ID); known && !s.permit.Owns(owner) {
		return refuse(leasehold.Refused, "lease id %q is used already: choose another", item.ID).Err
	}
	return nil
}

// takeVerb is what it takes to ask for some slots of a resource, or for all of it.
func takeVerb(slots int) access.Verb {
	if slots != 0 {
		return access.Share
	}
	return access.Acquire
}

// claimOwner returns the resource and the owner of a lease or a waiter, also of one that ended lately.
func (s *State) claimOwner(namespace, id string) (path string, owner *access.Owner, known bool) {
	sp := s.space(namespace)
	if sp == nil {
		return "", nil, false
	}
	if c, ok := sp.claims.Get(id); ok {
		if s.plants(AllIsOwn) {
			return c.Resource, s.permit.Self(), true
		}
		return c.Resource, sp.claimOwner(id), true
	}
	if ended, ok := sp.ended.Get(id); ok {
		return ended.Resource, ended.Owner, true
	}
	return "", nil, false
}

// allowClaim judges a command about one lease or waiter. One that ended needs to be seen only: nothing happens to it.
func (s *State) allowClaim(v access.Verb, namespace, id string) *leasehold.Error {
	path, owner, known := s.claimOwner(namespace, id)
	switch {
	case known && path == "": // it was withdrawn before it was asked for, and to do that shows nothing about it
		return s.noClaim(nil, id).Err
	case !known || s.permit.May(v, namespace, path, owner):
		return nil
	}
	if !s.permit.May(access.Read, namespace, path, owner) && !s.permit.Owns(owner) {
		return s.noClaim(nil, id).Err
	}
	if _, live := s.space(namespace).claims.Get(id); !live {
		return nil
	}
	return s.deny(v, namespace, path)
}

// allowChange also judges the name that a lease is handed to, or keeps.
func (s *State) allowChange(c *Change) *leasehold.Error {
	sp := s.space(c.Namespace)
	if sp == nil {
		return nil
	}
	claim, live := sp.claims.Get(c.ID)
	if !live {
		return s.allowClaim(access.Change, c.Namespace, c.ID)
	}
	holder, owner := cmp.Or(c.Holder, claim.Holder), sp.claimOwner(c.ID)
	if c.About != nil {
		holder = c.About.Holder
	}
	switch {
	case s.permit.MayHold(access.Change, c.Namespace, claim.Resource, holder, owner):
		return nil
	case !s.sees(sp, c.ID, claim.Resource):
		return s.noClaim(nil, c.ID).Err
	}
	return s.denyHolder(access.Change, c.Namespace, claim.Resource, holder)
}

// allowPath judges a command about the holders of a resource, if any: those who may do it to their own only go on,
// and each lease is judged when it is found.
func (s *State) allowPath(v access.Verb, namespace, path string) *leasehold.Error {
	if s.permit.May(v, namespace, path, s.permit.Self()) {
		return nil
	}
	return s.deny(v, namespace, path)
}

// allowDefine judges the definition of a path or, if it ends with a slash, of all below it.
func (s *State) allowDefine(namespace, path string) *leasehold.Error {
	ok := false
	switch {
	case path == "/":
		ok = s.permit.MayAll(access.Define, namespace)
	case strings.HasSuffix(path, "/"):
		ok = s.permit.MaySpan(access.Define, namespace, path, PrefixEnd(path))
	default:
		ok = s.permit.May(access.Define, namespace, path, nil)
	}
	if ok {
		return nil
	}
	return s.deny(access.Define, namespace, path)
}

// allowAcknowledge needs the right to read, too: what is acknowledged is told. What is about no resource is about all.
func (s *State) allowAcknowledge(namespace, path string) *leasehold.Error {
	for _, v := range [2]access.Verb{access.Acknowledge, access.Read} {
		if path == "" && !s.permit.MayAll(v, namespace) || path != "" && !s.permit.May(v, namespace, path, nil) {
			return s.deny(v, namespace, path)
		}
	}
	return nil
}

func (s *State) allowCluster() *leasehold.Error {
	if s.permit.MayCluster(access.Admin) {
		return nil
	}
	return deny("%s may not change the cluster: that needs the verb admin for all namespaces; ask an admin",
		s.permit.Asker.Principal)
}

// deny says which verb is missing where.
func (s *State) deny(v access.Verb, namespace, path string) *leasehold.Error {
	return deny("%s", s.permit.Denial(v, namespace, path))
}

// denyHolder is deny for those who may hold something, but not under that name.
func (s *State) denyHolder(v access.Verb, namespace, path, holder string) *leasehold.Error {
	names := s.permit.HoldersFor(v, namespace, path)
	if len(names) == 0 {
		return s.deny(v, namespace, path)
	}
	return deny("%s may not %s %s%s as %s: the holder must be under %s, as with --holder %s/NAME",
		s.permit.Asker.Principal, v, path, inNamespace(namespace), holder, strings.Join(names, " or "),
		strings.TrimSuffix(names[0], "/"))
}

func deny(format string, args ...any) *leasehold.Error {
	return &leasehold.Error{Code: leasehold.Denied, Message: fmt.Sprintf(format, args...)}
}

func inNamespace(name string) string {
	if name == leasehold.DefaultNamespace {
		return ""
	}
	return " in namespace " + name
}
