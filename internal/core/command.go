package core

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold"
)

// A Command is one thing asked of the state. Commands are values: the log keeps
// them for ever, and every node applies the same ones.
type Command interface {
	// Validate says what is wrong with the command itself, whatever the state.
	// Doors ask it before a command costs a place in the log; Apply asks again.
	Validate() error
	space() string
	request() Request
	subject() string
}

// A Request makes a command happen once although it may be sent twice: the
// second time it gets the first answer. The zero Request asks for nothing.
//
// Without a session Key names the request. Within one, Sequence does, counted
// upwards by the client.
type Request struct {
	Key      string
	Session  string
	Sequence uint64
}

// OpenSession begins a session under an id that the caller proposes.
type OpenSession struct {
	Namespace string
	ID        string
	TTL       time.Duration
	Labels    leasehold.Labels
	Request   Request
}

// RenewSession makes a session, and all that is bound to it, last for its TTL
// from now.
type RenewSession struct {
	Namespace string
	ID        string
}

// CloseSession ends a session and releases all that is bound to it.
type CloseSession struct {
	Namespace string
	ID        string
	Request   Request
}

// Acquire asks for a resource, or for several: all of them or none. A lease lasts by
// its own TTL, or by Session, or (neither) until it is released or broken.
type Acquire struct {
	Namespace string
	Resource  string
	ID        string // names the lease, once and for ever
	Slots     int    // as in Item
	Capacity  int
	Also      []Item // further resources, granted at the same moment
	Holder    string
	Labels    leasehold.Labels
	Reason    string
	TTL       time.Duration
	Pick      TTLPick
	Session   string
	Wait      time.Duration // 0: do not wait
	Grace     time.Duration // rest of the resource after an unclean end
	HoldLimit time.Duration // 0: none
	Priority  int           // in the queue: larger ones go first
	Request   Request

	// Party is who is stuck if this waits, for finding cycles of parties that wait for
	// each other. Empty: the session, or the holder if the lease has none.
	Party string

	// Foreign is the id that a foreign protocol gave the lease, as it is: several leases may
	// have the same. It is kept from level 4 on.
	Foreign string
}

// An Item is one resource that is asked for.
type Item struct {
	Resource string
	ID       string // names the lease, once and for ever
	Slots    int    // how many of its slots; 0: all, which makes the lease exclusive
	Capacity int    // how many it has, if the caller knows; 0: whatever is known, or many
}

// TTLPick says where the TTL of a lease comes from.
type TTLPick uint8

// The picks. Wire formats number them: add at the end only.
const (
	TTLAsSaid    TTLPick = iota // it is what was asked for
	TTLByDefault                // the definition's; what was asked for if that has none
	TTLAuto                     // what was learned of the resource suggests; else as by default
)

// items returns all resources that are asked for.
func (c *Acquire) items() []Item {
	return append([]Item{{c.Resource, c.ID, c.Slots, c.Capacity}}, c.Also...)
}

// Renew makes a lease last for its TTL from now. For a waiter without a session
// it is the sign that somebody still wants the lease; for a lease that is bound
// to a session it renews the session.
type Renew struct {
	Namespace string
	ID        string
}

// Release gives a lease back, or leaves the queue.
type Release struct {
	Namespace string
	ID        string
	Request   Request

	// Session is whose lease it is, as the one who asks says. A release that does not say so
	// counts as somebody else's, of which the session has to hear.
	Session string
	// Withdraw makes sure that the acquire of an id which nobody knows yet is refused when it
	// comes: for as long as the session lasts, or, without one, as ended ids are remembered.
	Withdraw bool
}

// Change hands a lease to another holder, or to another id, without a gap.
type Change struct {
	Namespace string
	ID        string
	Holder    string // empty: as it is
	NewID     string // empty: as it is
	Foreign   string // that goes with NewID; a new id drops the former one. From level 4 on
	Request   Request
}

// Break ends a lease in the name of an operator. It names either the lease, or
// the resource together with the token that the operator saw, so that a retry
// can never hit the next holder.
type Break struct {
	Namespace string
	ID        string
	Resource  string
	Token     leasehold.Token
	Period    time.Duration // how long the holder may still have it
	Remains   bool          // instead of Period: whatever it has left; at once if it has no end
	By        string
	Reason    string
	Request   Request
}

// Tick lets time alone change what is due at its stamp.
type Tick struct{}

// Lead is the first entry of a leader: whose clock stamps from now on. Offset is
// cluster time less that node's monotonic clock, so that the same node can go on
// counting after a restart within one boot of its machine.
type Lead struct {
	Node   uint64
	Boot   string
	Offset time.Duration
}

