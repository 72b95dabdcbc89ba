package access

import (
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	policy "github.com/leasehold/leasehold/internal/core/access"
)

// A view is what one asker may see of a state. It embeds nothing, on purpose: each method of core.View has its rule.
//
// nowhere is a namespace that cannot exist. What is asked of it is answered as for what nobody knows, in the core's own
// words: so what is hidden and what is unknown cannot be told apart.
type view struct {
	in     core.View
	permit *policy.Permit
	door   string // through which it is asked

	shown  bool             // something that was asked for may be seen
	denied *leasehold.Error // the first that may not
}

var _ core.View = (*view)(nil)

const nowhere = ""

// may reports whether the asker may do something to what is at a path, and remembers the answer.
func (v *view) may(verb policy.Verb, namespace, path string, owner *policy.Owner) bool {
	if v.permit.May(verb, namespace, path, owner) {
		v.shown = true
		return true
	}
	v.deny(verb, namespace, path)
	return false
}

func (v *view) deny(verb policy.Verb, namespace, path string) {
	if v.denied == nil {
		v.denied = deny(v.permit, verb, namespace, path)
	}
}

// mayCluster is may for what belongs to no namespace.
func (v *view) mayCluster(verb policy.Verb) bool {
	if v.permit.MayCluster(verb) {
		v.shown = true
		return true
	}
	if v.denied == nil {
		v.denied = denyCluster(v.permit, verb)
	}
	return false
}

// known returns a namespace if the asker may do anything in it, and else one that does not exist.
func (v *view) known(namespace string) string {
	if v.permit.Knows(namespace) {
		return namespace
	}
	return nowhere
}

// self owns what is the asker's own.
func (v *view) self() *policy.Owner { return &policy.Owner{Principal: v.permit.Asker.Principal} }

// Level: anybody. It is in the header of every answer.
func (v *view) Level() core.Level { return v.in.Level() }

// Namespaces: those in which the asker may do anything.
func (v *view) Namespaces() (names []string) {
	for _, name := range v.in.Namespaces() {
		if v.permit.Knows(name) {
			names = append(names, name)
		}
	}
	return names
}

// Forgot: as Namespaces.
func (v *view) Forgot() (names []string) {
	for _, name := range v.in.Forgot() {
		if v.permit.Knows(name) {
			names = append(names, name)
		}
	}
	return names
}

// Work: anybody. It is about this read.
func (v *view) Work() int { return v.in.Work() }

// Counts: monitor, of the cluster.
func (v *view) Counts() core.Counts {
	if !v.mayCluster(policy.Monitor) {
		return core.Counts{}
	}
	return v.in.Counts()
}

// UseOf: admin, of the cluster.
func (v *view) UseOf(q *policy.Quota) core.Use {
	if !v.mayCluster(policy.Admin) {
		return core.Use{}
	}
	return v.in.UseOf(q)
}

// Caps: monitor, of the cluster.
func (v *view) Caps() (allowed, used leasehold.Caps) {
	if !v.mayCluster(policy.Monitor) {
		return leasehold.Caps{}, leasehold.Caps{}
	}
	return v.in.Caps()
}

// Quarantine: everybody who was let in. It is why nothing is granted to them, and their refusals say so too.
func (v *view) Quarantine() (core.Quarantine, bool) {
	v.shown = true
	return v.in.Quarantine()
}

// Policy: everybody who was let in, since anybody may ask what it may do itself, and why. What is shown of it to whom
// is for the routes to say that show it: they ask it for admin.
func (v *view) Policy() *policy.Policy {
	v.shown = true
	return v.in.Policy()
}

// OwnerOfClaim: those who see the claim.
func (v *view) OwnerOfClaim(namespace, id string) *policy.Owner {
	if !v.seesClaim(namespace, id) {
		return nil
	}
	return v.in.OwnerOfClaim(namespace, id)
}

// OwnerOfSession: those who see the session.
func (v *view) OwnerOfSession(namespace, id string) *policy.Owner {
	owner := v.in.OwnerOfSession(namespace, id)
	if !v.permit.MayToOwn(policy.Read, namespace, owner) {
		return nil
	}
	return owner
}

// OwnerOfRecord: those who see the record.
func (v *view) OwnerOfRecord(namespace, path string) *policy.Owner {
	if !v.readsRecord(namespace, path) {
		return nil
	}
	return v.in.OwnerOfRecord(namespace, path)
}

// PathOfClaim: those who see the claim.
func (v *view) PathOfClaim(namespace, id string) string {
	if !v.seesClaim(namespace, id) {
		return ""
	}
	return v.in.PathOfClaim(namespace, id)
}

