package object

import (
	"errors"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Protobuf is the content type of objects in Kubernetes' protobuf: four bytes, and a message that names the kind of
// the one in it.
const Protobuf = "application/vnd.kubernetes.protobuf"

const magic = "k8s\x00"

var errProtobuf = errors.New("the protobuf message cannot be read")

// A Writer writes a protobuf message. Fields that are empty are left out.
type Writer []byte

// Text writes a field that is a text.
func (w *Writer) Text(field protowire.Number, s string) {
	if s != "" {
		*w = protowire.AppendString(protowire.AppendTag(*w, field, protowire.BytesType), s)
	}
}

// Bytes writes a field that is bytes, or a message, also one that is empty.
func (w *Writer) Bytes(field protowire.Number, b []byte) {
	*w = protowire.AppendBytes(protowire.AppendTag(*w, field, protowire.BytesType), b)
}

// Number writes a field that is a number, also zero.
func (w *Writer) Number(field protowire.Number, n int64) {
	*w = protowire.AppendVarint(protowire.AppendTag(*w, field, protowire.VarintType), uint64(n))
}

// optional writes a text that may be there and empty.
func (w *Writer) optional(field protowire.Number, s *string) {
	if s != nil {
		*w = protowire.AppendString(protowire.AppendTag(*w, field, protowire.BytesType), *s)
	}
}

// flag writes true or false, if it is there.
func (w *Writer) flag(field protowire.Number, b *bool) {
	if b != nil {
		w.Number(field, int64(protowire.EncodeBool(*b)))
	}
}

// time writes a moment. Its seconds may be negative, its nanoseconds not.
func (w *Writer) time(field protowire.Number, t time.Time) {
	if t.IsZero() {
		return
	}
	var m Writer
	m.Number(1, t.Unix())
	m.Number(2, int64(t.Nanosecond()))
	w.Bytes(field, m)
}

// texts writes a map, in the order of its keys, so that equal objects have equal bytes.
func (w *Writer) texts(field protowire.Number, texts map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		var entry Writer
		entry.Bytes(1, []byte(key))
		entry.Bytes(2, []byte(texts[key]))
		w.Bytes(field, entry)
	}
}

// Envelope returns a message with the name of its kind.
func Envelope(apiVersion, kind string, message []byte) []byte {
	var of Writer
	of.Text(1, apiVersion)
	of.Text(2, kind)
	w := append(make(Writer, 0, len(magic)+len(of)+len(message)+24), magic...)
	w.Bytes(1, of)
	w.Bytes(2, message)
	w.Bytes(3, nil)
	w.Bytes(4, nil)
	return w
}

// Marshal returns the object in protobuf, without an envelope.
func (l *Lease) Marshal() []byte {
	meta, spec := l.Meta.marshal(), l.Spec.marshal()
	w := make(Writer, 0, len(meta)+len(spec)+8)
	w.Bytes(1, meta)
	w.Bytes(2, spec)
	return w
}

// MarshalMeta returns the object's metadata alone: a PartialObjectMetadata.
func (l *Lease) MarshalMeta() []byte {
	var w Writer
	w.Bytes(1, l.Meta.marshal())
	return w
}

// marshal writes an ObjectMeta. Its fields 4, 15 and 16 are no longer used, and 17 are the managedFields.
func (m *Meta) marshal() []byte {
	w := make(Writer, 0, 256)
	w.Text(1, m.Name)
	w.Text(2, m.GenerateName)
	w.Text(3, m.Namespace)
	w.Text(5, m.UID)
	w.Text(6, m.ResourceVersion)
	if m.Generation != 0 {
		w.Number(7, m.Generation)
	}
	w.time(8, m.Created.Time)
	w.time(9, m.Deleted.Time)
	if m.GraceSeconds != nil {
		w.Number(10, *m.GraceSeconds)
	}
	w.texts(11, m.Labels)
	w.texts(12, m.Annotations)
	for i := range m.Owners {
		w.Bytes(13, m.Owners[i].marshal())
	}
	for _, f := range m.Finalizers {
		w.Bytes(14, []byte(f))
	}
	return w
}

// marshal writes an OwnerReference.
func (o *Owner) marshal() []byte {
	var w Writer
	w.Text(1, o.Kind)
	w.Text(3, o.Name)
	w.Text(4, o.UID)
	w.Text(5, o.APIVersion)
	w.flag(6, o.Controller)
	w.flag(7, o.BlockOwnerDeletion)
	return w
}

// marshal writes a LeaseSpec.
func (s *Spec) marshal() []byte {
	w := make(Writer, 0, 96)
	w.optional(1, s.Holder)
	if s.DurationSeconds != nil {
		w.Number(2, int64(*s.DurationSeconds))
	}
	w.time(3, s.AcquireTime.Time)
	w.time(4, s.RenewTime.Time)
	if s.Transitions != nil {
		w.Number(5, int64(*s.Transitions))
	}
	w.optional(6, s.Strategy)
	w.optional(7, s.PreferredHolder)
	return w
}
