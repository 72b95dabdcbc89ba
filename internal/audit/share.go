package audit

import (
	"encoding/binary"

	"github.com/leasehold/leasehold"
)

// What a hold had of a pool, and its bytes. Holds of other resources have none: their lines are as they were before
// there were pools.

// appendShare writes a share, if there is one.
func appendShare(b []byte, s *leasehold.Share) []byte {
	if s.Units == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(s.Units))
	b = binary.AppendUvarint(b, uint64(len(s.Labels)))
	for _, l := range s.Labels {
		b = appendText(appendText(b, l.Key), l.Value)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Hosts)))
	for _, h := range s.Hosts {
		b = binary.AppendUvarint(appendText(b, h.Host), uint64(h.Units))
	}
	return b
}

// share reads what appendShare wrote, where there is something.
func (r *reader) share() (s leasehold.Share) {
	s.Units = r.count()
	for n := r.length(); n > 0 && !r.bad; n-- {
		s.Labels = append(s.Labels, leasehold.Label{Key: r.text(), Value: r.text()})
	}
	for n := r.length(); n > 0 && !r.bad; n-- {
		s.Hosts = append(s.Hosts, leasehold.HostUnits{Host: r.text(), Units: r.count()})
	}
	r.bad = r.bad || s.Units == 0
	return s
}

// count reads how many units there are. No pool has more than the limit.
func (r *reader) count() int {
	n := r.unsigned()
	if n > leasehold.MaxPoolUnits {
		r.bad = true
		return 0
	}
	return int(n)
}

// length reads how many things follow. Each has a byte at least, so there are no more than what is left has bytes.
func (r *reader) length() uint64 {
	n := r.unsigned()
	if n > uint64(len(r.s)) {
		r.bad = true
		return 0
	}
	return n
}