// History: the revision is shared by all who know the namespace; events as a watch shows them.
func (v *view) History(namespace string) core.History {
	return v.in.History(v.known(namespace)).Behind(func(e *leasehold.Event) bool {
		return showsEvent(v.permit, v.door, e)
	})
}

// NewestToken: monitor, of the cluster.
func (v *view) NewestToken() leasehold.Token {
	if !v.mayCluster(policy.Monitor) {
		return 0
	}
	return v.in.NewestToken()
}

// NewestTokenIn: everybody who knows the namespace. Tokens are shared there.
func (v *view) NewestTokenIn(namespace string) leasehold.Token {
	if !v.permit.Knows(namespace) {
		v.deny(policy.Read, namespace, "")
		return v.in.NewestTokenIn(nowhere)
	}
	v.shown = true
	return v.in.NewestTokenIn(namespace)
}

// Status: read. Who may read its own only sees its own leases and waiters.
func (v *view) Status(namespace, path string, waiters int) leasehold.Status {
	switch {
	case v.permit.May(policy.Read, namespace, path, nil):
		v.shown = true
		status := v.in.Status(namespace, path, waiters)
		status.Overlapping = slices.DeleteFunc(status.Overlapping, func(l leasehold.Lease) bool {
			return !v.permit.May(policy.Read, namespace, l.Resource, v.in.OwnerOfClaim(namespace, l.ID))
		})
		return status
	case v.permit.May(policy.Read, namespace, path, v.self()):
		v.shown = true
		status, _ := v.ownPart(v.in.Status(namespace, path, waiters))
		return status
	}
	v.deny(policy.Read, namespace, path)
	return v.unknown(namespace, path)
}

// unknown is the status of a resource that nothing is known of.
func (v *view) unknown(namespace, path string) leasehold.Status {
	status := v.in.Status(nowhere, path, 0)
	status.Namespace = namespace
	return status
}

// ownPart returns what of a status is the asker's own, and reports whether that is anything.
func (v *view) ownPart(s leasehold.Status) (leasehold.Status, bool) {
	own := v.unknown(s.Namespace, s.Resource)
	owns := func(id string) bool { return v.permit.Owns(v.in.OwnerOfClaim(s.Namespace, id)) }
	for _, lease := range s.Holders {
		if owns(lease.ID) {
			own.Holders = append(own.Holders, lease)
			own.Used += lease.Slots
			if lease.Slots == 0 {
				own.Used = s.Capacity
			}
		}
	}
	for _, w := range s.Queue {
		if owns(w.ID) {
			own.Queue = append(own.Queue, w)
		}
	}
	if own.Holding, own.Waiting = len(own.Holders), len(own.Queue); own.Holding+own.Waiting == 0 {
		return own, false
	}
	own.State, own.Capacity = s.State, s.Capacity
	for _, unit := range s.Units {
		if unit.Lease != "" && owns(unit.Lease) {
			own.Units = append(own.Units, unit)
		}
	}
	return own, true
}

// Held: the paths are the asker's own words; what is in the way is shown to those who may read it.
func (v *view) Held(namespace string, paths ...string) *leasehold.Error {
	held := v.in.Held(v.known(namespace), paths...)
	path, owner := paths[0], (*policy.Owner)(nil)
	if held.Lease != nil {
		path, owner = held.Lease.Resource, v.in.OwnerOfClaim(namespace, held.Lease.ID)
	}
	if v.permit.May(policy.Read, namespace, path, owner) && v.readsAll(namespace, paths) {
		if !v.permit.May(policy.Read, namespace, path, nil) {
			held.Message = path + " is held by " + held.Lease.Holder // and not who reserved it
		}
		return held
	}
	if !slices.Contains(paths, path) {
		// Not even its name is shown: it overlaps what was asked for.
		return &leasehold.Error{Code: leasehold.Held, Message: paths[0] + " overlaps a name that is not free"}
	}
	masked := &leasehold.Error{Code: leasehold.Held, Message: path + " is held by somebody"}
	if l := held.Lease; l != nil {
		masked.Lease = &leasehold.Lease{Namespace: l.Namespace, Resource: l.Resource, State: l.State,
			Remaining: l.Remaining, Expires: l.Expires, AvailableAt: l.AvailableAt}
	}
	return masked
}

func (v *view) readsAll(namespace string, paths []string) bool {
	for _, path := range paths {
		if !v.permit.May(policy.Read, namespace, path, nil) {
			return false
		}
	}
	return true
}

// Definition: read.
func (v *view) Definition(namespace, path string) (leasehold.Definition, bool) {
	if !v.may(policy.Read, namespace, path, v.self()) {
		return leasehold.Definition{}, false
	}
	return v.in.Definition(namespace, path)
}

