package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core"
	"github.com/leasehold/leasehold/internal/sim/rights"
)

// writings is what a witness knows of records: each as the last event left it, and how many of
// them name each large value.
type writings struct {
	records map[spot]*leasehold.Record
	named   map[leasehold.Digest]int // by how many records

	// Of the entry that is being read: how often it made a value named, and took its last
	// name away.
	first, last map[leasehold.Digest]int
}

func newWritings() writings {
	return writings{
		records: map[spot]*leasehold.Record{}, named: map[leasehold.Digest]int{},
		first: map[leasehold.Digest]int{}, last: map[leasehold.Digest]int{},
	}
}

// event takes what happened to a record. Each event must continue from the one before, and a
// value must be one that the command put there.
func (x *writings) event(t *witness, c core.Command, e *leasehold.Event) {
	at := spot{e.Namespace, e.Resource}
	before := x.records[at]
	if before == nil && e.Previous != nil || before != nil && (e.Previous == nil || before.Mod != e.Previous.Mod) {
		t.world.violated("%s was changed last at %+v, and the next change came after %+v", at.name, before, e.Previous)
	}
	if e.Kind == leasehold.RecordDeleted {
		delete(x.records, at)
		x.unname(before)
		return
	}
	r, version := e.Record, uint64(1)
	if before != nil {
		version = before.Version + 1
	}
	if r.Version != version || r.Mod != e.Revision || r.Path != at.name {
		t.world.violated("%s is put as version %d at %d, and should be %d at %d", at.name, r.Version, r.Mod, version,
			e.Revision)
	}
	if value, large, ok := put(c, at); t.faces.Unasked(c, e) {
		t.world.count("records made or freed")
	} else if !ok || value != r.Value || !sameLarge(large, r.Large) {
		t.world.violated("%s has %q and %v, which nobody put", at.name, r.Value, r.Large)
	}
	// The new record names its value before the old one gives it up, as the core must do it
	// too: a value that is in both is never free.
	x.records[at] = r
	x.name(r)
	x.unname(before)
}

// put finds what a command puts somewhere.
func put(c core.Command, at spot) (value string, large *leasehold.Large, ok bool) {
	switch c := c.(type) {
	case *core.PutRecord:
		return c.Value, c.Large, c.Namespace == at.space && c.Path == at.name
	case *core.PutTask:
		return c.Value, nil, c.Namespace == at.space && c.Path == at.name
	case *core.Txn:
		for _, list := range [][]core.Op{c.Then, c.Else} {
			for _, o := range list {
				if o.Do == core.Put && c.Namespace == at.space && o.Path == at.name {
					return o.Value, o.Large, true
				}
			}
		}
	}
	return "", nil, false
}

func sameLarge(a, b *leasehold.Large) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func (x *writings) name(r *leasehold.Record) {
	if r == nil || r.Large == nil {
		return
	}
	if x.named[r.Large.SHA256]++; x.named[r.Large.SHA256] == 1 {
		x.first[r.Large.SHA256]++
	}
}

func (x *writings) unname(r *leasehold.Record) {
	if r == nil || r.Large == nil {
		return
	}
	if x.named[r.Large.SHA256]--; x.named[r.Large.SHA256] == 0 {
		delete(x.named, r.Large.SHA256)
		x.last[r.Large.SHA256]++
	}
}

// values checks what an entry reports about large values: which got their first name, and which
// lost their last. A value that is freed too early is lost, one that is never freed fills the
// disk.
func (t *witness) values(result core.Result) {
	x := &t.writings
	for _, large := range result.Named {
		x.first[large.SHA256]--
	}
	for _, large := range result.Freed {
		x.last[large.SHA256]--
	}
	for _, counts := range []map[leasehold.Digest]int{x.first, x.last} {
		for digest, n := range counts {
			if n != 0 {
				t.world.violated("value %v got its name, or lost it, %d times more than was said", digest, n)
			}
		}
		clear(counts)
	}
}

// compared checks which way a transaction went. Clients only compare what does not depend on
// whether something that is over has been collected.
func (t *witness) compared(c core.Command, answer core.Answer) {
	x, ok := c.(*core.Txn)
	if !ok || answer.Txn == nil || t.known(c) != nil {
		return
	}
	holds := true
	for _, compare := range x.If {
		holds = holds && t.holds(x.Namespace, compare)
	}
	if holds != answer.Txn.Succeeded {
		t.world.violated("a transaction with %+v succeeded: %v, and should: %v", x.If, answer.Txn.Succeeded, holds)
	}
	list := x.Then
	if !holds {
		list = x.Else
	}
	if len(answer.Txn.Results) != len(list) {
		t.world.violated("a transaction has %d results of %d operations", len(answer.Txn.Results), len(list))
	}
}

