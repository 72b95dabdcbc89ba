package kernel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
)

// In some protocols a queue is nothing but records below a prefix: who created the oldest believes that it holds. A
// resource that is claimed through such a record is mirrored: while it has any claim, every one of them, by whichever
// door it came, has a record below the prefix, and the order in which these were created is that of the holder and
// its queue. So no two of them are created at one revision, and what would change the order is refused.

// A Mirror is a mirrored resource, in a snapshot.
type Mirror struct {
	Resource string
	Prefix   string
}

// mirrored returns the prefix of the records of a mirrored resource; empty if it is none.
func (sp *space) mirrored(path string) string {
	prefix, _ := sp.mirrors.Get(path)
	if prefix == path {
		return "" // one record stands for its holder
	}
	return prefix
}

// unmirror forgets that a resource was mirrored, when nobody has it or wants it any longer.
func (sp *space) unmirror(path string) {
	if sp.mirrors.Len() > 0 && !sp.stands(path) {
		sp.mirrors.Delete(path)
	}
}

// mayMirror refuses a link that does not fit the resource: where it is mirrored, or is to be.
func (t *turn) mayMirror(sp *space, l *Link) *leasehold.Error {
	prefix := sp.mirrored(l.Resource)
	switch {
	case prefix == l.Mirror && prefix != "":
		return nil
	case prefix != "":
		return refuse(leasehold.Refused, "%s shows its leases and waiters as records below %s: another record cannot "+
			"stand for one of them", l.Resource, prefix).Err
	case l.Mirror == "", l.Stands():
		return nil
	case sp.stands(l.Resource):
		return notMirrored(l.Resource, "a record of its own path stands for its holder")
	}
	r := t.settle(sp, l.Resource)
	d := sp.definition(l.Resource)
	switch {
	case d.Capacity > 0 || len(d.Units) > 0 || sp.pools.Has(l.Resource):
		return notMirrored(l.Resource, "it is defined with slots, and several may hold it at once")
	case r == nil:
		return nil
	case r.Sharers() > 0 || r.more().shares().Capacity > 0:
		return notMirrored(l.Resource, "several may hold it at once")
	case t.faced+r.Waiting+1 > leasehold.MaxMirrored:
		return refuse(leasehold.Limited, "%s has %d waiters: at most %d can become records at once, by all that a "+
			"transaction puts", l.Resource, r.Waiting, leasehold.MaxMirrored).Err
	}
	t.faced += r.Waiting + 1
	return t.inOrder(sp, r)
}

// mayBegin is mayMirror for a claim that is new.
func (t *turn) mayBegin(sp *space, l *Link, put *record.Write) *leasehold.Error {
	if failure := t.noLinkedPattern(l); failure != nil {
		return failure
	}
	if failure := t.mayMirror(sp, l); failure != nil || l.Mirror == "" || l.Stands() {
		return failure
	}
	if failure := t.mayRest(sp, l); failure != nil {
		return failure
	}
	return t.roomForMirror(sp, l, put)
}

// mayRest refuses a link to a mirrored resource that is not given to the next at once, now or after an unclean end:
// the client with the first record would believe that it holds.
func (s *State) mayRest(sp *space, l *Link) *leasehold.Error {
	d := sp.definition(l.Resource)
	r, _ := sp.resources.Get(l.Resource)
	switch {
	case s.quarantined():
		return notMirrored(l.Resource, s.whyQuarantined()+s.orEnd())
	case l.Grace > 0 || d.Grace > 0 || d.Unclean == leasehold.AwaitAcknowledgement:
		return notMirrored(l.Resource, "it rests after an unclean end, and the first of them would not")
	case r != nil && len(r.more().resting(s.now)) > 0:
		return notMirrored(l.Resource, "it rests after an unclean end: try again when that is over")
	}
	return nil
}

// maxRenamed is how many claims may need another name than their id when a resource becomes a mirrored one.
const maxRenamed = 32

// roomForMirror refuses to begin to mirror a resource if there is no room for the records of those who have it or want
// it, beside what is put.
func (t *turn) roomForMirror(sp *space, l *Link, put *record.Write) (refused *leasehold.Error) {
	r, ok := sp.resources.Get(l.Resource)
	if !ok || sp.mirrored(l.Resource) != "" {
		return nil
	}
	writes, renamed, prefix := []record.Write{*put}, 0, l.Mirror
	sp.claimsOn(r, func(c *Claim) bool {
		path := prefix + escaped(c.ID)
		if t.taken(sp, path) {
			renamed++
			path = t.facePath(sp, prefix, c.ID)
		}
		writes = append(writes, record.Write{Path: path, Value: c.Holder})
		if refused = sp.roomIn(c.Session, r.Waiting+1); refused == nil && renamed > maxRenamed {
			refused = notMirrored(r.Path, fmt.Sprintf("records are below %s already, by the ids of more than %d who "+
				"have it or want it: delete them first", prefix, maxRenamed))
		}
		return refused == nil
	})
	if refused != nil {
		return refused
	}
	return t.roomForMade(sp, writes)
}

