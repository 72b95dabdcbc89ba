package core

import (
	"cmp"
	"math"

	"github.com/leasehold/leasehold"
)

// Txn compares, and then does one list of operations or the other: all of it at one
// revision, or nothing.
type Txn struct {
	Namespace string
	If        []Compare // all must hold; none: they do
	Then      []Op
	Else      []Op
	Request   Request
}

// A Compare looks at one thing as it is before the transaction.
type Compare struct {
	What   What
	Is     Relation
	Path   string // of the record, or the resource
	Number uint64 // for revisions, versions and tokens
	Text   string // for values, sessions and lease ids
}

// What a Compare looks at.
type What uint8

// A record that is not there has zero for its revisions and its version, and its value
// and session are like nothing: no comparison of them holds. A resource that nobody
// holds has zero for its token and floor, and no lease. The log numbers them: add at
// the end only.
const (
	RecordCreate  What = iota + 1 // the revision that made it
	RecordMod                     // the revision that changed it last
	RecordVersion                 // 0: it is not there
	RecordValue
	RecordSession // empty: it is bound to none
	LeaseID       // of the lease that is alive on the resource
	LeaseToken    // its token
	LeaseFloor    // the smallest token that is alive on the resource
)

// A Relation is how a Compare compares.
type Relation uint8

// The relations. The log numbers them: add at the end only.
const (
	Equal Relation = iota + 1
	NotEqual
	Less
	Greater
)

// An Op is one operation of a transaction. Operations happen in order: a get sees the
// puts before it.
type Op struct {
	Do       Do
	Path     string
	Range    bool               // to delete or get: all from Path on, below To
	To       string             // with Range; empty: to the end
	Value    string             // to put
	Session  string             // to put
	Large    *leasehold.Large   // to put: as in PutRecord
	From     leasehold.Revision // to put: as in PutRecord
	Keep     int                // to put: as in PutRecord
	Most     int                // to get: as in RecordQuery
	KeysOnly bool               // to get
	Count    bool               // to get

	Acquire *Acquire // to acquire: at once or not at all, in the namespace of the transaction
	ID      string   // to release: of the lease
}

// Do is what an Op does.
type Do uint8

// What an Op can do. The log numbers them: add at the end only.
const (
	Put Do = iota + 1
	Delete
	Get
	AcquireLease
	ReleaseLease
)

// A TxnAnswer is what a transaction came to.
type TxnAnswer struct {
	Succeeded bool               // Then was done; else Else was
	Revision  leasehold.Revision // of the namespace afterwards
	Results   []TxnResult        // one for each operation
}

// A TxnResult is what one operation came to.
type TxnResult struct {
	Record  *leasehold.Record // of a put: its revisions, version and token, and not what the caller said
	Deleted int
	Page    *RecordPage       // of a get
	Lease   *leasehold.Lease  // of an acquire
	Also    []leasehold.Lease // of an acquire of several resources
}

func (c *Txn) space() string    { return c.Namespace }
func (c *Txn) request() Request { return c.Request }

func (c *Txn) subject() string {
	for _, list := range [][]Op{c.Then, c.Else} {
		if len(list) > 0 {
			return "txn " + list[0].Path
		}
	}
	return "txn"
}

// ValidateAt bounds, from level 4 on, what the gets of either list may show.
func (c *Txn) ValidateAt(level Level) error {
	if err := c.Validate(); err != nil || level < Level4 {
		return err
	}
	for _, list := range [][]Op{c.Then, c.Else} {
		shown := 0
		for i := range list {
			if o := &list[i]; o.Do == Get && o.Range {
				shown += cmp.Or(o.Most, leasehold.MaxPage)
			}
		}
		if shown > leasehold.MaxReadAtOnce {
			return invalid("the gets of a transaction may show %d records: at most %d are allowed; give them limits", shown, leasehold.MaxReadAtOnce)
		}
	}
	return nil
}

func (c *Txn) Validate() error {
	err := firstError(name("namespace", c.Namespace), c.Request.validate(),
		atMost("comparisons", len(c.If)), atMost("operations", len(c.Then)), atMost("operations", len(c.Else)))
	if err != nil {
		return err
	}
	size := 0
	for i := range c.If {
		size += len(c.If[i].Path) + len(c.If[i].Text)
		if err := c.If[i].validate(); err != nil {
			return err
		}
	}
	for _, list := range [][]Op{c.Then, c.Else} {
		for i := range list {
			size += list[i].size()
			if err := list[i].validate(c); err != nil {
				return err
			}
		}
		if err := firstError(once(list), leasesFirst(list)); err != nil {
			return err
		}
	}
	if size > leasehold.MaxTxn {
		return invalid("a transaction with %d bytes of names and values is too large: at most %d are allowed", size, leasehold.MaxTxn)
	}
	return nil
}

