// Package client holds leases: time-bound, exclusive ownership of named resources.
//
// # In one minute
//
//	c, err := client.Dial(ctx, client.Config{})            // server, namespace and holder from LEASEHOLD_*
//	defer c.Close()
//
//	err = c.Do(ctx, "prod/deploy", func(ctx context.Context, h *client.Hold) error {
//		return deploy(ctx, h.Pass())                   // ctx ends, with a cause, if the lease is lost
//	}, client.Wait(5*time.Minute), client.Reason("release 311"))
//
// Do waits for its turn, calls the function, and releases the resource after the function
// has returned: never before, even if it was told to stop. Where a function does not fit,
// Acquire waits and returns a [Hold], and TryAcquire does not wait:
//
//	h, err := c.TryAcquire(ctx, "reports/nightly")
//	if errors.Is(err, client.ErrHeld) {
//		return nil                                     // somebody else holds it; err says who
//	}
//	defer h.Release(context.WithoutCancel(ctx))
//
// # What a Hold knows
//
// A lease is yours until its deadline, which the client extends by renewing. If it cannot,
// because no server answers or the process was paused, the hold is lost at a deadline that
// it knows by itself, before the server could grant the resource to anybody else:
//
//   - [Hold.Context] ends, and context.Cause says why: ErrExpired, ErrBroken (an operator
//     ended it; the [LostError] says who and why), ErrReleased, ErrSessionClosed or
//     ErrChanged. Each of them is an ErrLost.
//   - [Hold.Valid], [Hold.Token] and [Hold.Err] read the clock at each call, so they are
//     right in the first line after a pause, when no timer has run yet.
//
// The deadline is counted from before the renewal was sent, less one per cent, on a clock
// that does not stop while the machine sleeps. As long as each machine's clock is right within
// half a per cent, two holders are never valid at the same time.
//
// # What a Hold cannot know
//
// Between the line that asks whether the hold is valid and the line that writes, a process
// can be paused for a minute. No lease of any system helps then. What you protect can help:
// each grant has a larger token than all before it, so a store that remembers the largest
// token it has seen can refuse a late holder. [Hold.Pass] is what package fence has to see, which
// has guards for memory, SQL, Redis, files, HTTP and gRPC.
//
// # When things go wrong
//
// Each request has an id and is repeated, at the next server if there are several, until it
// is answered: a lost answer is never a lost lease, nor a second one. Acquire tries for as
// long as its context lives. A release that reached no server is repeated in the background.
//
// A process that waits for a resource while it holds another can end up in a deadlock. What
// is acquired under the context of a hold belongs to the same party as the hold, and the
// server refuses a wait that closes a cycle of parties. So pass the context on:
//
//	h, err := c.Acquire(ctx, "accounts/7")
//	other, err := c.Acquire(h.Context(), "accounts/9")
//
// # Other shapes
//
// [Shared] and [Slots] acquire a part of a resource; [Client.Semaphore], [Client.Pool] (slots
// with names), [Client.Mutex] and [Client.RWMutex] do so in familiar shapes.
// [Client.AcquireAll] acquires several resources at the same moment. [Client.Elect] elects a
// leader and tells everyone who leads. [Client.OpenSession] binds leases and records that are to
// end together. [Client.Cache] reads records from memory, and is never stale. All of them are
// thin layers over Acquire and Hold, and what is said here of a Hold applies to them.
//
// # How it is renewed
//
// Holds of the same TTL share a session, which one request renews for all of them when a
// third of the TTL has passed. [Renew] chooses another way: continuously, while the work
// calls [Hold.Touch], by hand, or never, which makes a reservation.
//
// A short TTL lets others in quickly after a crash; a long one survives a longer outage of
// the servers. 30 s is the default; below 5 s an ordinary pause of a busy machine can cost the
// lease. Config.OnStall reports pauses that came close.
//
// # On other stores
//
// [Dial] connects to a Leasehold server, and [Open] takes any store of package store: the same
// client then keeps its leases in memory, Redis or PostgreSQL. With the import of a store, Dial takes
// its URL as well, so a program moves to a server by another LEASEHOLD_SERVER:
//
//	import _ "github.com/leasehold/leasehold/store/redis"
//
//	c, err := client.Dial(ctx, client.Config{Servers: []string{"redis://localhost"}})
//
// What a store does not have, such as sessions, records or slots, is refused by an error that names
// the stores which have it.
//
// # In tests
//
// Package leasetest runs a server inside a test, in virtual time.
package client
