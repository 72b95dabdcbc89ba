package kernel

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
func (t *turn) allow(c Command) (Answer, bool) {
	t.permit = nil
	if command.VerbOf(c).Class == command.Internal {
		return Answer{}, false
	}
	if t.permit = t.judge().Permit(t.asker); t.permit == nil {
		return Answer{}, false
	}
	failure := t.begins(c)
	if failure == nil {
		failure = t.unproven()
	}
	if failure == nil {
		failure = t.allowCommand(c)
	}
	if failure == nil { // last: a session that cannot be seen must not change what else is said
		failure = t.allowRequest(c)
	}
	if r, ok := c.(*Release); ok && r.Withdraw && t.nothingToWithdraw(r, failure) {
		return Answer{}, true
	}
	return Answer{Err: failure}, failure != nil
}

// judge is the policy that decides.
func (s *State) judge() *access.Policy {
	return s.policy
}

// begins refuses to begin access a second time, also to those who have no credential yet: several servers may try to.
func (l *look) begins(c Command) *leasehold.Error {
	if change, ok := c.(*ChangeAccess); ok && change.IfNone && !l.permit.MayCluster(access.Admin) {
		return accessIsOn()
	}
	return nil
}

// nothingToWithdraw reports whether a withdrawal is done without doing anything. An id that is unknown may be
// withdrawn: so it must be with one that the asker cannot see, and where the asker may take nothing: marks without a
// session are the namespace's, and not for strangers to fill it with.
func (l *look) nothingToWithdraw(r *Release, failure *leasehold.Error) bool {
	if failure != nil {
		return failure.Code == leasehold.NotFound
	}
	_, _, known := l.claimOwner(r.Namespace, r.ID)
	return !known && r.Session == "" && !l.permit.MaySomewhere(access.Acquire, r.Namespace) &&
		!l.permit.MaySomewhere(access.Share, r.Namespace)
}

func (t *turn) unproven() *leasehold.Error {
	switch {
	case t.asker == nil:
		return deny("this cluster asks for a credential: log in with leasehold login, or set LEASEHOLD_TOKEN")
	case t.permit.Revoked():
		return deny("%s", t.asker.Unproven())
	}
	return nil
}

// allowCommand has a rule for each kind of command. What has none is denied.
func (t *turn) allowCommand(c Command) *leasehold.Error {
	right := command.VerbOf(c).Right
	switch c := c.(type) {
	case *OpenSession:
		return t.allowOpen(c)
	case *RenewSession:
		return t.allowSession(right, c.Namespace, c.ID)
	case *CloseSession:
		return t.allowSession(right, c.Namespace, c.ID)
	case *Acquire:
		return t.allowAcquire(c)
	case *Renew:
		return t.allowClaim(right, c.Namespace, c.ID)
	case *Release:
		return t.allowClaim(right, c.Namespace, c.ID)
	case *Change:
		return t.allowChange(c)
	case *Break:
		if c.ID != "" {
			return t.allowClaim(right, c.Namespace, c.ID)
		}
		return t.allowPath(right, c.Namespace, c.Resource)
	case *Ask:
		return t.allowPath(right, c.Namespace, c.Resource)
	case *Move:
		return t.allowClaim(right, c.Namespace, c.ID)
	case *PutRecord:
		return t.allowPut(c)
	case *DeleteRecord:
		return t.allowDelete(c)
	case *Txn:
		return t.allowTxn(c)
	case *Define:
		return t.allowDefine(c.Namespace, c.Definition.Path)
	case *Undefine:
		return t.allowDefine(c.Namespace, c.Path)
	case *SetUnits:
		return t.allowDefine(c.Namespace, c.Resource)
	case *Drain:
		return t.allowDefine(c.Namespace, c.Resource)
	case *PutTask:
		return t.allowRecord(right, c.Namespace, c.Path)
	case *FinishTask:
		return t.allowClaim(right, c.Namespace, c.ID)
	case *ReportUse:
		return t.allowDefine(c.Namespace, c.Resource)
	case *Reserve:
		return t.allowReserve(c)
	case *CancelReservation:
		return t.allowCancel(c)
	case *Acknowledge:
		return t.allowAcknowledge(c.Namespace, c.Resource)
	case *AcknowledgeAlarm:
		return t.allowAcknowledge(c.Namespace, c.Resource)
	case *SetCaps, *EndQuarantine, *RaiseTokens, *ChangeAccess:
		return t.allowCluster()
	}
	return deny("%s may not do this: nobody said who may", t.permit.Asker.Principal)
}

