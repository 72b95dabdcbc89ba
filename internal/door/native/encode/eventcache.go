package encode

import (
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// An EventCache keeps events as they are written, so that each is encoded once for all who watch.
// Where two events meet in a slot, the later one stays; a watch that misses the other encodes it
// again.
type EventCache struct {
	slots [1024]atomic.Pointer[encodedEvent]
}

type encodedEvent struct {
	event *leasehold.Event
	text  []byte
}

// maxEncoded bounds what a slot keeps, the event with it: all of them together hold at most 8 MiB,
// whatever history has forgotten.
const maxEncoded = 8 << 10

// Encode returns an event as it is sent, without the values of its record.
func (c *EventCache) Encode(e *leasehold.Event) []byte {
	slot := &c.slots[(uint64(e.Revision)+uint64(e.N))%uint64(len(c.slots))]
	if found := slot.Load(); found != nil && found.event == e {
		return found.text
	}
	text := AppendMessage(make([]byte, 0, 288), e, Values{})
	if len(text)+valueBytes(e) <= maxEncoded {
		slot.Store(&encodedEvent{e, text})
	}
	return text
}

func valueBytes(e *leasehold.Event) (n int) {
	for _, r := range []*leasehold.Record{e.Record, e.Previous} {
		if r != nil {
			n += len(r.Value)
		}
	}
	return n
}

// AppendMessage writes an event as a server-sent one, whose id is its position.
func AppendMessage(out []byte, e *leasehold.Event, with Values) []byte {
	out = append(AppendID(out, v1.Position{Revision: uint64(e.Revision), N: e.N}), "data: "...)
	b := New(out, JSON)
	b.Event(e, with)
	return append(b.Bytes, "\n\n"...)
}

// AppendID writes the id of a server-sent event.
func AppendID(out []byte, at v1.Position) []byte {
	return append(at.Append(append(out, "id: "...)), '\n')
}

// batches are the buffers that events are collected in. A watch has one only while it writes, so that a thousand
// silent ones cost nothing.
var batches = sync.Pool{New: func() any { return new([]byte) }}

// NewBatch returns a buffer for events.
func NewBatch() []byte { return (*batches.Get().(*[]byte))[:0] }

// Recycle takes a buffer back.
func Recycle(buffer []byte) {
	if cap(buffer) <= 2*MaxFlush { // a larger one would stay large for ever
		batches.Put(&buffer)
	}
}

// MaxFlush is where a write of events is cut short: it bounds what a slow reader costs.
const MaxFlush = 256 << 10
