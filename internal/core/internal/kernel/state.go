// Package kernel decides who holds what: the state, the commands that change it, and the reads of it. Package core
// says what it is and gives it to everybody else.
package kernel

import (
	"fmt"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/btree"
	"github.com/leasehold/leasehold/internal/core/access"
	"github.com/leasehold/leasehold/internal/core/reservation"
	"github.com/leasehold/leasehold/internal/core/timeline"
)

// State is everything that is known. Only Apply changes it. Values in its trees are never
// changed in place but replaced by changed copies: that is what lets Freeze share them with a
// snapshot that is written while Apply goes on.
type State struct {
	// What is in every snapshot, and what decides.

	now  Time
	wall int64 // Unix nanoseconds at the last stamp, for people to read; reservations are judged by date
	lead Lead

	level Level // by whose rules it decides

	restored *Restored // nil: it was never restored from a backup

	spaces btree.Map[string, *space]

	idle    btree.Map[uint64, place] // resources that nobody has or wants, longest idle first
	idleSeq uint64

	caps    leasehold.Caps // those that were set
	capsSet bool           // a command did

	endingSeq uint64 // of the id that ended last
	answerSeq uint64 // of the request outside sessions that was answered last

	swept     string // the namespace that was looked at last, whether to forget it
	forgotten struct {
		token    leasehold.Token // the largest of all namespaces that were forgotten
		revision leasehold.Revision
	}

	alarms       Alarms
	reservations Reservations
	learning     Learning

	policy      *access.Policy                 // who may do what; nil: everybody may do everything
	revocations btree.Map[uint64, *Revocation] // what is still to be ended because somebody lost a role
	withdrawal  *Withdrawal                    // nil: everybody who waits may have what it waits for

	chores btree.Map[uint64, place] // what was put off, in turn; the path is a chore's key

	date reservation.Moment // of the calendar, which never goes back while something is reserved

	// What follows from that, and is made again when a snapshot is read.

	quarantine  *timer // its end
	totals      totals
	rankings    [orders]ranking
	definitions int         // how many there are in all namespaces
	tasks       int         // the same
	records     RecordStore // what is counted of those of all namespaces
	tallies     tallies     // what each principal has
	due         timeline.Heap[dueThing]

	// What this server alone has. None of it decides anything, work that is counted included.

	subjects *Subjects // that the kernel is put together with
	sequence uint64    // of the command at hand; tells whether it has its revision yet
	last     entry     // that was applied last, or is right now
	hand     turn      // the command at hand; empty between commands
	lists    lists
	spares   []*timer // of claims that ended, to be used again
	sweeping []*space // room for the namespaces that are looked at, whether to forget them
	frozen   bool     // it is a copy that Freeze made

	// For tests alone.

	smallWork int // the budget of an entry; 0: as it is
}

// A space is one namespace: tokens, revisions and sessions are ordered within it.
type space struct {
	name     string
	token    leasehold.Token
	revision leasehold.Revision
	arrivals uint64 // orders the queues

	resources btree.Map[string, *Resource]
	claims    ids
	queue     *btree.Tree[*Claim] // the waiting claims, by resource, then priority, then arrival
	sessions  btree.Map[string, *Session]
	bound     *btree.Tree[binding] // what each session would take with it
	sharers   *btree.Tree[sharer]  // the leases on slots, by resource, then token
	joint     *btree.Tree[*Claim]  // the waiters that want several resources at once, as in queue
	parties   *btree.Tree[binding] // what each party waits for

	definitions btree.Map[string, *leasehold.Definition]

	areas Areas

	pools Pools
	units int // how many the pools have

	tasks Tasks

	records Records
	mirrors int // resources whose holders show as records: see Records

	// Whose the claims and the records are that somebody owns, by id and by path. They are not part of a claim: in
	// a cluster where nobody is asked for a proof they cost nothing.
	claimOwners, recordOwners btree.Map[string, *access.Owner]

	endedSessions btree.Map[string, *EndedSession]
	outcomes      btree.Map[string, *Outcome]

	chores btree.Map[string, *Chore] // what was put off, by what it is about

	endings  longFifo[endingRef] // ended ids, oldest first
	answered fifo[outcomeRef]    // answered requests outside sessions, oldest first

	history      fifo[*leasehold.Event]
	historyBytes int
	lost         position // of the newest event that history has dropped

	places [orders]int // in the rankings

	changed Time   // when the newest revision was made; 0: there is none
	touched uint64 // the command that made the newest revision
	n       uint32 // its events so far
}

