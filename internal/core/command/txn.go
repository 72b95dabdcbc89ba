package command

import (
	"cmp"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
)

// Txn compares, and then does one list of operations or the other: all of it at one
// revision, or nothing.
type Txn struct {
	Namespace string
	If        []Compare // all must hold; none: they do
	Then      []Op
	Else      []Op
	Request   Request
}

// A Compare looks at one thing as it is before the transaction.
type Compare struct {
	What   What
	Is     Relation
	Path   string // of the record, or the resource
	Number uint64 // for revisions, versions and tokens
	Text   string // for values, sessions and lease ids

	// With Range it must hold for all records from Path on, below To; if there is none, as for one record that is
	// not there.
	Range bool
	To    string // empty: to the end
}

// What a Compare looks at.
type What uint8

// A record that is not there has zero for its revisions and its version, is bound to no session, and its value
// is like nothing: no comparison of it holds. A resource that nobody
// holds has zero for its token and floor, and no lease. The log numbers them: add at
// the end only.
const (
	RecordCreate  What = iota + 1 // the revision that made it
	RecordMod                     // the revision that changed it last
	RecordVersion                 // 0: it is not there
	RecordValue
	RecordSession // empty: it is bound to none
	LeaseID       // of the lease that is alive on the resource
	LeaseToken    // its token
	LeaseFloor    // the smallest token that is alive on the resource
	RecordLease   // the id of the claim that it stands for; empty: it is none
	LeaseBreak    // 1 while a break gives its holder time to finish; else 0
)

// OfLease reports whether it looks at a lease, and not at a record.
func (w What) OfLease() bool { return w >= LeaseID && w <= LeaseFloor || w == LeaseBreak }

// A Relation is how a Compare compares.
type Relation uint8

// The relations. The log numbers them: add at the end only.
const (
	Equal Relation = iota + 1
	NotEqual
	Less
	Greater
)

// An Op is one operation of a transaction. Operations happen in order: a get sees the
// puts before it.
type Op struct {
	Do       Do
	Path     string
	Range    bool               // to delete or get: all from Path on, below To
	To       string             // with Range; empty: to the end
	Value    string             // to put
	Session  string             // to put
	Large    *leasehold.Large   // to put: as in PutRecord
	From     leasehold.Revision // to put: as in PutRecord
	Keep     int                // to put: as in PutRecord
	Most     int                // to get: as in RecordQuery
	KeysOnly bool               // to get
	Count    bool               // to get

	Acquire *Acquire // to acquire: at once or not at all, in the namespace of the transaction
	ID      string   // to release: of the lease

	Link        *Link            // to put: as in PutRecord
	KeepLink    bool             // to put: as in PutRecord
	KeepValue   bool             // to put: the value stays as it is; the record must be there
	KeepSession bool             // to put: the session stays as it is; the record must be there
	Before      bool             // to put or delete: the answer has the records as they were
	Select      record.Selection // to get: which of the range, and in which order
	Txn         *Txn             // nested: without a namespace and a request of its own
}

// Do is what an Op does.
type Do uint8

// What an Op can do. The log numbers them: add at the end only.
const (
	Put Do = iota + 1
	Delete
	Get
	AcquireLease
	ReleaseLease
	Nested // a transaction within the transaction
)

func (c *Txn) space() string    { return c.Namespace }
func (c *Txn) request() Request { return c.Request }

// subject names a transaction by its first operation, for people; Subject adds a hash of the
// rest.
func (c *Txn) subject() string {
	for _, list := range [][]Op{c.Then, c.Else} {
		if len(list) > 0 {
			return "txn " + list[0].Path
		}
	}
	return "txn"
}

// shown returns how many records the gets of a list may show.
func shown(list []Op) (n int) {
	for i := range list {
		switch o := &list[i]; {
		case o.Do == Get && o.Range:
			n += cmp.Or(o.Most, leasehold.MaxPage)
		case o.Do == Nested:
			n += max(shown(o.Txn.Then), shown(o.Txn.Else))
		}
	}
	return n
}

// MostShown returns how many bytes of names and values the gets of either list show at most.
func (c *Txn) MostShown() int {
	return min(max(mostShown(c.Then), mostShown(c.Else)), leasehold.MaxReadBytes)
}

func mostShown(list []Op) (n int) {
	for i := range list {
		if o := &list[i]; o.Do == Nested {
			n += max(mostShown(o.Txn.Then), mostShown(o.Txn.Else))
		} else {
			n += o.MostShown()
		}
	}
	return n
}

