package etcd

import (
	"strconv"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/engine"
)

// Revisions. An empty etcd is at revision 1, and no answer ever shows 0; a namespace in which nothing happened is at 0.
// So etcd's revisions are those of the namespace plus one. To show 1 for 0 and all others as they are would not do: a
// client that reads at 1, and watches from 2 on, would miss what the first command did.

func shown(r leasehold.Revision) int64 { return int64(r) + 1 }

// internal returns the revision of the namespace that a client names. What is below the first one is 0.
func internal(r int64) leasehold.Revision { return leasehold.Revision(max(0, r-1)) }

// before returns the position after which a watch begins that wants everything from a revision on.
func before(r int64) engine.Position {
	return engine.Position{Revision: internal(r - 1), N: core.AllOf}
}

// Leases. An etcd lease is a session whose id is the lease's in 16 hexadecimal digits.

const leaseDigits = 16

func sessionOf(lease int64) string {
	if lease == 0 {
		return ""
	}
	var digits [leaseDigits]byte
	for i, left := leaseDigits-1, uint64(lease); i >= 0; i, left = i-1, left>>4 {
		digits[i] = "0123456789abcdef"[left&0xf]
	}
	return string(digits[:])
}

// leaseOf returns the lease that a session is; 0 if it was not opened by a client of etcd.
func leaseOf(session string) int64 {
	if len(session) != leaseDigits {
		return 0
	}
	for i := range len(session) {
		if c := session[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return 0
		}
	}
	n, _ := strconv.ParseUint(session, 16, 64)
	return int64(n)
}

// late is how much longer than its TTL an etcd lease lasts. Its clients count from the arrival of the answer, and not
// from when they sent the request, so they believe in it for that much longer than the server would.
const late = time.Second

const maxTTL = 9_000_000_000 // seconds, as in etcd

// ttlOf returns the TTL of a session for one that was asked for in seconds, and the one that is granted. There is no
// least one but a second.
func ttlOf(seconds int64) (session time.Duration, granted int64, err error) {
	if seconds > maxTTL {
		return 0, 0, rpctypes.ErrGRPCLeaseTTLTooLarge
	}
	granted = min(max(1, seconds), int64((leasehold.MaxTTL-late)/time.Second))
	return time.Duration(granted)*time.Second + late, granted, nil
}

// secondsOf returns how many whole seconds a client still has of what a session has.
func secondsOf(d time.Duration) int64 { return int64(max(0, d-late) / time.Second) }

// Keys. A key is the path of a record.

// A span is a range of keys.
type span struct {
	from, to string // empty: to the end
	one      bool   // from alone, and there is no to
}

// spanOf returns the keys that a request names. A range that ends before it begins has none.
func spanOf(key, end []byte) (s span, some bool) {
	switch {
	case len(end) == 0:
		return span{from: string(key), one: true}, true
	case len(end) == 1 && end[0] == 0:
		return span{from: string(key)}, true
	}
	s = span{from: string(key), to: string(end)}
	return s, s.from < s.to
}

// holds reports whether a key is in the span.
func (s span) holds(key string) bool {
	if s.one {
		return key == s.from
	}
	return key >= s.from && (s.to == "" || key < s.to)
}

// end returns the first key behind the span; empty if there is none.
func (s span) end() string {
	if s.one {
		return s.from + "\x00"
	}
	return s.to
}

// asked returns the span as commands name it, where some says whether there are any keys in it.
func (s span) asked(some bool) (path, to string, isRange bool) {
	if !some {
		return s.from, s.from, true
	}
	return s.from, s.to, !s.one
}

// checkKey refuses a key that no record can have.
func checkKey(key []byte) error {
	if len(key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	if len(key) > leasehold.MaxName {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
}

// keyValue shows a record as etcd does. One with a large value is shown without it: only the doors that write such
// values can read them.
func keyValue(r *leasehold.Record, keysOnly bool) *mvccpb.KeyValue {
	kv := &mvccpb.KeyValue{
		Key: []byte(r.Path), CreateRevision: shown(r.Create), ModRevision: shown(r.Mod), Version: int64(r.Version),
		Lease: leaseOf(r.Session),
	}
	if !keysOnly && r.Value != "" {
		kv.Value = []byte(r.Value)
	}
	return kv
}

// previous is keyValue for a record that may not have been there.
func previous(r *leasehold.Record) *mvccpb.KeyValue {
	if r == nil {
		return nil
	}
	return keyValue(r, false)
}

// eventOf shows what happened to a record.
func eventOf(e *leasehold.Event, withPrevious bool) *mvccpb.Event {
	shownEvent := &mvccpb.Event{Type: mvccpb.Event_PUT}
	if e.Kind == leasehold.RecordDeleted {
		shownEvent.Type = mvccpb.Event_DELETE
		shownEvent.Kv = &mvccpb.KeyValue{Key: []byte(e.Resource), ModRevision: shown(e.Revision)}
	} else {
		shownEvent.Kv = keyValue(e.Record, false)
	}
	if withPrevious {
		shownEvent.PrevKv = previous(e.Previous)
	}
	return shownEvent
}

// header is that of an answer.
func (d *Door) header(r leasehold.Revision) *pb.ResponseHeader {
	d.noteRevision(r)
	return d.headerAt(shown(r))
}

// headerAt is header for a revision as it is shown.
func (d *Door) headerAt(r int64) *pb.ResponseHeader {
	who := d.identity()
	return &pb.ResponseHeader{ClusterId: who.cluster, MemberId: who.member, RaftTerm: who.term.Load(), Revision: r}
}
