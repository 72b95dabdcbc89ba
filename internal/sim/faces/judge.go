// Package faces is the simulator's own judge of records that stand for leases. It follows commands and events, and
// knows what is promised: such a record is there as long as its lease or wait, and no longer; and below a mirror prefix
// all who have or want the resource have one, created in the order of the queue.
package faces

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
)

// A Judge follows one log.
type Judge struct {
	violated func(format string, args ...any)
	claims   map[spot]string            // the resource of each lease and waiter
	lines    map[spot][]string          // who has a resource and who waits for it, by id
	mirrors  map[spot]string            // the prefixes of mirrored resources
	records  map[spot]*leasehold.Record // that stand for something, by its id
}

type spot struct{ space, name string }

// New returns a judge of an empty log.
func New(violated func(format string, args ...any)) *Judge {
	return &Judge{violated, map[spot]string{}, map[spot][]string{}, map[spot]string{}, map[spot]*leasehold.Record{}}
}

// Clone returns a judge of another log that begins as this one.
func (j *Judge) Clone() *Judge {
	c := &Judge{j.violated, maps.Clone(j.claims), map[spot][]string{}, maps.Clone(j.mirrors), maps.Clone(j.records)}
	for at, line := range j.lines {
		c.lines[at] = slices.Clone(line)
	}
	return c
}

// Follow takes an event of a command.
func (j *Judge) Follow(c core.Command, e *leasehold.Event) {
	id, at := spot{e.Namespace, e.ID}, spot{e.Namespace, e.Resource}
	switch e.Kind {
	case leasehold.Queued, leasehold.Acquired:
		if put, ok := c.(*core.PutRecord); ok && put.Link != nil && put.Link.ID == e.ID {
			j.mirror(put)
		}
		if j.claims[id] == "" {
			j.claims[id], j.lines[at] = e.Resource, append(j.lines[at], e.ID)
		}
	case leasehold.Changed:
		was := e.ID
		if change, ok := c.(*core.Change); ok {
			was = change.ID
		}
		delete(j.claims, spot{e.Namespace, was})
		j.claims[id] = e.Resource
		j.lines[at][slices.Index(j.lines[at], was)] = e.ID
	case leasehold.Ended, leasehold.Left:
		delete(j.claims, id)
		j.lines[at] = slices.DeleteFunc(j.lines[at], func(other string) bool { return other == e.ID })
		if len(j.lines[at]) == 0 {
			delete(j.lines, at)
			delete(j.mirrors, at)
		}
	case leasehold.RecordPut, leasehold.RecordDeleted:
		j.record(c, e)
	}
}

// mirror follows a put that may make a resource a mirrored one.
func (j *Judge) mirror(put *core.PutRecord) {
	if put.Link.Mirror != "" {
		j.mirrors[spot{put.Namespace, put.Link.Resource}] = put.Link.Mirror
	}
}

func (j *Judge) record(c core.Command, e *leasehold.Event) {
	j.begins(c, e)
	if e.Previous != nil {
		delete(j.records, spot{e.Namespace, e.Previous.Lease})
	}
	if e.Record == nil || e.Record.Lease == "" {
		return
	}
	j.records[spot{e.Namespace, e.Record.Lease}] = e.Record
}

// begins follows the records of those who are there already: they come before that of the put which mirrors a
// resource.
func (j *Judge) begins(c core.Command, e *leasehold.Event) {
	put, ok := c.(*core.PutRecord)
	if ok && put.Link != nil && e.Record != nil && e.Record.Lease != "" &&
		j.claims[spot{e.Namespace, e.Record.Lease}] == put.Link.Resource {
		j.mirror(put)
	}
}

// Unasked reports whether a record may be put although no command put it: it was made for a claim on a mirrored
// resource, or its claim has ended and it stays as it was.
func (j *Judge) Unasked(c core.Command, e *leasehold.Event) bool {
	j.begins(c, e)
	r, before := e.Record, e.Previous
	if e.How != 0 {
		return before != nil && r.Value == before.Value && before.Lease != "" && r.Lease == "" && r.Session == ""
	}
	prefix := j.mirrors[spot{e.Namespace, j.claims[spot{e.Namespace, r.Lease}]}]
	return prefix != "" && before == nil && strings.HasPrefix(r.Path, prefix)
}

// Mirrored reports whether the leases on a resource show as records.
func (j *Judge) Mirrored(space, resource string) bool { return j.mirrors[spot{space, resource}] != "" }

// sorted returns what a map has, in an order that is the same each time.
func sorted[V any](m map[spot]V) []spot {
	return slices.SortedFunc(maps.Keys(m), func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.space, b.space), cmp.Compare(a.name, b.name))
	})
}

// Check looks at everything after an entry.
func (j *Judge) Check() {
	for _, id := range sorted(j.records) {
		if r := j.records[id]; j.claims[id] == "" {
			j.violated("%s stands for %s, which is not there", r.Path, r.Lease)
			return
		}
	}
	for _, at := range sorted(j.mirrors) {
		last, prefix := leasehold.Revision(0), j.mirrors[at]
		for _, id := range j.lines[at] {
			r := j.records[spot{at.space, id}]
			switch {
			case r == nil:
				j.violated("%s has or wants %s, which is mirrored, and has no record", id, at.name)
				return
			case r.Create <= last || !strings.HasPrefix(r.Path, prefix):
				j.violated("%s of %s was created at %d, after one at %d", r.Path, id, r.Create, last)
				return
			}
			last = r.Create
		}
	}
}