// A position is one event's place in a namespace.
type position struct {
	revision leasehold.Revision
	n        uint32
}

type place struct{ namespace, path string }

// A binding says that a claim ends with a session.
type binding struct{ session, id string }

func (s *State) newSpace(name string) *space {
	return &space{
		name: name, claims: newIDs(), queue: newQueue(), joint: newQueue(), parties: newBound(), sharers: newSharers(),
		bound:   newBound(),
		pools:   s.subjects.NewPools(),
		areas:   s.subjects.NewAreas(),
		tasks:   s.subjects.NewTasks(),
		records: s.records.New(),
	}
}

func newSharers() *btree.Tree[sharer] {
	return btree.New(func(a, b sharer) bool {
		if a.path != b.path {
			return a.path < b.path
		}
		return a.token < b.token
	})
}

func newBound() *btree.Tree[binding] {
	return btree.New(func(a, b binding) bool {
		if a.session != b.session {
			return a.session < b.session
		}
		return a.id < b.id
	})
}

// A Result is what applying one entry came to.
type Result struct {
	Answers []Answer           // one for each command
	Events  []*leasehold.Event // of all of them, in order
	Ends    []int              // for each command: where in Events its own end
	Shares  PoolShares         // of the holds that ended

	// The large values that nothing named before, and that something named: each in the
	// order in which it came to be so. One may be in both lists, and more than once.
	Named, Freed []leasehold.Large
}

// results makes room for what an entry comes to: in one piece of memory if it has a single command, as most entries of
// a server that is not busy.
func (e *entry) results(commands int) (answers []Answer, ends []int) {
	if commands != 1 {
		return make([]Answer, commands), make([]int, commands)
	}
	one := new(struct {
		answers [1]Answer
		ends    [1]int
		events  [2]*leasehold.Event
	})
	e.events = one.events[:0]
	return one.answers[:], one.ends[:]
}

// Of returns the events of one command.
func (r *Result) Of(i int) []*leasehold.Event {
	from := 0
	if i > 0 {
		from = r.Ends[i-1]
	}
	return r.Events[from:r.Ends[i]]
}

// Apply moves time to stamp and carries out the commands in order. wall is the
// leader's calendar in Unix nanoseconds, kept for display. An error means that
// the log itself is wrong, and that nothing after it may be trusted. from is where the
// commands came from, at most one of them; without it nobody knows.
func (s *State) Apply(stamp Time, wall int64, commands []Command, from ...From) (Result, error) {
	// Time that goes back could revive what has ended. No leader writes such a stamp, so the
	// log is not what was written.
	if stamp < s.now || stamp <= 0 {
		return Result{}, fmt.Errorf("stamp %d is below the state's time %d: the log is out of order", stamp, s.now)
	}
	s.now, s.wall, s.last = stamp, wall, entry{budget: s.newWork()}
	t := s.begin()
	t.turnPage()
	s.records.Begin()
	answers, ends := t.results(len(commands))
	for i, c := range commands {
		s.sequence++
		t = s.begin()
		if len(from) > 0 {
			t.setOrigin(from[0], i)
		}
		answer, err := t.apply(c)
		if err != nil {
			return Result{}, err
		}
		t.showHolders()
		t.emitLasts()
		answers[i], ends[i] = answer, len(t.events)
		// If one command made an event the others probably do: room for all is made at once.
		if n := len(t.events); n > 0 && i < len(commands)-1 {
			t.roomForEvents(len(commands) - i - 1)
		}
	}
	t = s.begin()
	// About twice as much is forgotten as an entry can add. So the tables come down to their
	// bounds, and no single entry pays for a long silence before it.
	t.forget(2*len(commands) + 2*len(t.events) + 16)
	t.sweep()
	return Result{answers, t.events, ends, t.shares, s.records.Named(), s.records.Freed()}, nil
}

func (t *turn) apply(c Command) (Answer, error) {
	if err := c.Validate(); err != nil {
		return refusal(err), nil
	}
	if refused := t.refuseOverBudget(c); refused != nil {
		return Answer{Err: refused}, nil
	}
	t.work.take(beginCost)
	t.keepDates()
	if refused, not := t.allow(c); not {
		return refused, nil
	}
	if answer, again := t.replay(c); again {
		return answer, nil
	}
	// An answer that says "nothing happened, send it again" is not remembered, or sending it
	// again would only get that answer.
	answer, err := t.decide(c)
	if err == nil && (answer.Err == nil || answer.Err.Code != leasehold.Unavailable) {
		t.remember(c, answer) // what did not happen may be sent again
	}
	return answer, err
}

