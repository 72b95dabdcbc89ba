package command

import (
	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
	"github.com/leasehold/leasehold/internal/core/tagged"
)

// The enumerations of commands, and those of the dictionary that they have.
var (
	Uncleans  = tagged.Choice{First: uint8(leasehold.AllowNext), Last: uint8(leasehold.AwaitAcknowledgement)}
	AtStarts  = tagged.Choice{First: uint8(leasehold.WaitAtStart), Last: uint8(leasehold.EndAtStart)}
	LimitsBy  = tagged.Choice{First: uint8(leasehold.EachHolder), Last: uint8(leasehold.EachPrefix)}
	Whats     = tagged.Choice{First: uint8(RecordCreate), Last: uint8(LeaseBreak)}
	Relations = tagged.Choice{First: uint8(Equal), Last: uint8(Greater)}
	Doings    = tagged.Choice{First: uint8(Put), Last: uint8(Nested)}
	Sortings  = tagged.Choice{First: uint8(record.ByPath), Last: uint8(record.ByValue)}
	Picks     = tagged.Choice{First: uint8(TTLAsSaid), Last: uint8(TTLUnattended)}
	Alarms    = tagged.Choice{First: uint8(leasehold.HeldLong), Last: uint8(leasehold.LateRenewal)}
)

// The fields of commands. The tag of a field and its type are in the log of every cluster: a field that is not needed
// any more leaves its tag unused.

// Describe names the fields of a command as the log has them. It calls each description by its name, so that m need not
// be on the heap.
func Describe(c Command, m *tagged.Message) {
	switch c := c.(type) {
	case *OpenSession:
		c.describe(m)
	case *RenewSession:
		c.describe(m)
	case *CloseSession:
		c.describe(m)
	case *Acquire:
		c.describe(m)
	case *Renew:
		c.describe(m)
	case *Release:
		c.describe(m)
	case *Change:
		c.describe(m)
	case *Break:
		c.describe(m)
	case *Tick:
		c.describe(m)
	case *Lead:
		c.describe(m)
	case *PutRecord:
		c.describe(m)
	case *DeleteRecord:
		c.describe(m)
	case *Txn:
		c.describe(m)
	case *Ask:
		c.describe(m)
	case *Move:
		c.describe(m)
	case *Define:
		c.describe(m)
	case *Undefine:
		c.describe(m)
	case *Acknowledge:
		c.describe(m)
	case *SetCaps:
		c.describe(m)
	case *EndQuarantine:
		c.describe(m)
	case *AcknowledgeAlarm:
		c.describe(m)
	case *RaiseTokens:
		c.describe(m)
	case *ChangeAccess:
		c.describe(m)
	case *SetUnits:
		c.describe(m)
	case *Drain:
		c.describe(m)
	case *ReportUse:
		c.describe(m)
	case *PutTask:
		c.describe(m)
	case *FinishTask:
		c.describe(m)
	case *Reserve:
		c.describe(m)
	case *CancelReservation:
		c.describe(m)
	}
}

// aside marks the tag of a field that does not change what a command does: who asks for it, why, how long, and ids that
// a door may have made. Subject leaves it out.
const aside = tagged.Aside

func (c *Tick) describe(m *tagged.Message) { m.Flag(1, "short", &c.Short) }

func (r *Request) in(m *tagged.Message, tag uint8) {
	tagged.Inner(m, aside|tag, "request", r, tagged.Of(m, (*Request).describe))
}

func (r *Request) describe(m *tagged.Message) {
	m.Text(1, "request key", &r.Key)
	m.Text(2, "request session", &r.Session)
	m.Unsigned(3, "request sequence", &r.Sequence)
}

func (c *OpenSession) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "id", &c.ID)
	m.Duration(3, "ttl", &c.TTL)
	m.Labels(aside|4, "labels", &c.Labels)
	c.Request.in(m, 5)
}

// describe has nothing that a renewal can do without: it is sent all the time.
func (c *RenewSession) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "id", &c.ID)
}

func (c *CloseSession) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "id", &c.ID)
	m.Flag(3, "abandon", &c.Abandon)
	c.Request.in(m, 4)
}

