package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// The bodies of commands, field by field in the order of their bytes. To change the order, or
// the type of a field, is to change the log of every cluster: what is added gets a kind of its
// own, in command.go.

func (c *codec) openSession(v *core.OpenSession) {
	c.text("namespace", &v.Namespace)
	c.text("id", &v.ID)
	c.duration("ttl", &v.TTL)
	c.labels("labels", &v.Labels)
	c.request(&v.Request)
}

func (c *codec) renew(kind uint64, v *core.Renew) {
	c.text("namespace", &v.Namespace)
	c.text("id", &v.ID)
	if kind == kindRenewNote {
		c.text("note", v.Note)
	}
}

func (c *codec) acquire(v *core.Acquire) {
	c.text("namespace", &v.Namespace)
	c.text("resource", &v.Resource)
	c.text("id", &v.ID)
	c.number("slots", &v.Slots)
	c.number("capacity", &v.Capacity)
	list(c, "also", &v.Also, minItem, c.item)
	c.text("holder", &v.Holder)
	c.text("party", &v.Party)
	c.labels("labels", &v.Labels)
	c.text("reason", &v.Reason)
	c.duration("ttl", &v.TTL)
	c.oneOf("pick", (*uint8)(&v.Pick), picks)
	c.text("session", &v.Session)
	c.duration("wait", &v.Wait)
	c.duration("grace", &v.Grace)
	c.duration("hold limit", &v.HoldLimit)
	c.number("priority", &v.Priority)
	c.request(&v.Request)
}

// acquireOf is an acquire with what its kind adds.
func (c *codec) acquireOf(kind uint64, v *core.Acquire) {
	c.acquire(v)
	if kind != kindAcquire {
		c.foreign(v)
	}
	switch kind {
	case kindAcquireSelect:
		c.selects(v)
	case kindAcquireReserved:
		c.selections(v)
		c.someText("reservation", &v.Reservation)
	}
	if kind == kindAcquireUnattended {
		c.selections(v)
	}
	unattended := v.Pick == core.TTLUnattended
	if unattended != (kind == kindAcquireUnattended) && kind != kindAcquireTask && kind != kindAcquireReserved &&
		c.fault == nil {
		c.fail("pick", "a lease that nobody renews is acquired by a command of another kind")
	}
}

// minItem is the least that one more resource takes.
const minItem = 4

func (c *codec) item(v *core.Item) {
	c.text("resource", &v.Resource)
	c.text("id", &v.ID)
	c.number("slots", &v.Slots)
	c.number("capacity", &v.Capacity)
}

func (c *codec) define(kind uint64, v *core.Define) {
	c.text("namespace", &v.Namespace)
	c.definition(&v.Definition)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	c.request(&v.Request)
	if kind != kindDefine {
		c.unsigned("fields", (*uint64)(&v.Fields))
		c.flag("keep slots", &v.KeepSlots)
		c.revision("if revision", &v.IfRevision)
	}
	switch kind {
	case kindDefineLimits:
		c.unitLimits(&v.Definition.Limits)
	case kindDefineIdle:
		c.idleRules(&v.Definition)
	case kindDefineStart:
		c.onReservation(&v.Definition)
	case kindDefineBackfill:
		c.backfill(&v.Definition)
	}
}

func (c *codec) undefine(v *core.Undefine) {
	c.text("namespace", &v.Namespace)
	c.text("path", &v.Path)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	c.request(&v.Request)
}

func (c *codec) acknowledge(v *core.Acknowledge) {
	c.text("namespace", &v.Namespace)
	c.text("resource", &v.Resource)
	c.token("token", &v.Token)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	c.request(&v.Request)
}

func (c *codec) acknowledgeAlarm(v *core.AcknowledgeAlarm) {
	c.text("namespace", &v.Namespace)
	c.oneOf("kind", (*uint8)(&v.Kind), alarms)
	c.text("resource", &v.Resource)
	c.text("id", &v.ID)
	c.text("session", &v.Session)
	c.unsigned("order", &v.Order)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	c.request(&v.Request)
}

func (c *codec) raiseTokens(v *core.RaiseTokens) {
	c.text("namespace", &v.Namespace)
	c.token("above", &v.Above)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
}

func (c *codec) setCaps(v *core.SetCaps) {
	c.caps(&v.Caps)
	c.flag("if unset", &v.IfUnset)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
}

func (c *codec) caps(v *leasehold.Caps) {
	c.number("leases", &v.Leases)
	c.number("sessions", &v.Sessions)
	c.number("waiters", &v.Waiters)
	c.number("namespaces", &v.Namespaces)
}

