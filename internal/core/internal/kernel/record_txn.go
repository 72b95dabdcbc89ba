package kernel

import (
	"math"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/record"
)

// txn carries out a transaction: all of one list or nothing. Everything that could refuse an
// operation is looked at before the first one changes anything, since there is no undo. So are all comparisons, those
// of nested transactions too.
func (t *turn) txn(c *Txn) Answer {
	sp := t.space(c.Namespace)
	if refused := t.settleCompared(sp, c); refused != nil {
		return Answer{Err: refused}
	}
	// A comparison of something that was not fully settled could go either way.
	if t.unsettled {
		return Answer{Err: tooMuchAtOnce()}
	}
	path, refused := t.choose(sp, c)
	if refused != nil {
		return Answer{Err: refused}
	}
	list := path.ops(t.room.ops[:0])
	t.room.ops = list
	todo, refused := t.allowed(sp, c.Namespace, list)
	if refused == nil {
		path.sign(sp, &todo)
	}
	if refused == nil && (len(todo.puts) > 0 || todo.claims != nil) {
		sp, refused = t.makeSpace(c.Namespace)
	}
	if refused != nil {
		return Answer{Err: refused}
	}
	if todo.later {
		sp.touched = 0
	}
	t.beginMirrors(sp, todo.puts)
	t.acquireFirst(sp, &todo)
	results := make([]TxnResult, 0, len(list))
	for _, o := range list {
		results = append(results, t.operate(sp, o, &todo))
	}
	answer := path.answer(&results)
	answer.Revision = t.revisionOf(sp)
	return Answer{Txn: answer}
}

// A txnRoom is memory for what one transaction works out, which the next one uses again: most are small, and come one
// after the other.
type txnRoom struct {
	ops    []*Op
	puts   []putting
	writes []record.Write
	claims []*Claim // of one put
}

// A plan is what operations will do, worked out before any of them is done.
type plan struct {
	puts   []putting             // in their order
	doomed [][]*leasehold.Record // what each delete deletes, in their order
	later  bool                  // what it does has a revision after that of what time did

	acquire *Acquire // with its items and their claims; nil: it acquires nothing
	items   []Item
	claims  []*Claim
	granted Answer // to it

	// The ids of claims that something is done to through their records, and of those that are released.
	linked, released []string

	ends int // claims that end through their records
}

// writes appends what is put.
func (p *plan) writes(list []record.Write) []record.Write {
	for i := range p.puts {
		list = append(list, p.puts[i].write)
	}
	return list
}

// touches notes that something is done to claims through their records, and refuses to do two things to one. Of no
// claim the id is empty.
func (p *plan) touches(ids ...string) *leasehold.Error {
	for _, id := range ids {
		if id == "" {
			continue
		}
		if slices.Contains(p.linked, id) || slices.Contains(p.released, id) {
			return touchedTwice(id)
		}
		p.linked = append(p.linked, id)
	}
	return nil
}

// releases notes that a claim is released.
func (p *plan) releases(id string) *leasehold.Error {
	if slices.Contains(p.linked, id) {
		return touchedTwice(id)
	}
	p.released = append(p.released, id)
	return nil
}

func touchedTwice(id string) *leasehold.Error {
	return refuse(leasehold.Refused, "a transaction ends or changes lease %q twice: do one of the two", id).Err
}

// sign notes under which leases the puts are made. A transaction that compares the id of the lease
// on the path that it puts is made by the holder: its name and token go with the version, as they
// do with a fenced put.
func (b *branch) sign(sp *space, p *plan) {
	for i := range b.compared {
		c := &b.compared[i]
		if !b.succeeded || c.What != LeaseID || c.Is != Equal || c.Text == "" {
			continue
		}
		claim, _ := sp.claims.Get(c.Text) // it is there, since the comparison held
		for j := range p.puts {
			if put := &p.puts[j]; put.write.Path == c.Path {
				put.write.Holder, put.from.token = claim.Holder, claim.Token
			}
		}
	}
	for i := range b.nested {
		b.nested[i].sign(sp, p)
	}
}