// MostShown returns how many bytes of names and values a get shows at most; 0 if it is none.
func (o *Op) MostShown() int {
	const one = leasehold.MaxName + leasehold.MaxValue
	switch {
	case o.Do != Get:
		return 0
	case !o.Range:
		return one
	case o.Most == 0:
		return leasehold.MaxPageBytes
	}
	return min(o.Most*one, leasehold.MaxPageBytes)
}

// IsNew reports whether an operation does more than plain ones, which is then in the subject of its request.
func (o *Op) IsNew() bool {
	return o.Do == Nested || o.Link != nil || o.KeepLink || o.KeepValue || o.KeepSession || o.Before ||
		o.Select != (record.Selection{})
}

// Validate refuses a transaction whose operations contradict each other or are too much. It
// must find everything that does not depend on the state: what it lets through is in the log.
func (c *Txn) Validate() error {
	err := firstError(name("namespace", c.Namespace), c.Request.validate(),
		atMost("comparisons", compareCount(c)), atMost("operations", opCount(c.Then)),
		atMost("operations", opCount(c.Else)))
	if err != nil {
		return err
	}
	size := 0
	if err := c.validateParts(c, &size); err != nil {
		return err
	}
	for _, list := range [][]Op{c.Then, c.Else} {
		if err := validatePath(list); err != nil {
			return err
		}
	}
	if size > leasehold.MaxTxn {
		return invalid("a transaction with %d bytes of names and values is too large: at most %d are allowed", size,
			leasehold.MaxTxn)
	}
	return c.validateShown()
}

// validateShown bounds what the gets of either list may show, so that no transaction keeps the
// state for long.
func (c *Txn) validateShown() error {
	for _, list := range [][]Op{c.Then, c.Else} {
		if n := shown(list); n > leasehold.MaxReadAtOnce {
			return invalid("the gets of a transaction may show %d records: at most %d are allowed; give them limits",
				n, leasehold.MaxReadAtOnce)
		}
	}
	return nil
}

