package wire

import (
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
	if kind == kindDefineChange {
		c.unsigned("fields", (*uint64)(&v.Fields))
		c.flag("keep slots", &v.KeepSlots)
		c.revision("if revision", &v.IfRevision)
	}
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
	if kind == kindPutVersion || kind == kindPutReason {
		c.contents("value", contents{&v.Value, &v.Large, &v.From, &v.Keep})
	} else {
		c.value("value", &v.Value)
	}
	c.text("session", &v.Session)
	c.revision("if revision", &v.IfRevision)
	c.flag("if absent", &v.IfAbsent)
	c.fence(&v.Fence)
	if kind == kindPutReason {
		c.text("by", &v.By)
		c.text("reason", &v.Reason)
	}
	c.request(&v.Request)
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
	op := func(o *core.Op) { c.op(kind, o) }
	c.text("namespace", &v.Namespace)
	list(c, "if", &v.If, minCompare, c.compare)
	list(c, "then", &v.Then, minOp, op)
	list(c, "else", &v.Else, minOp, op)
	c.request(&v.Request)
}

func (c *codec) compare(v *core.Compare) {
	c.oneOf("what", (*uint8)(&v.What), whats)
	c.oneOf("is", (*uint8)(&v.Is), relations)
	c.text("path", &v.Path)
	c.unsigned("number", &v.Number)
	c.text("text", &v.Text)
}

// op is one operation of a transaction. All operations have all fields, whatever they do: it
// costs a few zero bytes, and the layout has no cases.
func (c *codec) op(kind uint64, v *core.Op) {
	c.oneOf("do", (*uint8)(&v.Do), doings)
	c.text("path", &v.Path)
	c.flag("range", &v.Range)
	c.text("to", &v.To)
	if kind == kindTxnVersions || kind == kindTxnForeign {
		c.contents("value", contents{&v.Value, &v.Large, &v.From, &v.Keep})
	} else {
		c.value("value", &v.Value)
	}
	c.text("session", &v.Session)
	c.number("most", &v.Most)
	c.flag("keys only", &v.KeysOnly)
	c.flag("count", &v.Count)
	if present(c, "acquire", &v.Acquire) {
		c.acquire(v.Acquire)
		if kind == kindTxnForeign {
			c.foreign(v.Acquire)
		}
	}
	c.text("id", &v.ID)
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