// decide does what a command asks for. A refusal is an answer, too; the error is for commands that this state does not
// know.
func (t *turn) decide(c Command) (Answer, error) {
	switch c := c.(type) {
	case *OpenSession:
		return t.openSession(c), nil
	case *RenewSession:
		return t.renewSession(c), nil
	case *CloseSession:
		return t.closeSession(c), nil
	case *Acquire:
		return t.acquire(c), nil
	case *Renew:
		return t.renew(c), nil
	case *Release:
		return t.release(c), nil
	case *Change:
		return t.change(c), nil
	case *Break:
		return t.breakLease(c), nil
	case *Ask:
		return t.ask(c), nil
	case *Move:
		return t.move(c), nil
	case *PutRecord:
		sp := t.orNew(t.space(c.Namespace), c.Namespace)
		return sp.records.Put(t.in(sp), c), nil
	case *DeleteRecord:
		sp := t.orNew(t.space(c.Namespace), c.Namespace)
		return sp.records.Delete(t.in(sp), c), nil
	case *Txn:
		sp := t.orNew(t.space(c.Namespace), c.Namespace)
		return sp.records.Txn(t.in(sp), c), nil
	case *Define:
		return t.define(c), nil
	case *Undefine:
		return t.undefine(c), nil
	case *SetUnits:
		sp := t.orNew(t.space(c.Namespace), c.Namespace)
		return sp.pools.SetUnits(t.in(sp), c), nil
	case *Drain:
		sp := t.orNew(t.space(c.Namespace), c.Namespace)
		return sp.pools.Drain(t.in(sp), c), nil
	case *ReportUse:
		sp := t.orNew(t.space(c.Namespace), c.Namespace)
		return sp.pools.ReportUse(t.in(sp), c), nil
	case *PutTask:
		sp := t.orNew(t.space(c.Namespace), c.Namespace)
		return sp.tasks.Put(t.in(sp), c), nil
	case *FinishTask:
		sp := t.orNew(t.space(c.Namespace), c.Namespace)
		return sp.tasks.Finish(t.in(sp), c), nil
	case *Reserve:
		return t.reserve(c), nil
	case *CancelReservation:
		return t.cancelReservation(c), nil
	case *Acknowledge:
		return t.acknowledge(c), nil
	case *AcknowledgeAlarm:
		return t.acknowledgeAlarm(c), nil
	case *SetCaps:
		return t.setCaps(c), nil
	case *EndQuarantine:
		return t.endQuarantine(c), nil
	case *RaiseTokens:
		return t.raiseTokens(c), nil
	case *ChangeAccess:
		return t.changeAccess(c), nil
	case *Tick:
		t.tick(c)
		return Answer{}, nil
	case *Lead:
		t.leads(c)
		return Answer{}, nil
	}
	return Answer{}, fmt.Errorf("command %T is unknown here", c)
}

// space returns a namespace, or nil if nothing ever happened in it.
func (s *State) space(name string) *space {
	sp, _ := s.spaces.Get(name)
	return sp
}

// makeSpace returns a namespace and begins it if need be.
func (t *turn) makeSpace(name string) (*space, *leasehold.Error) {
	if sp := t.space(name); sp != nil {
		return sp, nil
	}
	sp := t.newSpace(name)
	if failure := t.keepSpace(sp); failure != nil {
		return nil, failure
	}
	return sp, nil
}

// orNew returns a namespace or, if that does not exist, an empty one to look at: a refusal must not begin it.
func (s *State) orNew(sp *space, namespace string) *space {
	if sp == nil {
		return s.newSpace(namespace)
	}
	return sp
}

// keepSpace begins a namespace, unless it has begun.
func (t *turn) keepSpace(sp *space) *leasehold.Error {
	if t.space(sp.name) == sp {
		return nil
	}
	if most := t.mostAllowed().Namespaces; t.spaces.Len() >= most {
		return &leasehold.Error{Code: leasehold.Limited, Message: fmt.Sprintf(
			"namespace %q would be new, the cluster has %d, and its cap is %d: use one that is there, or raise the "+
				"cap with leasehold cluster limits set",
			sp.name, t.spaces.Len(), most)}
	}
	// A new namespace may be one that existed before, in the cluster that a backup was taken of
	// or here before it was forgotten, so its tokens begin above all of those.
	t.rebase(sp)
	t.start(sp)
	t.spaces.Set(sp.name, sp)
	return nil
}