// allowed returns what the operations will do, or why not all of them can be done. It changes
// nothing but what time has changed already.
func (t *turn) allowed(sp *space, namespace string, list []*Op) (todo plan, refused *leasehold.Error) {
	t.settleLinks(sp, list)
	todo.puts = t.room.puts[:0]
	deleted, unlinked, answered := 0, 0, answering{}
	for _, o := range list {
		switch o.Do {
		case Put:
			if refused := t.allowedPut(sp, namespace, o, &todo); refused != nil {
				return todo, refused
			}
		case Delete:
			doomed, refused := t.doomed(sp, o.Path, o.To, o.Range)
			if refused == nil {
				refused = t.allowedDelete(sp, o, doomed, &todo, &answered)
			}
			if refused != nil {
				return todo, refused
			}
			todo.doomed = append(todo.doomed, doomed)
			todo.ends += linkedIn(doomed)
			unlinked += linkedIn(doomed)
			if deleted += len(doomed); deleted > leasehold.MaxDeletedAtOnce {
				return todo, refuse(leasehold.Limited,
					"a transaction deletes more than %d records: delete them in parts", leasehold.MaxDeletedAtOnce).Err
			}
		case AcquireLease:
			todo.acquire = o.Acquire
		case ReleaseLease:
			if refused := t.releasable(sp, o.ID); refused != nil {
				return todo, refused
			}
			if refused := todo.releases(o.ID); refused != nil {
				return todo, refused
			}
		}
	}
	switch {
	case deleted > leasehold.MaxDeletedAtOnce:
		return todo, refuse(leasehold.Limited, "a transaction deletes %d records: at most %d are allowed", deleted,
			leasehold.MaxDeletedAtOnce).Err
	case unlinked > leasehold.MaxUnlinked:
		return todo, tooManyLinked()
	}
	t.room.puts = todo.puts
	writes := todo.writes(t.room.writes[:0])
	t.room.writes = writes
	if refused := t.tooWide(sp, list, writes); refused != nil {
		return todo, refused
	}
	if refused := t.roomFor(sp, namespace, writes); refused != nil {
		return todo, refused
	}
	sp = t.orNew(sp, namespace)
	if todo.acquire != nil {
		if refused := t.allowedAcquire(sp, &todo); refused != nil {
			return todo, refused
		}
	}
	return todo, t.allowedLinks(sp, &todo)
}

// allowedAcquire judges the acquire of a transaction. It does not wait: it is granted with all the rest, or nothing is
// done.
func (t *turn) allowedAcquire(sp *space, todo *plan) (refused *leasehold.Error) {
	todo.items = todo.acquire.Items()
	if todo.claims, refused = t.prepare(sp, todo.acquire, todo.items); refused != nil {
		return refused
	}
	if refused := t.mirrorRefuses(sp, todo.acquire, todo.items, todo.claims); refused != nil {
		return refused
	}
	_, refused = t.admissible(sp, todo.acquire, todo.items, todo.claims)
	return refused
}

// acquireFirst grants what a transaction acquires, wherever in its list that is, before anything changes that it was
// judged by: an operation that ends a lease lets others in, who may be in its way or take the last place under a cap.
func (t *turn) acquireFirst(sp *space, todo *plan) {
	if todo.acquire != nil {
		t.grantOrQueue(sp, todo.acquire, todo.items, todo.claims, nil)
		todo.granted = t.askedAnswer(sp, todo.claims)
	}
}

// settleLinks ends what is over of all that puts with links would take, before any of them is worked out: to settle one
// thing can change another.
func (t *turn) settleLinks(sp *space, list []*Op) {
	for _, o := range list {
		if o.Link == nil || sp == nil {
			continue
		}
		t.liveRecord(sp, o.Path)
		t.touch(sp, o.Link.ID)
		t.settle(sp, o.Link.Resource)
	}
}

// allowedPut works out one put.
func (t *turn) allowedPut(sp *space, namespace string, o *Op, todo *plan) *leasehold.Error {
	old := t.liveRecord(sp, o.Path)
	w := record.Write{Path: o.Path, Value: o.Value, Large: o.Large, Session: o.Session, Keep: o.Keep}
	switch {
	case (o.KeepValue || o.KeepSession) && old == nil:
		return refuse(leasehold.NotFound, "%s is not there: there is nothing to keep", o.Path).Err
	case o.KeepValue:
		w.Value, w.Large = old.Value, old.Large
	}
	if o.KeepSession {
		w.Session = old.Session
	}
	if refused := t.rollBack(sp, &w, o.From); refused != nil {
		return refused
	}
	p := putting{write: w, link: o.Link, before: o.Before}
	if o.Link != nil || old != nil && old.Lease != "" {
		var refused *leasehold.Error
		if p, refused = t.planPut(t.orNew(sp, namespace), old, p, o.KeepLink || o.KeepSession); refused != nil {
			return refused
		}
	}
	if todo.puts = append(todo.puts, p); p.gives != "" {
		todo.ends++
	}
	todo.later = todo.later || t.changedNow(sp, old)
	return todo.touches(p.own, p.keeps, p.takes, p.gives)
}

// An answering counts what a transaction answers of records as they were.
type answering struct{ records, bytes int }

// allowedDelete judges one delete.
func (t *turn) allowedDelete(
	sp *space, o *Op, doomed []*leasehold.Record, todo *plan, answered *answering,
) *leasehold.Error {
	if refused := t.mayGiveUp(sp, doomed); refused != nil {
		return refused
	}
	for _, r := range doomed {
		if refused := todo.touches(r.Lease); refused != nil {
			return refused
		}
		if todo.later = todo.later || t.changedNow(sp, r); o.Before {
			answered.records, answered.bytes = answered.records+1, answered.bytes+record.Bytes(r)
		}
	}
	if answered.records > leasehold.MaxPage || answered.records > 1 && answered.bytes > leasehold.MaxPageBytes {
		return refuse(leasehold.Limited, "the records that are deleted are too much for one answer, which has at most "+
			"%d of them and %d bytes: delete them in parts, or do not ask for them", leasehold.MaxPage,
			leasehold.MaxPageBytes).Err
	}
	return nil
}

