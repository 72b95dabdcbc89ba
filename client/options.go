package client

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
)

// An Option changes one acquire, or one session.
type Option func(*options)

// options are all options together.
type options struct {
	items     []Item
	holder    string
	reason    string
	labels    map[string]string
	ttl       time.Duration
	learned   bool          // the ttl is what was learned
	wait      time.Duration // 0: do not wait; or asLongAsContext
	grace     time.Duration
	holdLimit time.Duration
	priority  int
	party     string
	renewal   Renewal
	progress  func(Waiting)
	session   *Session
	selects   *leasehold.Select // of the first resource
	reserved  string            // the reservation that is claimed
	noSlots   bool              // less than one slot was asked for
	value     []byte
}

// asLongAsContext is the wait of an acquire without the option Wait.
const asLongAsContext = time.Duration(-1)

// TTL sets how long the lease lasts without a renewal. It is how long others wait for a holder
// that died, and how long a holder survives without a server. Below 5 s an ordinary pause can
// cost the lease. The default is Config.TTL.
func TTL(d time.Duration) Option { return func(o *options) { o.ttl = d } }

// Wait limits the time in the queue; without it, only ctx does.
func Wait(d time.Duration) Option { return func(o *options) { o.wait = max(0, d) } }

// Reason tells others why the resource is held.
func Reason(s string) Option { return func(o *options) { o.reason = s } }

// Label adds a label to the holder, such as a build number. It may be given several times.
func Label(key, value string) Option {
	return func(o *options) {
		if o.labels == nil {
			o.labels = map[string]string{}
		}
		o.labels[key] = value
	}
}

// Holder sets the name of the holder, as others see it, instead of Config.Holder.
func Holder(s string) Option { return func(o *options) { o.holder = s } }

// HoldLimit sets the total time that the lease may be held, renewals included.
func HoldLimit(d time.Duration) Option { return func(o *options) { o.holdLimit = d } }

// Grace sets a pause before the next grant if the lease ends without a release.
func Grace(d time.Duration) Option { return func(o *options) { o.grace = d } }

// Priority orders the queue: larger goes first. It is between -1000 and 1000; the default is 0.
func Priority(n int) Option { return func(o *options) { o.priority = n } }

// Party sets the party that waits, for a process that does work for a holder in another process.
// The server refuses a wait that would close a cycle of parties. See Hold.Party.
func Party(name string) Option { return func(o *options) { o.party = name } }

// Shared acquires one slot of a resource: beside others that share it, and never beside an
// exclusive holder.
func Shared() Option {
	return func(o *options) {
		for i := range o.items {
			o.items[i].Shared = true
		}
	}
}

// Slots acquires n slots of a resource that has of slots in all: a semaphore. If of is 0, a
// definition or the other holders say how many there are. n is 1 or more: to acquire all slots,
// exclusively, leave the option out.
func Slots(n, of int) Option {
	return func(o *options) {
		o.noSlots = n < 1
		for i := range o.items {
			o.items[i].Slots, o.items[i].Capacity = n, of
		}
	}
}

// Where acquires only units of a pool that meet conditions, such as "model=H100, memory>=40". They are of the first
// resource that is asked for. Slots says how many; all are on one host unless Spread is given, too. The request gets
// all of them or waits: nobody ever holds a part of what it asked for.
func Where(conditions string) Option { return func(o *options) { o.sel().Where = conditions } }

// Spread lets the units of a pool be on several hosts.
func Spread() Option { return func(o *options) { o.sel().Spread = true } }

// Units acquires exactly these units of a pool. They say how many slots that is.
func Units(names ...string) Option {
	return func(o *options) {
		o.sel().Units = names
		Slots(len(names), 0)(o)
	}
}

// Reservation claims a reservation, or the next one of a recurring reservation, by its id. It says how many slots the
// lease has and which, so leave Slots, Where, Spread and Units out, and the lease ends with it. A claim before the
// start waits behind everybody, and takes the first place then. Reservations are made by api/v1/reservations.
func Reservation(id string) Option { return func(o *options) { o.reserved = id } }

// sel returns what is selected, to be changed.
func (o *options) sel() *leasehold.Select {
	if o.selects == nil {
		o.selects = new(leasehold.Select)
	}
	return o.selects
}

// In binds the lease to a session. It ends with the session, whose TTL and Renew apply.
func In(s *Session) Option { return func(o *options) { o.session = s } }

// Renew sets when the lease is renewed; the default, and what a Renewal that is not set means, is RenewAt(1.0/3).
func Renew(r Renewal) Option {
	if r == (Renewal{}) {
		r = usualRenewal
	}
	return func(o *options) { o.renewal = r }
}

// withValue puts a value into the lease, for others to read.
func withValue(value []byte) Option { return func(o *options) { o.value = value } }

// options returns the options of a call, with the defaults of the client.
func (c *Client) options(items []Item, wait time.Duration, given []Option) options {
	o := options{
		items: items, holder: c.config.Holder, ttl: c.config.TTL, wait: wait, renewal: usualRenewal,
	}
	if len(given) == 0 {
		return o
	}
	return o.changed(given)
}

// changed returns what options make of the defaults.
func (o options) changed(given []Option) options {
	o.items = slices.Clone(o.items)
	for _, option := range given {
		option(&o)
	}
	return o
}

// partyOf returns the party that waits: the one that was given; else that of the hold whose
// context this is; else a new one, named by id.
func (o *options) partyOf(ctx context.Context, id string) string {
	if o.party != "" {
		return o.party
	}
	if h, ok := ctx.Value(holdKey{}).(*Hold); ok {
		return h.party
	}
	return id
}

// usableTTL returns a TTL that a server would accept: intervals are computed from it before a
// server has refused the one that was given.
func usableTTL(d time.Duration) time.Duration { return max(d, leasehold.MinTTL) }
