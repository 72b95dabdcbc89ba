package records

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
	"github.com/leasehold/leasehold/internal/pattern"
)

// In some protocols a queue is nothing but records below a prefix: who created the oldest believes that it holds. A
// resource that is claimed through such a record is mirrored: while it has any claim, every one of them, by whichever
// door it came, has a record below the prefix, and the order in which these were created is that of the holder and
// its queue. So no two of them are created at one revision, and what would change the order is refused.

// Mirrored returns the prefix of the records of a mirrored resource; empty if it is none.
func (s *records) Mirrored(path string) string {
	prefix, _ := s.mirrors.Get(path)
	if prefix == path {
		return "" // one record stands for its holder
	}
	return prefix
}

// setMirror notes below which prefix a resource is mirrored; its own path: one record shows who holds it.
func (s *records) setMirror(k kernel.Turn, path, prefix string) {
	if _, known := s.mirrors.Set(path, prefix); !known {
		k.CountMirrors(1)
	}
}

func (s *records) Unmirror(path string) (was bool) {
	if !s.ShowsHolder(path) {
		_, was = s.mirrors.Delete(path)
	}
	return was
}

// mayMirror refuses a link that does not fit the resource: where it is mirrored, or is to be.
func (s *records) mayMirror(k kernel.Turn, todo *plan, l *kernel.Link) *leasehold.Error {
	prefix := s.Mirrored(l.Resource)
	switch {
	case prefix == l.Mirror && prefix != "":
		return nil
	case prefix != "":
		return refuse(leasehold.Refused, "%s shows its leases and waiters as records below %s: another record cannot "+
			"stand for one of them", l.Resource, prefix)
	case l.Mirror == "", l.Stands():
		return nil
	case s.ShowsHolder(l.Resource):
		return notMirrored(l.Resource, "a record of its own path stands for its holder")
	}
	r := k.Settle(l.Resource)
	d := k.Definition(l.Resource)
	switch {
	case d.Capacity > 0 || len(d.Units) > 0 || k.HasPool(l.Resource):
		return notMirrored(l.Resource, "it is defined with slots, and several may hold it at once")
	case r == nil:
		return nil
	case r.Sharers() > 0 || r.AgreedSlots() > 0:
		return notMirrored(l.Resource, "several may hold it at once")
	case todo.shown+r.Waiting+1 > leasehold.MaxMirrored:
		return refuse(leasehold.Limited, "%s has %d waiters: at most %d can become records at once, by all that a "+
			"transaction puts", l.Resource, r.Waiting, leasehold.MaxMirrored)
	}
	todo.shown += r.Waiting + 1
	return inOrder(k, r)
}

// mayBegin is mayMirror for a claim that is new.
func (s *records) mayBegin(k kernel.Turn, todo *plan, l *kernel.Link, put *record.Write) *leasehold.Error {
	if failure := noLinkedPattern(l); failure != nil {
		return failure
	}
	if failure := s.mayMirror(k, todo, l); failure != nil || l.Mirror == "" || l.Stands() {
		return failure
	}
	if failure := mayRest(k, l); failure != nil {
		return failure
	}
	return s.roomForMirror(k, l, put)
}

// noLinkedPattern refuses a record that would stand for a lease on a path of an area: what a transaction takes is
// judged one by one, and might overlap.
func noLinkedPattern(l *kernel.Link) *leasehold.Error {
	if !pattern.In(l.Resource) {
		return nil
	}
	return refuse(leasehold.Refused, "%s is a path in an area: no record stands for a lease on it", l.Resource)
}

// mayRest refuses a link to a mirrored resource that is not given to the next at once, now or after an unclean end:
// the client with the first record would believe that it holds.
func mayRest(k kernel.Turn, l *kernel.Link) *leasehold.Error {
	d := k.Definition(l.Resource)
	switch {
	case k.Quarantined():
		return notMirrored(l.Resource, k.WhyQuarantined())
	case l.Grace > 0 || d.Grace > 0 || d.Unclean == leasehold.AwaitAcknowledgement:
		return notMirrored(l.Resource, "it rests after an unclean end, and the first of them would not")
	}
	if r := k.Resource(l.Resource); r != nil {
		if slots, all := r.Rests(k.Now()); all || slots > 0 {
			return notMirrored(l.Resource, "it rests after an unclean end: try again when that is over")
		}
	}
	return nil
}

// maxRenamed is how many claims may need another name than their id when a resource becomes a mirrored one.
const maxRenamed = 32