// roomForMade refuses records that are made for claims, if there is no room for them. They are nobody's, and count for
// their namespace alone.
func (l *look) roomForMade(sp *space, writes []record.Write) *leasehold.Error {
	if failure := l.records.Room(sp.table(), writes); failure != nil || l.permit == nil {
		return failure
	}
	var more tally
	for i := range writes {
		g := sp.table().Growth(&writes[i])
		more.records, more.bytes = more.records+g.Records, more.bytes+g.Bytes
	}
	return l.withinNamespace(sp.name, more)
}

// inOrder refuses to mirror claims that have another order than that in which they came, or have records elsewhere.
func (l *look) inOrder(sp *space, r *Resource) (refused *leasehold.Error) {
	sp.claimsOn(r, func(c *Claim) bool {
		l.work.take(LookCost)
		switch {
		case c.face() != nil:
			refused = notMirrored(r.Path, fmt.Sprintf("%s stands for one of its leases", c.face().Path))
		case c.Waiting() && c.Wait.Priority != 0:
			refused = notMirrored(r.Path, "somebody waits for it with a priority")
		case c.Waiting() && c.Wait.With != nil:
			refused = notMirrored(r.Path, "somebody waits for it together with others")
		case c.terms().Grace > 0:
			refused = notMirrored(r.Path, "it rests after an unclean end of one of its leases")
		}
		return refused == nil
	})
	return refused
}

func notMirrored(path, why string) *leasehold.Error {
	return refuse(leasehold.Refused, "%s cannot show as records in the order of its queue: %s", path, why).Err
}

// claimsOn calls yield with the exclusive lease on a resource, and then with its waiters in their order, until it
// returns false.
func (sp *space) claimsOn(r *Resource, yield func(*Claim) bool) {
	if c, ok := sp.claims.Get(r.Claim); ok && !yield(c) || r.Waiting == 0 {
		return
	}
	sp.queue.Ascend(beforeAll(r.Path), func(c *Claim) bool { return c.Resource == r.Path && yield(c) })
}

// mirrorRefuses refuses an acquire that would disturb the order of a mirrored resource, or for whose record there is no
// room; nil if it may. Nearly always nothing is mirrored, and the first comparison makes that cheap.
func (t *turn) mirrorRefuses(sp *space, c *Acquire, items []Item, claims []*Claim) *leasehold.Error {
	if sp.mirrors.Len() == 0 {
		return nil
	}
	var writes []record.Write
	for i, item := range items {
		prefix := sp.mirrored(item.Resource)
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
		writes = append(writes, record.Write{Path: t.facePath(sp, prefix, item.ID), Value: claims[i].Holder})
	}
	if len(writes) == 0 {
		return nil
	}
	if failure := sp.roomIn(c.Session, len(items)+len(writes)); failure != nil {
		return failure
	}
	return t.roomForMade(sp, writes)
}

func outOfOrder(path, prefix, why string) *leasehold.Error {
	return refuse(leasehold.Refused, "%s shows its queue as records below %s, in the order in which they were "+
		"created: %s", path, prefix, why).Err
}

// staysInOrder refuses to change the place or the name of a claim on a mirrored resource.
func (s *State) staysInOrder(sp *space, c *Claim, what string) *leasehold.Error {
	if sp.mirrors.Len() == 0 || sp.mirrored(c.Resource) == "" {
		return nil
	}
	return outOfOrder(c.Resource, sp.mirrored(c.Resource), what)
}

// beginMirrors makes resources mirrored ones, if puts say so, before anything else is changed: what the command puts
// has one revision. From here on no record is made where one is put.
func (t *turn) beginMirrors(sp *space, puts []putting) {
	t.reserved = t.reserved[:0]
	linked := false
	for i := range puts {
		linked = linked || puts[i].link != nil
	}
	if !linked && (len(puts) == 0 || sp.mirrors.Len() == 0) {
		return
	}
	for i := range puts {
		t.reserved = append(t.reserved, puts[i].write.Path)
	}
	for i := range puts {
		if l := puts[i].link; l != nil {
			t.beginMirror(sp, l)
		}
	}
}