// validateParts checks the comparisons and operations of a transaction, or of one that is nested in whole, one by
// one, and adds up their bytes.
func (c *Txn) validateParts(whole *Txn, size *int) error {
	for i := range c.If {
		*size += len(c.If[i].Path) + len(c.If[i].To) + len(c.If[i].Text)
		if err := c.If[i].validate(); err != nil {
			return err
		}
	}
	for _, list := range [][]Op{c.Then, c.Else} {
		for i := range list {
			*size += list[i].size()
			if err := list[i].validate(whole); err != nil {
				return err
			}
			if list[i].Do != Nested {
				continue
			}
			if err := list[i].Txn.validateParts(whole, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareCount and opCount count the nested ones too.
func compareCount(c *Txn) int {
	n := len(c.If)
	for _, list := range [][]Op{c.Then, c.Else} {
		for i := range list {
			if t := list[i].Txn; t != nil && n <= leasehold.MaxOps {
				n += compareCount(t)
			}
		}
	}
	return n
}

func opCount(list []Op) int {
	n := len(list)
	for i := range list {
		if t := list[i].Txn; t != nil && n <= leasehold.MaxOps {
			n += opCount(t.Then) + opCount(t.Else)
		}
	}
	return n
}

func atMost(what string, n int) error {
	if n > leasehold.MaxOps {
		return invalid("a transaction has %d %s: at most %d are allowed", n, what, leasehold.MaxOps)
	}
	return nil
}

func (c *Compare) validate() error {
	switch {
	case c.What < RecordCreate || c.What > LeaseBreak:
		return invalid("unknown thing to compare: it is a property of a record or of a lease")
	case c.Range && c.What.OfLease():
		return invalid("only records are compared over a range")
	case c.Is < Equal || c.Is > Greater:
		return invalid("unknown relation: equal, not equal, less and greater are allowed")
	case c.textual() && c.Number != 0, !c.textual() && c.Text != "":
		return invalid("a comparison has a number or a text, by what it looks at")
	}
	return firstError(span(c.Path, c.To, c.Range), value(c.Text))
}

func (c *Compare) textual() bool {
	return c.What == RecordValue || c.What == RecordSession || c.What == LeaseID || c.What == RecordLease
}

// size is how many bytes of names and values an operation has.
func (o *Op) size() int {
	n := len(o.Path) + len(o.To) + record.ValueBytes(o.Value, o.Large) + len(o.Session) + len(o.ID) +
		o.Link.size()
	if a := o.Acquire; a != nil {
		n += len(a.Holder) + len(a.Reason) + len(a.Session) + len(a.Party) + len(a.Foreign)
		for _, item := range a.Items() {
			n += len(item.Resource) + len(item.ID)
		}
		for _, l := range a.Labels {
			n += len(l.Key) + len(l.Value)
		}
	}
	return n
}

func (o *Op) validate(c *Txn) error {
	switch o.Do {
	case Put, Delete, Get:
		if o.Acquire != nil || o.ID != "" {
			return invalid("only to acquire or to release is about a lease")
		}
		if o.Txn != nil {
			return invalid("only what is nested has operations of its own")
		}
		return o.validateRecord(c.Request)
	case AcquireLease:
		return o.validateAcquire(c)
	case ReleaseLease:
		if o.about() != (Op{Do: ReleaseLease, ID: o.ID}) {
			return invalid("to release takes the id of a lease and nothing else")
		}
		return name("lease id", o.ID)
	case Nested:
		if t := o.Txn; t == nil || *o != (Op{Do: Nested, Txn: t}) || t.Namespace != "" || t.Request != (Request{}) {
			return invalid("a nested transaction takes comparisons and operations and nothing else")
		}
		return nil
	}
	return invalid("unknown operation: put, delete, get, acquire and release are allowed")
}

// about is an operation without the acquire, to be compared with.
func (o Op) about() Op {
	o.Acquire = nil
	return o
}

func (o *Op) validateAcquire(c *Txn) error {
	a := o.Acquire
	switch {
	case a == nil || o.about() != (Op{Do: AcquireLease}):
		return invalid("to acquire takes what is acquired and nothing else")
	case a.Namespace != c.Namespace:
		return invalid("a transaction acquires in its own namespace")
	case a.Wait != 0:
		return invalid("a transaction does not wait: leave the wait out")
	case a.Request != (Request{}):
		return invalid("the request key is that of the transaction")
	case a.Pick == TTLUnattended:
		return invalid("a transaction takes no lease that nobody renews: say its ttl")
	case a.Task:
		return invalid("a transaction claims no task: claim it first, and name the lease")
	case a.Reservation != "":
		return invalid("a transaction claims no reservation: acquire it by itself")
	case a.Selects():
		return invalid("a transaction takes any units of a pool: leave where, spread and units out")
	}
	return a.Validate()
}

func (o *Op) validateRecord(r Request) error {
	switch {
	case o.Do == Put && o.Range:
		return invalid("one path is put, not a range")
	case o.Do != Put && (o.Value != "" || o.Session != "" || o.Large != nil || o.From != 0 || o.Keep != 0):
		return invalid("only to put takes a value, a session or how many versions are kept")
	case o.Do != Get && (o.Most != 0 || o.KeysOnly || o.Count):
		return invalid("only to get takes a limit, keys alone or a count")
	case o.Do == Get && r != (Request{}):
		// Answers to named requests are remembered, and would keep what was read.
		return invalid("a transaction with a request key gets nothing: read at the revision that it answers")
	case o.Before && (o.Do == Get || r != (Request{})):
		return invalid("only to put and to delete answers what was there before, and not with a request key: that " +
			"would be remembered")
	case o.Do != Get && o.Select != (record.Selection{}):
		return invalid("only to get selects and orders")
	case o.Link != nil && !o.Link.Claims():
		return invalid("a put of a transaction with a link claims something: give the link a lease id")
	case o.Do != Put && (o.Link != nil || o.KeepLink || o.KeepValue || o.KeepSession):
		return invalid("only to put links a record, or keeps what it has")
	case o.KeepValue && (o.Value != "" || o.Large != nil || o.From != 0), o.KeepSession && o.Session != "",
		o.KeepSession && o.Link != nil:
		return invalid("a put that keeps the value or the session gives no other")
	case o.Most < 0 || o.Most > leasehold.MaxPage:
		return invalid("limit %d is out of range: 0 to %d are allowed", o.Most, leasehold.MaxPage)
	}
	return firstError(span(o.Path, o.To, o.Range), content(o.Value, o.Large, o.From), keep(o.Keep),
		text("session", o.Session), o.Select.Validate(), o.Link.validate(o.Path, o.Session, o.KeepLink))
}
