package command

import (
	"fmt"
	"hash/fnv"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/pool"
)

// Subject identifies what a request is about: a key that is sent again with another request is
// refused, instead of being answered as if it were the first. It covers everything that changes
// what is done.
func Subject(c Command) string {
	hash := fnv.New64a()
	fmt.Fprint(hash, details(c)...)
	return fmt.Sprintf("%s#%016x", c.subject(), hash.Sum64())
}

// hashed is how many bytes a hash takes at the end of a subject, behind its "#".
const hashed = 16

// ReadableSubject returns a subject as people read it, without its hash.
func ReadableSubject(subject string) string {
	if end := len(subject) - hashed - 1; end >= 0 && subject[end] == '#' {
		return subject[:end]
	}
	return subject
}

// details returns what a command would do, without who asks for it and why. It leaves out how long
// an acquire waits, since a client that sends it again has less time left, and its ids, which a door
// may have made.
func details(c Command) []any {
	if own, ok := c.(interface{ details() []any }); ok {
		return own.details()
	}
	return nil
}

// Fields are written out one by one, and not by printing whole structs: a field that is added
// to a type must not change the subject that servers which do not know it would write.

func (c *OpenSession) details() []any { return list(c.TTL) }

func (c *CloseSession) details() []any {
	if c.Abandon {
		return list(c.Abandon)
	}
	return nil
}

func (c *Acquire) details() []any {
	all := append(resources(c.Items()),
		list(c.Holder, c.TTL, c.Pick, c.Session, c.Grace, c.HoldLimit, c.Priority, c.Foreign)...)
	if c.MayExpire {
		all = append(all, list(c.MayExpire)...)
	}
	if c.Reservation != "" {
		all = append(all, list(c.Reservation)...)
	}
	return append(all, c.selected()...)
}

func (c *Release) details() []any { return list(c.Session, c.Withdraw) }

func (c *Change) details() []any {
	all := list(c.Holder, c.NewID, c.Foreign)
	if c.About != nil {
		all = append(all, list(c.About.Holder)...)
	}
	return all
}

func (c *Break) details() []any {
	if c.All || c.Waiting {
		return list(c.Token, c.Period, c.Remains, c.All, c.Waiting)
	}
	return list(c.Token, c.Period, c.Remains)
}

func (c *Move) details() []any             { return list(c.Priority) }
func (c *Ask) details() []any              { return list(c.Message) }
func (c *Acknowledge) details() []any      { return list(c.Token) }
func (c *AcknowledgeAlarm) details() []any { return list(c.Kind, c.ID, c.Order) }

func (c *Define) details() []any {
	if c.IsChange() {
		return append(defined(&c.Definition), list(c.Fields, c.KeepSlots, c.IfRevision)...)
	}
	return defined(&c.Definition)
}

func (c *FinishTask) details() []any { return list(c.Token, c.Failed, c.Result) }
func (c *ReportUse) details() []any  { return list(c.Host, c.Units) }

func (c *PutRecord) details() []any {
	all := append(list(c.Value, c.From, c.Keep, c.Session, c.IfRevision, c.IfAbsent,
		c.Fence.Lease, c.Fence.Token), kept(c.Large)...)
	if c.KeepLink {
		all = append(all, list(c.KeepLink)...)
	}
	return append(all, c.Link.details()...)
}

func (c *DeleteRecord) details() []any { return list(c.To, c.IfRevision, c.Fence.Lease, c.Fence.Token) }

func (c *Txn) details() []any {
	return append(append(comparisons(c.If), operations(c.Then)...), operations(c.Else)...)
}

func resources(items []Item) (all []any) {
	for _, item := range items {
		all = append(all, list(item.Resource, item.Slots, item.Capacity)...)
	}
	return append(list(len(items)), all...)
}

func defined(d *leasehold.Definition) []any {
	all := list(d.Path, d.Capacity, d.Units, d.DefaultTTL, d.LargestTTL, d.HoldLimit, d.Grace, d.Expected, d.Unclean)
	for _, l := range d.Limits {
		all = append(all, list(pool.LimitText(l))...)
	}
	if d.Idle != 0 || d.IdleRelease != 0 {
		all = append(all, list(d.Idle, d.IdleRelease)...)
	}
	if d.OnReservation != 0 {
		all = append(all, list(d.OnReservation)...)
	}
	if d.Backfill {
		all = append(all, list("backfill")...)
	}
	return all
}

// selected is what the items of a request select, and whether that is a task; nothing if none of them does.
func (c *Acquire) selected() (all []any) {
	if c.Task {
		all = list(c.Task)
	}
	for i, item := range c.Items() {
		if s := item.Select; s != nil {
			all = append(all, list(i, s.Where, s.Spread, s.Units)...)
		}
	}
	return all
}

func (c *PutTask) details() []any { return list(c.Value, c.Priority, c.Attempts) }

func (c *SetUnits) details() []any {
	all := list(c.Host, len(c.Units))
	for _, u := range c.Units {
		all = append(all, list(u.Name, u.Unfit, len(u.Labels))...)
		for _, l := range u.Labels {
			all = append(all, list(l.Key, l.Value)...)
		}
	}
	return all
}

func kept(l *leasehold.Large) []any {
	if l == nil {
		return nil
	}
	return list(l.SHA256, l.Size)
}

func comparisons(compares []Compare) []any {
	all := list(len(compares))
	for _, c := range compares {
		all = append(all, list(c.What, c.Is, c.Path, c.Number, c.Text)...)
		if c.Range {
			all = append(all, list(c.Range, c.To)...)
		}
	}
	return all
}

func operations(ops []Op) []any {
	all := list(len(ops))
	for _, o := range ops {
		all = append(all, list(o.Do, o.Path, o.Range, o.To, o.Value, o.Session, o.Most, o.KeysOnly, o.Count,
			o.From, o.Keep, o.ID)...)
		all = append(all, kept(o.Large)...)
		if o.Acquire != nil {
			all = append(all, o.Acquire.details()...)
		}
		if o.IsNew() {
			all = append(all, list(o.KeepLink, o.KeepValue, o.KeepSession, o.Before)...)
			all = append(all, o.Link.details()...)
		}
		if o.Txn != nil {
			all = append(all, o.Txn.details()...)
		}
	}
	return all
}

// list writes each value in a form that shows its type and its end, so that different lists are
// never written alike.
func list(values ...any) []any {
	for i, v := range values {
		values[i] = quoted(v)
	}
	return values
}

func quoted(v any) string { return fmt.Sprintf("%#v;", v) }