// Pool: read on all of the resource. It shows who has what, and there is no part of it that is somebody's own.
func (v *view) Pool(namespace, path string, q core.PoolQuery) (leasehold.PoolStatus, bool) {
	if !v.may(policy.Read, namespace, path, nil) {
		return v.in.Pool(nowhere, path, q)
	}
	return v.in.Pool(namespace, path, q)
}

// Task: record-read. The state of a task is a part of its record.
func (v *view) Task(namespace, path string) (leasehold.Task, bool) {
	if !v.readsRecord(namespace, path) {
		v.denyRecord(namespace, path)
		return v.in.Task(nowhere, path)
	}
	v.shown = true
	return v.in.Task(namespace, path)
}

// Tasks: record-read, of each.
func (v *view) Tasks(namespace string, q core.TaskQuery) (list []leasehold.Task, next string) {
	if !v.permit.MaySomewhere(policy.RecordRead, namespace) {
		v.denyRecord(namespace, q.Prefix)
		return v.in.Tasks(nowhere, q)
	}
	v.shown = true
	q.After = v.open(q.After)
	q.May = func(path string) bool { return v.readsRecord(namespace, path) }
	list, next = v.in.Tasks(namespace, q)
	return list, v.seal(next, next != "" && q.May(next))
}

// Advice: read. It is made of how long others held it, so one's own is not enough.
func (v *view) Advice(namespace, path string) leasehold.Advice {
	if v.may(policy.Read, namespace, path, nil) {
		return v.in.Advice(namespace, path)
	}
	advice := v.in.Advice(nowhere, path)
	advice.Namespace = namespace
	return advice
}

// Kinds: read, as Advice.
func (v *view) Kinds(namespace, path, name string) []leasehold.LearnedKind {
	if !v.may(policy.Read, namespace, path, nil) {
		namespace = nowhere
	}
	return v.in.Kinds(namespace, path, name)
}

// seesClaim reports whether the asker may see a lease or a waiter: its own, or one on a resource that it may read.
func (v *view) seesClaim(namespace, id string) bool {
	owner := v.in.OwnerOfClaim(namespace, id)
	if v.permit.Owns(owner) {
		return true
	}
	path := v.in.PathOfClaim(namespace, id)
	return path != "" && v.permit.May(policy.Read, namespace, path, owner)
}

// Claim: those who see it. To others it is unknown.
func (v *view) Claim(namespace, id string) core.Answer {
	v.shown = true
	if !v.seesClaim(namespace, id) {
		return v.in.Claim(nowhere, id)
	}
	return v.masked(namespace, v.in.Claim(namespace, id))
}

// Claims: as Claim, of each.
func (v *view) Claims(c *core.Acquire) core.Answer {
	v.shown = true
	for _, item := range c.Items() {
		if !v.seesClaim(c.Namespace, item.ID) {
			return v.in.Claim(nowhere, item.ID)
		}
	}
	return v.masked(c.Namespace, v.in.Claims(c))
}

// masked leaves out of leases what is not about themselves: who held the resource before.
func (v *view) masked(namespace string, answer core.Answer) core.Answer {
	mask := func(l *leasehold.Lease) {
		if l.After != nil && !v.permit.May(policy.Read, namespace, l.Resource, nil) {
			l.After = nil
		}
	}
	if answer.Lease != nil {
		mask(answer.Lease)
	}
	for i := range answer.Also {
		mask(&answer.Also[i])
	}
	return answer
}

// Ended: those who see the claim.
func (v *view) Ended(namespace, id string) leasehold.How {
	v.shown = true
	if !v.seesClaim(namespace, id) {
		return 0
	}
	return v.in.Ended(namespace, id)
}

// EndedAs: those who see the claim, under its old id and its last.
func (v *view) EndedAs(namespace, id string) (last string, how leasehold.How) {
	v.shown = true
	if !v.seesClaim(namespace, id) {
		return v.in.EndedAs(nowhere, id)
	}
	last, how = v.in.EndedAs(namespace, id)
	if !v.seesClaim(namespace, last) {
		return id, leasehold.IDChanged
	}
	return last, how
}

// Session: read, of one's own or of everything in the namespace. To others it is unknown.
func (v *view) Session(namespace, id string) (leasehold.Session, *leasehold.Error) {
	v.shown = true
	if !v.permit.MayToOwn(policy.Read, namespace, v.in.OwnerOfSession(namespace, id)) {
		return v.in.Session(nowhere, id)
	}
	return v.in.Session(namespace, id)
}