func (c *Acquire) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "resource", &c.Resource)
	m.Text(aside|3, "id", &c.ID)
	m.Number(4, "slots", &c.Slots)
	m.Number(5, "capacity", &c.Capacity)
	tagged.Maybe(m, 6, "select", &c.Select, tagged.Of(m, DescribeSelect))
	tagged.Several(m, 7, "also", &c.Also, leasehold.MaxTogether, tagged.Of(m, (*Item).describe))
	m.Text(8, "holder", &c.Holder)
	m.Labels(aside|9, "labels", &c.Labels)
	m.Text(aside|10, "reason", &c.Reason)
	m.Duration(11, "ttl", &c.TTL)
	m.OneOf(12, "pick", (*uint8)(&c.Pick), Picks)
	m.Text(13, "session", &c.Session)
	m.Duration(aside|14, "wait", &c.Wait)
	m.Duration(15, "grace", &c.Grace)
	m.Duration(16, "hold limit", &c.HoldLimit)
	m.Number(17, "priority", &c.Priority)
	c.Request.in(m, 18)
	m.Text(aside|19, "party", &c.Party)
	m.Text(20, "foreign", &c.Foreign)
	m.Flag(21, "may expire", &c.MayExpire)
	m.Flag(22, "task", &c.Task)
	m.Text(23, "reservation", &c.Reservation)
}

func (item *Item) describe(m *tagged.Message) {
	m.Name(1, "resource", &item.Resource)
	m.Text(aside|2, "id", &item.ID)
	m.Number(3, "slots", &item.Slots)
	m.Number(4, "capacity", &item.Capacity)
	tagged.Maybe(m, 5, "select", &item.Select, tagged.Of(m, DescribeSelect))
}

// DescribeSelect describes which units of a pool are asked for.
func DescribeSelect(v *leasehold.Select, m *tagged.Message) {
	m.Text(1, "where", &v.Where)
	m.Flag(2, "spread", &v.Spread)
	m.Names(3, "units", &v.Units)
}

// describe has nothing that a renewal can do without. Its note is left as it was if it has none, and taken away if that
// is empty.
func (c *Renew) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "id", &c.ID)
	m.MayText(3, "note", &c.Note)
}

func (c *Release) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "id", &c.ID)
	c.Request.in(m, 3)
	m.Text(4, "session", &c.Session)
	m.Flag(5, "withdraw", &c.Withdraw)
}

func (c *Change) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "id", &c.ID)
	m.Text(3, "holder", &c.Holder)
	m.Text(4, "new id", &c.NewID)
	m.Text(5, "foreign", &c.Foreign)
	tagged.Maybe(m, 6, "about", &c.About, tagged.Of(m, (*About).describe))
	c.Request.in(m, 7)
}

func (c *About) describe(m *tagged.Message) {
	m.Text(1, "about holder", &c.Holder)
	m.Text(aside|2, "about reason", &c.Reason)
	m.Labels(aside|3, "about labels", &c.Labels)
}

func (c *Break) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "id", &c.ID)
	m.Text(3, "resource", &c.Resource)
	m.Token(4, "token", &c.Token)
	m.Flag(5, "all", &c.All)
	m.Flag(6, "waiting", &c.Waiting)
	m.Duration(7, "period", &c.Period)
	m.Flag(8, "remains", &c.Remains)
	m.Text(aside|9, "by", &c.By)
	m.Text(aside|10, "reason", &c.Reason)
	c.Request.in(m, 11)
}

func (c *Lead) describe(m *tagged.Message) {
	m.Unsigned(1, "node", &c.Node)
	m.Text(2, "boot", &c.Boot)
	m.Duration(3, "offset", &c.Offset)
}

func (c *PutRecord) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "path", &c.Path)
	m.Content(3, "value", &c.Value, &c.Large)
	m.Revision(5, "from", &c.From)
	m.Number(6, "keep", &c.Keep)
	m.Text(7, "session", &c.Session)
	m.Revision(8, "if revision", &c.IfRevision)
	m.Flag(9, "if absent", &c.IfAbsent)
	tagged.Inner(m, 10, "fence", &c.Fence, tagged.Of(m, (*Fence).describe))
	m.Text(aside|11, "by", &c.By)
	m.Text(aside|12, "reason", &c.Reason)
	c.Request.in(m, 13)
	tagged.Maybe(m, 14, "link", &c.Link, tagged.Of(m, (*Link).describe))
	m.Flag(15, "keep link", &c.KeepLink)
}

func (f *Fence) describe(m *tagged.Message) {
	m.Text(1, "fence lease", &f.Lease)
	m.Token(2, "fence token", &f.Token)
}

