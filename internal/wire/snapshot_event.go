package wire

import "github.com/leasehold/leasehold"

// eventOf is an event with what its kind adds.
func (c *codec) eventOf(kind uint64, v *leasehold.Event) {
	c.event(v)
	switch kind {
	case kindOwnedEvent:
		c.owner(&v.Owner)
	case kindUsedEvent:
		c.used(v)
	}
}

// event leaves out the namespace, which is that of its record.
func (c *codec) event(v *leasehold.Event) {
	c.revision("revision", &v.Revision)
	c.unsigned32("n", &v.N)
	c.oneOf("kind", (*uint8)(&v.Kind), kinds)
	c.oneOf("how", (*uint8)(&v.How), maybeHow)
	c.moment("at", &v.At)
	c.moment("until", &v.Until)
	c.text("resource", &v.Resource)
	c.text("id", &v.ID)
	c.text("holder", &v.Holder)
	c.token("token", &v.Token)
	c.text("session", &v.Session)
	c.text("by", &v.By)
	c.text("reason", &v.Reason)
	// Parts that only some kinds of events have are not written for the others. Where one is
	// there nevertheless, writing it would lose it in silence.
	if v.Kind == leasehold.Alarmed || v.Kind == leasehold.AlarmCleared {
		c.oneOf("alarm", (*uint8)(&v.Alarm), alarms)
	} else if v.Alarm != 0 {
		c.fail("alarm", "the event is about none")
	}
	if v.Kind == leasehold.RecordPut || v.Kind == leasehold.RecordDeleted {
		if present(c, "record", &v.Record) {
			c.namedValue(v.Record)
		}
		if present(c, "previous", &v.Previous) {
			c.namedValue(v.Previous)
		}
	} else if v.Record != nil || v.Previous != nil {
		c.fail("record", "the event is about none")
	}
	if v.Kind == leasehold.Ended || v.Kind == leasehold.Changed {
		if present(c, "hold", &v.Hold) {
			c.hold(v)
		}
	} else if v.Hold != nil {
		c.fail("hold", "the event ends none")
	}
	c.text("foreign", &v.Foreign)
}

// hold is the hold that an event ended. Whose it was is in the event already, unless the holder
// has changed.
func (c *codec) hold(e *leasehold.Event) {
	v := e.Hold
	if e.Kind == leasehold.Changed {
		c.text("hold id", &v.ID)
		c.text("hold holder", &v.Holder)
		c.token("hold token", &v.Token)
	} else if !c.writing {
		v.ID, v.Holder, v.Token = e.ID, e.Holder, e.Token
	} else if v.ID != e.ID || v.Holder != e.Holder || v.Token != e.Token {
		c.fail("hold", "it is not the one that ended")
	}
	c.moment("hold since", &v.Since)
	c.moment("hold until", &v.Until)
	c.duration("hold waited", &v.Waited)
}

// used is how much a hold was used, and whose it was, if it was somebody's.
func (c *codec) used(e *leasehold.Event) {
	if e.Hold == nil {
		c.fail("hold", "it is missing, and then the record is of another kind")
		return
	}
	c.duration("hold busy", &e.Hold.Busy)
	c.duration("hold idle", &e.Hold.Idle)
	if e.Hold.Busy == 0 && e.Hold.Idle == 0 && c.fault == nil {
		c.fail("hold", "it was not used, and then the record is of another kind")
	}
	if present(c, "owner", &e.Owner) {
		c.owner(&e.Owner)
	}
}
