package command

import (
	"time"

	"github.com/leasehold/leasehold"
)

// Acquire asks for a resource, or for several: all of them or none. A lease lasts by
// its own TTL, or by Session, or (neither) until it is released or broken.
type Acquire struct {
	Namespace string
	Resource  string
	ID        string // names the lease, once and for ever
	Slots     int    // as in Item
	Capacity  int
	Select    *leasehold.Select // as in Item
	Also      []Item            // further resources, granted at the same moment
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
	// have the same.
	Foreign string

	// MayExpire says that to expire is an ordinary end of this lease, and no reason for an alarm: so
	// it is in protocols whose clients let leases run out.
	MayExpire bool

	// Task says that Resource is a folder, and that the next task in it is asked for.
	Task bool

	// Reservation is the id of the reservation that this claims, or of the series whose current or next one it does. It
	// says how many slots, and which.
	Reservation string
}

// An Item is one resource that is asked for.
type Item struct {
	Resource string
	ID       string // names the lease, once and for ever
	Slots    int    // how many of its slots; 0: all, which makes the lease exclusive
	Capacity int    // how many it has, if the caller knows; 0: whatever is known, or many

	// Select says which units of a pool; nil: any, all on one host.
	Select *leasehold.Select
}

// TTLPick says where the TTL of a lease comes from.
type TTLPick uint8

// The picks. Wire formats number them: add at the end only.
const (
	TTLAsSaid    TTLPick = iota // it is what was asked for
	TTLByDefault                // the definition's; what was asked for if that has none
	TTLAuto                     // what was learned of the kind, or of the resource, suggests; else as by default

	// TTLUnattended is for a lease that nobody renews: long enough for what leases of its kind take, by what was
	// learned of them.
	TTLUnattended
)

// Items returns all resources that are asked for.
func (c *Acquire) Items() []Item {
	return append([]Item{{c.Resource, c.ID, c.Slots, c.Capacity, c.Select}}, c.Also...)
}

func (c *Acquire) Validate() error {
	err := firstError(
		name("namespace", c.Namespace), c.validateItems(), c.validateTask(), name("holder", c.Holder),
		text("reason", c.Reason), text("session", c.Session), text("party", c.Party), foreign(c.Foreign),
		labels(c.Labels), within("wait", c.Wait, leasehold.MaxWait), within("grace", c.Grace, leasehold.MaxGrace),
		within("hold limit", c.HoldLimit, leasehold.MaxHold), priority(c.Priority), c.Request.validate(),
		c.validateClaim(),
	)
	switch {
	case err != nil:
		return err
	case c.Pick > TTLUnattended:
		return invalid("unknown source of the ttl: it is as said, by default, auto or unattended")
	case c.Pick != TTLAsSaid && c.TTL == 0:
		return invalid("a ttl that is picked needs one to fall back on")
	case c.TTL != 0 && c.Session != "":
		return invalid("a lease has a ttl of its own or a session, not both: leave one out")
	case c.TTL != 0:
		return ttl(c.TTL)
	}
	return nil
}

// validateItems refuses a request that names a resource twice, which would wait for itself, or
// an id twice.
func (c *Acquire) validateItems() error {
	items := c.Items()
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
	return firstError(name("resource", item.Resource), name("lease id", item.ID), item.validateSelect())
}

// KnownCapacity returns what a request says of the slots of a resource that nobody knows of: if
// it shares without a number, as many as there can be.
func (item *Item) KnownCapacity() int {
	if item.Capacity == 0 {
		return leasehold.MaxCapacity
	}
	return item.Capacity
}
