package kernel

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold"
	"github.com/leasehold/leasehold/internal/core/command"
)

// A command that is sent twice must happen once. Ids that ended and requests that were answered
// are therefore remembered for longer than any client goes on retrying. The tables are bounded
// all the same: beyond their limits, the namespace that has the most entries forgets its
// oldest.
const (
	memory       = 10 * time.Minute
	maxEnded     = 1000000
	maxOutcomes  = 100000 // of requests outside sessions
	maxIdle      = 100000 // resources that nobody has or wants
	sequenceSpan = 1024   // requests remembered in each session
)

// An Outcome is the answer that a request got.
type Outcome struct {
	Key     string
	Subject string
	At      Time
	Answer  Answer
}

// An outcomeRef is one answer in the order in which answers are forgotten. The order spans all
// namespaces, since the limit does.
type outcomeRef struct {
	order uint64 // among those of all namespaces
	key   string
	at    Time
}

// pushOutcome notes that a request outside sessions was answered last.
func (t *turn) pushOutcome(sp *space, key string, at Time) {
	t.answerSeq++
	sp.answered.push(outcomeRef{t.answerSeq, key, at})
	t.totals.outcomes++
	t.ranked(sp, oldestOutcome)
	t.ranked(sp, mostOutcomes)
}

// forgetOutcome forgets the oldest answer of a namespace.
func (t *turn) forgetOutcome(sp *space) {
	sp.outcomes.Delete(sp.answered.front().key)
	sp.answered.pop()
	t.totals.outcomes--
	t.ranked(sp, oldestOutcome)
	t.ranked(sp, mostOutcomes)
}

// replay answers a request that was answered before, and reports whether it did. It comes
// before any decision: what was decided once is not decided again.
func (t *turn) replay(c Command) (Answer, bool) {
	r := command.RequestOf(c)
	if r == (Request{}) {
		return Answer{}, false
	}
	sp := t.space(command.NamespaceOf(c))
	if r.Session != "" {
		session := t.liveSession(sp, r.Session)
		if session == nil {
			if c, ok := c.(*CloseSession); ok && c.ID == r.Session {
				return Answer{}, false // its answer ended with the session; closing again finds it
			}
			return t.noSession(sp, r.Session), true
		}
		// The request may or may not have been carried out; its answer is no longer known. To
		// do it now could be the second time, so it is refused.
		if r.Sequence <= session.Sequence && session.Sequence-r.Sequence >= sequenceSpan {
			return refuse(leasehold.Refused,
				"request %d of session %q is too old: %d was the last, and %d are remembered",
				r.Sequence, r.Session, session.Sequence, sequenceSpan), true
		}
	}
	if sp == nil {
		return Answer{}, false
	}
	o, ok := sp.outcomes.Get(t.requestKey(r))
	switch {
	// A number below the last one may be new as well: requests of one session can overtake each
	// other on their way.
	case !ok:
		return Answer{}, false
	case command.Subject(c) != o.Subject:
		return refuse(leasehold.Invalid, "this request key was used for another request (%s): use a new key for each",
			command.ReadableSubject(o.Subject)), true
	}
	return t.screened(sp, c, t.asOfNow(sp, c, o.Answer)), true
}

// asOfNow returns an earlier answer as it may be given at this stamp. What it said about time
// was true at its own stamp; repeated, it would promise a holder more than is left. So
// everything that is alive is looked up again, and what has ended since is reported as lost.
func (t *turn) asOfNow(sp *space, c Command, a Answer) Answer {
	id := ""
	_, isBreak := c.(*Break)
	reserve, isReserve := c.(*Reserve)
	switch {
	case isReserve && a.Err == nil:
		return t.reservations.Again(Namespace{t.State, sp}, reserve)
	case isBreak && len(a.Also) > 0:
		return t.breaksAsOfNow(sp, a)
	case a.Lease != nil && (a.Lease.State == leasehold.Leased || a.Lease.State == leasehold.Breaking):
		id = a.Lease.ID
	case a.Waiter != nil:
		id = a.Waiter.ID
	case a.Session != nil:
		if session := t.liveSession(sp, a.Session.ID); session != nil {
			return t.sessionAnswer(sp, session)
		}
		return t.noSession(sp, a.Session.ID)
	case a.Txn != nil:
		return t.txnAsOfNow(sp, a)
	default:
		return a
	}
	claim := t.touch(sp, id)
	if a.Record != nil && claim != nil {
		again := t.claimAnswer(sp, claim) // of a put with a link
		again.Record = a.Record
		return again
	}
	switch {
	case claim == nil:
		if isBreak {
			return t.breakAgain(sp, id)
		}
		return t.noClaim(sp, id)
	case claim.Waiting():
		return t.waiterAnswer(sp, t.stillWanted(sp, claim))
	}
	if c, ok := c.(*Acquire); ok && c.ID == id && len(c.Also) > 0 {
		return t.acquireAgain(sp, c) // each of its leases has a token that the caller needs
	}
	return t.leaseAnswer(sp, claim)
}

