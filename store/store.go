package store

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold/leasehold"
)

// A Store keeps the leases of one namespace. Its methods may be called from any goroutine. Each
// call is one attempt, and ends with its context at the latest; a driver's own retries within it
// do no harm, because the client counts from before the call.
type Store interface {
	// Features says what the store promises and what it can do.
	Features() Features

	// Acquire asks for a lease under an id that the caller made.
	//
	//   - If the resource is free and no other waiter is before this one, it is granted.
	//   - If the id holds the resource already, the answer is that lease, with what remains of it
	//     now.
	//   - If somebody else holds it, the error is Held and says who. With Request.Wait it comes
	//     only after that time: until then the id waits, in a queue if the store has one. The
	//     place in the queue is the id's, not the call's: it outlives the call by the TTL, and the
	//     same id asked again keeps it. Asked again without Wait, the answer is Held with the
	//     Position.
	//     Once the wait is over, the id is out of the queue, and may be Lost.
	//   - If the id was released, broken or has expired, the error is Lost.
	Acquire(ctx context.Context, r Request) (Grant, error)

	// Renew renews leases for their TTL from now, also those of another process. It answers for each, in
	// their order. The error is about the whole call: nothing is known about any of them then.
	Renew(ctx context.Context, leases ...Ref) ([]Renewal, error)

	// Release ends leases and waits of their holder. An id that ended before is no error. Nor is
	// one that the store does not know, with Withdraw: from now on it cannot be acquired for ten
	// minutes at least, so that an acquire which was cancelled and arrives late is refused.
	Release(ctx context.Context, r ReleaseRequest) error

	// Break ends a lease, or a wait, as an operator. The holder learns of it when it renews. If
	// the id neither holds nor waits, the error is NotFound or Lost.
	Break(ctx context.Context, r BreakRequest) (leasehold.Lease, error)

	// Read returns the state of a resource. One that is free, or that nobody ever held, is
	// Available and no error.
	Read(ctx context.Context, resource string) (Resource, error)

	// List returns the resources that are held or waited for, in the order of their names.
	List(ctx context.Context, q Query) (Page, error)

	// Close ends the connections. Leases go on until they end by themselves.
	Close() error
}

// A Ref names one lease, or one waiter. The resource only says where to look: the id decides.
type Ref struct {
	Resource string
	ID       string
}

// A Request asks for a lease.
type Request struct {
	Resource string
	ID       string // made by the caller, and used for nothing else
	Holder   string
	Labels   leasehold.Labels
	Reason   string
	Value    []byte // for others to read, while it is held; needs ValueInLease

	// TTL is how long the lease lasts without a renewal, and how long a waiter lasts that does not
	// ask again. It is 0 for a lease that is bound to a Session.
	TTL time.Duration

	Wait time.Duration // how long to wait for the resource; 0: not at all

	// Floor is the largest token that the caller has seen. The token of the grant is larger, even
	// if the store has lost its memory.
	Floor leasehold.Token

	// What follows needs a Power of its own.
	Session   string
	Party     string            // who waits, in a cycle of waiters; a store without Parties ignores it
	Shared    bool              // one slot, of however many there are
	Slots     int               // how many slots; 0: all of them, exclusively
	Capacity  int               // with Slots: how many there are, if no definition says
	Also      []Item            // further resources, granted at the same moment
	Select    *leasehold.Select // which units of a pool; nil: any, on one host
	Grace     time.Duration
	HoldLimit time.Duration
	Priority  int

	Reservation string // that the lease claims, which says how many slots, and which
}

// An Item is one more resource to be granted at the same moment.
type Item struct {
	Ref
	Shared   bool
	Slots    int
	Capacity int
}

// A Grant is a lease as the answer to a request.
//
// Remaining is what was left when the store decided; 0: it does not end by time. The client adds
// it to the moment before it sent the request.
type Grant struct {
	leasehold.Lease

	// Waited says that the call waited, and that it is not known when Remaining began to count.
	// The client then renews the lease before anybody relies on it.
	Waited bool

	Counted bool    // Interventions is known; see Sessions
	Also    []Grant // of Request.Also
}

// A Renewal is the answer to the renewal of one lease: what is left of it, or how it ended, or why
// nothing is known.
type Renewal struct {
	Grant
	Ended *leasehold.Ending // how it ended; How is 0 if the store does not know the id
	Err   error             // nothing is known about this one; others may have been renewed
}

// A ReleaseRequest releases leases and withdraws waiters.
type ReleaseRequest struct {
	Leases  []Ref
	Session string // that all of them are bound to, if any

	// Withdraw says that the caller does not know whether the ids were ever granted. Without it, an
	// unknown id may be a NotFound: it may have been changed. A store may mark unknown ids always.
	Withdraw bool
}

// A BreakRequest ends a lease as an operator.
type BreakRequest struct {
	Ref
	By     string
	Reason string

	// Period is how long the holder may keep the lease, at most; renewals do not make it longer.
	// 0: it ends at once. More than that needs BreakPeriod.
	Period time.Duration
}

// A Resource is the state of one resource.
type Resource struct {
	leasehold.Status
	Value []byte // of the newest lease
}

// A Query says which resources to list.
type Query struct {
	Prefix string
	After  string // Next of the page before
	Limit  int    // 0: 100
}

// A Page is one part of a list.
type Page struct {
	Items []Resource
	Next  string // empty: there is no other page
}

// DefaultLimit is the number of resources on a page whose query names none.
const DefaultLimit = 100

// Transient reports whether another attempt may succeed: nothing happened, or no answer says
// whether it did. What is not a *leasehold.Error is a failure on the way to the store.
func Transient(err error) bool {
	if err == nil || errors.Is(err, leasehold.ErrLost) {
		return false
	}
	var e *leasehold.Error
	return !errors.As(err, &e) || e.Code == leasehold.Unavailable || e.Code == leasehold.Undecided
}