// roomForMirror refuses to begin to mirror a resource if there is no room for the records of those who have it or want
// it, beside what is put.
func (s *records) roomForMirror(k kernel.Turn, l *kernel.Link, put *record.Write) (refused *leasehold.Error) {
	r := k.Resource(l.Resource)
	if r == nil || s.Mirrored(l.Resource) != "" {
		return nil
	}
	writes, renamed, prefix := []record.Write{*put}, 0, l.Mirror
	claimsOn(k.Namespace, r, func(c *kernel.Claim) bool {
		path := prefix + escaped(c.ID)
		if s.taken(path) {
			renamed++
			path = s.madePath(k, prefix, c.ID)
		}
		writes = append(writes, record.Write{Path: path, Value: c.Holder})
		if refused = k.RoomIn(c.Session, r.Waiting+1); refused == nil && renamed > maxRenamed {
			refused = notMirrored(r.Path, fmt.Sprintf("records are below %s already, by the ids of more than %d who "+
				"have it or want it: delete them first", prefix, maxRenamed))
		}
		return refused == nil
	})
	if refused != nil {
		return refused
	}
	return s.roomForMade(k, writes)
}

// roomForMade refuses records that are made for claims, if there is no room for them. They are nobody's, and count for
// their namespace alone.
func (s *records) roomForMade(k kernel.Turn, writes []record.Write) *leasehold.Error {
	if failure := s.store.Room(&s.table, writes); failure != nil {
		return failure
	}
	return k.MadeWithinQuotas(writes)
}

// inOrder refuses to mirror claims that have another order than that in which they came, or have records elsewhere.
func inOrder(k kernel.Turn, r *kernel.Resource) (refused *leasehold.Error) {
	claimsOn(k.Namespace, r, func(c *kernel.Claim) bool {
		k.Take(kernel.LookCost)
		switch {
		case c.Linked() != nil:
			refused = notMirrored(r.Path, fmt.Sprintf("%s stands for one of its leases", c.Linked().Path))
		case c.Waiting() && c.Wait.Priority != 0:
			refused = notMirrored(r.Path, "somebody waits for it with a priority")
		case c.Waiting() && c.Wait.With != nil:
			refused = notMirrored(r.Path, "somebody waits for it together with others")
		case c.Terms != nil && c.Terms.Grace > 0:
			refused = notMirrored(r.Path, "it rests after an unclean end of one of its leases")
		}
		return refused == nil
	})
	return refused
}

func notMirrored(path, why string) *leasehold.Error {
	return refuse(leasehold.Refused, "%s cannot show as records in the order of its queue: %s", path, why)
}

// claimsOn calls yield with the exclusive lease on a resource, and then with its waiters in their order, until it
// returns false.
func claimsOn(n kernel.Namespace, r *kernel.Resource, yield func(*kernel.Claim) bool) {
	if c := n.Claim(r.Claim); c != nil && !yield(c) || r.Waiting == 0 {
		return
	}
	n.Waiters(r.Path, yield)
}

// MayAcquire refuses an acquire that would disturb the order of a mirrored resource, or for whose record there is no
// room; nil if it may.
func (s *records) MayAcquire(
	k kernel.Turn, c *kernel.Acquire, items []kernel.Item, claims []*kernel.Claim,
) *leasehold.Error {
	var writes []record.Write
	for i, item := range items {
		prefix := s.Mirrored(item.Resource)
		if prefix == "" {
			continue
		}
		why := ""
		switch {
		case item.Slots != 0:
			why = "it cannot be shared"
		case c.Priority != 0:
			why = "nobody goes before others"
		case len(items) > 1 && c.Wait != 0:
			why = "it cannot be waited for together with others"
		case c.Grace > 0:
			why = "it cannot rest after a lease"
		}
		if why != "" {
			return outOfOrder(item.Resource, prefix, why)
		}
		writes = append(writes, record.Write{Path: s.madePath(k, prefix, item.ID), Value: claims[i].Holder})
	}
	if len(writes) == 0 {
		return nil
	}
	if failure := k.RoomIn(c.Session, len(items)+len(writes)); failure != nil {
		return failure
	}
	return s.roomForMade(k, writes)
}

func outOfOrder(path, prefix, why string) *leasehold.Error {
	return refuse(leasehold.Refused, "%s shows its queue as records below %s, in the order in which they were "+
		"created: %s", path, prefix, why)
}

func (s *records) StaysInOrder(c *kernel.Claim, what string) *leasehold.Error {
	prefix := s.Mirrored(c.Resource)
	if prefix == "" {
		return nil
	}
	return outOfOrder(c.Resource, prefix, what)
}

// beginMirrors makes resources mirrored ones, if puts say so, before anything else is changed: what the command puts
// has one revision. From here on no record is made where one is put.
func (s *records) beginMirrors(k kernel.Turn, puts []putting) {
	linked := false
	for i := range puts {
		linked = linked || puts[i].link != nil
	}
	if !linked && (len(puts) == 0 || s.mirrors.Len() == 0) {
		return
	}
	for i := range puts {
		s.store.hand.reserved = append(s.store.hand.reserved, puts[i].write.Path)
	}
	for i := range puts {
		if l := puts[i].link; l != nil {
			s.beginMirror(k, l)
		}
	}
}

