package etcd

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/door"
	"github.com/leasehold/leasehold/internal/id"
)

// A key P/LEASE that is attached to that very lease, with its id in hexadecimal digits, is how etcd's libraries write a
// lock or a candidate. It is put together with a claim on the resource P, and the two end together. Everybody who has
// or wants P through another door shows as a key below P/ from then on, and the order in which these keys were created
// is the order in which they get it: so etcd's own algorithm finds the same holder as we do.

// put translates a put.
func (t *translation) put(r *pb.PutRequest, known []*pb.Compare) core.Op {
	t.keeps = t.keeps || r.IgnoreLease || r.IgnoreValue
	t.binds = t.binds || r.Lease != 0
	op := core.Op{Do: core.Put, Path: string(r.Key), Value: string(r.Value), Session: sessionOf(r.Lease),
		Before: r.PrevKv, KeepValue: r.IgnoreValue, KeepSession: r.IgnoreLease, KeepLink: r.IgnoreLease}
	link := t.link(r, &op)
	if link == nil {
		return op
	}
	again := op
	again.KeepLink = true // it is the face of a claim already, or a key that was there before
	if op.Link = link; op.KeepValue {
		return again
	}
	for _, c := range known {
		if string(c.Key) == op.Path && len(c.RangeEnd) == 0 && c.Result == pb.Compare_EQUAL {
			switch {
			case c.Target == pb.Compare_CREATE && c.GetCreateRevision() == 0,
				c.Target == pb.Compare_MOD && c.GetModRevision() == 0,
				c.Target == pb.Compare_VERSION && c.GetVersion() == 0:
				return op
			case c.Target == pb.Compare_CREATE && c.GetCreateRevision() > 1:
				return again
			}
		}
	}
	return core.Op{Do: core.Nested, Txn: &core.Txn{
		If:   []core.Compare{{What: core.RecordCreate, Is: core.Equal, Path: op.Path}},
		Then: []core.Op{op}, Else: []core.Op{again},
	}}
}

// link returns the claim that a key is; nil if it is none. op is the put, as far as it is translated.
func (t *translation) link(r *pb.PutRequest, op *core.Op) *core.Link {
	resource, prefix, ok := claimOf(op.Path, r.Lease)
	if !ok {
		return nil
	}
	link := &core.Link{Resource: resource, ID: op.Session + "-" + id.New(), Wait: true, Mirror: prefix,
		MayExpire: true}
	if len(op.Value) <= maxHolder && readable(op.Value) {
		link.Holder = op.Value // what a candidate proclaims is who it is
	} else {
		link.Holder = callOf(t.ctx).holder()
	}
	if len(op.Path) <= leasehold.MaxForeign {
		link.Foreign = op.Path
	}
	return link
}

// claimOf returns the resource that a key is a claim on, and what the keys of all claims on it begin with.
func claimOf(key string, lease int64) (resource, prefix string, ok bool) {
	slash := strings.LastIndexByte(key, '/')
	var digits [leaseDigits + 1]byte // of a negative one, too
	if lease == 0 || slash < 0 || key[slash+1:] != string(strconv.AppendInt(digits[:0], lease, 16)) {
		return "", "", false
	}
	resource, prefix = strings.Trim(key[:slash], "/"), key[:slash+1]
	bad := door.First(door.CheckName("resource", resource, leasehold.MaxName), door.CheckSegments("resource", resource))
	return resource, prefix, bad == nil && len(prefix) <= leasehold.MaxMirror
}

// maxHolder is how long a value may be that is the name of a holder.
const maxHolder = 256

// readable reports whether a text can be shown to people.
func readable(s string) bool {
	return s != "" && utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// holder is how the caller is called who takes a lock without a name.
func (c *call) holder() string {
	if c == nil || c.address == "" {
		return "etcd client"
	}
	return "etcd client at " + c.address
}