func (c *OpenSession) space() string  { return c.Namespace }
func (c *RenewSession) space() string { return c.Namespace }
func (c *CloseSession) space() string { return c.Namespace }
func (c *Acquire) space() string      { return c.Namespace }
func (c *Renew) space() string        { return c.Namespace }
func (c *Release) space() string      { return c.Namespace }
func (c *Change) space() string       { return c.Namespace }
func (c *Break) space() string        { return c.Namespace }
func (*Tick) space() string           { return "" }
func (*Lead) space() string           { return "" }

// Renewals have no request: they may happen twice by nature.
func (c *OpenSession) request() Request  { return c.Request }
func (*RenewSession) request() Request   { return Request{} }
func (c *CloseSession) request() Request { return c.Request }
func (c *Acquire) request() Request      { return c.Request }
func (*Renew) request() Request          { return Request{} }
func (c *Release) request() Request      { return c.Request }
func (c *Change) request() Request       { return c.Request }
func (c *Break) request() Request        { return c.Request }
func (*Tick) request() Request           { return Request{} }
func (*Lead) request() Request           { return Request{} }

// subject says what a request is about, so that a key which is used for two
// different things is noticed.
func (c *OpenSession) subject() string  { return "open session " + c.ID }
func (*RenewSession) subject() string   { return "" }
func (c *CloseSession) subject() string { return "close session " + c.ID }
func (c *Acquire) subject() string      { return "acquire " + c.Resource }
func (*Renew) subject() string          { return "" }
func (c *Release) subject() string      { return "release " + c.ID }
func (c *Change) subject() string       { return "change " + c.ID }
func (c *Break) subject() string        { return "break " + c.ID + c.Resource }
func (*Tick) subject() string           { return "" }
func (*Lead) subject() string           { return "" }

// An Answer is what one command came to: Err, or one of the others.
type Answer struct {
	Lease      *leasehold.Lease
	Session    *leasehold.Session
	Also       []leasehold.Lease     // of an Acquire of several resources: the leases after the first
	Waiter     *leasehold.Waiter     // an Acquire that was put in the queue
	Definition *leasehold.Definition // a Define
	Record     *leasehold.Record     // a PutRecord; without the value, which the caller has
	Txn        *TxnAnswer            // a Txn, or a DeleteRecord with its one result
	Err        *leasehold.Error
}

func refuse(code leasehold.Code, format string, args ...any) Answer {
	return Answer{Err: &leasehold.Error{Code: code, Message: fmt.Sprintf(format, args...)}}
}

func (c *OpenSession) Validate() error {
	return firstError(name("namespace", c.Namespace), name("session id", c.ID), ttl(c.TTL), labels(c.Labels), c.Request.validate())
}

func (c *RenewSession) Validate() error {
	return firstError(name("namespace", c.Namespace), name("session id", c.ID))
}

func (c *CloseSession) Validate() error {
	return firstError(name("namespace", c.Namespace), name("session id", c.ID), c.Request.validate())
}

func (c *Acquire) Validate() error {
	err := firstError(
		name("namespace", c.Namespace), c.validateItems(), name("holder", c.Holder),
		text("reason", c.Reason), text("session", c.Session), text("party", c.Party), foreign(c.Foreign), labels(c.Labels),
		within("wait", c.Wait, leasehold.MaxWait), within("grace", c.Grace, leasehold.MaxGrace),
		within("hold limit", c.HoldLimit, leasehold.MaxHold), priority(c.Priority), c.Request.validate(),
	)
	switch {
	case err != nil:
		return err
	case c.Pick > TTLAuto:
		return invalid("the ttl comes from nowhere that there is")
	case c.Pick != TTLAsSaid && c.TTL == 0:
		return invalid("a ttl that is picked needs one to fall back on")
	case c.TTL != 0 && c.Session != "":
		return invalid("a lease has a ttl of its own or a session, not both: leave one out")
	case c.TTL != 0:
		return ttl(c.TTL)
	}
	return nil
}

func (c *Acquire) validateItems() error {
	items := c.items()
	if len(items) > leasehold.MaxTogether {
		return invalid("%d resources are asked for at once: at most %d are allowed", len(items), leasehold.MaxTogether)
	}
	for i, item := range items {
		if err := item.validate(); err != nil {
			return err
		}
		for _, other := range items[:i] {
			if other.Resource == item.Resource {
				return invalid("%s is asked for twice at once: ask for more of its slots instead", item.Resource)
			}
			if other.ID == item.ID {
				return invalid("lease id %q stands twice: each lease has one of its own", item.ID)
			}
		}
	}
	return nil
}

