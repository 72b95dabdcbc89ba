package encode

import (
	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
	"github.com/leasehold/leasehold/internal/core"
)

// Values says which values of records an event shows.
type Values struct{ Now, Before bool }

// Event writes an event, with the values of its record that are asked for.
func (b *Buffer) Event(e *leasehold.Event, with Values) {
	b.Open()
	b.Text("namespace", e.Namespace)
	b.Number("revision", uint64(e.Revision))
	b.Number("n", uint64(e.N))
	b.Text("kind", e.Kind.String())
	if e.How != 0 {
		b.Text("how", e.How.String())
	}
	b.Moment("at", e.At)
	if !e.Until.IsZero() {
		b.Moment("until", e.Until)
	}
	b.Some("resource", e.Resource)
	b.Some("id", e.ID)
	b.Some("foreign", e.Foreign)
	b.Some("holder", e.Holder)
	if e.Token != 0 {
		b.Number("token", uint64(e.Token))
	}
	b.Some("session", e.Session)
	b.Some("by", e.By)
	b.Some("reason", e.Reason)
	if e.Alarm != 0 {
		b.Text("alarm", e.Alarm.String())
	}
	if e.Record != nil {
		b.Number("version", e.Record.Version)
		if with.Now {
			b.content("value", "large", e.Record.Value, e.Record.Large)
		}
	}
	if e.Previous != nil && with.Before {
		b.content("previous", "previous_large", e.Previous.Value, e.Previous.Large)
	}
	b.Close()
}

// content writes a value, or the name of a large one.
func (b *Buffer) content(key, largeKey, value string, large *leasehold.Large) {
	if large == nil {
		b.Raw(key, value)
		return
	}
	b.Key(largeKey)
	b.Open()
	b.Text("sha256", large.SHA256.String())
	b.Number("size", uint64(large.Size))
	b.Close()
}

// Version writes a former version of a record.
func (b *Buffer) Version(v *leasehold.Version) {
	b.Open()
	b.Number("revision", uint64(v.Revision))
	b.Number("create_revision", uint64(v.Create))
	b.Number("version", v.Version)
	if v.Large != nil {
		b.Number("size", uint64(v.Large.Size))
		b.Text("sha256", v.Large.SHA256.String())
	} else {
		b.Number("size", uint64(len(v.Value)))
	}
	if !v.Written.IsZero() {
		b.Moment("written", v.Written)
	}
	b.Some("holder", v.Holder)
	b.Some("session", v.Session)
	if v.Token != 0 {
		b.Number("token", uint64(v.Token))
	}
	b.Yes("current", v.Current)
	b.Yes("deleted", v.Deleted)
	b.Close()
}

// Record writes a record, with its value if that is asked for.
func (b *Buffer) Record(namespace string, r *leasehold.Record, value bool) {
	b.Open()
	b.Text("namespace", namespace)
	b.Text("path", r.Path)
	if value || r.Large != nil {
		b.content("value", "large", r.Value, r.Large)
	}
	if value && r.Large == nil && b.form == JSON && v1.IsText(r.Value) { // RESP has the bytes themselves
		b.Text("text", r.Value)
	}
	b.Number("create_revision", uint64(r.Create))
	b.Number("mod_revision", uint64(r.Mod))
	b.Number("version", r.Version)
	b.Some("session", r.Session)
	b.Some("lease", r.Lease)
	if r.Token != 0 {
		b.Number("token", uint64(r.Token))
	}
	b.Close()
}

// Items writes a list of records.
func (b *Buffer) Items(namespace string, records []*leasehold.Record, values bool) {
	Array(b, "items", records, func(r **leasehold.Record) { b.Record(namespace, *r, values) })
}

// A Page is some events, oldest first.
type Page struct {
	Events []*leasehold.Event
	Next   string // where the ones before them end
	Gone   bool   // there are none before them, though there were
}

// Page writes a page of events.
func (b *Buffer) Page(found Page) {
	b.Open()
	Array(b, "items", found.Events, func(e **leasehold.Event) { b.Event(*e, Values{}) })
	b.Some("next", found.Next)
	b.Yes("gone", found.Gone)
	b.Close()
}

// Txn writes what a transaction came to. What was put is known from the request.
func (b *Buffer) Txn(namespace string, t *core.TxnAnswer, ops []core.Op) {
	b.Open()
	b.Flag("succeeded", t.Succeeded)
	b.Number("revision", uint64(t.Revision))
	b.Key("results")
	b.OpenList()
	for i := range t.Results {
		b.Next()
		b.result(namespace, &t.Results[i], &ops[i])
	}
	b.CloseList()
	b.Close()
}

func (b *Buffer) result(namespace string, r *core.TxnResult, o *core.Op) {
	b.Open()
	switch {
	case r.Record != nil:
		record := leasehold.Record{
			Path: o.Path, Session: o.Session, Create: r.Record.Create, Mod: r.Record.Mod, Version: r.Record.Version,
			Token: r.Record.Token,
		}
		b.Key("record")
		b.Record(namespace, &record, false)
	case r.Page != nil:
		b.Items(namespace, r.Page.Records, !o.KeysOnly)
		b.Yes("more", r.Page.More)
		if r.Page.Count != 0 {
			b.Number("count", uint64(r.Page.Count))
		}
	case r.Lease != nil:
		b.Key("lease")
		b.Lease(r.Lease, Grant{Also: r.Also})
	case o.Do == core.ReleaseLease: // there is nothing to say
	default:
		b.Number("deleted", uint64(r.Deleted))
	}
	b.Close()
}