func (l *Link) describe(m *tagged.Message) {
	m.Text(1, "link resource", &l.Resource)
	m.Text(2, "link id", &l.ID)
	m.Text(3, "link holder", &l.Holder)
	m.Labels(aside|4, "link labels", &l.Labels)
	m.Text(aside|5, "link reason", &l.Reason)
	m.Text(6, "link foreign", &l.Foreign)
	m.Duration(7, "link ttl", &l.TTL)
	m.Duration(8, "link grace", &l.Grace)
	m.Flag(9, "link wait", &l.Wait)
	m.Flag(10, "link may expire", &l.MayExpire)
	m.Flag(11, "link stay", &l.Stay)
	m.Text(12, "link mirror", &l.Mirror)
	m.Flag(13, "link take", &l.Take)
}

func (c *DeleteRecord) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "path", &c.Path)
	m.Flag(3, "range", &c.Range)
	m.Text(4, "to", &c.To)
	m.Revision(5, "if revision", &c.IfRevision)
	tagged.Inner(m, 6, "fence", &c.Fence, tagged.Of(m, (*Fence).describe))
	c.Request.in(m, 7)
}

func (c *Txn) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	c.branches(m)
	c.Request.in(m, 5)
}

// branches is what a transaction has in common with one that is nested in it.
func (c *Txn) branches(m *tagged.Message) {
	tagged.Several(m, 2, "if", &c.If, leasehold.MaxOps, tagged.Of(m, (*Compare).describe))
	tagged.Several(m, 3, "then", &c.Then, leasehold.MaxOps, tagged.Of(m, (*Op).describe))
	tagged.Several(m, 4, "else", &c.Else, leasehold.MaxOps, tagged.Of(m, (*Op).describe))
}

// nested is a transaction in an operation of another one, which has the namespace and the request for both.
func (c *Txn) nested(m *tagged.Message) {
	if c.Namespace != "" || c.Request != (Request{}) {
		m.Fail("nested", "it has a namespace or a request of its own")
	}
	c.branches(m)
}

func (c *Compare) describe(m *tagged.Message) {
	m.Part()
	m.OneOf(1, "what", (*uint8)(&c.What), Whats)
	m.OneOf(2, "is", (*uint8)(&c.Is), Relations)
	m.Text(3, "path", &c.Path)
	m.Unsigned(4, "number", &c.Number)
	m.Text(5, "text", &c.Text)
	m.Flag(6, "compare range", &c.Range)
	m.Text(7, "compare to", &c.To)
}

// describe is of one operation. Which of the fields it has depends on what it does.
func (o *Op) describe(m *tagged.Message) {
	m.Part()
	m.OneOf(1, "do", (*uint8)(&o.Do), Doings)
	m.Text(2, "path", &o.Path)
	m.Flag(3, "range", &o.Range)
	m.Text(4, "to", &o.To)
	m.Content(5, "value", &o.Value, &o.Large)
	m.Text(7, "session", &o.Session)
	m.Revision(8, "from", &o.From)
	m.Number(9, "keep", &o.Keep)
	m.Number(10, "most", &o.Most)
	m.Flag(11, "keys only", &o.KeysOnly)
	m.Flag(12, "count", &o.Count)
	tagged.Maybe(m, 13, "acquire", &o.Acquire, tagged.Of(m, (*Acquire).describe))
	m.Text(14, "id", &o.ID)
	tagged.Own(m, 15, "link", &o.Link, tagged.Of(m, (*Link).describe))
	m.Flag(16, "keep link", &o.KeepLink)
	m.Flag(17, "keep value", &o.KeepValue)
	m.Flag(18, "keep session", &o.KeepSession)
	m.Flag(19, "before", &o.Before)
	m.OneOf(20, "by order", (*uint8)(&o.Select.By), Sortings)
	m.Flag(21, "descend", &o.Select.Descend)
	m.Revision(22, "min create", &o.Select.MinCreate)
	m.Revision(23, "max create", &o.Select.MaxCreate)
	m.Revision(24, "min mod", &o.Select.MinMod)
	m.Revision(25, "max mod", &o.Select.MaxMod)
	tagged.Own(m, 26, "nested", &o.Txn, tagged.Of(m, (*Txn).nested))
}

func (c *Ask) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "resource", &c.Resource)
	m.Text(aside|3, "by", &c.By)
	m.Text(4, "message", &c.Message)
	c.Request.in(m, 5)
}

