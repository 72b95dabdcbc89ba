package encode

import "github.com/leasehold/leasehold"

// Task writes a task, with the value of its record if that is given.
func (b *Buffer) Task(t *leasehold.Task, value *leasehold.Record) {
	b.Open()
	b.Text("namespace", t.Namespace)
	b.Text("path", t.Path)
	b.Text("state", t.State.String())
	if t.Priority != 0 {
		b.Key("priority")
		b.Int(int64(t.Priority))
	}
	b.Number("attempts", uint64(t.Attempts))
	b.Number("max_attempts", uint64(t.MaxAttempts))
	b.Some("lease", t.Lease)
	b.Some("holder", t.Holder)
	if t.Token != 0 {
		b.Number("token", uint64(t.Token))
	}
	b.Some("result", t.Result)
	b.Moment("changed", t.Changed)
	if value != nil && value.Large == nil && value.Value != "" {
		b.Raw("value", value.Value)
	}
	b.Close()
}
