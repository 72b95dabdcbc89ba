package kernel

import (
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/record"
)

// Records are those of one namespace: see package records. A record may stand for a lease or a waiter, which the two
// know of each other: see LinkedRecord. While no claim has a record, and no resource shows who has it in records, no
// plain command asks.
type Records interface {
	Put(t Turn, c *PutRecord) Answer
	Delete(t Turn, c *DeleteRecord) Answer
	Txn(t Turn, c *Txn) Answer

	// Get returns the record of a path; nil if there is none. Live does so after what it belongs to has ended, if that
	// is over.
	Get(path string) *leasehold.Record
	Live(t Turn, path string) *leasehold.Record
	// MayWrite refuses a record for which there is no room, and Write writes it.
	MayWrite(t Turn, w record.Write) *leasehold.Error
	Write(t Turn, w record.Write, by, reason string) *leasehold.Record

	// Size is how many records there are, and how many bytes they and their former versions have. BytesOf is that of
	// one, and Growth how much more there would be after a write: no pointer, or each write would be on the heap. Empty
	// reports whether there are not even former versions.
	Size() (records, bytes int)
	BytesOf(path string) int
	Growth(w record.Write) record.Growth
	Empty() bool

	// EndBound deletes a record that ends with a session, by how that ended; false if there is none. DropFormer drops
	// the former versions of a record that was deleted long ago.
	EndBound(t Turn, session string, how leasehold.How) bool
	DropFormer(t Turn, path string)
	// MoveSession tells when the records of a session end, and MoveClaim what a claim with a record was and is, of
	// which one may be nil.
	MoveSession(id string, was, is Time)
	MoveClaim(was, is *Claim)

	// ClaimEnded lets the record of a claim that has just ended follow it, and ShowAgain the record that shows who has
	// a resource to a lease that has another holder now.
	ClaimEnded(t Turn, c *Claim, how leasehold.How)
	ShowAgain(t Turn, c *Claim)

	// What follows is asked only while the holders of some resource show as records.

	// Mirrored returns the prefix of the records of a mirrored resource; empty if it is none.
	Mirrored(path string) string
	// MayAcquire refuses what would disturb the order of a mirrored resource, and StaysInOrder another place or name of
	// a claim there.
	MayAcquire(t Turn, c *Acquire, items []Item, claims []*Claim) *leasehold.Error
	StaysInOrder(c *Claim, what string) *leasehold.Error
	// LinkClaims gives new claims on mirrored resources their records, and ShowClaims makes these.
	LinkClaims(t Turn, claims []*Claim)
	ShowClaims(t Turn, claims []*Claim)
	// ShowsHolder reports whether a record stands for the holder of the resource of its path, and ShowHolder lets it
	// show who that is now.
	ShowsHolder(path string) bool
	ShowHolder(t Turn, path string)
	// Unmirror forgets that a resource was mirrored, since nobody has it or wants it; false if it was not.
	Unmirror(path string) bool

	// Page shows a range of records. Versions, Version and Keeps show what is kept of one.
	Page(l Look, q RecordQuery, h History) (RecordPage, *leasehold.Error)
	Versions(
		n Namespace, path string, before leasehold.Revision, most int,
	) (list []leasehold.Version, next leasehold.Revision)
	Version(n Namespace, path string, revision leasehold.Revision) (leasehold.Version, *leasehold.Error)
	Keeps(path string) int

	Pieces(yield func(piece any) bool) bool
	Restore(t Turn, piece any) (known bool, err error)
	Restored(n Namespace) error
	Copy() Records
	// Timers calls see with each record that has former versions, and when time takes them away; 0: never, and the
	// timer may be nil.
	Timers(see func(path string, t *Timer, at Time))
}

// A RecordStore counts the records of all namespaces, and the large values that they name.
type RecordStore interface {
	// New returns those of a namespace that has none.
	New() Records

	// Named and Freed are the large values that nothing named before, and that nothing names any longer, since Begin.
	Begin()
	Named() []leasehold.Large
	Freed() []leasehold.Large
	Names(d leasehold.Digest) bool
	ScanLarges(see func(leasehold.Large) bool)

	Versions() int // former ones
	Larges() (n int, bytes int64)

	// Freeze returns a store that stays as it is.
	Freeze() RecordStore
	Checker(that func(ok bool, format string, args ...any)) RecordChecker
}

// A RecordChecker looks for contradictions: in each namespace, and then in what is counted over all. It tells which
// sessions would take a record with them.
type RecordChecker interface {
	Space(n Namespace, r Records, bound func(session string))
	All()
}