func linkedIn(list []*leasehold.Record) (n int) {
	for _, r := range list {
		if r.Lease != "" {
			n++
		}
	}
	return n
}

// tooWide refuses operations that would have to look at too much: gets
// that pass over too many records of sessions that are over, and puts that let too many
// former versions fall.
func (l *look) tooWide(sp *space, list []*Op, writes []record.Write) *leasehold.Error {
	if sp == nil {
		return nil
	}
	w := work{most: maxReadWork / 2}
	defer func() { l.work.take(w.done) }()
	searched := 0
	for _, o := range list {
		if o.Do != Get || !o.Range && !o.Count {
			continue
		}
		q := queryOf(o)
		if _, all := l.recordsOfEndedSessions(sp, RecordQuery{From: o.Path, To: o.To}, &w); !all {
			return crowded()
		}
		if !q.Searches() {
			continue
		}
		n := sp.records.Count(q)
		if searched += n; searched > leasehold.MaxSearched {
			return refuse(leasehold.Limited, "a transaction searches or orders more than %d records: give smaller "+
				"ranges", leasehold.MaxSearched).Err
		}
		w.take(n / PerUnit)
	}
	if l.showsTooMuch(sp, list, writes) {
		return refuse(leasehold.Limited, "the gets of a transaction show more than %d bytes: give them limits, or ask "+
			"in parts", leasehold.MaxReadBytes).Err
	}
	dropped := 0
	for i := range writes {
		dropped += sp.records.Drops(&writes[i])
	}
	l.work.take(dropped)
	if dropped > leasehold.MaxDroppedAtOnce {
		return refuse(leasehold.Limited, "a transaction drops %d former versions: at most %d are allowed; change in "+
			"parts how many are kept",
			dropped, leasehold.MaxDroppedAtOnce).Err
	}
	return nil
}

// showsTooMuch reports whether the gets among operations may show more bytes than an answer has. What the operations
// write themselves counts for each range that is read, since it may be in it.
func (l *look) showsTooMuch(sp *space, list []*Op, writes []record.Write) bool {
	most := 0
	for _, o := range list {
		most += o.MostShown()
	}
	if most <= leasehold.MaxReadBytes {
		return false
	}
	written := 0
	for i := range writes {
		written += len(writes[i].Path) + len(writes[i].Value)
	}
	shown := 0
	for _, o := range list {
		if o.Do == Get && shown <= leasehold.MaxReadBytes {
			page, _ := l.page(sp, queryOf(o), &work{most: math.MaxInt})
			l.work.take(len(page.Records) / PerUnit)
			shown += min(page.Bytes()+written, o.MostShown())
		}
	}
	return shown > leasehold.MaxReadBytes
}

// releasable returns why a lease cannot be released; nil if it can, or was released before.
func (t *turn) releasable(sp *space, id string) *leasehold.Error {
	if t.permit != nil && sp != nil {
		if failure := t.allowClaim(access.Release, sp.name, id); failure != nil {
			return failure
		}
	}
	if t.touch(sp, id) != nil || t.wasReleased(sp, id) {
		return nil
	}
	return t.noClaim(sp, id).Err
}

// operate does one operation. It calls nothing that could refuse: allowed has found that all of them can be done, and
// half a transaction cannot be taken back.
func (t *turn) operate(sp *space, o *Op, todo *plan) (result TxnResult) {
	switch {
	case o.Do == AcquireLease:
		result.Lease, result.Also = todo.granted.Lease, todo.granted.Also
	case o.Do == ReleaseLease:
		// What is gone was released before, or ended with what else the transaction ends.
		if claim, ok := sp.claims.Get(o.ID); ok {
			t.giveBack(sp, claim, false)
		}
	case o.Do == Get && sp == nil:
		result.Page = &RecordPage{}
	case o.Do == Get:
		page, _ := t.page(sp, queryOf(o), &work{most: math.MaxInt})
		result.Page = &page
	case o.Do == Put:
		result = t.operatePut(sp, todo.puts[0])
		todo.puts = todo.puts[1:]
	default:
		doomed := sp.still(todo.doomed[0])
		todo.doomed = todo.doomed[1:]
		if o.Before {
			result.Before = doomed
		}
		t.drop(sp, doomed)
		result.Deleted = len(doomed)
	}
	return result
}

func (t *turn) operatePut(sp *space, p putting) (result TxnResult) {
	if p.before {
		if old, ok := sp.records.Get(p.write.Path); ok {
			result.Before = []*leasehold.Record{old}
		}
	}
	r, answer := t.doPut(sp, p)
	result.Record = &leasehold.Record{Create: r.Create, Mod: r.Mod, Version: r.Version, Token: r.Token, Lease: r.Lease}
	answer = remembered(answer)
	result.Lease, result.Waiter = answer.Lease, answer.Waiter
	return result
}

// queryOf returns what a get asks for.
func queryOf(o *Op) RecordQuery {
	q := RecordQuery{From: o.Path, To: o.To, Most: o.Most, KeysOnly: o.KeysOnly, Count: o.Count, Select: o.Select}
	if !o.Range {
		q.To = o.Path + "\x00"
	}
	return q
}