// txnAsOfNow is asOfNow for the leases that a transaction acquired.
func (t *turn) txnAsOfNow(sp *space, a Answer) Answer {
	again, lost := t.resultsAsOfNow(sp, a.Txn)
	if again == nil {
		return lost
	}
	return Answer{Txn: again}
}

// resultsAsOfNow shows the leases and waiters in the results of a transaction as they are now; or nothing, and how the
// first of them was lost.
func (t *turn) resultsAsOfNow(sp *space, was *TxnAnswer) (*TxnAnswer, Answer) {
	again := *was
	again.Results = slices.Clone(was.Results)
	for i := range again.Results {
		r := &again.Results[i]
		var ids []string
		switch {
		case r.Txn != nil:
			nested, lost := t.resultsAsOfNow(sp, r.Txn)
			if nested == nil {
				return nil, lost
			}
			r.Txn = nested
			continue
		case r.Waiter != nil:
			ids = []string{r.Waiter.ID}
		case r.Lease != nil:
			for _, lease := range append([]leasehold.Lease{*r.Lease}, r.Also...) {
				ids = append(ids, lease.ID)
			}
		default:
			continue
		}
		claims := make([]*Claim, 0, len(ids))
		for _, id := range ids {
			claim := t.touch(sp, id)
			if claim == nil {
				return nil, t.noClaim(sp, id)
			}
			claims = append(claims, claim)
		}
		now := t.claimAnswer(sp, claims[0])
		if now.Lease != nil {
			now = t.leasesAnswer(sp, claims)
		}
		r.Lease, r.Also, r.Waiter = now.Lease, now.Also, now.Waiter
	}
	return &again, Answer{}
}

// remember keeps the answer of a request for when it is sent again.
func (t *turn) remember(c Command, a Answer) {
	r := command.RequestOf(c)
	sp := t.space(command.NamespaceOf(c))
	if r == (Request{}) || sp == nil {
		return
	}
	key := t.requestKey(r)
	if r.Session != "" {
		session, ok := sp.sessions.Get(r.Session)
		if !ok {
			return // the request closed the very session it is counted in
		}
		t.count(sp, session, r.Sequence)
	} else {
		t.pushOutcome(sp, key, t.now)
	}
	sp.outcomes.Set(key, &Outcome{Key: key, Subject: command.Subject(c), At: t.now, Answer: Remembered(a)})
}

// Remembered returns an answer as it is kept: without how far a forecast may be off, which an answer that is given
// again has for its own moment.
func Remembered(a Answer) Answer {
	if a.Waiter != nil && a.Waiter.ForecastError != 0 {
		a.Waiter = new(*a.Waiter)
		a.Waiter.ForecastError = 0
	}
	if a.Err != nil && a.Err.ForecastError != 0 {
		a.Err = new(*a.Err)
		a.Err.ForecastError = 0
	}
	return a
}

// count records a sequence number and forgets the outcomes that fall out of the window. Only a
// number above the last one moves the window, so each outcome is deleted once.
func (t *turn) count(sp *space, session *Session, sequence uint64) {
	if sequence <= session.Sequence {
		return
	}
	oldest := session.Sequence - min(session.Sequence, sequenceSpan-1)
	for n := oldest; n <= session.Sequence && sequence-n >= sequenceSpan; n++ {
		sp.outcomes.Delete(requestKey(Request{Session: session.ID, Sequence: n}))
	}
	counted := *session
	counted.Sequence = sequence
	sp.sessions.Set(session.ID, &counted)
}

// forgetRequests drops the outcomes of a session that ended. Nothing is lost by that: whatever
// is sent in the session from now on is refused with the session itself.
func (t *turn) forgetRequests(sp *space, session string) {
	first := requestKey(Request{Session: session})
	prefix := first[:len(first)-8]
	var keys []string
	sp.outcomes.Ascend(first, func(key string, _ *Outcome) bool {
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		keys = append(keys, key)
		return true
	})
	for _, key := range keys {
		sp.outcomes.Delete(key)
	}
}

// requestKey is requestKey for who asks: the same key of two principals names two requests.
func (t *turn) requestKey(r Request) string {
	if r.Session != "" || t.asker == nil {
		return requestKey(r)
	}
	b := binary.BigEndian.AppendUint16([]byte{keyOfPrincipal}, uint16(len(t.asker.Principal)))
	return string(append(append(b, t.asker.Principal...), r.Key...))
}

// keyOfPrincipal begins the keys of requests outside sessions whose asker is known. Like the "k" of the
// others it comes before the "s" of those in sessions.
const keyOfPrincipal = 'p'

// requestKey names a request in the table of outcomes. The requests of one session are next to
// each other, in the order of their numbers, with nobody else's among them: the length of the
// id comes first, because an id may contain any bytes and one could otherwise be the beginning
// of another.
func requestKey(r Request) string {
	if r.Session == "" {
		return "k" + r.Key
	}
	b := binary.BigEndian.AppendUint16([]byte("s"), uint16(len(r.Session)))
	return string(binary.BigEndian.AppendUint64(append(b, r.Session...), r.Sequence))
}
