package kernel

import (
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/record"
)

// Subjects are what the kernel is put together with. Each has an interface of its own here, which is all that the
// kernel knows of it, and sees the kernel by what Namespace and Turn have. A subject that is not in use costs one
// comparison: by what a name is, or by what is in its tables, and never by whether a table was made on this server.
//
// Only the kernel passes time, grants, and ends leases: a subject asks it to.
type Subjects struct {
	NewAreas func() Areas // of one namespace
	NewTasks func() Tasks // of one namespace
	NewPools func() Pools // of one namespace

	NewAlarms       func() Alarms
	NewReservations func() Reservations
	NewLearning     func() Learning
	NewRecords      func() RecordStore
}

// A Turn is what a subject may do by the command at hand. The namespace may be new: nobody else sees it before
// something is written. A turn of what belongs to no namespace has none.
type Turn struct {
	Namespace
	t *turn
}

func (t *turn) in(sp *space) Turn { return Turn{Namespace{t.State, sp}, t} }

// A Look is what a subject may read of a namespace for somebody, at a cost.
type Look struct {
	Namespace
	l *look
}

func (l *look) readIn(sp *space) Look { return Look{Namespace{l.State, sp}, l} }

// Take counts work, and reports whether the budget covers it.
func (k Look) Take(n int) bool { return k.l.work.take(n) }

// In is the same turn in a namespace that there is.
func (k Turn) In(namespace string) Turn { return k.t.in(k.t.space(namespace)) }

// Take counts work.
func (k Turn) Take(n int) { k.t.work.take(n) }

// Spent reports whether there is no work left.
func (k Turn) Spent() bool { return k.t.work.spent() }

// Calendar is the date at the stamp, for people to read.
func (k Turn) Calendar() time.Time { return calendar(k.t.wall) }

// Arrive returns the next number in the order of arrival.
func (k Turn) Arrive() uint64 {
	k.sp.arrivals++
	return k.sp.arrivals
}

// Settle ends what is over on a resource, and returns what is known of it then; nil if nothing is.
func (k Turn) Settle(path string) *Resource { return k.t.settle(k.sp, path) }

// WakeQueue grants what is free of a resource to those who wait for it.
func (k Turn) WakeQueue(path string) { k.t.wakeQueue(k.sp, path) }

// PassRests lets go of the rests of a resource that are over, and sees to those that are not.
func (k Turn) PassRests(path string) {
	if r, ok := k.sp.resources.Get(path); ok && r.Resting() {
		again, more := *r, r.more()
		more.Rests = more.resting(k.t.now)
		again.setMore(more)
		k.t.setResource(k.sp, &again)
	}
}

// Record returns the record of a path; nil if there is none, or whose it is has ended.
func (k Turn) Record(path string) *leasehold.Record { return k.sp.records.Live(k, path) }

// MayWrite refuses a record for which there is no room.
func (k Turn) MayWrite(w record.Write) *leasehold.Error {
	return k.sp.records.MayWrite(k, w)
}

// Write writes a record in place of an old one, which may be nil. It refuses if the namespace is new, and there are as
// many as there can be.
func (k Turn) Write(old *leasehold.Record, w record.Write, by, reason string) (*leasehold.Record, *leasehold.Error) {
	if failure := k.Keep(); failure != nil {
		return nil, failure
	}
	k.ReviseAfter(old)
	return k.sp.records.Write(k, w, by, reason), nil
}

// Touch returns a claim after all that is over and touches it has ended; nil if there is none.
func (k Turn) Touch(id string) *Claim { return k.t.touch(k.sp, id) }

// CheckFence returns the token of the lease by which something is done, and refuses what is not done by it and by the
// token that is named beside it. LostFence says why there is no such lease.
func (k Turn) CheckFence(f Fence) (leasehold.Token, *leasehold.Error) { return k.t.leaseFence(k.sp, f) }

func (k Turn) LostFence(f Fence) *leasehold.Error { return k.t.lostFence(k.sp, f) }

// Release ends a lease whose holder gives it back, and says in the event what came of it.
func (k Turn) Release(c *Claim, session, outcome string) {
	own := session == c.Session && k.t.uses(k.sp.name, session)
	k.t.finish(k.sp, c, end{how: leasehold.Released, at: k.t.now, own: own, outcome: outcome})
}

// Remember keeps with a lease that has ended what was said of its task, in short.
func (k Turn) Remember(id string, said uint64) {
	ended := *k.Ended(id)
	ended.Said = said
	k.sp.claims.End(&ended)
}

// Tasks returns how many there are in all namespaces, and CountTasks changes that.
func (k Turn) Tasks() int { return k.t.tasks }

func (k Turn) CountTasks(n int) { k.t.tasks += n }

// Wall is the date at the stamp, in Unix nanoseconds.
func (k Turn) Wall() int64 { return k.t.wall }

// EmitLast makes an event that comes after all others of the command, and EmittedLast says how many of such there are
// so far.
func (k Turn) EmitLast(e *leasehold.Event) { k.t.emitLast(k.sp, e) }

func (k Turn) EmittedLast() int { return len(k.t.lasts) }

// Alarms returns how many there are in all namespaces, and CountAlarms changes that.
func (k Turn) Alarms() int { return k.t.totals.alarms }

func (k Turn) CountAlarms(n int) { k.t.totals.alarms += n }

// CountReservations changes how many there are in all namespaces.
func (k Turn) CountReservations(n int) { k.t.totals.reservations += n }

// Owns reports whether what somebody owns is the asker's, and OwnerOf returns who owns what the asker takes.
func (k Turn) Owns(owner *access.Owner) bool { return k.t.permit == nil || k.t.permit.Owns(owner) }

func (k Turn) OwnerOf(path, holder string, slots int) *access.Owner {
	return k.t.permit.OwnerOf(takeVerb(slots), k.sp.name, path, holder)
}

// MayShow reports whether the asker may know who has a resource.
func (k Turn) MayShow(path string) bool { return k.t.mayShow(k.sp, path) }

// Event returns an event about a lease or waiter, and Emit makes one happen.
func (k Turn) Event(c *Claim, kind leasehold.Kind) *leasehold.Event { return k.t.event(k.sp, c, kind) }

func (k Turn) Emit(e *leasehold.Event) { k.t.emit(k.sp, e) }

// Leave lets a waiter leave the queue, and Break ends a lease, or says when it will; a waiter it sends away.
func (k Turn) Leave(c *Claim, how leasehold.How) { k.t.leave(k.sp, c, how) }

func (k Turn) Break(c *Claim, how *Break) {
	if c.Waiting() {
		k.t.breakWaiter(k.sp, c, how)
		return
	}
	k.t.breakOne(k.sp, c, how)
}

// ComeFirst brings a waiter to the head of the queue.
func (k Turn) ComeFirst(c *Claim) {
	first, wait := *c, *c.Wait
	wait.Priority = ReservedPriority
	first.Wait = &wait
	first.Revision = k.t.revise(k.sp)
	k.t.dequeue(k.sp, c)
	k.t.put(k.sp, &first)
	k.t.emit(k.sp, k.t.event(k.sp, &first, leasehold.Moved))
}

// KeptChanged tells that a resource may be kept for a reservation now, or may not be any longer.
func (k Turn) KeptChanged(path string) { k.sp.tasks.Place(k.Namespace, path) }