// holds reports whether one comparison holds before a command.
func (t *witness) holds(space string, c core.Compare) bool {
	r := t.writings.records[spot{space, c.Path}]
	switch c.What {
	case core.RecordVersion:
		version := uint64(0)
		if r != nil {
			version = r.Version
		}
		return version == c.Number
	case core.RecordValue:
		return r != nil && r.Value == c.Text
	case core.RecordLease:
		return r != nil && r.Lease == c.Text && !t.gone(space, r)
	case core.LeaseToken:
		p := t.byToken[grant{space, leasehold.Token(c.Number)}]
		return p != nil && p.at.name == c.Path && t.now < p.ends()
	}
	panic(fmt.Sprintf("nobody here compares %d", c.What))
}

// An outcome is what the request of a name came to, the first time.
type outcome struct {
	at      core.Time
	code    leasehold.Code // 0: it was done
	mod     leasehold.Revision
	succeed bool
	unasked bool // nobody was asked who it is: the same name is another request since then, or is not
}

// request is the name of a command in its namespace; false: it has none.
func request(c core.Command) (spot, bool) {
	var r core.Request
	space := ""
	switch c := c.(type) {
	case *core.Acquire:
		r, space = c.Request, c.Namespace
	case *core.Release:
		r, space = c.Request, c.Namespace
	case *core.Change:
		r, space = c.Request, c.Namespace
	case *core.PutRecord:
		r, space = c.Request, c.Namespace
	case *core.Txn:
		r, space = c.Request, c.Namespace
	case *core.PutTask:
		r, space = c.Request, c.Namespace
	case *core.Reserve:
		r, space = c.Request, c.Namespace
	}
	if r == (core.Request{}) {
		return spot{}, false
	}
	return spot{space, fmt.Sprintf("%s %s %d", r.Key, r.Session, r.Sequence)}, true
}

// known returns what a request came to before; nil: it is new, or has no name.
func (t *witness) known(c core.Command) *outcome {
	name, ok := request(c)
	if !ok {
		return nil
	}
	return t.once[name]
}

// again checks that a request which was answered before does nothing more, and gets the same
// answer. What it said of a lease may be over by now.
func (t *witness) again(c core.Command, answer core.Answer, events []*leasehold.Event) {
	name, ok := request(c)
	if !ok {
		return
	}
	now, before := told(t.now, answer), t.once[name]
	if before == nil {
		// Nothing is remembered in a namespace in which nothing happened yet.
		if answer.Err == nil || t.revisions[name.space] > 0 {
			t.once[name] = now
		}
		return
	}
	if before.unasked {
		return
	}
	t.world.count("requests sent again")
	for _, e := range events {
		if t.does(c, e) {
			t.world.violated("request %q did %v of %s%s again", name.name, e.Kind, e.ID, e.Resource)
		}
	}
	if answer.Err == nil && (before.code != 0 || now.mod != before.mod || now.succeed != before.succeed) {
		t.world.violated("request %q is told %+v, and was told %+v before", name.name, *now, *before)
	}
}

func told(at core.Time, a core.Answer) *outcome {
	o := &outcome{at: at}
	switch {
	case a.Err != nil:
		o.code = a.Err.Code
	case a.Record != nil:
		o.mod = a.Record.Mod
	case a.Txn != nil:
		o.mod, o.succeed = a.Txn.Revision, a.Txn.Succeeded
	}
	return o
}

// does reports whether an event is the doing of a command itself, and not the end of something
// that was over already.
func (t *witness) does(c core.Command, e *leasehold.Event) bool {
	switch e.Kind {
	case leasehold.Queued:
		return true
	case leasehold.Acquired:
		return rights.Asked(c, e) != nil && t.claims[spot{e.Namespace, e.ID}] == nil // it did not wait
	case leasehold.Changed, leasehold.BreakSet, leasehold.RecordPut:
		return true
	case leasehold.RecordDeleted:
		return e.How == 0
	case leasehold.Ended:
		return e.How == leasehold.Released
	}
	return false
}

// digests lists the values that have a name, in order.
func (x *writings) digests() []leasehold.Digest {
	list := make([]leasehold.Digest, 0, len(x.named))
	for d := range x.named {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b leasehold.Digest) int { return cmp.Compare(string(a[:]), string(b[:])) })
	return list
}

// recorded compares the records of a state with what was put.
func (t *witness) recorded(s *server) {
	t.tasksOf(s)
	t.reservationsOf(s)
	w := t.world
	view, want := s.node.State().View(0), t.writings.digests()
	var got []leasehold.Digest
	s.node.State().Larges(func(l leasehold.Large) bool {
		got = append(got, l.SHA256)
		return true
	})
	if !slices.Equal(got, want) {
		w.violated("server %d names %d large values, and should name %d", s.id, len(got), len(want))
	}
	for _, at := range sortedSpots(t.writings.records) {
		if t.gone(at.space, t.writings.records[at]) {
			continue
		}
		r, failure := view.Record(at.space, at.name, 0)
		if failure != nil || r.Value != t.writings.records[at].Value || r.Mod != t.writings.records[at].Mod {
			w.violated("server %d has %q in %s, and should have %q", s.id, r.Value, at.name,
				t.writings.records[at].Value)
		}
	}
}