// beginMirror makes a resource a mirrored one. Whoever has it or waits for it already gets a record, each at a revision
// of its own, all of them before that of what is put now.
func (t *turn) beginMirror(sp *space, l *Link) {
	if l.Mirror == "" || sp.mirrored(l.Resource) != "" {
		return
	}
	sp.mirrors.Set(l.Resource, l.Mirror)
	r, ok := sp.resources.Get(l.Resource)
	if !ok || l.Stands() {
		return
	}
	var claims []*Claim
	sp.claimsOn(r, func(c *Claim) bool { claims = append(claims, c); return true })
	for _, c := range claims {
		shown := *c
		shown.setFace(&Face{Path: t.facePath(sp, l.Mirror, c.ID), Made: true})
		t.put(sp, &shown)
		t.reviseAgain(sp)
		t.showClaim(sp, &shown)
	}
	if len(claims) > 0 {
		sp.touched = 0 // what is put now has the next revision
	}
}

// mirrorClaims gives new claims on mirrored resources their faces. Nearly always nothing is mirrored.
func (t *turn) mirrorClaims(sp *space, claims []*Claim) {
	if sp.mirrors.Len() == 0 {
		return
	}
	for _, c := range claims {
		if prefix := sp.mirrored(c.Resource); prefix != "" && c.face() == nil {
			c.setFace(&Face{Path: t.facePath(sp, prefix, c.ID), Made: true})
		}
	}
}

// showClaims makes the records of new claims on mirrored resources.
func (t *turn) showClaims(sp *space, claims []*Claim) {
	if sp.mirrors.Len() == 0 {
		return
	}
	for _, c := range claims {
		if f := c.face(); f != nil && f.Made && !f.Stay {
			t.showClaim(sp, c)
		}
	}
}

func (t *turn) showClaim(sp *space, c *Claim) {
	w := record.Write{Path: c.face().Path, Value: c.Holder, Session: c.Session, Lease: c.ID, Holder: c.Holder}
	t.setRecord(sp, w, writing{token: c.Token, made: true})
}

// facePath returns where the record of a claim is made: below the prefix, by the id of the claim, which people know.
func (t *turn) facePath(sp *space, prefix, id string) string {
	path := prefix + escaped(id)
	if len(path) > leasehold.MaxName-maxSuffix {
		path = path[:leasehold.MaxName-maxSuffix]
	} else if !t.taken(sp, path) {
		return path
	}
	if next := fmt.Sprintf("%s~%d", path, sp.revision); !t.taken(sp, next) {
		return next
	}
	return t.numberedPath(sp, path)
}

// numberedPath returns a path with a number that is not taken, however many are: it halves a range of more numbers than
// there can be records, each time to a half in which some are left.
func (t *turn) numberedPath(sp *space, path string) string {
	numbered := func(n int64) string { return fmt.Sprintf("%s~%013d", path, n) }
	from := int64(0)
	for size := int64(1) << 39; size > 0; size /= 2 {
		if t.takenIn(sp, numbered(from), numbered(from+size)) >= size {
			from += size
		}
	}
	return numbered(from)
}

// takenIn counts the paths of a range that have records, or get one by the command.
func (t *turn) takenIn(sp *space, from, to string) int64 {
	t.work.take(LookCost)
	n := sp.records.Count(RecordQuery{From: from, To: to})
	for _, path := range t.reserved {
		if from <= path && path < to {
			n++
		}
	}
	return int64(n)
}

// taken reports whether a path has a record, or gets one by the command.
func (t *turn) taken(sp *space, path string) bool {
	_, taken := sp.records.Get(path)
	return taken || slices.Contains(t.reserved, path)
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

// mirrorPieces writes which resources are mirrored.
func (sp *space) mirrorPieces(yield func(Piece) bool) (more bool) {
	more = true
	sp.mirrors.Scan(func(path, prefix string) bool {
		more = yield(Piece{sp.name, &Mirror{path, prefix}})
		return more
	})
	return more
}

func (t *turn) restoreMirror(sp *space, m *Mirror) error {
	_, known := sp.resources.Get(m.Resource)
	known = known || m.Prefix == m.Resource // a record that stands for its holders may have none
	if _, twice := sp.mirrors.Set(m.Resource, m.Prefix); twice || !known || m.Prefix == "" {
		return fmt.Errorf("snapshot has the mirror of %q twice, or of nothing", m.Resource)
	}
	return nil
}