func atMost(what string, n int) error {
	if n > leasehold.MaxOps {
		return invalid("a transaction has %d %s: at most %d are allowed", n, what, leasehold.MaxOps)
	}
	return nil
}

func (c *Compare) validate() error {
	switch {
	case c.What < RecordCreate || c.What > LeaseFloor:
		return invalid("a comparison looks at nothing that there is")
	case c.Is < Equal || c.Is > Greater:
		return invalid("a comparison has no relation that there is")
	case c.textual() && c.Number != 0, !c.textual() && c.Text != "":
		return invalid("a comparison has a number or a text, by what it looks at")
	}
	return firstError(name("path", c.Path), value(c.Text))
}

func (c *Compare) textual() bool {
	return c.What == RecordValue || c.What == RecordSession || c.What == LeaseID
}

// size is how many bytes of names and values an operation has.
func (o *Op) size() int {
	n := len(o.Path) + len(o.To) + valueBytes(o.Value, o.Large) + len(o.Session) + len(o.ID)
	if a := o.Acquire; a != nil {
		n += len(a.Holder) + len(a.Reason) + len(a.Session) + len(a.Party) + len(a.Foreign)
		for _, item := range a.items() {
			n += len(item.Resource) + len(item.ID)
		}
		for _, l := range a.Labels {
			n += len(l.Key) + len(l.Value)
		}
	}
	return n
}

func (o *Op) validate(c *Txn) error {
	switch o.Do {
	case Put, Delete, Get:
		if o.Acquire != nil || o.ID != "" {
			return invalid("only to acquire or to release is about a lease")
		}
		return o.validateRecord(c.Request)
	case AcquireLease:
		return o.validateAcquire(c)
	case ReleaseLease:
		if o.about() != (Op{Do: ReleaseLease, ID: o.ID}) {
			return invalid("to release takes the id of a lease and nothing else")
		}
		return name("lease id", o.ID)
	}
	return invalid("an operation does nothing that there is")
}

// about is an operation without the acquire, to be compared with.
func (o Op) about() Op {
	o.Acquire = nil
	return o
}

func (o *Op) validateAcquire(c *Txn) error {
	a := o.Acquire
	switch {
	case a == nil || o.about() != (Op{Do: AcquireLease}):
		return invalid("to acquire takes what is acquired and nothing else")
	case a.Namespace != c.Namespace:
		return invalid("a transaction acquires in its own namespace")
	case a.Wait != 0:
		return invalid("a transaction does not wait: leave the wait out")
	case a.Request != (Request{}):
		return invalid("the request key is that of the transaction")
	}
	return a.Validate()
}

// leasesFirst refuses lists of which it could not be told before the first change
// whether all of it can be done: one acquire at most, and it before any release.
func leasesFirst(list []Op) error {
	acquired, released := false, false
	for i := range list {
		switch list[i].Do {
		case AcquireLease:
			if acquired {
				return invalid("a transaction acquires twice: ask for several resources in one acquire")
			}
			if released {
				return invalid("a transaction releases before it acquires: put the acquire first")
			}
			acquired = true
		case ReleaseLease:
			released = true
		}
	}
	return nil
}

func (o *Op) validateRecord(r Request) error {
	switch {
	case o.Do == Put && o.Range:
		return invalid("one path is put, not a range")
	case o.Do != Put && (o.Value != "" || o.Session != "" || o.Large != nil || o.From != 0 || o.Keep != 0):
		return invalid("only to put takes a value, a session or how many versions are kept")
	case o.Do != Get && (o.Most != 0 || o.KeysOnly || o.Count):
		return invalid("only to get takes a limit, keys alone or a count")
	case o.Do == Get && r != (Request{}):
		// Answers to named requests are remembered, and would keep what was read.
		return invalid("a transaction with a request key gets nothing: read at the revision that it answers")
	case o.Most < 0 || o.Most > leasehold.MaxPage:
		return invalid("limit %d is out of range: 0 to %d are allowed", o.Most, leasehold.MaxPage)
	}
	return firstError(span(o.Path, o.To, o.Range), content(o.Value, o.Large, o.From), keep(o.Keep), text("session", o.Session))
}