func (c *Move) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "id", &c.ID)
	m.Number(3, "priority", &c.Priority)
	m.Text(aside|4, "by", &c.By)
	m.Text(aside|5, "reason", &c.Reason)
	c.Request.in(m, 6)
}

func (c *Define) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	tagged.Inner(m, 2, "definition", &c.Definition, tagged.Of(m, DescribeDefinition))
	m.Text(aside|3, "by", &c.By)
	m.Text(aside|4, "reason", &c.Reason)
	c.Request.in(m, 5)
	m.Unsigned(6, "fields", (*uint64)(&c.Fields))
	m.Flag(7, "keep slots", &c.KeepSlots)
	m.Revision(8, "if revision", &c.IfRevision)
}

// DescribeDefinition describes all that holds for a resource, or for all under a prefix.
func DescribeDefinition(v *leasehold.Definition, m *tagged.Message) {
	m.Text(1, "path", &v.Path)
	m.Number(2, "capacity", &v.Capacity)
	m.Names(3, "units", &v.Units)
	m.Duration(4, "default ttl", &v.DefaultTTL)
	m.Duration(5, "largest ttl", &v.LargestTTL)
	m.Duration(6, "hold limit", &v.HoldLimit)
	m.Duration(7, "grace", &v.Grace)
	m.Duration(8, "expected", &v.Expected)
	m.OneOf(9, "unclean", (*uint8)(&v.Unclean), Uncleans)
	m.Revision(10, "revision", &v.Revision)
	tagged.Several(m, 11, "limits", &v.Limits, leasehold.MaxUnitLimits, tagged.Of(m, unitLimit))
	m.Duration(12, "idle", &v.Idle)
	m.Duration(13, "idle release", &v.IdleRelease)
	m.OneOf(14, "on reservation", (*uint8)(&v.OnReservation), AtStarts)
	m.Flag(15, "backfill", &v.Backfill)
}

// unitLimit describes a limit on the units of a pool.
func unitLimit(v *leasehold.UnitLimit, m *tagged.Message) {
	m.OneOf(1, "by", (*uint8)(&v.By), LimitsBy)
	m.Text(2, "name", &v.Name)
	m.Number(3, "most", &v.Most)
}

func (c *Undefine) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "path", &c.Path)
	m.Text(aside|3, "by", &c.By)
	m.Text(aside|4, "reason", &c.Reason)
	c.Request.in(m, 5)
}

func (c *Acknowledge) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Text(2, "resource", &c.Resource)
	m.Token(3, "token", &c.Token)
	m.Text(aside|4, "by", &c.By)
	m.Text(aside|5, "reason", &c.Reason)
	c.Request.in(m, 6)
}

func (c *AcknowledgeAlarm) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.OneOf(2, "kind", (*uint8)(&c.Kind), Alarms)
	m.Text(3, "resource", &c.Resource)
	m.Text(4, "id", &c.ID)
	m.Text(5, "session", &c.Session)
	m.Unsigned(6, "order", &c.Order)
	m.Text(aside|7, "by", &c.By)
	m.Text(aside|8, "reason", &c.Reason)
	c.Request.in(m, 9)
}

func (c *SetCaps) describe(m *tagged.Message) {
	tagged.Inner(m, 1, "caps", &c.Caps, tagged.Of(m, DescribeCaps))
	m.Flag(2, "if unset", &c.IfUnset)
	m.Text(3, "by", &c.By)
	m.Text(4, "reason", &c.Reason)
}

// DescribeCaps describes how much there may be at most; those that are 0 stay as they are.
func DescribeCaps(v *leasehold.Caps, m *tagged.Message) {
	m.Number(1, "leases", &v.Leases)
	m.Number(2, "sessions", &v.Sessions)
	m.Number(3, "waiters", &v.Waiters)
	m.Number(4, "namespaces", &v.Namespaces)
}

func (c *EndQuarantine) describe(m *tagged.Message) {
	m.Unsigned(1, "base", &c.Base)
	m.Text(2, "by", &c.By)
	m.Text(3, "reason", &c.Reason)
}

func (c *RaiseTokens) describe(m *tagged.Message) {
	m.Text(1, "namespace", &c.Namespace)
	m.Token(2, "above", &c.Above)
	m.Text(3, "by", &c.By)
	m.Text(4, "reason", &c.Reason)
}
