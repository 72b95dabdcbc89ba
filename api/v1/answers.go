package v1

import (
	"bytes"

	"github.com/leasehold/leasehold/internal/resp"
	"github.com/leasehold/leasehold/internal/resp/words"
)

// The answers to commands, field by field.

func (d *decoder) lease(v *resp.Value, l *Lease) {
	some := new(optionalOfLease)
	fields := d.Pairs(v)
	for i := 0; i+1 < len(fields); i += 2 {
		v := &fields[i+1]
		switch key := fields[i].Text; string(key) {
		case "namespace":
			l.Namespace = d.Word(v)
		case "resource":
			l.Resource = d.Text(v)
		case "id":
			l.ID = d.Text(v)
		case "holder":
			l.Holder = d.Text(v)
		case "token":
			l.Token = d.Number(v)
		case "floor":
			l.Floor = d.Number(v)
		case "state":
			l.State = d.Word(v)
		case "ttl":
			l.TTL = d.someDuration(v)
		case "expires":
			l.Expires = place(v, &some.expires, d.moment)
		case "remaining_ms":
			l.RemainingMS = place(v, &some.remaining, d.Signed)
		case "acquired":
			l.Acquired = place(v, &some.acquired, d.moment)
		case "session":
			l.Session = d.Text(v)
		case "revision":
			l.Revision = d.Number(v)
		case "interventions":
			l.Interventions = place(v, &some.interventions, d.Number)
		case "waited_ms":
			l.WaitedMS = v.Int
		default:
			d.rareOfLease(key, v, l)
		}
	}
}

// optionalOfLease is what a lease may lack, in one piece of memory.
type optionalOfLease struct {
	expires, acquired Time
	remaining         int64
	interventions     uint64
}

// place reads a field into its room, and returns that; nil if there is none.
func place[T any](v *resp.Value, room *T, read func(v *resp.Value) T) *T {
	if v.IsNull() {
		return nil
	}
	*room = read(v)
	return room
}

func (d *decoder) rareOfLease(key []byte, v *resp.Value, l *Lease) {
	switch string(key) {
	case "slots":
		l.Slots = d.Count(v)
	case "units":
		l.Units = d.Names(v)
	case "hold_limit":
		l.HoldLimit = d.duration(v)
	case "available_at":
		l.AvailableAt = d.someMoment(v)
	case "labels":
		l.Labels = d.Labels(v)
	case "reason":
		l.Reason = d.Text(v)
	case "after":
		l.After = words.Some(v, d.ending)
	case "also":
		l.Also = words.List(v, d.lease)
	case "warning":
		l.Warning = d.Text(v)
	case "foreign":
		l.Foreign = d.Text(v)
	case "door":
		l.Door = d.Text(v)
	case "note":
		l.Note = d.Text(v)
	case "noted":
		l.Noted = d.someMoment(v)
	case "reserved":
		l.Reserved = words.Some(v, d.upcoming)
	}
}

func (d *decoder) upcoming(v *resp.Value, u *Upcoming) {
	fields := d.Pairs(v)
	for i := 0; i+1 < len(fields); i += 2 {
		switch v := &fields[i+1]; string(fields[i].Text) {
		case "id":
			u.ID = d.Text(v)
		case "holder":
			u.Holder = d.Text(v)
		case "reason":
			u.Reason = d.Text(v)
		case "from":
			u.From = d.moment(v)
		case "until":
			u.Until = d.moment(v)
		}
	}
}

func (d *decoder) session(v *resp.Value, s *Session) {
	fields := d.Pairs(v)
	for i := 0; i+1 < len(fields); i += 2 {
		v := &fields[i+1]
		switch string(fields[i].Text) {
		case "namespace":
			s.Namespace = d.Word(v)
		case "id":
			s.ID = d.Text(v)
		case "ttl":
			s.TTL = d.duration(v)
		case "expires":
			s.Expires = d.moment(v)
		case "remaining_ms":
			s.RemainingMS = v.Int
		case "opened":
			s.Opened = d.moment(v)
		case "claims":
			s.Claims = d.Count(v)
		case "labels":
			s.Labels = d.Labels(v)
		case "warning":
			s.Warning = d.Text(v)
		case "interventions":
			s.Interventions = d.Optional(v)
		case "intervened":
			s.Intervened = d.Names(v)
		}
	}
}