// allowRequest refuses a request that is counted in somebody else's session.
func (l *look) allowRequest(c Command) *leasehold.Error {
	if closing, ok := c.(*CloseSession); ok && closing.ID == closing.Request.Session {
		return nil // judged by its own rule
	}
	return l.allowUse(command.NamespaceOf(c), command.RequestOf(c).Session)
}

// allowOpen lets those open a session who may bind something to it. An id that is somebody else's session, or
// was, is never shown.
func (l *look) allowOpen(c *OpenSession) *leasehold.Error {
	p := l.permit
	if !p.MaySomewhere(access.Acquire, c.Namespace) && !p.MaySomewhere(access.Share, c.Namespace) &&
		!p.MaySomewhere(access.RecordWrite, c.Namespace) {
		return deny("%s may not open a session%s: that needs one of the verbs acquire, share and record-write "+
			"somewhere there; ask an admin", p.Asker.Principal, inNamespace(c.Namespace))
	}
	if owner, known := l.sessionOwner(c.Namespace, c.ID); known && !p.Owns(owner) {
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
func (l *look) allowSession(v access.Verb, namespace, id string) *leasehold.Error {
	owner, known := l.sessionOwner(namespace, id)
	switch {
	case !known || l.permit.MayToOwn(v, namespace, owner):
		return nil
	case l.permit.MayToOwn(access.Read, namespace, owner):
		return deny("%s may not %s session %s: that needs the verb %s; ask an admin", l.permit.Asker.Principal, v, id,
			v)
	}
	return l.noSession(nil, id).Err
}

// allowUse refuses to bind something to somebody else's session, or to count a request in it.
func (l *look) allowUse(namespace, session string) *leasehold.Error {
	if session == "" {
		return nil
	}
	owner, known := l.sessionOwner(namespace, session)
	if !known || l.permit.Owns(owner) || l.permit.MayAll(access.Renew, namespace) {
		return nil
	}
	return l.noSession(nil, session).Err
}

func (l *look) allowAcquire(c *Acquire) *leasehold.Error {
	first := Item{Resource: c.Resource, ID: c.ID, Slots: c.Slots}
	if failure := l.allowItem(c, &first); failure != nil {
		return failure
	}
	for i := range c.Also {
		if failure := l.allowItem(c, &c.Also[i]); failure != nil {
			return failure
		}
	}
	return l.allowUse(c.Namespace, c.Session)
}

// allowItem judges one resource that is asked for. An id that is somebody else's is never shown, also not as the
// answer to a request that looks like a retry.
func (l *look) allowItem(c *Acquire, item *Item) *leasehold.Error {
	v := takeVerb(item.Slots)
	if c.Reservation != "" {
		v = l.claimVerb(c)
	}
	if !l.permit.MayHold(v, c.Namespace, item.Resource, c.Holder, nil) {
		return l.denyHolder(v, c.Namespace, item.Resource, c.Holder)
	}
	if _, owner, known := l.claimOwner(c.Namespace, item.ID); known && !l.permit.Owns(owner) {
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
func (l *look) claimOwner(namespace, id string) (path string, owner *access.Owner, known bool) {
	sp := l.space(namespace)
	if sp == nil {
		return "", nil, false
	}
	if c, ok := sp.claims.Get(id); ok {
		return c.Resource, sp.claimOwner(id), true
	}
	if ended, ok := sp.claims.Ended(id); ok {
		return ended.Resource, ended.Owner, true
	}
	return "", nil, false
}

// allowClaim judges a command about one lease or waiter. One that ended needs to be seen only: nothing happens to it.
func (l *look) allowClaim(v access.Verb, namespace, id string) *leasehold.Error {
	path, owner, known := l.claimOwner(namespace, id)
	switch {
	case known && path == "": // it was withdrawn before it was asked for, and to do that shows nothing about it
		return l.noClaim(nil, id).Err
	case !known || l.permit.May(v, namespace, path, owner):
		return nil
	}
	if !l.permit.May(access.Read, namespace, path, owner) && !l.permit.Owns(owner) {
		return l.noClaim(nil, id).Err
	}
	if _, live := l.space(namespace).claims.Get(id); !live {
		return nil
	}
	return l.deny(v, namespace, path)
}

// allowChange also judges the name that a lease is handed to, or keeps.
func (l *look) allowChange(c *Change) *leasehold.Error {
	sp := l.space(c.Namespace)
	if sp == nil {
		return nil
	}
	claim, live := sp.claims.Get(c.ID)
	if !live {
		return l.allowClaim(access.Change, c.Namespace, c.ID)
	}
	holder, owner := cmp.Or(c.Holder, claim.Holder), sp.claimOwner(c.ID)
	if c.About != nil {
		holder = c.About.Holder
	}
	switch {
	case l.permit.MayHold(access.Change, c.Namespace, claim.Resource, holder, owner):
		return nil
	case !l.sees(sp, c.ID, claim.Resource):
		return l.noClaim(nil, c.ID).Err
	}
	return l.denyHolder(access.Change, c.Namespace, claim.Resource, holder)
}

// allowPath judges a command about the holders of a resource, if any: those who may do it to their own only go on,
// and each lease is judged when it is found.
func (l *look) allowPath(v access.Verb, namespace, path string) *leasehold.Error {
	if l.permit.May(v, namespace, path, l.permit.Self()) {
		return nil
	}
	return l.deny(v, namespace, path)
}

// allowDefine judges the definition of a path or, if it ends with a slash, of all below it.
func (l *look) allowDefine(namespace, path string) *leasehold.Error {
	ok := false
	switch {
	case path == "/":
		ok = l.permit.MayAll(access.Define, namespace)
	case strings.HasSuffix(path, "/"):
		ok = l.permit.MaySpan(access.Define, namespace, path, PrefixEnd(path))
	default:
		ok = l.permit.May(access.Define, namespace, path, nil)
	}
	if ok {
		return nil
	}
	return l.deny(access.Define, namespace, path)
}

// allowAcknowledge needs the right to read, too: what is acknowledged is told. What is about no resource is about all.
func (l *look) allowAcknowledge(namespace, path string) *leasehold.Error {
	for _, v := range [2]access.Verb{access.Acknowledge, access.Read} {
		if path == "" && !l.permit.MayAll(v, namespace) || path != "" && !l.permit.May(v, namespace, path, nil) {
			return l.deny(v, namespace, path)
		}
	}
	return nil
}

func (l *look) allowCluster() *leasehold.Error {
	if l.permit.MayCluster(access.Admin) {
		return nil
	}
	return deny("%s may not change the cluster: that needs the verb admin for all namespaces; ask an admin",
		l.permit.Asker.Principal)
}

// deny says which verb is missing where.
func (l *look) deny(v access.Verb, namespace, path string) *leasehold.Error {
	return deny("%s", l.permit.Denial(v, namespace, path))
}

// denyHolder is deny for those who may hold something, but not under that name.
func (l *look) denyHolder(v access.Verb, namespace, path, holder string) *leasehold.Error {
	names := l.permit.HoldersFor(v, namespace, path)
	if len(names) == 0 {
		return l.deny(v, namespace, path)
	}
	return deny("%s may not %s %s%s as %s: the holder must be under %s, as with --holder %s/NAME",
		l.permit.Asker.Principal, v, path, inNamespace(namespace), holder, strings.Join(names, " or "),
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
