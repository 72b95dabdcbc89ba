package zookeeper

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// paths makes the paths of one namespace.
//
//	ROOT/l/RESOURCE/ID#SEQUENCE   a lease, or a waiter
//	ROOT/m/SHARD/ID               a mark
type paths struct{ root string }

func newPaths(prefix, namespace string) paths {
	return paths{strings.TrimRight(prefix, "/") + "/" + escaped(namespace)}
}

func (p paths) leases() string                  { return p.root + "/l" }
func (p paths) resource(resource string) string { return p.leases() + "/" + escaped(resource) }

// node is the path to create; ZooKeeper appends the sequence.
func (p paths) node(resource, id string) string {
	return p.resource(resource) + "/" + escaped(id) + "#"
}

// Marks are spread over shards, so that none of them has very many children.
func (p paths) shard(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return fmt.Sprintf("%s/m/%02x", p.root, h.Sum32()%256)
}

func (p paths) mark(id string) string { return p.shard(id) + "/" + escaped(id) }

// A place is a child of a resource: who, and where in the queue.
type place struct {
	name     string
	id       string
	sequence int32
}

// placesOf returns the leases and waiters among the children of a resource, in the order of their
// creation. That is the order of their sequences: they start again only with a new parent, and a
// parent that has children is never deleted. A sequence has 32 bits, and goes on with the smallest
// after the largest, so what counts is the difference.
func placesOf(children []string) []place {
	var places []place
	for _, name := range children {
		at := strings.LastIndexByte(name, '#')
		if at < 0 {
			continue // somebody else's
		}
		id, err := unescaped(name[:at])
		sequence, bad := strconv.ParseInt(name[at+1:], 10, 32)
		if err == nil && bad == nil {
			places = append(places, place{name: name, id: id, sequence: int32(sequence)})
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.sequence-b.sequence, 0), strings.Compare(a.name, b.name))
	})
	return places
}

// escaped makes a name a part of a path. ZooKeeper refuses control characters and some others, a
// slash separates, and a part must not be "." or "..".
func escaped(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c >= 0x7f || c == '%' || c == '/' || c == '#' || c == '.' && i == 0 {
			fmt.Fprintf(&b, "%%%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unescaped(s string) (string, error) { return store.Unescape(s, '%') }