// once refuses operations that write one record twice: at one revision a record
// changes once.
func once(list []Op) error {
	for i := range list {
		for j := range list {
			a, b := &list[i], &list[j]
			if i == j || a.Do != Put || b.Do == Get || !b.covers(a.Path) {
				continue
			}
			return invalid("a transaction writes %s twice: at one revision a record changes once", a.Path)
		}
	}
	return nil
}

func (o *Op) covers(path string) bool {
	if !o.Range {
		return o.Path == path
	}
	return path >= o.Path && (o.To == "" || path < o.To)
}

func (s *State) txn(c *Txn) Answer {
	sp := s.space(c.Namespace)
	for i := range c.If {
		s.settleFor(sp, &c.If[i])
	}
	if s.unsettled {
		return Answer{Err: tooMuchAtOnce()}
	}
	for i := range c.If {
		if refused := incomparable(sp, &c.If[i]); refused != nil {
			return Answer{Err: refused}
		}
	}
	answer := &TxnAnswer{Succeeded: true}
	for i := range c.If {
		answer.Succeeded = answer.Succeeded && s.holds(sp, &c.If[i])
	}
	list := c.Then
	if !answer.Succeeded && !s.planted.TxnAnyway {
		list = c.Else
	}
	todo, refused := s.allowed(sp, c.Namespace, list)
	if refused == nil && (len(todo.writes) > 0 || todo.claims != nil) {
		sp, refused = s.makeSpace(c.Namespace)
	}
	if refused != nil {
		return Answer{Err: refused}
	}
	for i := range list {
		answer.Results = append(answer.Results, s.operate(sp, &list[i], &todo))
	}
	answer.Revision = s.revisionOf(sp)
	return Answer{Txn: answer}
}

// settleFor ends what is over of the thing that is compared.
func (s *State) settleFor(sp *space, c *Compare) {
	switch {
	case sp == nil:
	case c.What >= LeaseID:
		s.settle(sp, c.Path)
	default:
		s.liveRecord(sp, c.Path)
	}
}

// incomparable refuses to compare the bytes of a large value, which are not here.
func incomparable(sp *space, c *Compare) *leasehold.Error {
	if sp == nil || c.What != RecordValue {
		return nil
	}
	if r, ok := sp.records.Get(c.Path); ok && r.Large != nil {
		return refuse(leasehold.Refused, "%s has a large value, and those can not be compared: compare its revision, which is %d", c.Path, r.Mod).Err
	}
	return nil
}

// A plan is what operations will do.
type plan struct {
	writes []write // of the puts, in their order
	items  []Item  // to acquire
	claims []*Claim
}

// allowed tells why not all of the operations can be done, before the first of them is;
// and what they will do.
func (s *State) allowed(sp *space, namespace string, list []Op) (todo plan, refused *leasehold.Error) {
	deleted := 0
	var acquire *Acquire
	for i := range list {
		switch o := &list[i]; o.Do {
		case Put:
			s.liveRecord(sp, o.Path)
			w := write{path: o.Path, value: o.Value, large: o.Large, session: o.Session, keep: o.Keep}
			if refused := s.rollBack(sp, &w, o.From); refused != nil {
				return todo, refused
			}
			todo.writes = append(todo.writes, w)
		case Delete:
			doomed, refused := s.doomed(sp, o.Path, o.To, o.Range)
			if refused != nil {
				return todo, refused
			}
			if deleted += len(doomed); s.atLeast(Level4) && deleted > leasehold.MaxDeletedAtOnce {
				return todo, refuse(leasehold.Limited, "a transaction deletes more than %d records: delete them in parts", leasehold.MaxDeletedAtOnce).Err
			}
		case AcquireLease:
			acquire = o.Acquire
		case ReleaseLease:
			if refused := s.releasable(sp, o.ID); refused != nil {
				return todo, refused
			}
		}
	}
	if deleted > s.maxDeleted() {
		return todo, refuse(leasehold.Limited, "a transaction deletes %d records: at most %d are allowed", deleted, s.maxDeleted()).Err
	}
	if refused := s.tooWide(sp, list, todo.writes); refused != nil {
		return todo, refused
	}
	if refused := s.roomFor(sp, todo.writes); refused != nil || acquire == nil {
		return todo, refused
	}
	if sp == nil {
		sp = newSpace(namespace) // a refusal must not begin it
	}
	todo.items = acquire.items()
	if todo.claims, refused = s.prepare(sp, acquire, todo.items); refused != nil {
		return todo, refused
	}
	if blocked := s.blocked(sp, acquire, todo.items); blocked != nil {
		return todo, s.blockedBy(sp, blocked).Err
	}
	return todo, s.roomForClaims(len(todo.items), false)
}