func (c *codec) change(kind uint64, v *core.Change) {
	c.text("namespace", &v.Namespace)
	c.text("id", &v.ID)
	c.text("holder", &v.Holder)
	c.text("new id", &v.NewID)
	c.request(&v.Request)
	if kind == kindChangeForeign || kind == kindChangeAbout {
		c.text("foreign", &v.Foreign)
	}
	if kind == kindChangeAbout {
		c.about(v)
	}
}

func (c *codec) about(v *core.Change) {
	if v.About == nil {
		v.About = new(core.About)
	}
	c.text("about holder", &v.About.Holder)
	c.text("about reason", &v.About.Reason)
	c.labels("about labels", &v.About.Labels)
}

func (c *codec) breakLease(kind uint64, v *core.Break) {
	c.text("namespace", &v.Namespace)
	c.text("id", &v.ID)
	c.text("resource", &v.Resource)
	c.token("token", &v.Token)
	c.duration("period", &v.Period)
	c.flag("remains", &v.Remains)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	c.request(&v.Request)
	if kind == kindBreakExact {
		c.flag("all", &v.All)
		c.flag("waiting", &v.Waiting)
	}
}

func (c *codec) ask(v *core.Ask) {
	c.text("namespace", &v.Namespace)
	c.text("resource", &v.Resource)
	c.text("by", &v.By)
	c.text("message", &v.Message)
	c.request(&v.Request)
}

func (c *codec) move(v *core.Move) {
	c.text("namespace", &v.Namespace)
	c.text("id", &v.ID)
	c.number("priority", &v.Priority)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	c.request(&v.Request)
}

func (c *codec) lead(v *core.Lead) {
	c.unsigned("node", &v.Node)
	c.text("boot", &v.Boot)
	c.duration("offset", &v.Offset)
}

func (c *codec) putRecord(kind uint64, v *core.PutRecord) {
	c.text("namespace", &v.Namespace)
	c.text("path", &v.Path)
	if kind == kindPutVersion || kind == kindPutReason || kind == kindPutLink {
		c.contents("value", contents{&v.Value, &v.Large, &v.From, &v.Keep})
	} else {
		c.value("value", &v.Value)
	}
	c.text("session", &v.Session)
	c.revision("if revision", &v.IfRevision)
	c.flag("if absent", &v.IfAbsent)
	c.fence(&v.Fence)
	if kind == kindPutReason || kind == kindPutLink {
		c.text("by", &v.By)
		c.text("reason", &v.Reason)
	}
	c.request(&v.Request)
	if kind == kindPutLink {
		c.linking(&v.Link, &v.KeepLink)
	}
}

func (c *codec) linking(v **core.Link, keep *bool) {
	if present(c, "link", v) {
		c.link(*v)
	}
	c.flag("keep link", keep)
}

func (c *codec) link(v *core.Link) {
	c.text("link resource", &v.Resource)
	c.text("link id", &v.ID)
	c.text("link holder", &v.Holder)
	c.labels("link labels", &v.Labels)
	c.text("link reason", &v.Reason)
	c.text("link foreign", &v.Foreign)
	c.duration("link ttl", &v.TTL)
	c.duration("link grace", &v.Grace)
	c.flag("link wait", &v.Wait)
	c.flag("link may expire", &v.MayExpire)
	c.flag("link stay", &v.Stay)
	c.text("link mirror", &v.Mirror)
	c.flag("link take", &v.Take)
}

func (c *codec) deleteRecord(v *core.DeleteRecord) {
	c.text("namespace", &v.Namespace)
	c.text("path", &v.Path)
	c.flag("range", &v.Range)
	c.text("to", &v.To)
	c.revision("if revision", &v.IfRevision)
	c.fence(&v.Fence)
	c.request(&v.Request)
}

func (c *codec) fence(v *core.Fence) {
	c.text("fence lease", &v.Lease)
	c.token("fence token", &v.Token)
}

// The least that a comparison and an operation take.
const (
	minCompare = 5
	minOp      = 12
)

// foreign is what only an acquire for a client of a foreign protocol says.
func (c *codec) foreign(v *core.Acquire) {
	c.text("foreign", &v.Foreign)
	c.flag("may expire", &v.MayExpire)
}

func (c *codec) txn(kind uint64, v *core.Txn) {
	c.text("namespace", &v.Namespace)
	c.branches(kind, v, 0)
	c.request(&v.Request)
}

// maxNesting is how deep transactions may be nested. The core allows fewer operations than that.
const maxNesting = 128

