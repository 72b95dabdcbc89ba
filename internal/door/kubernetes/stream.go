package kubernetes

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/door/kubernetes/object"
)

// The types of events.
const (
	added      = "ADDED"
	changed    = "MODIFIED"
	deleted    = "DELETED"
	bookmarked = "BOOKMARK"
	failed     = "ERROR"
)

// initialEnd is the annotation of the bookmark behind all that was there when a watch began.
const initialEnd = "k8s.io/initial-events-end"

// appendEvent writes an event: a line of JSON, or a message of protobuf behind its length.
func (s *stream) appendEvent(out []byte, kind string, a answer) []byte {
	text := s.form.bytesOf(a)
	if !s.form.protobuf {
		out = append(append(append(out, `{"type":"`...), kind...), `","object":`...)
		return append(append(out, text...), "}\n"...)
	}
	var raw, event object.Writer
	raw.Bytes(1, text)
	event.Text(1, kind)
	event.Bytes(2, raw)
	return append(binary.BigEndian.AppendUint32(out, uint32(len(event))), event...)
}

// event writes what happened to a record, as the reader sees it: an object that no longer has the labels that it wants
// is gone for it.
func (s *stream) event(e *leasehold.Event) {
	plain := s.form.as == "" && len(s.query.labels) == 0
	if plain && s.query.fields.Name == "" {
		s.out = append(s.out, s.door.events.encode(s, e)...)
		return
	}
	s.out = append(s.out, s.encodeEvent(e)...)
}

// encodeEvent returns an event in the form that the reader wants; nothing if the event means nothing to it.
func (s *stream) encodeEvent(e *leasehold.Event) []byte {
	now := s.object(e.Record, e.Holder)
	if e.Kind == leasehold.RecordDeleted {
		now = nil
	}
	var was *object.Lease
	if now == nil || e.Previous != nil && len(s.query.labels) > 0 {
		was = s.object(e.Previous, e.Holder)
	}
	switch {
	case now == nil && was == nil:
		return nil
	case now == nil:
		was.Meta.ResourceVersion = revisionText(e.Revision)
		return s.appendEvent(nil, deleted, s.shaped(was))
	case e.Previous == nil || len(s.query.labels) > 0 && was == nil:
		return s.appendEvent(nil, added, s.shaped(now))
	}
	return s.appendEvent(nil, changed, s.shaped(now))
}

// appendBookmark tells the reader how far it has come.
func (s *stream) appendBookmark(revision leasehold.Revision, first bool) {
	l := &object.Lease{Meta: object.Meta{ResourceVersion: revisionText(revision)}}
	if first {
		l.Annotate(initialEnd, "true")
	}
	a := s.shaped(l)
	if t, ok := a.(*table); ok {
		t.Rows = []row{}
	}
	s.out = s.appendEvent(s.out, bookmarked, a)
	s.told = revision
}

// appendError tells the reader why its watch ends.
func (s *stream) appendError(err error) { s.out = s.appendEvent(s.out, failed, s.statusOf(err)) }

// An eventCache keeps events as they are written, so that each is encoded once for all who watch in one form. Where
// two events meet in a slot, the later one stays; a watch that misses the other encodes it again.
type eventCache struct {
	slots [2][512]atomic.Pointer[encodedEvent]
}

// An encodedEvent is an event as it is sent. It is found by the event itself: a position may come back after a restore.
type encodedEvent struct {
	event *leasehold.Event
	text  []byte
}

// maxEncoded bounds what a slot keeps: all of them together hold at most 8 MiB.
const maxEncoded = 8 << 10

// encode returns an event in the form of a stream that wants all objects of its kind.
func (c *eventCache) encode(s *stream, e *leasehold.Event) []byte {
	slots := &c.slots[0]
	if s.form.protobuf {
		slots = &c.slots[1]
	}
	slot := &slots[(uint64(e.Revision)+uint64(e.N))%uint64(len(slots))]
	if found := slot.Load(); found != nil && found.event == e {
		return found.text
	}
	text := s.encodeEvent(e)
	if len(text) <= maxEncoded {
		slot.Store(&encodedEvent{e, text})
	}
	return text
}