// A LinkedRecord is the record by which a claim shows. It is never changed in place.
type LinkedRecord struct {
	Path string
	Stay bool // the record outlives the claim, unlinked
	Made bool // it shows a claim that was made without it: on a mirrored resource, or on one that it stands for
}

// Linked returns the record by which a claim shows; nil if it has none.
func (c *Claim) Linked() *LinkedRecord {
	if c == nil || c.Terms == nil {
		return nil
	}
	return c.Terms.Linked
}

// SetLinked gives a record to a claim that nobody has seen yet; nil takes it away.
func (c *Claim) SetLinked(r *LinkedRecord) {
	if r == nil && c.Linked() == nil {
		return
	}
	t := c.terms()
	t.Linked = r
	c.setTerms(t)
}

// ShownAsHolder reports whether a claim is shown by a record that stands for the holder of its resource.
func (c *Claim) ShownAsHolder() bool {
	r := c.Linked()
	return r != nil && r.Made && r.Stay
}

// endLinked lets the record of a claim that has just ended follow it.
func (t *turn) endLinked(sp *space, c *Claim, how leasehold.How) {
	if c.Linked() != nil {
		sp.records.ClaimEnded(t.in(sp), c, how)
	}
}

// changeLinked lets the record of a lease that has another id or holder now follow it.
func (t *turn) changeLinked(sp *space, was *Claim) {
	t.endLinked(sp, was, leasehold.IDChanged)
	t.holderChanged(sp, was.Resource)
}

// showByRecord lets the record that shows who has a resource show the new holder of a lease.
func (t *turn) showByRecord(sp *space, c *Claim) { sp.records.ShowAgain(t.in(sp), c) }

// moveClaimEnd tells of claims that have records. What the claim was, or what it is, may be nil.
func (sp *space) moveClaimEnd(before, after *Claim) {
	if before.Linked() != nil || after.Linked() != nil {
		sp.records.MoveClaim(before, after)
	}
}

// mirrored returns the prefix of the records of a mirrored resource; empty if it is none.
func (sp *space) mirrored(path string) string {
	if sp.mirrors == 0 {
		return ""
	}
	return sp.records.Mirrored(path)
}

// unmirror forgets that a resource was mirrored, when nobody has it or wants it any longer.
func (sp *space) unmirror(path string) {
	if sp.mirrors > 0 && sp.records.Unmirror(path) {
		sp.mirrors--
	}
}

// mirrorRefuses refuses an acquire that would disturb the order of a mirrored resource, or for whose record there is no
// room; nil if it may.
func (t *turn) mirrorRefuses(sp *space, c *Acquire, items []Item, claims []*Claim) *leasehold.Error {
	if sp.mirrors == 0 {
		return nil
	}
	return sp.records.MayAcquire(t.in(sp), c, slices.Clone(items), claims) // a copy, or all were on the heap
}

// staysInOrder refuses to change the place or the name of a claim on a mirrored resource.
func (s *State) staysInOrder(sp *space, c *Claim, what string) *leasehold.Error {
	if sp.mirrors == 0 {
		return nil
	}
	return sp.records.StaysInOrder(c, what)
}

// mirrorClaims gives new claims on mirrored resources their records.
func (t *turn) mirrorClaims(sp *space, claims []*Claim) {
	if sp.mirrors > 0 {
		sp.records.LinkClaims(t.in(sp), claims)
	}
}

// showClaims makes the records of new claims on mirrored resources.
func (t *turn) showClaims(sp *space, claims []*Claim) {
	if sp.mirrors > 0 {
		sp.records.ShowClaims(t.in(sp), claims)
	}
}

// holderChanged notes that a record that stands for the holder of a resource may have to show another holder. That is
// done at the end of the command: until then whatever was worked out about records stays true, and a record that the
// command itself writes or deletes is written or deleted as if it stood for nobody.
func (t *turn) holderChanged(sp *space, path string) {
	if sp.mirrors == 0 || !sp.records.ShowsHolder(path) {
		return
	}
	t.work.take(RecordCost)
	t.unshown = append(t.unshown, wakeup{space: sp, path: path})
}

// showHolders lets records show the holders that the command gave the resources they stand for.
func (t *turn) showHolders() {
	for _, at := range t.unshown {
		at.space.records.ShowHolder(t.in(at.space), at.path)
	}
	t.unshown = t.unshown[:0]
}

