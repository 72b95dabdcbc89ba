package cluster

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/leasehold/leasehold/internal/engine/replica"
)

// What servers send each other. The numbers and forms are shared by versions that run side by
// side during an upgrade: add at the end only.
const (
	messageRaft   byte = iota + 1 // one of raft's, as protobuf
	messageRelay                  // commands of callers, for the leader
	messagePlaces                 // where in the log they are
	messageHealth                 // how the sender does
)

// The large files that they send each other.
const (
	streamSnapshot byte = iota + 1
	streamValue
)

// maxRelayBytes is how much of a relay is in one message.
const maxRelayBytes = 1 << 20

var errMessage = errors.New("the message is damaged")

// appendRelay writes a relay.
func appendRelay(b []byte, r replica.Relay) []byte {
	b = binary.AppendUvarint(b, r.First)
	b = binary.AppendUvarint(b, uint64(len(r.Commands)))
	for _, c := range r.Commands {
		b = binary.AppendUvarint(b, uint64(len(c)))
		b = append(b, c...)
	}
	return b
}

func decodeRelay(b []byte) (replica.Relay, error) {
	d := decoder{left: b}
	r := replica.Relay{First: d.uvarint()}
	for range d.count() {
		r.Commands = append(r.Commands, d.bytes())
	}
	return r, d.end()
}

// appendPlaces writes placements.
func appendPlaces(b []byte, places []replica.Placement) []byte {
	b = binary.AppendUvarint(b, uint64(len(places)))
	for _, p := range places {
		b = binary.AppendUvarint(b, p.ID)
		b = binary.AppendUvarint(b, p.Index)
		b = binary.AppendUvarint(b, p.Term)
		b = binary.AppendUvarint(b, uint64(p.At))
	}
	return b
}

func decodePlaces(b []byte) ([]replica.Placement, error) {
	d := decoder{left: b}
	var places []replica.Placement
	for range d.count() {
		p := replica.Placement{ID: d.uvarint(), Index: d.uvarint(), Term: d.uvarint()}
		at := d.uvarint()
		if at > math.MaxInt32 {
			return nil, errMessage
		}
		p.At = int(at)
		places = append(places, p)
	}
	return places, d.end()
}

// health is how a server is doing, as it reports every second.
type health struct {
	applied uint64
	lowRoom bool
	lacks   bool // it may not have all large values that its state names
}

func appendHealth(b []byte, h health) []byte {
	b = binary.AppendUvarint(b, h.applied)
	flags := uint64(0)
	if h.lowRoom {
		flags = 1
	}
	if h.lacks {
		flags |= 2
	}
	return binary.AppendUvarint(b, flags)
}

// decodeHealth ignores whatever a newer version adds at the end.
func decodeHealth(b []byte) (health, error) {
	d := decoder{left: b}
	h := health{applied: d.uvarint()}
	flags := d.uvarint()
	h.lowRoom, h.lacks = flags&1 != 0, flags&2 != 0
	return h, d.err
}

// A decoder reads a message. After the first error it reads nothing more, so callers check
// once, at the end.
type decoder struct {
	left []byte
	err  error
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.left)
	if n <= 0 {
		d.left, d.err = nil, errMessage
		return 0
	}
	d.left = d.left[n:]
	return v
}

// count reads how many items follow. Each takes at least a byte, so a number that cannot be
// right is refused before anything is allocated for it.
func (d *decoder) count() uint64 {
	n := d.uvarint()
	if n > uint64(len(d.left)) {
		d.left, d.err = nil, errMessage
		return 0
	}
	return n
}

func (d *decoder) bytes() []byte {
	n := d.count()
	b := d.left[:n:n]
	d.left = d.left[n:]
	return b
}

func (d *decoder) end() error {
	if d.err == nil && len(d.left) > 0 {
		return errMessage
	}
	return d.err
}
