package records

import (
	"math"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/internal/kernel"
	"github.com/leasehold/leasehold/internal/core/record"
)

// Txn carries out a transaction: all of one list or nothing. Everything that could refuse an
// operation is looked at before the first one changes anything, since there is no undo. So are all comparisons, those
// of nested transactions too.
func (s *records) Txn(k kernel.Turn, c *kernel.Txn) kernel.Answer {
	if refused := s.settleCompared(k, c); refused != nil {
		return kernel.Answer{Err: refused}
	}
	// A comparison of something that was not fully settled could go either way.
	if k.Unsettled() {
		return kernel.Answer{Err: kernel.TooMuchAtOnce()}
	}
	path, refused := s.choose(k, c)
	if refused != nil {
		return kernel.Answer{Err: refused}
	}
	list := path.ops(s.store.hand.ops[:0])
	s.store.hand.ops = list
	todo, refused := s.allowed(k, list)
	if refused == nil {
		path.sign(k, &todo)
	}
	if refused == nil && (len(todo.puts) > 0 || todo.claims != nil) {
		refused = k.Keep()
	}
	if refused != nil {
		return kernel.Answer{Err: refused}
	}
	if todo.later {
		k.ReviseLater()
	}
	defer s.forgetReserved()
	s.beginMirrors(k, todo.puts)
	acquireFirst(k, &todo)
	results := make([]kernel.TxnResult, 0, len(list))
	for _, o := range list {
		results = append(results, s.operate(k, o, &todo))
	}
	answer := path.answer(&results)
	answer.Revision = k.NewestRevision()
	return kernel.Answer{Txn: answer}
}

// A plan is what operations will do, worked out before any of them is done.
type plan struct {
	puts   []putting             // in their order
	doomed [][]*leasehold.Record // what each delete deletes, in their order
	later  bool                  // what it does has a revision after that of what time did

	acquire *kernel.Acquire // with its items and their claims; nil: it acquires nothing
	items   []kernel.Item
	claims  []*kernel.Claim
	granted kernel.Answer // to it

	// The ids of claims that something is done to through their records, and of those that are released.
	linked, released []string

	ends  int // claims that end through their records
	shown int // leases and waiters that become records, as resources are mirrored
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
	return refuse(leasehold.Refused, "a transaction ends or changes lease %q twice: do one of the two", id)
}

// sign notes under which leases the puts are made. A transaction that compares the id of the lease
// on the path that it puts is made by the holder: its name and token go with the version, as they
// do with a fenced put.
func (b *branch) sign(k kernel.Turn, p *plan) {
	for i := range b.compared {
		c := &b.compared[i]
		if !b.succeeded || c.What != kernel.LeaseID || c.Is != kernel.Equal || c.Text == "" {
			continue
		}
		claim := k.Claim(c.Text) // it is there, since the comparison held
		for j := range p.puts {
			if put := &p.puts[j]; put.write.Path == c.Path {
				put.write.Holder, put.from.token = claim.Holder, claim.Token
			}
		}
	}
	for i := range b.nested {
		b.nested[i].sign(k, p)
	}
}