// branches is what a transaction has in common with one that is nested in it, at a depth.
func (c *codec) branches(kind uint64, v *core.Txn, depth int) {
	if depth > maxNesting {
		c.fail("nested", "it is nested too deep")
		return
	}
	op := func(o *core.Op) { c.op(kind, o, depth) }
	parts(c, kind, "if", &v.If, minCompare, func(v *core.Compare) { c.compare(kind, v) })
	parts(c, kind, "then", &v.Then, minOp, op)
	parts(c, kind, "else", &v.Else, minOp, op)
}

// parts is list. In the newest kind of transactions it has at most as many as the core accepts: lists in lists could
// claim very much memory before anybody finds out that they are cut off.
func parts[T any](c *codec, kind uint64, field string, p *[]T, least int, each func(*T)) {
	n := uint64(len(*p))
	if !c.writing {
		n, _ = binary.Uvarint(c.b[c.at:])
	}
	if kind == kindTxnNested && n > leasehold.MaxOps {
		c.fail(field, fmt.Sprintf("it has %d parts, and at most %d are allowed", n, leasehold.MaxOps))
		return
	}
	list(c, field, p, least, each)
}

func (c *codec) compare(kind uint64, v *core.Compare) {
	known := whats
	if kind != kindTxnNested {
		known.last = uint8(core.LeaseFloor)
	}
	c.oneOf("what", (*uint8)(&v.What), known)
	c.oneOf("is", (*uint8)(&v.Is), relations)
	c.text("path", &v.Path)
	c.unsigned("number", &v.Number)
	c.text("text", &v.Text)
	if kind == kindTxnNested {
		c.flag("compare range", &v.Range)
		c.text("compare to", &v.To)
	}
}

// op is one operation of a transaction. All operations have all fields, whatever they do: it
// costs a few zero bytes, and the layout has no cases.
func (c *codec) op(kind uint64, v *core.Op, depth int) {
	known := doings
	if kind != kindTxnNested {
		known.last = uint8(core.ReleaseLease)
	}
	c.oneOf("do", (*uint8)(&v.Do), known)
	c.text("path", &v.Path)
	c.flag("range", &v.Range)
	c.text("to", &v.To)
	if kind == kindTxnVersions || kind == kindTxnForeign || kind == kindTxnNested {
		c.contents("value", contents{&v.Value, &v.Large, &v.From, &v.Keep})
	} else {
		c.value("value", &v.Value)
	}
	c.text("session", &v.Session)
	c.number("most", &v.Most)
	c.flag("keys only", &v.KeysOnly)
	c.flag("count", &v.Count)
	if present(c, "acquire", &v.Acquire) {
		if c.acquire(v.Acquire); v.Acquire.Pick == core.TTLUnattended && c.fault == nil {
			c.fail("pick", "a transaction takes no lease that nobody renews")
		}
		if kind == kindTxnForeign || kind == kindTxnNested {
			c.foreign(v.Acquire)
		}
	}
	c.text("id", &v.ID)
	if kind == kindTxnNested {
		c.newOp(kind, v, depth)
	}
}

// sortings are the orders of records.
var sortings = choice{uint8(core.ByPath), uint8(core.ByValue)}

// newOp is what operations have in addition in the newest kind of transactions.
func (c *codec) newOp(kind uint64, v *core.Op, depth int) {
	c.linking(&v.Link, &v.KeepLink)
	c.flag("keep value", &v.KeepValue)
	c.flag("keep session", &v.KeepSession)
	c.flag("before", &v.Before)
	c.oneOf("by order", (*uint8)(&v.Select.By), sortings)
	c.flag("descend", &v.Select.Descend)
	c.revision("min create", &v.Select.MinCreate)
	c.revision("max create", &v.Select.MaxCreate)
	c.revision("min mod", &v.Select.MinMod)
	c.revision("max mod", &v.Select.MaxMod)
	if present(c, "nested", &v.Txn) {
		c.branches(kind, v.Txn, depth+1)
	}
	if v.Txn != nil && (v.Txn.Namespace != "" || v.Txn.Request != (core.Request{})) {
		c.fail("nested", "it has a namespace or a request of its own")
	}
}

// contents is what is put, and how much of what was there is kept.
type contents struct {
	value *string
	large **leasehold.Large
	from  *leasehold.Revision
	keep  *int
}

func (c *codec) contents(field string, v contents) {
	c.content(field, v.value, v.large)
	c.revision("from", v.from)
	c.number("keep", v.keep)
}

// request is the name by which a command is known if it is sent again.
func (c *codec) request(v *core.Request) {
	c.text("request key", &v.Key)
	c.text("request session", &v.Session)
	c.unsigned("request sequence", &v.Sequence)
}

func (c *codec) endQuarantine(v *core.EndQuarantine) {
	c.unsigned("base", &v.Base)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
}
