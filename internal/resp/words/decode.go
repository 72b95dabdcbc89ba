package words

import (
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/internal/resp"
)

// A Decoder reads replies: maps with the fields of the JSON. It keeps the first error.
type Decoder struct {
	Known []string // texts that replies repeat, which are not copied
	Err   error
}

// Fail notes that a reply is not understood.
func (d *Decoder) Fail(format string, args ...any) {
	if d.Err == nil {
		d.Err = fmt.Errorf("the answer is not understood: "+format, args...)
	}
}

// Pairs returns the keys and values of a map, in turn.
func (d *Decoder) Pairs(v *resp.Value) []resp.Value {
	if v.Kind != resp.Map || len(v.Items)%2 != 0 {
		d.Fail("there is no map where one was expected")
		return nil
	}
	return v.Items
}

// Fields yields the keys and values of a map.
func (d *Decoder) Fields(v *resp.Value) iter.Seq2[[]byte, *resp.Value] {
	return func(yield func([]byte, *resp.Value) bool) {
		fields := d.Pairs(v)
		for i := 0; i+1 < len(fields); i += 2 {
			if !yield(fields[i].Text, &fields[i+1]) {
				return
			}
		}
	}
}

// Text returns a text. Those that the request had are not copied.
func (d *Decoder) Text(v *resp.Value) string {
	for _, known := range d.Known {
		if string(v.Text) == known {
			return known
		}
	}
	return string(v.Text)
}

// Word returns a text out of few, which is not copied if it is one of the usual ones.
func (d *Decoder) Word(v *resp.Value) string {
	switch string(v.Text) {
	case "leased":
		return "leased"
	case "default":
		return "default"
	}
	return d.Text(v)
}

// Number returns a number without a sign. One that RESP has no room for is a text.
func (d *Decoder) Number(v *resp.Value) uint64 {
	if v.Kind == resp.Integer && v.Int >= 0 {
		return uint64(v.Int)
	}
	n, err := strconv.ParseUint(string(v.Text), 10, 64)
	if err != nil {
		d.Fail("%d %q is not a number", v.Int, v.Text)
	}
	return n
}

// Count returns a small number.
func (d *Decoder) Count(v *resp.Value) int { return int(v.Int) }

// Optional returns a number; nil if there is none.
func (d *Decoder) Optional(v *resp.Value) *uint64 {
	if v.IsNull() {
		return nil
	}
	n := d.Number(v)
	return &n
}

// Signed returns a number that may have a sign.
func (d *Decoder) Signed(v *resp.Value) int64 { return v.Int }

// Names returns a list of texts.
func (d *Decoder) Names(v *resp.Value) []string {
	if len(v.Items) == 0 {
		return nil
	}
	names := make([]string, len(v.Items))
	for i := range v.Items {
		names[i] = d.Text(&v.Items[i])
	}
	return names
}

// Labels returns a map of texts.
func (d *Decoder) Labels(v *resp.Value) map[string]string {
	fields := d.Pairs(v)
	labels := make(map[string]string, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		labels[string(fields[i].Text)] = string(fields[i+1].Text)
	}
	return labels
}

// List reads each item of a list.
func List[T any](v *resp.Value, read func(v *resp.Value, item *T)) []T {
	if v.IsNull() {
		return nil
	}
	items := make([]T, len(v.Items))
	for i := range v.Items {
		read(&v.Items[i], &items[i])
	}
	return items
}

// Some reads what may be null.
func Some[T any](v *resp.Value, read func(v *resp.Value, item *T)) *T {
	if v.IsNull() {
		return nil
	}
	item := new(T)
	read(v, item)
	return item
}

// Moment returns a moment that is written as RFC 3339 says.
func (d *Decoder) Moment(v *resp.Value) (t time.Time) {
	if err := t.UnmarshalText(v.Text); err != nil {
		d.Fail("%v", err)
	}
	return t
}
