package client

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold/leasehold"
)

// An Option is something that one call says about the hold it asks for.
type Option func(*options)

// options is all that can be said of a hold.
type options struct {
	items     []Item
	holder    string
	reason    string
	labels    map[string]string
	ttl       time.Duration
	wait      time.Duration // 0: do not wait; asLongAsContext
	grace     time.Duration
	holdLimit time.Duration
	priority  int
	party     string
	renewal   Renewal
	progress  func(Waiting)
	session   *Session
}

// asLongAsContext is the wait of an acquire that named none.
const asLongAsContext = time.Duration(-1)

// TTL says how long the lease lasts unless it is renewed. It is how long others wait
// for a holder that died, and how long a holder survives without its server. Below
// 5 s an ordinary pause can cost the lease. The default is Config.TTL.
func TTL(d time.Duration) Option { return func(o *options) { o.ttl = d } }

// Wait limits how long to stand in the queue; without it, ctx alone does.
func Wait(d time.Duration) Option { return func(o *options) { o.wait = max(0, d) } }

// Reason says why the resource is needed, to whoever finds it held.
func Reason(s string) Option { return func(o *options) { o.reason = s } }

// Label says more about the holder, such as a build number. It may be given again.
func Label(key, value string) Option {
	return func(o *options) {
		if o.labels == nil {
			o.labels = map[string]string{}
		}
		o.labels[key] = value
	}
}

// Holder is who holds, as others will see it, instead of Config.Holder.
func Holder(s string) Option { return func(o *options) { o.holder = s } }

// HoldLimit is the longest that the lease may be held, however often it is renewed.
func HoldLimit(d time.Duration) Option { return func(o *options) { o.holdLimit = d } }

// Grace lets the resource rest for a while if the lease ends without a release.
func Grace(d time.Duration) Option { return func(o *options) { o.grace = d } }

// Priority moves the wait before those of smaller priority: -1000 to 1000, 0 unless
// said.
func Priority(n int) Option { return func(o *options) { o.priority = n } }

// Party says who stands still while this waits, where the context cannot say it: whoever
// holds something in another process, and waits for this one. See Hold.Party.
func Party(name string) Option { return func(o *options) { o.party = name } }

// Shared acquires one slot of a resource, of however many there are: beside others who
// share it, and never beside one who holds it exclusively.
func Shared() Option {
	return func(o *options) {
		for i := range o.items {
			o.items[i].Shared = true
		}
	}
}

// Slots acquires so many slots of a resource that has of of them: a semaphore. If of is 0
// a definition, or whoever shares it already, says how many there are.
func Slots(n, of int) Option {
	return func(o *options) {
		for i := range o.items {
			o.items[i].Slots, o.items[i].Capacity = n, of
		}
	}
}

// In binds the lease to a session, and to its end. TTL and Renew are the session's
// then.
func In(s *Session) Option { return func(o *options) { o.session = s } }

// Renew chooses when the lease is renewed; the default is RenewAt(1.0/3).
func Renew(r Renewal) Option { return func(o *options) { o.renewal = r } }

func (c *Client) options(items []Item, wait time.Duration, given []Option) options {
	o := options{items: slices.Clone(items), holder: c.config.Holder, ttl: c.config.TTL, wait: wait, renewal: RenewAt(1.0 / 3)}
	for _, option := range given {
		option(&o)
	}
	return o
}

// partyOf names who waits, where waits could close a circle: the party that was given; else
// all that is acquired under the context of a hold belongs to the party of that hold; else
// id begins one.
func (o *options) partyOf(ctx context.Context, id string) string {
	if o.party != "" {
		return o.party
	}
	if h, ok := ctx.Value(holdKey{}).(*Hold); ok {
		return h.party
	}
	return id
}

// usableTTL is a TTL that a server would accept, for arithmetic before it refuses.
func usableTTL(d time.Duration) time.Duration { return max(d, leasehold.MinTTL) }