// forgetReserved ends what beginMirrors began.
func (s *records) forgetReserved() { s.store.hand.reserved = s.store.hand.reserved[:0] }

// beginMirror makes a resource a mirrored one. Whoever has it or waits for it already gets a record, each at a revision
// of its own, all of them before that of what is put now.
func (s *records) beginMirror(k kernel.Turn, l *kernel.Link) {
	if l.Mirror == "" || s.Mirrored(l.Resource) != "" {
		return
	}
	s.setMirror(k, l.Resource, l.Mirror)
	r := k.Resource(l.Resource)
	if r == nil || l.Stands() {
		return
	}
	var claims []*kernel.Claim
	claimsOn(k.Namespace, r, func(c *kernel.Claim) bool { claims = append(claims, c); return true })
	for _, c := range claims {
		shown := k.Link(c, &kernel.LinkedRecord{Path: s.madePath(k, l.Mirror, c.ID), Made: true})
		k.ReviseAgain()
		s.showClaim(k, shown)
	}
	if len(claims) > 0 {
		k.ReviseLater() // what is put now has the next revision
	}
}

// LinkClaims gives new claims on mirrored resources their records, which ShowClaims makes.
func (s *records) LinkClaims(k kernel.Turn, claims []*kernel.Claim) {
	for _, c := range claims {
		if prefix := s.Mirrored(c.Resource); prefix != "" && c.Linked() == nil {
			c.SetLinked(&kernel.LinkedRecord{Path: s.madePath(k, prefix, c.ID), Made: true})
		}
	}
}

func (s *records) ShowClaims(k kernel.Turn, claims []*kernel.Claim) {
	for _, c := range claims {
		if f := c.Linked(); f != nil && f.Made && !f.Stay {
			s.showClaim(k, c)
		}
	}
}

func (s *records) showClaim(k kernel.Turn, c *kernel.Claim) {
	w := record.Write{Path: c.Linked().Path, Value: c.Holder, Session: c.Session, Lease: c.ID, Holder: c.Holder}
	s.setRecord(k, w, writing{token: c.Token, made: true})
}

// madePath returns where the record of a claim is made: below the prefix, by the id of the claim, which people know.
func (s *records) madePath(k kernel.Turn, prefix, id string) string {
	path := prefix + escaped(id)
	if len(path) > leasehold.MaxName-maxSuffix {
		path = path[:leasehold.MaxName-maxSuffix]
	} else if !s.taken(path) {
		return path
	}
	if next := fmt.Sprintf("%s~%d", path, k.Revision()); !s.taken(next) {
		return next
	}
	return s.numberedPath(k, path)
}

// numberedPath returns a path with a number that is not taken, however many are: it halves a range of more numbers than
// there can be records, each time to a half in which some are left.
func (s *records) numberedPath(k kernel.Turn, path string) string {
	numbered := func(n int64) string { return fmt.Sprintf("%s~%013d", path, n) }
	from := int64(0)
	for size := int64(1) << 39; size > 0; size /= 2 {
		if s.takenIn(k, numbered(from), numbered(from+size)) >= size {
			from += size
		}
	}
	return numbered(from)
}

// takenIn counts the paths of a range that have records, or get one by the command.
func (s *records) takenIn(k kernel.Turn, from, to string) int64 {
	k.Take(kernel.LookCost)
	n := s.table.Count(record.Query{From: from, To: to})
	for _, path := range s.store.hand.reserved {
		if from <= path && path < to {
			n++
		}
	}
	return int64(n)
}

// taken reports whether a path has a record, or gets one by the command.
func (s *records) taken(path string) bool {
	_, taken := s.table.Get(path)
	return taken || slices.Contains(s.store.hand.reserved, path)
}

// maxSuffix is how many bytes a path has in addition that would be taken, or too long.
const maxSuffix = 24

// escaped writes an id as one segment of a path.
func escaped(id string) string {
	plain := func(b byte) bool { return b > ' ' && b != '/' && b != '%' && b != 0x7f }
	for i := range len(id) {
		if !plain(id[i]) {
			return escapeFrom(id, i, plain)
		}
	}
	return id
}

func escapeFrom(id string, from int, plain func(byte) bool) string {
	var b strings.Builder
	b.WriteString(id[:from])
	for i := from; i < len(id); i++ {
		if plain(id[i]) {
			b.WriteByte(id[i])
		} else {
			fmt.Fprintf(&b, "%%%02X", id[i])
		}
	}
	return b.String()
}