func (item Item) validate() error {
	switch {
	case item.Slots < 0 || item.Slots > leasehold.MaxCapacity:
		return invalid("%d slots are out of range: 0 to %d are allowed", item.Slots, leasehold.MaxCapacity)
	case item.Capacity < 0 || item.Capacity > leasehold.MaxCapacity:
		return invalid("capacity %d is out of range: 1 to %d are allowed", item.Capacity, leasehold.MaxCapacity)
	case item.Slots == 0 && item.Capacity != 0:
		return invalid("capacity is for those who share: an exclusive lease takes all slots, however many there are")
	case item.Capacity != 0 && item.Slots > item.Capacity:
		return invalid("%d slots are more than the capacity %d", item.Slots, item.Capacity)
	}
	return firstError(name("resource", item.Resource), name("lease id", item.ID))
}

func (c *Renew) Validate() error {
	return firstError(name("namespace", c.Namespace), name("lease id", c.ID))
}

func (c *Release) Validate() error {
	return firstError(name("namespace", c.Namespace), name("lease id", c.ID), text("session", c.Session), c.Request.validate())
}

func (c *Change) Validate() error {
	if c.Holder == "" && c.NewID == "" {
		return invalid("change needs a new holder, a new id, or both")
	}
	if c.Foreign != "" && c.NewID == "" {
		return invalid("a foreign id can only be changed together with the lease's own: give a new id")
	}
	return firstError(foreign(c.Foreign), name("namespace", c.Namespace), name("lease id", c.ID), text("holder", c.Holder), text("new id", c.NewID), c.Request.validate())
}

func (c *Break) Validate() error {
	switch {
	case c.ID == "" && (c.Resource == "" || c.Token == 0):
		return invalid("break names a lease id, or a resource together with the token that you saw")
	case c.ID != "" && c.Resource != "":
		return invalid("break names a lease id or a resource, not both")
	case c.Remains && c.Period != 0:
		return invalid("break takes a period or what remains, not both")
	}
	return firstError(name("namespace", c.Namespace), text("lease id", c.ID), text("resource", c.Resource),
		within("period", c.Period, leasehold.MaxTTL), text("by", c.By), text("reason", c.Reason), c.Request.validate())
}

func (*Tick) Validate() error { return nil }

func (c *Lead) Validate() error { return text("boot", c.Boot) }

func (r Request) validate() error {
	switch {
	case r.Session == "" && r.Sequence != 0:
		return invalid("a sequence number counts the requests of a session: name the session")
	case r.Session != "" && (r.Sequence == 0 || r.Key != ""):
		return invalid("a request within a session is named by its sequence number, from 1 on")
	}
	return firstError(text("request key", r.Key), text("request session", r.Session))
}

func invalid(format string, args ...any) error {
	return &leasehold.Error{Code: leasehold.Invalid, Message: fmt.Sprintf(format, args...)}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func name(what, s string) error {
	if s == "" {
		return invalid("%s is missing: give 1 to %d bytes", what, leasehold.MaxName)
	}
	return text(what, s)
}

func text(what, s string) error {
	if len(s) > leasehold.MaxName {
		return invalid("%s has %d bytes: at most %d are allowed", what, len(s), leasehold.MaxName)
	}
	return nil
}

func foreign(id string) error {
	if len(id) > leasehold.MaxForeign {
		return invalid("foreign id has %d bytes: at most %d are allowed", len(id), leasehold.MaxForeign)
	}
	return nil
}

func ttl(d time.Duration) error {
	if d < leasehold.MinTTL || d > leasehold.MaxTTL {
		return invalid("ttl %v is out of range: %v to %v (30 days) are allowed", d, leasehold.MinTTL, leasehold.MaxTTL)
	}
	return nil
}

func optionalTTL(d time.Duration) error {
	if d == 0 {
		return nil
	}
	return ttl(d)
}

func within(what string, d, most time.Duration) error {
	if d < 0 || d > most {
		return invalid("%s %v is out of range: 0 to %v are allowed", what, d, most)
	}
	return nil
}

func priority(p int) error {
	if p < -leasehold.MaxPriority || p > leasehold.MaxPriority {
		return invalid("priority %d is out of range: %d to %d are allowed", p, -leasehold.MaxPriority, leasehold.MaxPriority)
	}
	return nil
}

func labels(ls leasehold.Labels) error {
	size := 0
	for i, l := range ls {
		if l.Key == "" {
			return invalid("a label has no key: give each one of its own")
		}
		if i > 0 && ls[i-1].Key >= l.Key {
			return invalid("label %q stands twice, or labels are not sorted by key", l.Key)
		}
		size += len(l.Key) + len(l.Value)
	}
	if size > leasehold.MaxLabels {
		return invalid("labels have %d bytes: at most %d are allowed", size, leasehold.MaxLabels)
	}
	return nil
}