// allowed returns what the operations will do, or why not all of them can be done. It changes
// nothing but what time has changed already.
func (s *records) allowed(k kernel.Turn, list []*kernel.Op) (todo plan, refused *leasehold.Error) {
	s.settleLinks(k, list)
	todo.puts = s.store.hand.puts[:0]
	deleted, unlinked, answered := 0, 0, answering{}
	for _, o := range list {
		switch o.Do {
		case kernel.Put:
			if refused := s.allowedPut(k, o, &todo); refused != nil {
				return todo, refused
			}
		case kernel.Delete:
			doomed, refused := s.doomed(k, o.Path, o.To, o.Range)
			if refused == nil {
				refused = s.allowedDelete(k, o, doomed, &todo, &answered)
			}
			if refused != nil {
				return todo, refused
			}
			todo.doomed = append(todo.doomed, doomed)
			todo.ends += linkedIn(doomed)
			unlinked += linkedIn(doomed)
			if deleted += len(doomed); deleted > leasehold.MaxDeletedAtOnce {
				return todo, refuse(leasehold.Limited,
					"a transaction deletes more than %d records: delete them in parts", leasehold.MaxDeletedAtOnce)
			}
		case kernel.AcquireLease:
			todo.acquire = o.Acquire
		case kernel.ReleaseLease:
			if refused := releasable(k, o.ID); refused != nil {
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
			leasehold.MaxDeletedAtOnce)
	case unlinked > leasehold.MaxUnlinked:
		return todo, tooManyLinked()
	}
	s.store.hand.puts = todo.puts
	writes := todo.writes(s.store.hand.writes[:0])
	s.store.hand.writes = writes
	if refused := s.tooWide(k, list, writes); refused != nil {
		return todo, refused
	}
	if refused := s.roomFor(k, writes); refused != nil {
		return todo, refused
	}
	if todo.acquire != nil {
		if refused := allowedAcquire(k, &todo); refused != nil {
			return todo, refused
		}
	}
	return todo, allowedLinks(k, &todo)
}

// allowedAcquire judges the acquire of a transaction. It does not wait: it is granted with all the rest, or nothing is
// done.
func allowedAcquire(k kernel.Turn, todo *plan) (refused *leasehold.Error) {
	todo.items = todo.acquire.Items()
	if todo.claims, refused = k.Prepare(todo.acquire, todo.items); refused != nil {
		return refused
	}
	if refused := k.MirrorRefuses(todo.acquire, todo.items, todo.claims); refused != nil {
		return refused
	}
	_, refused = k.Admissible(todo.acquire, todo.items, todo.claims)
	return refused
}

// acquireFirst grants what a transaction acquires, wherever in its list that is, before anything changes that it was
// judged by: an operation that ends a lease lets others in, who may be in its way or take the last place under a cap.
func acquireFirst(k kernel.Turn, todo *plan) {
	if todo.acquire != nil {
		k.GrantOrQueue(todo.acquire, todo.items, todo.claims, nil)
		todo.granted = k.AskedAnswer(todo.claims)
	}
}

// settleLinks ends what is over of all that puts with links would take, before any of them is worked out: to settle one
// thing can change another.
func (s *records) settleLinks(k kernel.Turn, list []*kernel.Op) {
	for _, o := range list {
		if o.Link == nil || k.IsNew() {
			continue
		}
		s.liveRecord(k, o.Path)
		k.Touch(o.Link.ID)
		k.Settle(o.Link.Resource)
	}
}

// allowedPut works out one put.
func (s *records) allowedPut(k kernel.Turn, o *kernel.Op, todo *plan) *leasehold.Error {
	old := s.liveRecord(k, o.Path)
	w := record.Write{Path: o.Path, Value: o.Value, Large: o.Large, Session: o.Session, Keep: o.Keep}
	switch {
	case (o.KeepValue || o.KeepSession) && old == nil:
		return refuse(leasehold.NotFound, "%s is not there: there is nothing to keep", o.Path)
	case o.KeepValue:
		w.Value, w.Large = old.Value, old.Large
	}
	if o.KeepSession {
		w.Session = old.Session
	}
	if refused := s.rollBack(&w, o.From); refused != nil {
		return refused
	}
	p := putting{write: w, link: o.Link, before: o.Before}
	if o.Link != nil || old != nil && old.Lease != "" {
		var refused *leasehold.Error
		if p, refused = s.planPut(k, todo, old, p, o.KeepLink || o.KeepSession); refused != nil {
			return refused
		}
	}
	if todo.puts = append(todo.puts, p); p.gives != "" {
		todo.ends++
	}
	todo.later = todo.later || k.ChangedNow(old)
	return todo.touches(p.own, p.keeps, p.takes, p.gives)
}

// An answering counts what a transaction answers of records as they were.
type answering struct{ records, bytes int }

// allowedDelete judges one delete.
func (s *records) allowedDelete(
	k kernel.Turn, o *kernel.Op, doomed []*leasehold.Record, todo *plan, answered *answering,
) *leasehold.Error {
	if refused := mayGiveUp(k, doomed); refused != nil {
		return refused
	}
	for _, r := range doomed {
		if refused := todo.touches(r.Lease); refused != nil {
			return refused
		}
		if todo.later = todo.later || k.ChangedNow(r); o.Before {
			answered.records, answered.bytes = answered.records+1, answered.bytes+record.Bytes(r)
		}
	}
	if answered.records > leasehold.MaxPage || answered.records > 1 && answered.bytes > leasehold.MaxPageBytes {
		return refuse(leasehold.Limited, "the records that are deleted are too much for one answer, which has at most "+
			"%d of them and %d bytes: delete them in parts, or do not ask for them", leasehold.MaxPage,
			leasehold.MaxPageBytes)
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
func (s *records) tooWide(k kernel.Turn, list []*kernel.Op, writes []record.Write) *leasehold.Error {
	if k.IsNew() {
		return nil
	}
	w := kernel.NewBudget(kernel.MaxReadWork / 2)
	defer func() { k.Take(w.Done()) }()
	searched := 0
	for _, o := range list {
		if o.Do != kernel.Get || !o.Range && !o.Count {
			continue
		}
		q := queryOf(o)
		if _, all := s.recordsOfEndedSessions(k.Namespace, record.Query{From: o.Path, To: o.To}, &w); !all {
			return crowded()
		}
		if !q.Searches() {
			continue
		}
		n := s.table.Count(q)
		if searched += n; searched > leasehold.MaxSearched {
			return refuse(leasehold.Limited, "a transaction searches or orders more than %d records: give smaller "+
				"ranges", leasehold.MaxSearched)
		}
		w.Take(n / kernel.PerUnit)
	}
	if s.showsTooMuch(k, list, writes) {
		return refuse(leasehold.Limited, "the gets of a transaction show more than %d bytes: give them limits, or ask "+
			"in parts", leasehold.MaxReadBytes)
	}
	dropped := 0
	for i := range writes {
		dropped += s.table.Drops(&writes[i])
	}
	k.Take(dropped)
	if dropped > leasehold.MaxDroppedAtOnce {
		return refuse(leasehold.Limited, "a transaction drops %d former versions: at most %d are allowed; change in "+
			"parts how many are kept",
			dropped, leasehold.MaxDroppedAtOnce)
	}
	return nil
}

// showsTooMuch reports whether the gets among operations may show more bytes than an answer has. What the operations
// write themselves counts for each range that is read, since it may be in it.
func (s *records) showsTooMuch(k kernel.Turn, list []*kernel.Op, writes []record.Write) bool {
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
		if o.Do == kernel.Get && shown <= leasehold.MaxReadBytes {
			all := kernel.NewBudget(math.MaxInt)
			page, _ := s.page(k.Namespace, queryOf(o), &all)
			k.Take(len(page.Records) / kernel.PerUnit)
			shown += min(page.Bytes()+written, o.MostShown())
		}
	}
	return shown > leasehold.MaxReadBytes
}

// releasable returns why a lease cannot be released; nil if it can, or was released before.
func releasable(k kernel.Turn, id string) *leasehold.Error {
	if failure := k.MayRelease(id); failure != nil {
		return failure
	}
	if k.Touch(id) != nil || k.WasReleased(id) {
		return nil
	}
	return k.NoClaim(id)
}

// operate does one operation. It calls nothing that could refuse: allowed has found that all of them can be done, and
// half a transaction cannot be taken back.
func (s *records) operate(k kernel.Turn, o *kernel.Op, todo *plan) (result kernel.TxnResult) {
	switch {
	case o.Do == kernel.AcquireLease:
		result.Lease, result.Also = todo.granted.Lease, todo.granted.Also
	case o.Do == kernel.ReleaseLease:
		// What is gone was released before, or ended with what else the transaction ends.
		if claim := k.Claim(o.ID); claim != nil {
			k.GiveBack(claim)
		}
	case o.Do == kernel.Get:
		all := kernel.NewBudget(math.MaxInt)
		page, _ := s.page(k.Namespace, queryOf(o), &all)
		result.Page = &page
	case o.Do == kernel.Put:
		result = s.operatePut(k, todo.puts[0])
		todo.puts = todo.puts[1:]
	default:
		doomed := s.remaining(todo.doomed[0])
		todo.doomed = todo.doomed[1:]
		if o.Before {
			result.Before = doomed
		}
		s.drop(k, doomed)
		result.Deleted = len(doomed)
	}
	return result
}

func (s *records) operatePut(k kernel.Turn, p putting) (result kernel.TxnResult) {
	if p.before {
		if old, ok := s.table.Get(p.write.Path); ok {
			result.Before = []*leasehold.Record{old}
		}
	}
	r, answer := s.doPut(k, p)
	result.Record = &leasehold.Record{Create: r.Create, Mod: r.Mod, Version: r.Version, Token: r.Token, Lease: r.Lease}
	answer = kernel.Remembered(answer)
	result.Lease, result.Waiter = answer.Lease, answer.Waiter
	return result
}

// queryOf returns what a get asks for.
func queryOf(o *kernel.Op) record.Query {
	q := record.Query{From: o.Path, To: o.To, Most: o.Most, KeysOnly: o.KeysOnly, Count: o.Count, Select: o.Select}
	if !o.Range {
		q.To = o.Path + "\x00"
	}
	return q
}
