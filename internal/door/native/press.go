package native

import (
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold"
	v1 "github.com/leasehold/leasehold/api/v1"
)

// A press writes an event once for all who watch. Where two events meet in a
// slot, the later one stays; whoever misses the other writes it again.
type press struct {
	slots [1024]atomic.Pointer[printed]
}

type printed struct {
	event *leasehold.Event
	text  []byte
}

// maxPrinted bounds what a slot keeps, the event with it: all of them together
// hold at most 8 MiB, whatever history has forgotten.
const maxPrinted = 8 << 10

func (p *press) print(e *leasehold.Event) []byte {
	slot := &p.slots[(uint64(e.Revision)+uint64(e.N))%uint64(len(p.slots))]
	if found := slot.Load(); found != nil && found.event == e {
		return found.text
	}
	text := make(jsonBuffer, 0, 288)
	text.message(e, values{})
	if len(text)+valueBytes(e) <= maxPrinted {
		slot.Store(&printed{e, text})
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

// message writes an event as a server-sent one, whose id is its position.
func (p *jsonBuffer) message(e *leasehold.Event, with values) {
	p.id(v1.Position{Revision: uint64(e.Revision), N: e.N})
	*p = append(*p, "data: "...)
	p.event(e, with)
	*p = append(*p, "\n\n"...)
}

func (p *jsonBuffer) id(at v1.Position) {
	*p = at.Append(append(*p, "id: "...))
	*p = append(*p, '\n')
}

// sheets are what batches are written on. A watch has one only while it writes, so
// that a thousand silent ones cost nothing.
var sheets = sync.Pool{New: func() any { return new([]byte) }}

func newSheet() []byte { return (*sheets.Get().(*[]byte))[:0] }

func recycle(sheet []byte) {
	if cap(sheet) <= 2*maxFlush { // a larger one would stay large for ever
		sheets.Put(&sheet)
	}
}