// allRestored refuses a snapshot whose claims and records do not fit together.
func (s *State) allRestored() (err error) {
	s.spaces.Scan(func(_ string, sp *space) bool {
		err = sp.records.Restored(Namespace{s, sp})
		return err == nil
	})
	return err
}

// NamesLarge reports whether a record, or a former version of one, has a large value.
func (s *State) NamesLarge(d leasehold.Digest) bool { return s.records.Names(d) }

// Larges calls see with each large value that is named, in order, until it returns false.
func (s *State) Larges(see func(leasehold.Large) bool) { s.records.ScanLarges(see) }

// NamesLarge reports whether a record, or a former version of one, has a large value.
func (v *view) NamesLarge(d leasehold.Digest) bool { return v.s.NamesLarge(d) }

// Past works out how the range of a query was at its revision. It costs a walk over
// all events since, but a history can be walked while the state goes on: a reader of
// an older revision keeps nobody waiting.
func (h History) Past(q RecordQuery) *record.Past {
	since, known := h.after(q.Revision, AllOf) // what may be seen of it, the page says
	return record.NewPast(q, since, known)
}

// Record shows one record, as it was at a revision; 0 for as it is.
func (v *view) Record(namespace, path string, at leasehold.Revision) (*leasehold.Record, *leasehold.Error) {
	page, failure := v.Records(namespace, RecordQuery{From: path, To: path + "\x00", Most: 1, Revision: at})
	switch {
	case failure != nil:
		return nil, failure
	case len(page.Records) == 0:
		return nil, refuse(leasehold.NotFound, "%s is not there", path).Err
	}
	return page.Records[0], nil
}

// Records shows a range of records. An older revision is found by taking back, event
// by event, what happened to the range since, and can be had while history has that.
func (v *view) Records(namespace string, q RecordQuery) (RecordPage, *leasehold.Error) {
	sp := v.s.space(namespace)
	newest := v.s.revisionOf(sp)
	switch {
	case q.Revision > newest:
		return RecordPage{}, refuse(leasehold.Refused, "revision %d is not there yet: %d is the newest", q.Revision,
			newest).Err
	case sp == nil && q.Revision != 0 && q.Revision < newest:
		return RecordPage{}, refuse(leasehold.Lost,
			"revision %d is gone from history: %d is the oldest that can be read", q.Revision, newest).Err
	case sp == nil:
		return RecordPage{Revision: newest}, nil
	}
	return sp.records.Page(v.s.readIn(sp), q, v.History(namespace))
}

// NoVersion refuses to show a version of a record that is not there.
func NoVersion(path string, revision leasehold.Revision) *leasehold.Error {
	return refuse(leasehold.NotFound, "%s has no version of revision %d: it never had, or has kept newer ones only",
		path, revision).Err
}

// Versions shows at most most versions of a record, the newest first: the current one and the
// former ones that are kept. before is where to continue from, a revision; 0 is the newest.
// next is that of the next page; 0 at the end.
func (v *view) Versions(
	namespace, path string, before leasehold.Revision, most int,
) (list []leasehold.Version, next leasehold.Revision) {
	sp := v.s.space(namespace)
	if sp == nil {
		return nil, 0
	}
	return sp.records.Versions(Namespace{v.s.State, sp}, path, before, most)
}

// Version shows the version of a record that a revision wrote.
func (v *view) Version(namespace, path string, revision leasehold.Revision) (leasehold.Version, *leasehold.Error) {
	sp := v.s.space(namespace)
	if sp == nil {
		return leasehold.Version{}, NoVersion(path, revision)
	}
	return sp.records.Version(Namespace{v.s.State, sp}, path, revision)
}

// Keeps returns how many former versions a record keeps.
func (v *view) Keeps(namespace, path string) int {
	sp := v.s.space(namespace)
	if sp == nil {
		return 0
	}
	return sp.records.Keeps(path)
}

// StandsFor returns the holder of the lease that the record at a path shows, or showed until it ended lately, and
// whether that came without the record; empty if nobody knows.
func (v *view) StandsFor(namespace, path, id string) (holder string, other bool) {
	sp := v.s.space(namespace)
	if sp == nil {
		return "", false
	}
	if c, ok := sp.claims.Get(id); ok && c.Linked() != nil && c.Linked().Path == path {
		return c.Holder, c.ShownAsHolder()
	}
	if ended, ok := sp.claims.Ended(id); ok && ended.Resource == path {
		return ended.Holder, false
	}
	return "", false
}

// PrefixEnd returns the end of the range of all paths that begin with prefix; empty if
// the range has no end.
func PrefixEnd(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}