func (d *decoder) resource(v *resp.Value, r *Resource) {
	for key, v := range d.Fields(v) {
		switch string(key) {
		case "namespace":
			r.Namespace = d.Word(v)
		case "resource":
			r.Resource = d.Text(v)
		case "state":
			r.State = d.Word(v)
		case "capacity":
			r.Capacity = d.Count(v)
		case "used":
			r.Used = d.Count(v)
		case "units":
			r.Units = words.List(v, d.unit)
		case "holding":
			r.Holding = d.Count(v)
		case "holders":
			r.Holders = words.List(v, d.lease)
		case "waiting":
			r.Waiting = d.Count(v)
		case "queue":
			r.Queue = words.List(v, d.waiter)
		case "overlapping":
			r.Overlapping = words.List(v, d.lease)
		case "last":
			r.Last = words.Some(v, d.ending)
		case "available_at":
			r.AvailableAt = d.someMoment(v)
		case "unacknowledged":
			r.Unacknowledged = words.Some(v, d.ending)
		case "usual":
			r.Usual = words.Some(v, d.usual)
		}
	}
}

func (d *decoder) unit(v *resp.Value, u *Unit) {
	for key, v := range d.Fields(v) {
		switch string(key) {
		case "name":
			u.Name = d.Text(v)
		case "lease":
			u.Lease = d.Text(v)
		case "holder":
			u.Holder = d.Text(v)
		case "rests":
			u.Rests = v.Bool()
		}
	}
}

func (d *decoder) waiter(v *resp.Value, w *Waiter) {
	for key, v := range d.Fields(v) {
		switch string(key) {
		case "position":
			w.Position = d.Count(v)
		case "priority":
			w.Priority = d.Count(v)
		case "slots":
			w.Slots = d.Count(v)
		case "id":
			w.ID = d.Text(v)
		case "holder":
			w.Holder = d.Text(v)
		case "session":
			w.Session = d.Text(v)
		case "labels":
			w.Labels = d.Labels(v)
		case "reason":
			w.Reason = d.Text(v)
		case "since":
			w.Since = d.moment(v)
		case "until":
			w.Until = d.someMoment(v)
		case "forecast":
			w.Forecast = d.duration(v)
		case "forecast_error":
			w.ForecastError = d.duration(v)
		case "foreign":
			w.Foreign = d.Text(v)
		}
	}
}

func (d *decoder) ending(v *resp.Value, e *Ending) {
	for key, v := range d.Fields(v) {
		switch string(key) {
		case "id":
			e.ID = d.Text(v)
		case "holder":
			e.Holder = d.Text(v)
		case "token":
			e.Token = d.Number(v)
		case "how":
			e.How = d.Text(v)
		case "by":
			e.By = d.Text(v)
		case "reason":
			e.Reason = d.Text(v)
		case "at":
			e.At = d.moment(v)
		case "foreign":
			e.Foreign = d.Text(v)
		}
	}
}

func (d *decoder) usual(v *resp.Value, u *Usual) {
	for key, v := range d.Fields(v) {
		switch string(key) {
		case "holds":
			u.Holds = d.Count(v)
		case "hold_p50":
			u.HoldP50 = d.duration(v)
		case "hold_p95":
			u.HoldP95 = d.duration(v)
		case "unclean":
			u.Unclean = d.Count(v)
		case "waits":
			u.Waits = d.Count(v)
		case "wait_p50":
			u.WaitP50 = d.duration(v)
		case "wait_p95":
			u.WaitP95 = d.duration(v)
		case "queue":
			u.Queue = d.Count(v)
		}
	}
}

func (d *decoder) record(v *resp.Value, r *Record) {
	for key, v := range d.Fields(v) {
		switch string(key) {
		case "namespace":
			r.Namespace = d.Word(v)
		case "path":
			r.Path = d.Text(v)
		case "value":
			r.Value = bytes.Clone(v.Text)
		case "text":
			r.Text = words.Some(v, func(v *resp.Value, text *string) { *text = string(v.Text) })
		case "large":
			r.Large = words.Some(v, d.large)
		case "create_revision":
			r.Create = d.Number(v)
		case "mod_revision":
			r.Mod = d.Number(v)
		case "version":
			r.Version = d.Number(v)
		case "session":
			r.Session = d.Text(v)
		case "lease":
			r.Lease = d.Text(v)
		case "token":
			r.Token = d.Number(v)
		}
	}
	if r.Text == nil && len(r.Value) > 0 && IsText(string(r.Value)) {
		text := string(r.Value)
		r.Text = &text
	}
}

func (d *decoder) large(v *resp.Value, l *Large) {
	for key, v := range d.Fields(v) {
		switch string(key) {
		case "sha256":
			l.SHA256 = d.Text(v)
		case "size":
			l.Size = v.Int
		}
	}
}

func (d *decoder) deleted(v *resp.Value, answer *Deleted) {
	for key, v := range d.Fields(v) {
		switch string(key) {
		case "deleted":
			answer.Deleted = d.Count(v)
		case "revision":
			answer.Revision = d.Number(v)
		}
	}
}