// tooWide refuses, from level 4 on, operations that would have to look at too much: gets
// that pass over too many records of sessions that are over, and puts that let too many
// former versions fall.
func (s *State) tooWide(sp *space, list []Op, writes []write) *leasehold.Error {
	if !s.atLeast(Level4) || sp == nil {
		return nil
	}
	w := work{most: maxReadWork / 2}
	defer func() { s.work.take(w.done) }()
	for i := range list {
		if o := &list[i]; o.Do == Get && (o.Range || o.Count) {
			if _, all := s.overIn(sp, RecordQuery{From: o.Path, To: o.To}, &w); !all {
				return crowded()
			}
		}
	}
	dropped := 0
	for i := range writes {
		if shelf, ok := sp.shelves.Get(writes[i].path); ok {
			dropped += max(0, shelf.count-keeps(shelf, &writes[i]))
		}
	}
	s.work.take(dropped)
	if dropped > leasehold.MaxDroppedAtOnce {
		return refuse(leasehold.Limited, "a transaction drops %d former versions: at most %d are allowed; change in parts how many are kept",
			dropped, leasehold.MaxDroppedAtOnce).Err
	}
	return nil
}

// releasable tells why a lease can not be released. One that was released is no reason.
func (s *State) releasable(sp *space, id string) *leasehold.Error {
	if s.touch(sp, id) != nil || s.wasReleased(sp, id) {
		return nil
	}
	return s.noClaim(sp, id).Err
}

func (s *State) operate(sp *space, o *Op, todo *plan) (result TxnResult) {
	switch {
	case o.Do == AcquireLease:
		answer := s.admit(sp, o.Acquire, todo.items, todo.claims)
		result.Lease, result.Also = answer.Lease, answer.Also
	case o.Do == ReleaseLease:
		s.release(&Release{Namespace: sp.name, ID: o.ID})
	case o.Do == Get && sp == nil:
		result.Page = &RecordPage{}
	case o.Do == Get:
		q := RecordQuery{From: o.Path, To: o.To, Most: o.Most, KeysOnly: o.KeysOnly, Count: o.Count}
		if !o.Range {
			q.To = o.Path + "\x00"
		}
		page, _ := s.page(sp, q, &work{most: math.MaxInt})
		result.Page = &page
	case o.Do == Put:
		r := s.setRecord(sp, todo.writes[0], 0)
		todo.writes = todo.writes[1:]
		result.Record = &leasehold.Record{Create: r.Create, Mod: r.Mod, Version: r.Version, Token: r.Token}
	default:
		doomed, _ := s.doomed(sp, o.Path, o.To, o.Range) // as many as were allowed, or fewer
		s.drop(sp, doomed)
		result.Deleted = len(doomed)
	}
	return result
}

// holds tells whether a comparison of something settled holds.
func (s *State) holds(sp *space, c *Compare) bool {
	if c.What >= LeaseID {
		return s.leaseHolds(sp, c)
	}
	var r leasehold.Record
	found := false
	if sp != nil {
		if record, ok := sp.records.Get(c.Path); ok {
			r, found = *record, true
		}
	}
	switch c.What {
	case RecordCreate:
		return related(uint64(r.Create), c.Is, c.Number)
	case RecordMod:
		return related(uint64(r.Mod), c.Is, c.Number)
	case RecordVersion:
		return related(r.Version, c.Is, c.Number)
	case RecordValue:
		return found && related(r.Value, c.Is, c.Text)
	}
	return found && related(r.Session, c.Is, c.Text)
}

func (s *State) leaseHolds(sp *space, c *Compare) bool {
	var claim Claim
	if sp != nil {
		if r, ok := sp.resources.Get(c.Path); ok && r.held() {
			claim = *sp.senior(r)
		}
	}
	if c.What == LeaseID {
		return related(claim.ID, c.Is, c.Text)
	}
	return related(uint64(claim.Token), c.Is, c.Number)
}

func related[T cmp.Ordered](a T, is Relation, b T) bool {
	switch is {
	case Equal:
		return a == b
	case NotEqual:
		return a != b
	case Less:
		return a < b
	}
	return a > b
}
